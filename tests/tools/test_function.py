"""A Python function becomes a tool by its signature and its docstring."""

import threading
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal

import pytest

import weft
from weft.tools.function import tool_from


class Side(Enum):
    PORT = "port"
    STARBOARD = "starboard"


def steer(
    side: Side,
    degrees: float,
    speed: Literal["slow", "fast"] = "slow",
    marks: list[int] | None = None,
    sure: bool = True,
) -> dict[str, Any]:
    """Turn the boat.

    It turns at once, so look first.

    Args:
        side: To which side.
        degrees: How far,
            in degrees.

    Returns:
        What was done.
    """
    return {"side": side.value, "degrees": degrees, "speed": speed, "marks": marks, "sure": sure}


async def run(function: Any, **arguments: Any) -> str:
    return await tool_from(function).run(arguments, weft.Caller(agent_id="iris"))


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    definition = tool_from(steer).definition

    assert definition.name == "steer"
    assert definition.description == "Turn the boat.\n\nIt turns at once, so look first."
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "side": {"enum": ["port", "starboard"], "description": "To which side."},
            "degrees": {"type": "number", "description": "How far, in degrees."},
            "speed": {"enum": ["slow", "fast"]},
            "marks": {"type": "array", "items": {"type": "integer"}},
            "sure": {"type": "boolean"},
        },
        "required": ["side", "degrees"],
    }


async def test_arguments_come_in_the_types_of_the_signature() -> None:
    told = await run(steer, side="port", degrees="12.5", marks=["1", 2], sure="false", speed="fast")

    assert told == '{"side": "port", "degrees": 12.5, "speed": "fast", "marks": [1, 2], "sure": false}'


async def test_defaults_stand_where_nothing_is_given() -> None:
    assert '"speed": "slow", "marks": null, "sure": true' in await run(steer, side="port", degrees=1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"degrees": 1}, "missing parameter: side"),
        ({"side": None, "degrees": 1}, "missing parameter: side"),
        ({"side": "up", "degrees": 1}, "side must be one of"),
        ({"side": "port", "degrees": "far"}, "degrees must be a number"),
        ({"side": "port", "degrees": True}, "degrees must be a number"),
        ({"side": "port", "degrees": 1, "speed": "warp"}, "speed must be one of"),
        ({"side": "port", "degrees": 1, "marks": "x"}, "marks must be a list"),
        ({"side": "port", "degrees": 1, "sure": "maybe"}, "sure must be true or false"),
        ({"side": "port", "degres": 1}, "unknown parameter: degres; did you mean 'degrees'?"),
    ],
)
async def test_wrong_arguments_are_told_in_words(arguments: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(weft.ToolError, match=sentence.replace("?", r"\?")):
        await run(steer, **arguments)


async def test_the_caller_comes_from_the_program_and_not_from_the_model() -> None:
    async def whose(caller: weft.Caller, note: str = "") -> str:
        return caller.agent_id

    assert "caller" not in tool_from(whose).definition.parameters["properties"]
    assert await run(whose) == "iris"
    with pytest.raises(weft.ToolError, match="unknown parameter: caller"):
        await run(whose, caller="rose")


async def test_a_plain_function_does_not_hold_up_the_others() -> None:
    def where() -> str:
        return threading.current_thread().name

    assert await run(where) != threading.main_thread().name


async def test_lists_objects_and_anything_pass() -> None:
    async def take(names: Sequence[str], table: dict[str, int], any_: Any = 1, two: int | str = 0) -> str:
        return f"{names} {table} {any_} {two}"

    assert await run(take, names=["a"], table={"x": 1}, any_=[None], two="b") == "['a'] {'x': 1} [None] b"
    with pytest.raises(weft.ToolError, match="table must be an object"):
        await run(take, names=[], table=3)


def test_a_parameter_that_cannot_be_told_to_a_model_is_refused_at_once() -> None:
    def odd(place: threading.Thread) -> None: ...

    def more(*names: str) -> None: ...

    with pytest.raises(weft.ToolError, match="cannot tell a model what 'place' is"):
        tool_from(odd)
    with pytest.raises(weft.ToolError, match="without a name of its own"):
        weft.ToolRegistry([more])


async def test_a_registry_takes_functions_tools_and_definitions() -> None:
    registry = weft.ToolRegistry([steer, weft.ToolDefinition(name="beep"), tool_from(steer, name="turn")])

    offered = await registry.offered("hi")

    assert [definition.name for definition in offered.definitions] == ["steer", "beep", "turn"]
    assert list(offered.tools) == ["steer", "turn"]


async def test_of_two_tools_with_one_name_the_first_is_offered_with_a_warning() -> None:
    class Source:
        warnings, rules = ("one of its tools is broken",), ()

        async def close(self) -> None: ...

        async def tools(self, message: str) -> list[weft.Tool]:
            return [tool_from(steer, source="a skill"), tool_from(steer, name="row")]

    offered = await weft.ToolRegistry([steer], sources=[Source()]).offered("hi")

    assert [definition.name for definition in offered.definitions] == ["steer", "row"]
    assert offered.warnings == (
        "The tool 'steer' of a skill is left out: the name is taken.",
        "one of its tools is broken",
    )
