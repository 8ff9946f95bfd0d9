"""The bytes that are sent, pinned. A vendor caches requests that begin with the same bytes."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

import weft
import wire_fuzz as fuzz
from weft.wire import PROVIDERS, to_wire
from weft.wire.clean import compact

PINS = Path(__file__).parent / "bytes.json"
MODELS = (None, "unknown", "claude-opus-5", "gpt-5.6-mini", "anthropic/claude-haiku-4.5", "gemini-3-flash")
LOOK = weft.ToolDefinition(name="look", description="Look.", parameters={"type": "object"})
CALLS = tuple(weft.ToolCall(id=id_, name="look", arguments={"at": id_}) for id_ in ("a", "b"))
PLAIN = weft.Context(
    system_prompt="Be calm.",
    history=(
        weft.Message(role="user", content="Where?", parts=(fuzz.PARTS[0], fuzz.PARTS[2])),
        weft.Message(role="assistant", content="I look.", tool_calls=CALLS),
        weft.Message(role="tool", content="sea", tool_call_id="a", tool_name="look"),
        weft.Message(role="tool", content="sky", tool_call_id="b", tool_name="look"),
        weft.Message(role="assistant", content="There."),
    ),
    tools=(LOOK,),
    current_message="Thanks. And now?",
)


def sent(provider: str) -> dict[str, str]:
    """Return the request for a plain history, and one digest over those for many broken ones."""
    digest = sha256()
    for _, context, _ in fuzz.cases(seed=7, count=300):
        for model in MODELS:
            for stream, limit in ((False, None), (True, 77)):
                payload = to_wire(provider, context, model=model, stream=stream, max_output_tokens=limit)
                digest.update(compact(payload).encode())
    return {"plain": compact(to_wire(provider, PLAIN)), "digest": digest.hexdigest()}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_bytes_that_are_sent_have_not_changed(provider: str) -> None:
    pins = json.loads(PINS.read_text("utf-8"))

    assert sent(provider) == pins[provider], "if this is meant, run this file with PYTHONPATH=tests"


if __name__ == "__main__":
    PINS.write_text(json.dumps({name: sent(name) for name in PROVIDERS}, indent=1) + "\n", "utf-8")
