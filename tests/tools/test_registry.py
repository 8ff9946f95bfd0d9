"""The tools of an assistant, by name."""

import pytest

import weft


def tool(name: str) -> weft.ToolDefinition:
    return weft.ToolDefinition(name=name)


def test_tools_stand_in_the_order_in_which_they_were_added() -> None:
    registry = weft.ToolRegistry([tool("b"), tool("a")])

    registry.add(tool("c"))

    assert [definition.name for definition in registry.definitions()] == ["b", "a", "c"]


def test_a_registry_may_be_empty() -> None:
    assert weft.ToolRegistry().definitions() == ()


def test_a_tool_is_found_by_its_name() -> None:
    look_up = tool("look_up")

    assert weft.ToolRegistry([tool("a"), look_up]).get("look_up") is look_up


def test_a_name_can_be_taken_only_once() -> None:
    registry = weft.ToolRegistry([tool("look_up")])

    with pytest.raises(
        weft.ToolError, match=r"There is a tool 'look_up' already: give this one another name\."
    ):
        registry.add(tool("look_up"))
    assert len(registry.definitions()) == 1


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (["look_up", "write"], "There is no tool 'lookup': did you mean 'look_up'?"),
        (["write", "read"], "There is no tool 'lookup': known are read, write."),
        ([], "There is no tool 'lookup': none is known."),
    ],
)
def test_an_unknown_tool_leads_to_the_known_ones(tools: list[str], said: str) -> None:
    with pytest.raises(weft.ToolError) as caught:
        weft.ToolRegistry(map(tool, tools)).get("lookup")

    assert str(caught.value) == said


def test_definitions_that_were_given_out_do_not_grow() -> None:
    registry = weft.ToolRegistry([tool("a")])
    before = registry.definitions()

    registry.add(tool("b"))

    assert len(before) == 1
