"""No history, however broken, makes a request that a provider refuses."""

import json
import os
from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft.wire import PROVIDERS, repair, to_wire, violations
from weft.wire.clean import compact
from wire_histories import HISTORIES, MESSAGES, TEXT, TOOLS

CASES = int(os.environ.get("WEFT_WIRE_CASES", "2400"))
many = settings(max_examples=CASES // len(PROVIDERS), deadline=None)
some = settings(max_examples=CASES // len(PROVIDERS) // 4, deadline=None)


@pytest.mark.parametrize("provider", PROVIDERS)
@many
@given(
    history=HISTORIES,
    steps=st.lists(MESSAGES, max_size=3),
    tools=TOOLS,
    system=TEXT,
    model=st.sampled_from([None, "unknown", "claude-opus-5"]),
)
def test_every_request_is_valid(
    provider: str,
    history: list[weft.Message],
    steps: list[weft.Message],
    tools: list[weft.ToolDefinition],
    system: str,
    model: str | None,
) -> None:
    context = weft.Context(
        system_prompt=system,
        history=tuple(history),
        steps=tuple(steps),
        tools=tuple(tools),
        current_message="Now answer 🐠",
    )

    payload = to_wire(provider, context, model=model)

    assert violations(provider, payload) == []
    assert "Now answer 🐠" in compact(payload)
    assert compact(payload) == compact(to_wire(provider, context, model=model))


@pytest.mark.parametrize("provider", PROVIDERS)
@some
@given(history=HISTORIES)
def test_repairing_twice_is_repairing_once(provider: str, history: list[weft.Message]) -> None:
    once, _ = repair(provider, history)
    twice, notes = repair(provider, once)

    assert twice == once
    assert notes == []


@pytest.mark.parametrize("provider", PROVIDERS)
@some
@given(history=HISTORIES, more=st.lists(st.sampled_from(["user", "assistant"]), max_size=4))
def test_a_longer_history_begins_with_the_same_messages(
    provider: str, history: list[weft.Message], more: Sequence[str]
) -> None:
    """Unless it brings a result that a call still waited for."""
    before, _ = repair(provider, history)
    later = [weft.Message(role=role, content=f"more {at}") for at, role in enumerate(more)]

    after, _ = repair(provider, [*history, *later])

    if before:
        assert after[: len(before)] == before


@pytest.mark.parametrize("provider", PROVIDERS)
@some
@given(history=HISTORIES)
def test_nothing_that_was_said_is_lost(provider: str, history: list[weft.Message]) -> None:
    said = [m.content for m in history if m.role != "tool" and m.content.strip() and m.content.isprintable()]

    repaired, _ = repair(provider, history)

    assert [text for text in said if text not in [m.content for m in repaired]] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_message_with_nothing_in_it_is_refused(provider: str) -> None:
    for text in ("", " \n", "\ud800"):
        if text == "\ud800":
            assert "\ufffd" in json.dumps(to_wire(provider, weft.Context.new(text)), ensure_ascii=False)
            continue
        with pytest.raises(weft.EmptyMessage):
            to_wire(provider, weft.Context.new(text))
