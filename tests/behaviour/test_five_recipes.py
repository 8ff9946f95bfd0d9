"""The same conversation and the same workspace, as each of the five recipes shows it."""

import os
import re
from pathlib import Path

import pytest

import weft

from samples import NOW, assistant, result, user, whole_store, write_workspace

SNAPSHOTS = Path(__file__).parent / "snapshots"
RECIPES = ("chai", "miniclaw", "omega", "pattern", "weft")
HISTORY = [
    user("Where is my log?"),
    assistant("", "call-1"),
    result("call-1", "a green notebook"),
    assistant("In the green notebook."),
    user("Thanks!"),
    assistant("Any time."),
]
RULES = [
    weft.ToolRule.exit_loop("send_message"),
    weft.ToolRule.continue_loop("search"),
    weft.ToolRule.max_calls("api_request", 3),
    weft.ToolRule.start_constraint("context"),
]
TOOLS = [
    weft.ToolDefinition(
        name="look_up",
        description="Find something.",
        parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    )
]


def _builder(recipe: str, workspace: Path) -> weft.ContextBuilder:
    return (
        weft.ContextBuilder(recipe=recipe)
        .with_workspace(workspace)
        .with_store(whole_store(HISTORY))
        .for_agent("iris")
        .for_sender("telegram", "42")
        .with_session("s1")
        .with_tools(TOOLS)
        .with_tool_rules(RULES)
        .with_activity([weft.ActivityEntry(at=NOW, text="looked at the tides", agent="iris")])
        .at(NOW)
    )


def _shown(context: weft.Context) -> str:
    """Everything that a model gets and everything that the receipt tells, as text."""
    assert context.receipt is not None
    messages = [
        f"[{m.role}]{' calls ' + m.tool_calls[0].name if m.tool_calls else ''}\n{m.content}"
        for m in context.to_messages()
    ]
    receipt = [
        f"{'kept' if item.kept else 'LEFT'} {_tokens(item):>4} {item.zone:<7} {item.layer}: {item.title}"
        for item in context.receipt.items
        # The heading of the bootstrap costs one token or none, by the length of the test's folder.
        if (item.layer, item.title) != ("bootstrap", "heading")
    ]
    return "\n\n".join([*messages, "== receipt ==\n" + "\n".join(receipt)]) + "\n"


def _tokens(item: weft.ReceiptItem) -> str:
    """The price of an item; the bootstrap's depends on where the test's folder is."""
    return "*" if item.layer == "bootstrap" else str(item.tokens)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_one_conversation_is_shown_as_the_recipe_promises(recipe: str, tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")

    context = await _builder(recipe, workspace).build("Where does the boat leave from?")

    shown = _shown(context).replace(str(tmp_path), "TMP")
    shown = re.sub(r"(?m)^Environment: \w+, Python [\d.]+", "Environment: SYSTEM", shown)
    snapshot = SNAPSHOTS / f"{recipe}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(shown, "utf-8")
    assert shown == snapshot.read_text("utf-8")


@pytest.mark.parametrize("recipe", RECIPES)
async def test_every_recipe_ends_with_the_message_and_accounts_for_all_of_it(
    recipe: str, tmp_path: Path
) -> None:
    workspace = write_workspace(tmp_path / "workspace")

    context = await _builder(recipe, workspace).build("Where does the boat leave from?")

    receipt = context.receipt
    assert receipt is not None
    last = context.to_messages()[-1]
    assert last.role == "user"
    assert last.content.endswith("Where does the boat leave from?")
    assert receipt.total_tokens == sum(receipt.by_layer.values())
    assert not receipt.over_limit
