"""The ways to shorten the history of an epoch: by a cut alone, and by shortening old results first."""

from dataclasses import replace
from pathlib import Path

import pytest

import weft
from weft.types.recipe import Recipe


def _recipe(strategy: str) -> Recipe:
    recipe = Recipe.load("weft")
    return replace(recipe, history=replace(recipe.history, strategy=strategy))  # type: ignore[arg-type]


async def _talk(recipe: Recipe, home: Path, result: str = "") -> weft.ScriptedProvider:
    """Talk until a second epoch has begun. With a result, every answer calls a tool that returns it."""

    def look() -> str:
        """Look around."""
        return result

    answer = "It is calm. " * 20
    call = weft.Reply(text="", tool_calls=(weft.ToolCall(id="c", name="look"),), stop_reason="tools")
    script: list[str | weft.Reply] = [call, answer] * 90 if result else [answer] * 90
    info = weft.ModelInfo(id="m", provider="scripted", max_tokens=16_000)
    model = weft.ScriptedProvider(script, info=info)
    app = await weft.connect(provider=model, database=home / "weft.db", tools=[look])
    app.engine = replace(app.engine, builder=weft.ContextBuilder(recipe=recipe))
    for number in range(80):
        reply = await app.ask(f"How is bay {number}? " + "Tell me. " * 20, session="s")
        await app.folds.settle()
        assert reply.receipt is not None
        if reply.receipt.epoch > 1:
            break
    await app.close()
    return model


@pytest.mark.parametrize("strategy", ["truncate", "mask"])
async def test_a_strategy_without_summaries_cuts_to_the_low_mark_and_asks_nobody(
    strategy: str, tmp_path: Path
) -> None:
    model = await _talk(_recipe(strategy), tmp_path)

    receipt = model.requests[-1].receipt
    assert receipt is not None
    assert receipt.epoch == 2
    assert receipt.epoch_why.startswith("full")
    assert receipt.by_layer["history"] <= receipt.fold_to
    assert all("Summary" not in message.content for message in model.requests[-1].history)


async def test_mask_shortens_the_results_of_earlier_exchanges_first(tmp_path: Path) -> None:
    model = await _talk(_recipe("mask"), tmp_path, result="waves " * 300)

    first = next(one for one in model.requests if one.receipt is not None and one.receipt.epoch == 2)
    results = [message.content for message in first.history if message.role == "tool"]
    assert len(results) > 2
    assert all("[Shortened: this result of an earlier exchange" in text for text in results[:-1])
