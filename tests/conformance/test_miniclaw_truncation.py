"""miniclaw's lines on size: 4000 tokens by chars/4, what gives way, what never does, and what is logged."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import weft

NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """All five system layers; ten memories of 26 tokens or so, one of them about a cat."""
    memories = [f"- entry {n} {'filler ' * 12}" for n in range(9)]
    memories.insert(0, f"- the cat Mia sleeps on the piano {'filler ' * 9}")
    files = {
        "SOUL.md": "I am Claw.",
        "AGENTS.md": "Ask first.",
        "TOOLS.md": "grep(pattern)",
        "memory/MEMORY.md": "\n".join(memories),
        "skills/notes/SKILL.md": "---\nname: notes\ndescription: Write notes.\n---\nbody\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def said(text: str, role: str = "user") -> weft.Message:
    return weft.Message(role=role, content=text)


def of_tokens(tokens: int, mark: str) -> weft.Message:
    """A message of exactly that many tokens, told apart by its mark."""
    return said(mark.ljust(tokens * 4, "."))


def receipt_of(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


def chars_by_four(messages: Sequence[weft.Message]) -> int:
    return sum(len(message.content) // 4 for message in messages)


def marks(context: weft.Context) -> list[str]:
    return [message.content.rstrip(".") for message in context.history]


def memory_lines(context: weft.Context) -> list[str]:
    texts = [m.content for m in context.to_messages() if m.content.startswith("Relevant memories:\n")]
    return texts[0].splitlines()[1:] if texts else []


async def build(
    workspace: Path, history: Sequence[weft.Message] = (), text: str = "hello", limit: int = 4000
) -> weft.Context:
    recipe = weft.Recipe.load("miniclaw").replace(max_context_tokens=limit)
    builder = weft.ContextBuilder(recipe=recipe).with_workspace(workspace).at(NOW)
    return await builder.with_messages(list(history)).build(text)


async def size_without_history(workspace: Path, text: str = "hello") -> int:
    return receipt_of(await build(workspace, text=text, limit=1_000_000)).total_tokens


# --- counting


async def test_M14_the_limit_is_four_thousand_tokens(workspace: Path) -> None:
    context = await build(workspace, [of_tokens(500, f"m{n}") for n in range(20)])

    receipt = receipt_of(context)
    assert receipt.limit == 4000
    assert receipt.total_tokens <= 4000
    assert not receipt.over_limit
    assert 0 < len(context.history) < 8


async def test_M14_tokens_are_the_sum_over_messages_of_a_quarter_of_their_characters_rounded_down(
    workspace: Path,
) -> None:
    history = [
        said("abc"),
        said("abcd", "assistant"),
        said("abcdefg"),
        said("größer 日本", "assistant"),
        said("😀" * 9),
    ]

    context = await build(workspace, history)

    receipt = receipt_of(context)
    assert receipt.total_tokens == chars_by_four(context.to_messages())
    assert receipt.by_layer["history"] == 0 + 1 + 1 + 2 + 2
    assert receipt.by_layer["message"] == 1
    assert sum(receipt.by_layer.values()) == receipt.total_tokens


async def test_M14_tool_calls_are_counted_as_tokens(workspace: Path) -> None:
    arguments = {"pattern": "x" * 4000}
    call = weft.ToolCall(id="one", name="grep", arguments=arguments)
    asked = weft.Message(role="assistant", content="", tool_calls=(call,))
    answered = weft.Message(role="tool", content="", tool_call_id="one")

    context = await build(workspace, [asked, answered], limit=100_000)

    counted = receipt_of(context).by_layer["history"]
    assert 1000 < counted < 1100


async def test_M14_M15_large_tool_calls_make_the_history_give_way(workspace: Path) -> None:
    call = weft.ToolCall(id="one", name="grep", arguments={"pattern": "x" * 20_000})
    asked = weft.Message(role="assistant", content="", tool_calls=(call,))
    answered = weft.Message(role="tool", content="", tool_call_id="one")

    context = await build(workspace, [asked, answered, said("kept")])

    assert marks(context) == ["kept"]
    assert not receipt_of(context).over_limit


# --- what gives way


async def test_M15_M38_the_oldest_messages_go_first_and_only_as_many_as_needed(workspace: Path) -> None:
    base = await size_without_history(workspace)
    history = [of_tokens(100, f"m{n}") for n in range(10)]

    fits = await build(workspace, history, limit=base + 1000)
    one_over = await build(workspace, history, limit=base + 999)
    room_for_three = await build(workspace, history, limit=base + 399)

    assert marks(fits) == [f"m{n}" for n in range(10)]
    assert marks(one_over) == [f"m{n}" for n in range(1, 10)]
    assert marks(room_for_three) == ["m7", "m8", "m9"]
    assert receipt_of(fits).total_tokens == base + 1000


async def test_M15_a_small_old_message_is_not_kept_in_place_of_a_newer_large_one(workspace: Path) -> None:
    base = await size_without_history(workspace)
    history = [of_tokens(5, "small"), of_tokens(300, "large"), of_tokens(5, "last")]

    context = await build(workspace, history, limit=base + 20)

    assert marks(context) == ["last"]


async def test_M15_a_call_goes_together_with_all_its_results(workspace: Path) -> None:
    base = await size_without_history(workspace)
    calls = tuple(weft.ToolCall(id=at, name="grep") for at in ("one", "two"))
    results = [
        weft.Message(role="tool", content=at.ljust(400, "."), tool_call_id=at) for at in ("one", "two")
    ]
    group = [weft.Message(role="assistant", content="looking", tool_calls=calls), *results]
    history = [of_tokens(50, "before"), *group, of_tokens(50, "after")]

    without_room = await build(workspace, history, limit=base + 200)
    with_room = await build(workspace, history, limit=base + 290)

    assert marks(without_room) == ["after"]
    assert marks(with_room) == ["looking", "one", "two", "after"]


async def test_M15_the_receipt_names_the_stretch_that_was_left_out(workspace: Path) -> None:
    base = await size_without_history(workspace)
    history = [of_tokens(100, f"m{n}") for n in range(10)]

    receipt = receipt_of(await build(workspace, history, limit=base + 300))

    dropped = [item for item in receipt.items if item.layer == "history" and not item.kept]
    assert [(item.span, item.tokens) for item in dropped] == [((1, 7), 700)]
    assert dropped[0].reason


async def test_M16_memories_stay_whole_while_there_is_history_to_drop(workspace: Path) -> None:
    base = await size_without_history(workspace)
    history = [of_tokens(100, f"m{n}") for n in range(10)]

    context = await build(workspace, history, limit=base)

    assert marks(context) == []
    assert len(memory_lines(context)) == 10
    assert receipt_of(context).total_tokens == base


async def test_M16_after_the_history_the_least_relevant_memories_go(workspace: Path) -> None:
    question = "Where does the cat Mia sleep?"
    base = await size_without_history(workspace, question)
    history = [of_tokens(10, "m0")]

    context = await build(workspace, history, question, limit=base - 100)

    kept = memory_lines(context)
    assert marks(context) == []
    assert 1 <= len(kept) < 10
    assert kept[0].startswith("- the cat Mia sleeps on the piano")
    assert receipt_of(context).total_tokens <= base - 100
    dropped = [i for i in receipt_of(context).items if i.layer == "memory_file" and not i.kept]
    assert len(dropped) == 10 - len(kept)


async def test_M16_the_memory_that_stays_longest_is_the_most_relevant(workspace: Path) -> None:
    question = "Where does the cat Mia sleep?"
    base = await size_without_history(workspace, question)
    survivors = [
        memory_lines(await build(workspace, (), question, limit=limit))
        for limit in range(base, base - 280, -5)
    ]

    shrinking = [len(lines) for lines in survivors]
    assert shrinking == sorted(shrinking, reverse=True)
    last_standing = next(lines for lines in reversed(survivors) if lines)
    assert len(last_standing) == 1
    assert last_standing[0].startswith("- the cat Mia")


async def test_M16_M19_system_prompt_bootstrap_and_message_never_give_way(workspace: Path) -> None:
    message = "A long question. " * 20

    context = await build(workspace, [of_tokens(10, "m0")], message, limit=1)

    messages = context.to_messages()
    assert messages[0].content == "I am Claw.\n\nAsk first."
    assert messages[1].content.startswith("Current date and time: 2026-11-15 20:30 (Sunday) UTC+00:00\n")
    assert messages[-1].content == message
    assert marks(context) == []
    assert memory_lines(context) == []


# --- the current message


async def test_M17_an_older_message_equal_to_the_current_one_can_still_be_dropped(workspace: Path) -> None:
    base = await size_without_history(workspace)
    history = [said("hello"), of_tokens(100, "between"), of_tokens(100, "newest")]

    context = await build(workspace, history, "hello", limit=base + 150)

    sent = [message.content for message in context.to_messages()]
    assert sent.count("hello") == 1
    assert sent[-1] == "hello"
    assert marks(context) == ["newest"]


async def test_M17_an_older_message_equal_to_the_current_one_is_kept_when_there_is_room(
    workspace: Path,
) -> None:
    context = await build(workspace, [said("hello"), said("hi", "assistant")], "hello")

    assert [message.content for message in context.to_messages()][-3:] == ["hello", "hi", "hello"]


async def test_M17_M19_a_message_larger_than_the_limit_is_sent_whole(workspace: Path) -> None:
    message = "word " * 10_000

    context = await build(workspace, [of_tokens(10, "m0")], message)

    assert context.to_messages()[-1].content == message
    assert receipt_of(context).over_limit


# --- what is logged


async def test_M18_each_truncation_is_logged_with_its_layer(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    base = await size_without_history(workspace)
    caplog.clear()

    await build(workspace, [of_tokens(100, f"m{n}") for n in range(10)], limit=base + 300)

    logged = [record for record in caplog.records if record.__dict__.get("layer") == "history"]
    assert len(logged) == 1
    assert logged[0].name.startswith("weft")
    assert "700" in logged[0].getMessage()


async def test_M18_memories_that_give_way_are_logged_too(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    base = await size_without_history(workspace)
    caplog.clear()

    await build(workspace, limit=base - 100)

    assert any(record.__dict__.get("layer") == "memory_file" for record in caplog.records)


async def test_M18_nothing_is_logged_as_left_out_when_everything_fits(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")

    await build(workspace, [of_tokens(10, "m0")])

    assert [record for record in caplog.records if record.__dict__.get("layer") == "history"] == []


async def test_M19_a_context_that_cannot_be_made_to_fit_is_sent_flagged_and_logged(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = await build(workspace, [of_tokens(10, "m0")], limit=5)

    receipt = receipt_of(context)
    assert receipt.over_limit
    assert receipt.limit == 5
    assert receipt.total_tokens == chars_by_four(context.to_messages()) > 5
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any(str(receipt.total_tokens) in text and "5" in text for text in warned)


async def test_M36_the_size_of_every_context_is_logged(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")

    context = await build(workspace, [of_tokens(10, "m0")])

    size = receipt_of(context).total_tokens
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert any(str(size) in text and "4000" in text for text in told)


async def test_M38_a_large_context_is_cut_to_the_limit_and_keeps_its_shape(workspace: Path) -> None:
    history = [said(f"{n} {'words ' * 200}", ("user", "assistant")[n % 2]) for n in range(500)]

    context = await build(workspace, history, "and now?")

    messages = context.to_messages()
    assert [message.role for message in messages[:5]] == ["system"] * 5
    assert messages[-1].content == "and now?"
    assert list(context.history) == history[-len(context.history) :]
    assert chars_by_four(messages) <= 4000
    assert chars_by_four(messages) + len(history[0].content) // 4 > 4000 - 10
