"""Write the parts of `docs/reference` that the program itself knows. Run by `make reference`.

A page may have one part between two marks, which is replaced whole. In the tables of settings the columns of
the type and of the default are filled in; what a setting means is written by hand.
"""

import asyncio
import dataclasses
import enum
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

import typer

import weft
from weft import errors
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.cli.main import COMMANDS
from weft.config import Config
from weft.gateway.stream_settings import StreamSettings

FOLDER = Path(__file__).parent / "reference"
BEGIN, END = "<!-- made by `make reference` -->", "<!-- the end of what `make reference` makes -->"
Schema = Mapping[str, Any]
RECIPES = ("weft", "omega", "pattern", "chai", "miniclaw")
_ADDRESS = re.compile(r"<(\S+).*? at 0x[0-9a-f]+>")
_ROW = re.compile(r"^\| `([\w.]+)` \|[^\n]*\|$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return each page as it should be."""
    parts: dict[str, Callable[[], str]] = {
        "api": _names,
        "options": _commands,
        "http": _routes,
        "recipes": _recipes,
        "errors": _errors,
    }
    written = {}
    for name, part in parts.items():
        path = FOLDER / f"{name}.md"
        before, _, rest = path.read_text("utf-8").partition(BEGIN)
        written[path] = f"{before}{BEGIN}\n\n{part().strip()}\n\n{END}{rest.partition(END)[2]}"
    config = FOLDER / "config.md"
    written[config] = _settings(config.read_text("utf-8"))
    return written


# Python


def _names() -> str:
    return "\n\n".join(_name(name, getattr(weft, name)) for name in weft.__all__ if name != "__version__")


def _name(name: str, thing: Any) -> str:
    if inspect.ismodule(thing):
        functions = [
            getattr(thing, each) for each in thing.__all__ if inspect.isfunction(getattr(thing, each))
        ]
        body = "\n".join(line for function in functions for line in _function(function, f"{name}."))
    elif inspect.isclass(thing):
        body = "\n".join([f"class {name}{_fields(thing)}", *_methods(thing)])
    else:
        body = "\n".join(_function(thing, f"{'async ' if inspect.iscoroutinefunction(thing) else ''}"))
    return f"### {name}\n\n{_summary(thing)}\n\n```text\n{body}\n```"


def _summary(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _fields(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        return "".join(f"\n    {member.name} = {_quoted(member.value)}" for member in cls)
    if issubclass(cls, Exception) or getattr(cls, "_is_protocol", False):
        return f"({', '.join(base.__name__ for base in cls.__bases__)})"
    try:
        signature = inspect.signature(cls)
    except ValueError:
        return ""
    return _parameters(signature)


def _parameters(signature: inspect.Signature) -> str:
    shown = [each for each in signature.parameters.values() if each.name != "self"]
    parts: list[str] = []
    named = False
    for each in shown:
        if each.kind is each.KEYWORD_ONLY and not named:
            parts, named = [*parts, "*"], True
        named = named or each.kind is each.VAR_POSITIONAL
        parts.append(_parameter(each))
    line = f"({', '.join(parts)})"
    if len(line) <= 80:
        return line
    return "(" + "".join(f"\n        {part}," for part in parts) + "\n    )"


def _parameter(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if isinstance(default, enum.Enum):
        parameter = parameter.replace(default=_Bare(f"{type(default).__name__}.{default.name}"))
    elif dataclasses.is_dataclass(default) and len(repr(default)) > 40:
        parameter = parameter.replace(default=_Bare(f"{type(default).__name__}(...)"))
    written = str(parameter.replace(annotation=_type(parameter.annotation)))
    return _ADDRESS.sub(r"\1", written).replace("'", '"')


def _type(hint: Any) -> Any:
    """Return a type as one writes it, which `inspect` prints without quotes."""
    if hint is inspect.Parameter.empty:
        return hint
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    return _Bare(re.sub(r"\b(?:typing|collections\.abc|weft(?:\.\w+)*)\.", "", text))


class _Bare(str):
    """A text whose `repr` is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _function(function: Any, before: str = "") -> list[str]:
    signature = inspect.signature(function)
    back = signature.return_annotation
    result = "" if back is inspect.Signature.empty else f" -> {_type(back)}"
    lines = [f"{before}{function.__name__}{_parameters(signature)}{result}"]
    return [*lines, f"    {_summary(function)}"] if function.__doc__ else lines


def _methods(cls: type) -> Iterator[str]:
    if issubclass(cls, enum.Enum | Exception):
        return
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("weft")]
    members = {name: member for base in ours for name, member in vars(base).items()}
    for name, member in sorted(members.items()):
        kind = "async " if inspect.iscoroutinefunction(member) else ""
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"    .{name}: {_type(inspect.signature(member.fget).return_annotation)}"  # type: ignore[arg-type]
        elif isinstance(member, classmethod | staticmethod | types.FunctionType):
            function = getattr(cls, name)
            yield from (f"    {line}" for line in _function(function, f"{kind}."))


# The command line


def _commands() -> str:
    return "\n\n".join(text for name in COMMANDS for text in _command(name))


def _command(name: str) -> Iterator[str]:
    app = importlib.import_module(f"weft.cli.{name}_" if iskeyword(name) else f"weft.cli.{name}").app
    command = typer.main.get_command(app)
    yield f"## {name}\n\n{COMMANDS[name]}"
    children = getattr(command, "commands", None)
    if children is None:
        yield _call(command, f"weft {name}")
        return
    if command.params:
        yield _call(command, f"weft {name}")
    for child, sub in children.items():
        yield f"### {name} {child}\n\n{sub.help or ''}\n\n{_call(sub, f'weft {name} {child}')}"


def _call(command: Any, path: str) -> str:
    context = typer.Context(command, info_name=path)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    usage = usage.replace("{", "").replace("}", "")
    records = [each.get_help_record(context) for each in command.get_params(context)]
    rows = [f"- `{name}`{_told(text)}" for name, text in filter(None, records) if name != "--help"]
    return "\n".join([f"```text\n{usage}\n```", "", *rows]).strip()


def _told(text: str) -> str:
    text = " ".join(text.split()).replace("[", "(").replace("]", ")")
    return f": {text}" if text else ""


# Settings


def _settings(page: str) -> str:
    known = {**dict(_settings_of(Config)), **dict(_settings_of(StreamSettings, stream=True))}

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", match[0])[1:-1]]
        if name not in known or len(cells) != 4:
            return match[0]
        hint, default = known[name]
        by_hand = cells[2] if default in {"none", "needed"} or "`" not in default else default
        return f"| `{name}` | {hint} | {by_hand} | {cells[3]} |"

    return _ROW.sub(fill, page)


def _settings_of(
    cls: type, prefix: str = "", *, stream: bool = False
) -> Iterator[tuple[str, tuple[str, str]]]:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        default = field.default
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            yield from _settings_of(type(default), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, (_toml_type(hints[field.name]), _toml_default(default))


def _toml_type(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{_quoted(part)}`" for part in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_toml_type(part) for part in parts if part is not type(None))
    if origin is tuple:
        return f"list of {_toml_type(parts[0])}".replace("list of table", "tables").replace("of one of", "of")
    if origin in (dict, Mapping) or origin is getattr(typing, "Mapping", None):
        return "table"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "one of " + ", ".join(f"`{_quoted(each.value)}`" for each in hint)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(hint, "table")


def _toml_default(default: Any) -> str:
    if default is dataclasses.MISSING:
        return "needed"
    if (
        default is None
        or default == ""
        or isinstance(default, Mapping | tuple)
        or dataclasses.is_dataclass(default)
    ):
        return "none"
    return f"`{_quoted(default)}`"


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


# HTTP


async def _describe() -> dict[str, Any]:
    assistant = await weft.connect(provider=weft.ScriptedProvider(""), database=":memory:")
    description = make_app(assistant, HttpChannelSettings()).openapi()
    await assistant.close()
    return dict(description)


def _routes() -> str:
    description = asyncio.run(_describe())
    bodies = description["components"]["schemas"]
    routes = [
        _route(f"{method.upper()} {path}", route, bodies)
        for path, methods in sorted(description["paths"].items())
        for method, route in methods.items()
    ]
    return "\n\n".join(["## Every route", *routes])


def _route(name: str, route: Schema, bodies: Schema) -> str:
    rows = [
        _field(each["name"], each["schema"], each["in"], each.get("required"), bodies)
        for each in route.get("parameters", ())
    ]
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "schema" in content:
        body = bodies[content["schema"]["$ref"].rpartition("/")[2]]
        rows += [
            _field(key, schema, "body", key in body.get("required", ()), bodies)
            for key, schema in body["properties"].items()
        ]
    told = " ".join(route.get("description", "").split())
    table = ["", "| field | in | type | |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"### `{name}`", "", told, *table]).rstrip()


def _field(name: str, schema: Schema, place: str, required: object, bodies: Schema) -> str:
    default = schema.get("default")
    note = "required" if required else f"default `{_quoted(default)}`" if default not in (None, "") else ""
    return f"| `{name}` | {place} | {_json_type(schema, bodies)} | {note} |"


def _json_type(schema: Schema, bodies: Schema) -> str:
    if "anyOf" in schema:
        kinds = [_json_type(each, bodies) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return "one of " + ", ".join(f"`{_quoted(each)}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_json_type(schema.get('items', {}), bodies)}"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _json_type(bodies[name], bodies) if "enum" in bodies[name] else f"object ({name})"
    return str(schema.get("type", "any"))


# Recipes


def _recipes() -> str:
    return "\n\n".join(["## The five recipes", *map(_recipe, RECIPES)])


def _recipe(name: str) -> str:
    recipe = weft.Recipe.load(name)
    total, reserved = recipe.limits.max_tokens, recipe.limits.reserved_response_tokens
    limits = f"{total:,} tokens, {reserved:,} of them for the answer"
    rows = [
        f"| {number} | `{layer.source}` | {_keep(layer)} | {_limit(layer)} | {_keys(layer)} |"
        for number, layer in enumerate(recipe.layers, 1)
    ]
    head = ["| | source | keep | limit | keys |", "|--:|---|---|---|---|"]
    values = f"stability `{recipe.stability}`, history `{recipe.history.strategy}`"
    facts = f"Form `{recipe.form}`, {values}; {limits}."
    return "\n".join([f"### {name}", "", recipe.description, "", facts, "", *head, *rows])


def _keep(layer: Any) -> str:
    return "" if layer.source in {"history", "message"} else str(layer.keep.value)


def _limit(layer: Any) -> str:
    limits = [f"share {layer.share}"] if layer.share else []
    return ", ".join(limits + ([f"{layer.max_tokens:,} tokens"] if layer.max_tokens else []))


def _keys(layer: Any) -> str:
    keys = {"title": layer.title, "tag": layer.tag, **layer.options}
    return ", ".join(f"`{key}`{_short(value)}" for key, value in keys.items() if value not in ("", None))


def _short(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return f" {_quoted(value)}"
    if isinstance(value, str):
        return (
            f" {value.splitlines()[0]}".replace("|", "\\|") if len(value) <= 40 and "<" not in value else ""
        )
    if isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        return f" {', '.join(value)}"
    return ""


# Errors


def _errors() -> str:
    return "\n".join(["## The tree", "", "```text", *_tree(errors.WeftError), "```"])


def _tree(cls: type[errors.WeftError], depth: int = 0) -> Iterator[str]:
    own = "__init__" in vars(cls)
    values = (
        [each for each in inspect.signature(cls).parameters if each not in {"args", "kwargs"}] if own else []
    )
    fields = f"({', '.join(values)})" if values else ""
    yield f"{'    ' * depth}{cls.__name__}{fields}"
    children = [each for each in vars(errors).values() if isinstance(each, type) and cls in each.__bases__]
    for child in children:
        yield from _tree(child, depth + 1)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
