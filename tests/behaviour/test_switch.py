"""The model changes in the middle of a conversation, and the next answer comes."""

import pytest

import weft
from weft.wire import PROVIDERS, to_wire, violations

LARGE = weft.ModelInfo(id="large", provider="anthropic", max_tokens=1_000_000)
SMALL = weft.ModelInfo(id="small", provider="ollama", max_tokens=8_000, tokens_ratio=1.3)
NO_TOOLS = weft.ModelInfo(id="mute", provider="local", max_tokens=2_000, calls_tools=False)


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "waves " * 400


def calling(n: int) -> weft.Reply:
    call = weft.ToolCall(id=f"toolu_{n}", name="look", arguments={"place": f"bay {n}"})
    signed = {
        "provider": "anthropic",
        "model": "large",
        "thinking": [{"type": "thinking", "signature": "sealed-by-large"}],
    }
    return weft.Reply(text=f"Looking {n}.", tool_calls=(call,), stop_reason="tools", provider_data=signed)


@pytest.fixture
async def app() -> weft.Assistant:
    script = [reply for n in range(40) for reply in (calling(n), f"Bay {n} is calm. " + "It was. " * 100)]
    return await weft.connect(provider=weft.ScriptedProvider([*script, "Back."], info=LARGE), tools=[look])


class Terse(weft.ScriptedProvider):
    """Always says the same, and writes summaries in which nothing is."""

    def __init__(self, text: str, info: weft.ModelInfo) -> None:
        super().__init__([text] * 20, info=info)


async def test_from_a_window_of_a_million_tokens_to_one_of_eight_thousand_and_back(
    app: weft.Assistant,
) -> None:
    for n in range(40):
        await app.ask(f"How is bay {n}?", session="s")
    small, mute = Terse("Small.", info=SMALL), Terse("Mute.", info=NO_TOOLS)

    for provider in (small, mute, small):
        events = [event async for event in app.stream("And now?", "s", provider=provider)]
        assert isinstance(events[-1], weft.Done)
        receipt = events[-1].reply.receipt
        assert receipt is not None
        assert receipt.total_tokens <= receipt.limit < (provider.info.max_tokens or 0)
        assert any(item.layer == "history" and not item.kept for item in receipt.items)

    assert mute.requests[0].tools == ()
    for request in (*small.requests, *mute.requests):
        for provider_name in PROVIDERS:
            payload = to_wire(provider_name, request)
            assert violations(provider_name, payload) == []
            assert "sealed-by-large" not in str(payload), "what one model signed is not shown to another"
    back = await app.ask("And then?", session="s")
    large = app.engine.provider
    assert isinstance(large, weft.ScriptedProvider)
    assert (back.text, large.requests[-1].history[0].content) == ("Back.", "How is bay 0?"), "folds are open"
    assert "Mute." in [message.content for message in large.requests[-1].history]
    store = await app.store.get()
    session = await store.sessions.find_or_create("app", "s", "owner")
    assert len(await store.messages.newest(session.id, 1000)) == 40 * 4 + 4 * 2
    await app.close()
