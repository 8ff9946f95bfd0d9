"""The recipe `pattern`: what its lines promise of a history that is too long."""

from collections.abc import Sequence

import pytest

import weft
from weft.turn.run import Turn, run_turn

from samples import assistant, user


def conversation(exchanges: int) -> list[weft.Message]:
    return [m for n in range(exchanges) for m in (user(f"question {n}"), assistant(f"answer {n}"))]


def pending(text: str) -> list[weft.Message]:
    call = weft.ToolCall(id=text, name="look")
    return [user(text), weft.Message(role="assistant", content="", tool_calls=(call,))]


def shown(context: weft.Context) -> list[str]:
    return [message.content for message in context.history]


async def built(
    history: Sequence[weft.Message], strategy: weft.Truncate | weft.RecursiveSummarization, cap: int = 10
) -> weft.Context:
    async def summarise(before: str, messages: Sequence[weft.Message]) -> str:
        return f"{before}|{' '.join(m.content for m in messages)}"

    config = weft.ContextConfig(compression_strategy=strategy, max_messages_cap=cap)
    builder = weft.ContextBuilder(recipe="pattern", config=config).with_messages(list(history))
    return await builder.with_summarizer(summarise).build("now")


SUMMARIZE = weft.RecursiveSummarization(chunk_size=2, summarization_model="small")


@pytest.mark.parametrize("strategy", [weft.Truncate(keep_recent=4), SUMMARIZE])
async def test_P34_nothing_is_shortened_while_the_history_is_within_its_limits(
    strategy: weft.Truncate | weft.RecursiveSummarization,
) -> None:
    said = conversation(5)

    assert shown(await built(said, strategy)) == [m.content for m in said]


async def test_P34_truncate_keeps_the_newest_messages() -> None:
    context = await built(conversation(6), weft.Truncate(keep_recent=4))

    assert shown(context) == ["question 4", "answer 4", "question 5", "answer 5"]


async def test_P34_recursive_summaries_feed_the_earlier_one_in_and_keep_the_order() -> None:
    context = await built(conversation(6), SUMMARIZE, cap=9)

    summary, *rest = shown(context)
    assert summary == (
        "[Summary of messages 1-6 of this conversation]\n"
        "|question 0 answer 0|question 1 answer 1|question 2 answer 2"
    )
    assert rest == [f"{word} {n}" for n in (3, 4, 5) for word in ("question", "answer")]


async def test_P34_a_long_history_in_tokens_is_shortened_to_two_thirds_of_the_limit() -> None:
    limits = weft.ModelContextLimits(max_tokens=10_000, history_tokens=300)
    said = [m for n in range(10) for m in (user("u" * 100), assistant("a" * 100))]
    config = weft.ContextConfig(default_limits=limits, compression_strategy=weft.Truncate(keep_recent=100))

    context = await weft.ContextBuilder(recipe="pattern", config=config).with_messages(said).build("now")

    assert len(context.history) == 8, "eight times 25 tokens is two thirds of 300"


@pytest.mark.parametrize("strategy", [weft.Truncate(keep_recent=5), SUMMARIZE])
async def test_P35_complete_batches_are_shortened_whole(
    strategy: weft.Truncate | weft.RecursiveSummarization,
) -> None:
    context = await built(conversation(6), strategy, cap=9)

    kept = [m for m in context.history if not m.content.startswith("[Summary")]
    assert kept[0].role == "user"
    assert len(kept) % 2 == 0


@pytest.mark.parametrize("strategy", [weft.Truncate(keep_recent=4), SUMMARIZE])
async def test_P35_incomplete_batches_that_are_not_active_are_excluded(
    strategy: weft.Truncate | weft.RecursiveSummarization,
) -> None:
    said = [*conversation(3), *pending("lost"), *conversation(3)]

    assert "lost" not in " ".join(shown(await built(said, strategy)))


async def test_P35_the_active_batch_is_never_shortened() -> None:
    said = [*conversation(6), *pending("active")]

    for strategy in (weft.Truncate(keep_recent=1), SUMMARIZE):
        assert shown(await built(said, strategy, cap=4))[-2:] == ["active", ""]


async def test_P35_what_the_turn_does_now_is_never_shortened() -> None:
    replies = [
        weft.Reply(tool_calls=(weft.ToolCall(id=f"{n}", name="look"),), stop_reason="tools") for n in range(9)
    ]
    provider = weft.ScriptedProvider([*replies, "Done."])

    def look() -> str:
        return "waves"

    config = weft.ContextConfig(compression_strategy=weft.Truncate(keep_recent=2), max_messages_cap=4)
    builder = weft.ContextBuilder(recipe="pattern", config=config).with_messages(conversation(6))
    request = weft.TurnRequest(text="look nine times")
    turn = Turn(request=request, builder=builder, provider=provider, tools=weft.ToolRegistry([look]))
    async for _ in run_turn(turn):
        pass

    assert len(provider.requests[-1].steps) == 18
