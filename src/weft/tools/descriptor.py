"""A skill's `tools.json`: its tools, what they may run, and how a call becomes a command line.

People write the file by hand, so it is read strictly: an unknown key would otherwise be a rule that nobody
applies. An error is one sentence with the file, the line and the key.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeVar, get_args

from weft.errors import ToolError, did_you_mean
from weft.tools.interpreters import is_interpreter, refusal
from weft.types.escape import sendable
from weft.types.message import ToolDefinition

TOOLS_FILE = "tools.json"
MAX_BYTES = 1_000_000
Kind = Literal["positional", "flag", "flagifboolean"]

_FLAG = re.compile(r"-{0,2}[^\s=-][^\s=]*")
_OPEN_FLAG = re.compile(r"-(?!\w\Z|-[^=]+=)")
"""The start of an option whose name or end is still open."""
_WITHOUT_END_OF_OPTIONS = frozenset({"find", "gfind"})
_PLACEHOLDER = re.compile(r"\$(param|name)(?!\w)")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """A command whose output takes the place of a value: a script of the skill, or a listed binary.

    `end_of_options` says that it takes what stands behind a `--` of its arguments as values.
    """

    script: str = ""
    binary: str = ""
    subcommand: str = ""
    args: tuple[str, ...] = ()
    end_of_options: bool = False

    def filled(self, value: str, param: str) -> tuple[str, ...]:
        """Return the arguments with `$param` replaced by the value and `$name` by the parameter's name."""
        known = {"param": value, "name": param}
        return tuple(_PLACEHOLDER.sub(lambda match: known[match[1]], word) for word in self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """How one parameter of a call becomes words of the command line."""

    param: str
    kind: Kind = "positional"
    flag: str = ""
    flag_if_true: str = ""
    flag_if_false: str = ""
    normalize_newlines: bool = False
    resolve: Resolve | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What runs when a tool is called. It says nothing about whether that is allowed.

    `end_of_options` says that the program takes what stands behind `--` as values, whatever it looks like.
    """

    tool: str
    binary: str
    subcommand: str = ""
    args: tuple[Argument, ...] = ()
    end_of_options: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A whole `tools.json`: every tool has exactly one execution.

    `untrusted` names the tools whose results strangers wrote, such as the text of a web page.
    """

    tools: tuple[ToolDefinition, ...] = ()
    untrusted: frozenset[str] = frozenset()
    allowlist: Mapping[str, frozenset[str]] = field(default_factory=dict)
    execution: Mapping[str, Execution] = field(default_factory=dict)


def parse(text: str, *, path: str) -> Descriptor:
    """Parse the text of a `tools.json`.

    Raises:
        ToolError: the file is not as it must be; the sentence names the file, the line and the key.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise ToolError(f"{path} has {size} bytes and {MAX_BYTES} are allowed: make it shorter.")
    try:
        return _descriptor(_Node(_load(text), ()))
    except json.JSONDecodeError as error:
        raise ToolError(
            f"{path}, line {error.lineno}, is not JSON: {error.msg.lower()} at column {error.colno}."
        ) from None
    except RecursionError:
        raise ToolError(f"{path} is nested too deeply: make it flatter.") from None
    except _Wrong as wrong:
        raise ToolError(f"{path}, line {_line(text, wrong.place)}, {_key(wrong.place)}: {wrong}") from None


def doubts(descriptor: Descriptor, *, allow_scripts: bool) -> Iterator[str]:
    """Yield a sentence for each tool that is valid but fails whenever it is called."""
    for tool in descriptor.tools:
        runs = descriptor.execution[tool.name]
        resolving = [arg.resolve for arg in runs.args if arg.resolve and arg.resolve.binary]
        commands = [(runs.binary, runs.subcommand), *((one.binary, one.subcommand) for one in resolving)]
        for binary, subcommand in commands:
            if subcommand not in descriptor.allowlist.get(binary, ()):
                words = f"{binary} {subcommand}".strip()
                yield f"tool {tool.name!r}: {words!r} is not on the allowlist, so it is never run"
            elif not allow_scripts and is_interpreter(binary, shutil.which(binary) or ""):
                yield f"tool {tool.name!r} is refused: {refusal(binary)}"
        properties = tool.parameters.get("properties")
        for arg in runs.args:
            if not isinstance(properties, Mapping) or arg.param not in properties:
                yield f"tool {tool.name!r}: its `parameters` do not tell the model of {arg.param!r}"


def is_plain_name(name: str) -> bool:
    """Check that a name is the name of a file in a folder: no path, no option."""
    return bool(name) and not name.startswith(("-", ".")) and not re.search(r"[/\\\s\0]|\.\.", name)


# --- what the file must be


def _descriptor(root: _Node) -> Descriptor:
    root.only("tools", "allowlist", "execution")
    tools = root.each("tools", _tool)
    execution = root.each("execution", _execution)
    allowlist = root.get("allowlist", {}).table()
    names = _unique(tools, "name", root)
    runs = _unique(execution, "tool", root)
    for at, tool in enumerate(tools):
        if tool.name not in runs:
            root.at("tools", at, "name").wrong(f"the tool {tool.name!r} has no execution: add one.")
    for at, run in enumerate(execution):
        if run.tool not in names:
            root.at("execution", at, "tool").wrong(
                f"there is no tool {run.tool!r}: {did_you_mean(run.tool, names)}"
            )
    untrusted = [node.get("name").text() for node in root.get("tools", []).items() if _is_untrusted(node)]
    return Descriptor(
        tools=tools,
        untrusted=frozenset(untrusted),
        allowlist={_binary(node, name): frozenset(node.texts()) for name, node in allowlist.items()},
        execution={run.tool: run for run in execution},
    )


def _unique(entries: Sequence[Any], key: str, root: _Node) -> set[str]:
    """Return the names of tools or executions, each of which may stand only once."""
    names: set[str] = set()
    for at, entry in enumerate(entries):
        name = getattr(entry, key)
        if name in names:
            place = "tools" if key == "name" else "execution"
            root.at(place, at, key).wrong(f"{name!r} stands here for the second time: remove one.")
        names.add(name)
    return names


def _is_untrusted(node: _Node) -> bool:
    return node.get("untrusted", False).boolean()


def _tool(node: _Node) -> ToolDefinition:
    node.only("name", "description", "parameters", "untrusted")
    description = node.get("description", None)
    parameters = node.get("parameters", _NO_PARAMETERS)
    parameters.table()
    return ToolDefinition(
        name=node.get("name").filled(),
        description=None if description.data is None else description.text(),
        parameters=parameters.data,
    )


def _execution(node: _Node) -> Execution:
    node.only("tool", "binary", "subcommand", "args", "endOfOptions")
    _check_end_of_options(node)
    return Execution(
        tool=node.get("tool").filled(),
        binary=_binary(node.get("binary")),
        subcommand=node.get("subcommand", "").text(),
        args=node.each("args", _argument),
        end_of_options=node.get("endOfOptions", False).boolean(),
    )


def _argument(node: _Node) -> Argument:
    node.only("param", "kind", "flag", "flagIfTrue", "flagIfFalse", "normalizeNewlines", "resolveCommand")
    kind, flag = node.get("kind", "positional"), node.get("flag", "")
    param = node.get("param").filled()
    if kind.data not in get_args(Kind):
        kind.wrong(f"{kind.data!r} is not a kind: {did_you_mean(str(kind.data), get_args(Kind))}")
    if flag.text() and not _FLAG.fullmatch(flag.data):
        flag.wrong(f"{flag.data!r} is not the name of an option: write one such as '--content'.")
    resolve = node.get("resolveCommand", None)
    return Argument(
        param=param,
        kind=kind.data,
        flag=flag.data,
        flag_if_true=node.get("flagIfTrue", "").text(),
        flag_if_false=node.get("flagIfFalse", "").text(),
        normalize_newlines=node.get("normalizeNewlines", False).boolean(),
        resolve=None if resolve.data is None else _resolve(resolve, param),
    )


def _resolve(node: _Node, param: str) -> Resolve:
    node.only("script", "binary", "subcommand", "args", "endOfOptions")
    _check_end_of_options(node)
    script, args, ends = node.get("script", ""), node.get("args", []), node.get("endOfOptions", False)
    for at, word in enumerate(Resolve(args=args.texts()).filled("\0", param)):
        before, value, _ = word.partition("\0")
        if value and _OPEN_FLAG.match(before):
            args.at(at).wrong(
                f"in {args.data[at]!r} the value would choose the option: write '--option=$param'."
            )
    if script.text():
        if "binary" in node.data or "subcommand" in node.data:
            script.wrong("there is a binary too: keep one of the two.")
        if not is_plain_name(script.data):
            script.wrong(f"{script.data!r} is not the name of a file in the skill's `scripts` folder.")
        return Resolve(script=script.data, args=args.texts(), end_of_options=ends.boolean())
    return Resolve(
        binary=_binary(node.get("binary")),
        subcommand=node.get("subcommand").text(),
        args=args.texts(),
        end_of_options=ends.boolean(),
    )


def _check_end_of_options(node: _Node) -> None:
    """Refuse a promise that is known to be wrong: `find . -- -delete` deletes."""
    ends, binary = node.get("endOfOptions", False), node.get("binary", "").data
    if ends.boolean() and binary in _WITHOUT_END_OF_OPTIONS:
        ends.wrong(f"{binary!r} takes what stands behind `--` as orders too: leave this out.")


def _binary(node: _Node, name: str | None = None) -> str:
    binary = node.filled() if name is None else name
    if not is_plain_name(binary):
        node.wrong(f"{binary!r} is not the name of a program: write it without a path or options.")
    return binary


# --- reading values, and knowing where each stands

Place = tuple[str | int, ...]
T = TypeVar("T")
_REQUIRED = object()


class _Wrong(Exception):
    """An error in the file, with the place of the wrong value."""

    def __init__(self, place: Place, sentence: str) -> None:
        super().__init__(sentence)
        self.place = place


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the file together with its place."""

    data: Any
    place: Place

    def wrong(self, sentence: str) -> NoReturn:
        raise _Wrong(self.place, sentence)

    def at(self, *place: str | int) -> _Node:
        data = self.data
        for step in place:
            data = data[step]
        return _Node(data, (*self.place, *place))

    def get(self, key: str, default: Any = _REQUIRED) -> _Node:
        if key not in self.table() and default is _REQUIRED:
            raise _Wrong((*self.place, key), "this key is missing: add it.")
        return _Node(self.data.get(key, default), (*self.place, key))

    def only(self, *keys: str) -> None:
        for key in self.table():
            if key not in keys:
                self.at(key).wrong(f"this key is not known here: {did_you_mean(key, keys)}")

    def each(self, key: str, read: Callable[[_Node], T]) -> tuple[T, ...]:
        return tuple(read(node) for node in self.get(key, []).items())

    def table(self) -> dict[str, _Node]:
        if not isinstance(self.data, Mapping):
            self.wrong("this must be an object, in braces.")
        return {key: _Node(value, (*self.place, key)) for key, value in self.data.items()}

    def items(self) -> list[_Node]:
        if not isinstance(self.data, list):
            self.wrong("this must be a list, in brackets.")
        return [_Node(value, (*self.place, at)) for at, value in enumerate(self.data)]

    def texts(self) -> tuple[str, ...]:
        return tuple(node.text() for node in self.items())

    def text(self) -> str:
        if not isinstance(self.data, str):
            self.wrong("this must be text, in quotes.")
        if sendable(self.data)[1]:
            self.wrong("this holds a character that no program takes: remove it.")
        return self.data

    def filled(self) -> str:
        if not self.text().strip():
            self.wrong("this is empty: give it a name.")
        return str(self.data)

    def boolean(self) -> bool:
        if not isinstance(self.data, bool):
            self.wrong("this must be true or false.")
        return self.data


def _load(text: str) -> Any:
    """Parse a JSON text and refuse a key that stands twice, because the first would silently be lost."""
    twice = False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice |= len(dict(members)) < len(members)
        return dict(members)

    data = json.loads(text, object_pairs_hook=pairs)
    if twice:
        again = next(tuple(place) for place, _, is_again in _places(text) if is_again)
        raise _Wrong(again, "this key stands here for the second time: remove one.")
    return data


def _key(place: Place) -> str:
    """Name a place: its key, and the lists and objects around it."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    return f"key {''.join(steps).removeprefix('.')!r}" if place else "at the top"


def _line(text: str, target: Place) -> int:
    """Return the line of a place; for a missing key, that of the object it is missing from."""
    depth, offset = 0, len(text) - len(text.lstrip())
    for place, began, _ in _places(text):
        if depth <= len(place) <= len(target) and tuple(place) == target[: len(place)]:
            depth, offset = len(place), began
    return text.count("\n", 0, offset) + 1


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],]|[^\s{}\[\],:"]++')


def _places(text: str) -> Iterator[tuple[list[str | int], int, bool]]:
    """Yield every key and item of a valid JSON text, with its offset, and whether the key stood there before.

    The yielded place changes with the next step. There is no recursion, because a text that the parser could
    just follow would be too deep for a second, slower one.
    """
    place: list[str | int] = []
    keys: list[set[str] | None] = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "}]":
            place.pop()
            keys.pop()
            continue
        known = keys[-1] if keys else None
        if word == ",":
            at = place[-1]
            place[-1] = "" if known is not None else int(at) + 1
            waits_for_key = known is not None
            continue
        if known is not None and waits_for_key:
            place[-1], waits_for_key = json.loads(word), False
            yield place, token.start(), place[-1] in known
            known.add(str(place[-1]))
            continue
        if place and known is None:
            yield place, token.start(), False
        if word in "{[":
            waits_for_key = word == "{"
            place.append("" if waits_for_key else 0)
            keys.append(set() if waits_for_key else None)
