"""Tests of an agent of one's own, with `weft.testing`: no network, no key, no database.

python -m pytest examples/test_my_agent.py
"""

import asyncio
from typing import Any

import weft
from weft.testing import LoopbackVendor, Refusal, ScriptedProvider


def book(pier: int, guests: int) -> str:
    """Book places on the boat."""
    return f"{guests} places from pier {pier}"


async def ask_harbor(question: str, **options: Any) -> weft.Reply:
    """Ask the agent that is tested: an assistant with one tool."""
    app = await weft.connect(tools=[book], database=":memory:", **options)
    try:
        return await app.ask(question)
    finally:
        await app.close()


def test_the_agent_books_what_was_asked_for() -> None:
    call = weft.ToolCall(id="1", name="book", arguments={"pier": 4, "guests": 2})
    model = ScriptedProvider([weft.Reply(tool_calls=(call,)), "Two places are booked."])

    reply = asyncio.run(ask_harbor("Two places, please.", provider=model))

    assert reply.text == "Two places are booked."
    assert model.requests[1].steps[-1].content == "2 places from pier 4"


def test_a_call_that_makes_no_sense_reaches_the_model_as_an_error() -> None:
    call = weft.ToolCall(id="1", name="book", arguments={"pier": "the big one"})
    model = ScriptedProvider([weft.Reply(tool_calls=(call,)), "Which pier, and how many guests?"])

    asyncio.run(ask_harbor("Book me in.", provider=model))

    assert model.requests[1].steps[-1].content.startswith("error:")


def test_a_busy_vendor_is_asked_again(monkeypatch: Any) -> None:
    script = [Refusal(529, "overloaded", retry_after_seconds=0), "Two places are booked."]
    with LoopbackVendor("anthropic", script) as vendor:
        for name, value in vendor.environ.items():
            monkeypatch.setenv(name, value)
        reply = asyncio.run(ask_harbor("Two places, please.", provider="anthropic"))

    assert reply.text == "Two places are booked."
    assert len(vendor.requests) == 2
