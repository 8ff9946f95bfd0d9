"""The vendors that ship for tests: what they say is what we read, and they refuse what vendors refuse."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

import weft
from weft.providers.http import HttpProvider
from weft.testing import LoopbackVendor, Refusal
from weft.wire import VENDORS, from_wire, to_wire
from weft.wire.vendors import model_info

CONTEXT = weft.Context.new("Where?")
USAGE = weft.Usage(input_tokens=50, output_tokens=7, cached_tokens=20)
CALLS = tuple(weft.ToolCall(id=id_, name="look", arguments={"at": id_}) for id_ in ("a", "b"))
THINKING = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
REASONING = [{"type": "reasoning", "id": "r", "summary": []}]
SIGNED: dict[str, dict[str, Any]] = {
    "anthropic": {"provider": "anthropic", "model": "m", "thinking": THINKING},
    "openai_responses": {"provider": "openai_responses", "model": "m", "reasoning": REASONING},
    "gemini": {"provider": "gemini", "model": "m", "calls": {"a": {"thoughtSignature": "s"}}},
}
REPLIES = {
    "text": weft.Reply(text="At sea, of course.", usage=USAGE, model="m"),
    "cut": weft.Reply(text="At sea", stop_reason="max_tokens", usage=USAGE, model="m"),
    "calls": weft.Reply(text="I look.", tool_calls=CALLS, stop_reason="tools", usage=USAGE, model="m"),
    "silent calls": weft.Reply(tool_calls=CALLS, stop_reason="tools", usage=USAGE, model="m"),
}


def post(server: LoopbackVendor, payload: Any) -> httpx.Response:
    """Ask without streaming."""
    path = server.vendor.path.replace(":streamGenerate", ":generate")
    return httpx.post(server.url + path, json=payload, trust_env=False)


@pytest.mark.parametrize("kind", REPLIES)
@pytest.mark.parametrize("name", VENDORS)
async def test_a_reply_is_read_as_it_was_scripted_streaming_and_not(name: str, kind: str) -> None:
    reply = REPLIES[kind]
    if kind == "calls" and name in SIGNED:
        reply = replace(reply, provider_data=SIGNED[name])
    if name not in ("ollama", "gemini"):  # these do not say what they add to their cache
        reply = replace(reply, usage=replace(USAGE, written_tokens=9))
    with LoopbackVendor(name, [reply, reply]) as server:
        provider = HttpProvider(VENDORS[name], info=model_info(VENDORS[name]), url=server.url, key="k")
        streamed = await provider.complete(CONTEXT)
        await provider.close()
        whole = from_wire(name, post(server, to_wire(name, CONTEXT)).json())

    assert streamed == reply
    assert whole == reply
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", VENDORS)
def test_what_the_vendor_would_refuse_is_refused_with_the_reason(name: str) -> None:
    payload = to_wire(name, CONTEXT) | {"tools": []}

    with LoopbackVendor(name, ["never sent"]) as server:
        answer = post(server, payload)

    assert answer.status_code == 400
    assert "tools are an empty list" in answer.text


async def test_a_script_that_is_too_short_says_so() -> None:
    with LoopbackVendor("openai", ["one"]) as server:
        provider = HttpProvider(
            VENDORS["openai"], info=model_info(VENDORS["openai"]), url=server.url, key="k"
        )
        reply = await provider.complete(CONTEXT)
        with pytest.raises(weft.ProviderError, match="The script has no reply for request 2: add one"):
            await provider.complete(CONTEXT)
        await provider.close()

    assert reply.text == "one"
    assert reply.usage is not None


def test_the_variables_lead_a_program_to_the_server() -> None:
    with LoopbackVendor("gemini") as gemini, LoopbackVendor("ollama", [Refusal(500, "x")]) as ollama:
        assert gemini.environ == {"GEMINI_BASE_URL": gemini.url, "GEMINI_API_KEY": "loopback-key"}
        assert ollama.environ == {"OLLAMA_HOST": ollama.url}


def test_a_vendor_from_outside_is_scripted_in_bytes() -> None:
    outside = replace(VENDORS["openai"], name="outside")

    with pytest.raises(weft.ConfigError, match="How outside writes a reply is not known here"):
        LoopbackVendor(outside, ["Hi"])
    with LoopbackVendor(outside, [b'{"any": "thing"}']) as server:
        assert post(server, to_wire(outside, CONTEXT)).json() == {"any": "thing"}
