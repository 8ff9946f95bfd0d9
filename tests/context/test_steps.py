"""What a turn does grows its request, within the same limit."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.context.steps import with_steps
from weft.tokens import counter

from samples import assistant, user


def step(size: int, n: int = 0) -> tuple[weft.Message, weft.Message]:
    call = weft.ToolCall(id=f"c{n}", name="look")
    result = weft.Message(role="tool", content="x" * size, tool_call_id=f"c{n}", tool_name="look")
    return weft.Message(role="assistant", content="", tool_calls=(call,)), result


async def built(limit: int, exchanges: int = 3, size: int = 400) -> weft.Context:
    recipe = weft.Recipe.load("miniclaw").replace(max_context_tokens=limit)
    history = [m for n in range(exchanges) for m in (user(f"{n}" * size), assistant("a" * size))]
    return await weft.ContextBuilder(recipe=recipe).with_messages(history).build("hi")


async def test_steps_stand_behind_the_message_and_in_the_receipt() -> None:
    context = await built(4000)

    grown = with_steps(context, step(40))

    assert [m.role for m in grown.to_messages()[-3:]] == ["user", "assistant", "tool"]
    assert grown.history == context.history
    assert grown.receipt is not None
    assert context.receipt is not None
    item = grown.receipt.items[-1]
    assert (item.layer, item.title, item.zone) == ("steps", "1 call with results", "turn")
    assert grown.receipt.total_tokens == context.receipt.total_tokens + item.tokens


async def test_the_oldest_exchanges_give_way_to_results() -> None:
    context = await built(1000)

    grown = with_steps(context, step(2000))

    assert grown.receipt is not None
    assert 0 < len(grown.history) < len(context.history)
    assert grown.history == context.history[-len(grown.history) :]
    assert grown.history[0].role == "user"
    assert not grown.receipt.over_limit
    assert [item.reason for item in grown.receipt.dropped] == ["gave way to the results of tools"]


async def test_results_of_earlier_rounds_are_shortened_when_nothing_else_can_give() -> None:
    context = await built(1000, exchanges=0)

    grown = with_steps(context, [*step(3000, 0), *step(2000, 1)])

    assert grown.steps[1].content.endswith("[Shortened: the request had no room for more of this result.]")
    assert grown.steps[3].content == "x" * 2000, "the last results are shown whole"


async def test_the_last_results_are_shortened_before_the_turn_is_given_up() -> None:
    grown = with_steps(await built(1000), step(8000))

    assert grown.receipt is not None
    assert not grown.receipt.over_limit
    assert grown.history == ()
    assert len(grown.steps[1].content) == 2000 + 1 + len(
        "[Shortened: the request had no room for more of this result.]"
    )
    cut = grown.receipt.dropped[-1]
    assert (cut.layer, cut.title, cut.tokens) == ("steps", "the rest of long results", 1485)


async def test_results_that_cannot_fit_are_an_error_that_names_them_or_are_sent_if_the_recipe_says_so() -> (
    None
):
    context = await built(1000)
    many = [message for n in range(20) for message in step(700, n)]

    with pytest.raises(weft.BudgetExceeded, match="the results of tools"):
        with_steps(context, many)

    sent = with_steps(context, many, send=True)
    assert sent.receipt is not None
    assert sent.receipt.over_limit
    assert len(sent.steps) == 40


async def test_the_summary_of_what_was_folded_stays_and_the_receipt_adds_up() -> None:
    async def by(before: str, messages: Sequence[weft.Message]) -> str:
        return "They spoke."

    limits = weft.ModelContextLimits(max_tokens=1000)
    strategy = weft.RecursiveSummarization(chunk_size=4)
    config = weft.ContextConfig(default_limits=limits, compression_strategy=strategy, max_messages_cap=8)
    history = [m for n in range(6) for m in (user(f"{n}" * 400), assistant("a" * 40))]
    builder = weft.ContextBuilder(recipe="pattern", config=config).with_messages(history)
    context = await builder.with_summarizer(by).build("hi")

    grown = with_steps(context, step(2800))

    assert [m.content[:8] for m in grown.history] == ["[Summary", "55555555", "aaaaaaaa"]
    assert grown.receipt is not None
    count = counter("chars/4")
    assert grown.receipt.by_layer["history"] == sum(map(count.message, grown.history))
    assert [item.title for item in grown.receipt.items if item.layer == "history"] == [
        "summary of messages 1-8",
        "messages 1-8",
        "messages 9-10",
        "messages 11-12",
    ]


async def test_a_history_that_is_never_cut_is_sent_whole() -> None:
    context = await built(1000)

    grown = with_steps(context, step(8000), cuttable=False)

    assert grown.history == context.history
    assert grown.receipt is not None
    assert grown.receipt.over_limit


@given(st.lists(st.integers(0, 3000), max_size=6), st.integers(300, 3000), st.integers(0, 5))
def test_what_grows_stays_within_the_limit_or_is_an_error(sizes: list[int], limit: int, count: int) -> None:
    receipt = weft.Receipt(
        items=(
            weft.ReceiptItem(
                layer="history", source="history", tokens=100 * count * 2, kept=True, span=(1, 2 * count)
            ),
        ),
        limit=max(limit, 200 * count),
        counter="chars/4",
    )
    history = [m for _ in range(count) for m in (user("u" * 400), assistant("a" * 400))]
    context = weft.Context(history=tuple(history), current_message="hi", receipt=receipt)
    steps = [message for n, size in enumerate(sizes) for message in step(size, n)]

    try:
        grown = with_steps(context, steps)
    except weft.BudgetExceeded:
        return
    assert grown.receipt is not None
    assert not grown.receipt.over_limit
    spoken = sum(len(m.content) // 4 for m in grown.history)
    assert grown.receipt.by_layer.get("history", 0) == spoken
