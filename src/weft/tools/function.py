"""A Python function becomes a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from weft.errors import ToolError, did_you_mean
from weft.tools.base import Order, Tool, ToolKind
from weft.types.message import ToolDefinition
from weft.types.request import Caller

_TYPES: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ARGUMENT = re.compile(r"^ {4}(\w+)(?: *\([^)]*\))?: *(.*)$")


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    kind: Any
    required: bool


def tool_from(
    function: Callable[..., Any],
    *,
    name: str = "",
    source: str = "",
    kind: ToolKind = "other",
    order: Order = "",
) -> Tool:
    """Make a tool of a function. A parameter of the type `Caller` is filled by the program, not the model.

    A function that is not async runs in a thread of its own. What is not text is returned as JSON.

    Raises:
        ToolError: a parameter has a type that no model can be told.
    """
    called = name or function.__name__
    parameters, caller = _parameters(function, called)
    about, meanings = _docs(function)
    properties = {p.name: _schema(p.kind, called, p.name) | _told(meanings.get(p.name)) for p in parameters}
    definition = ToolDefinition(
        name=called,
        description=about or None,
        parameters={
            "type": "object",
            "properties": properties,
            "required": [p.name for p in parameters if p.required],
        },
    )

    async def run(arguments: Mapping[str, Any], by: Caller) -> str:
        values = _read(arguments, parameters) | ({caller: by} if caller else {})
        if inspect.iscoroutinefunction(function):
            result = await function(**values)
        else:
            result = await _in_thread(lambda: function(**values))
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    return Tool(definition=definition, run=run, source=source or function.__module__, kind=kind, order=order)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Do work that may block in a thread of its own.

    The threads that asyncio shares out are few, and the store reads in them: functions that hang would take
    them all. This one does not keep the program from ending, either.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    finished: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(outcome: tuple[Any, BaseException | None]) -> None:
        if not finished.done():
            finished.set_result(outcome)

    def run() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (context.run(work), None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, name="weft-tool", daemon=True).start()
    result, error = await finished
    if error is not None:
        raise error
    return result


def _parameters(function: Callable[..., Any], called: str) -> tuple[list[_Parameter], str]:
    hints, listed, caller = get_type_hints(function), list[_Parameter](), ""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolError(
                f"The tool {called!r} has a parameter {name!r} without a name of its own: give it one."
            )
        kind = hints.get(name, str)
        if kind is Caller:
            caller = name
        else:
            listed.append(_Parameter(name, kind, parameter.default is parameter.empty))
    return listed, caller


def _docs(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Read what the docstring says of the function, and below `Args:` of each parameter."""
    text = inspect.getdoc(function) or ""
    about, _, rest = text.partition("\nArgs:\n")
    meanings: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break  # the next part of the docstring
        if match := _ARGUMENT.match(line):
            name = match[1]
            meanings[name] = match[2].strip()
        elif name and line.strip():
            meanings[name] = f"{meanings[name]} {line.strip()}"
    return about.strip(), meanings


def _told(meaning: str | None) -> dict[str, str]:
    return {"description": meaning} if meaning else {}


def _schema(kind: Any, tool: str, name: str) -> dict[str, Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _TYPES:
        return {"type": _TYPES[kind]}
    if origin in (Union, types.UnionType):
        options = [option for option in inner if option is not type(None)]
        if len(options) == 1:
            return _schema(options[0], tool, name)
        return {"anyOf": [_schema(option, tool, name) for option in options]}
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if (origin or kind) in (list, tuple, set, Sequence):
        return {"type": "array"} | ({"items": _schema(inner[0], tool, name)} if inner else {})
    if (origin or kind) in (dict, Mapping):
        return {"type": "object"}
    if kind is Any:
        return {}
    raise ToolError(
        f"The tool {tool!r} cannot tell a model what {name!r} is: use text, numbers, lists or dicts."
    )


def _read(arguments: Mapping[str, Any], parameters: Sequence[_Parameter]) -> dict[str, Any]:
    """Convert the arguments as the function takes them.

    Raises:
        ToolError: one is missing, unknown, or of the wrong type.
    """
    known = {parameter.name for parameter in parameters}
    for name in arguments:
        if name not in known:
            raise ToolError(f"unknown parameter: {name}; {did_you_mean(name, known)}")
    values: dict[str, Any] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None and (parameter.required or parameter.name not in arguments):
            if parameter.required:
                raise ToolError(f"missing parameter: {parameter.name}")
            continue
        values[parameter.name] = _value(parameter.kind, value, parameter.name)
    return values


def _value(kind: Any, value: Any, name: str) -> Any:
    """Convert a value as its annotation says."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _first_fitting(inner, value, name)
    if origin is Literal:
        return _checked(name, f"one of {list(inner)}", lambda: inner[inner.index(value)])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _checked(name, f"one of {[member.value for member in kind]}", lambda: kind(value))
    if (origin or kind) in (list, tuple, set, Sequence):
        if not isinstance(value, list | tuple):
            raise ToolError(f"wrong parameter: {name} must be a list")
        items = [_value(inner[0], item, name) if inner else item for item in value]
        return items if (origin or kind) is Sequence else (origin or kind)(items)
    if (origin or kind) in (dict, Mapping) and not isinstance(value, Mapping):
        raise ToolError(f"wrong parameter: {name} must be an object")
    return _plain(kind, value, name)


def _plain(kind: Any, value: Any, name: str) -> Any:
    """Convert a text, a number or a truth value. A number written as text is read."""
    if kind is str and not isinstance(value, str):
        raise ToolError(f"wrong parameter: {name} must be a text")
    if kind is bool:
        words = {True: True, False: False, "true": True, "false": False}
        return _checked(
            name, "true or false", lambda: words[value.lower() if isinstance(value, str) else value]
        )
    if kind in (int, float):
        if isinstance(value, bool) or (kind is int and isinstance(value, float) and value % 1):
            raise ToolError(f"wrong parameter: {name} must be {'a whole' if kind is int else 'a'} number")
        return _checked(name, "a number", lambda: kind(value))
    return value


def _first_fitting(kinds: Sequence[Any], value: Any, name: str) -> Any:
    """Convert a value to the first of several types that takes it; the error is that of the first."""
    if value is None and type(None) in kinds:
        return None
    first, *others = (kind for kind in kinds if kind is not type(None))
    try:
        return _value(first, value, name)
    except ToolError:
        if not others:
            raise
        return _first_fitting(others, value, name)


def _checked(name: str, wanted: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (ValueError, TypeError, KeyError, OverflowError):
        raise ToolError(f"wrong parameter: {name} must be {wanted}") from None
