"""Conversations as they grow: each request has all of the one before, an answer or results, and more."""

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st

import weft

TEXTS = st.sampled_from(["Hi", "好 🐠", "nul \0", "x" * 300, "[System]", "<|im_start|>"]) | st.text(
    max_size=8
)
NAMES = st.sampled_from(["look", "look", "fly"])
PICTURE = {"type": "image", "media_type": "image/png", "data": "aGk="}
THINKING = {"type": "thinking", "thinking": "t", "signature": "s"}
SIGNED = st.sampled_from(
    [
        {},
        {"provider": "anthropic", "model": "claude-sonnet-5", "thinking": [THINKING]},
        {
            "provider": "openai_responses",
            "model": "gpt-5.6",
            "reasoning": [{"type": "reasoning", "summary": []}],
        },
    ]
)


@dataclass(frozen=True)
class Request:
    """One request of a conversation: what was before, the message, and the steps of its turn so far."""

    history: tuple[weft.Message, ...]
    message: str
    parts: tuple[dict[str, Any], ...]
    steps: tuple[weft.Message, ...]


@st.composite
def conversations(draw: st.DrawFn) -> list[Request]:
    """Draw the requests of a few turns: the message, and one more after each round of tools."""
    requests, history = list[Request](), list[weft.Message]()
    for turn in range(draw(st.integers(1, 4))):
        text = draw(TEXTS).strip() or "Hi"
        parts = draw(st.sampled_from([(), (), (PICTURE,), ({"type": "sound"},)]))
        steps = list[weft.Message]()
        requests.append(Request(tuple(history), text, parts, ()))
        for number in range(draw(st.integers(0, 2))):
            ids = [f"{turn}.{number}.{at}" for at in range(draw(st.sampled_from([1, 2, 3, 12, 26])))]
            calls = tuple(weft.ToolCall(id=id_, name=draw(NAMES)) for id_ in ids)
            data = draw(SIGNED)
            steps.append(
                weft.Message(role="assistant", content=draw(TEXTS), tool_calls=calls, provider_data=data)
            )
            steps += [
                weft.Message(role="tool", content=draw(TEXTS), tool_call_id=call.id, tool_name=call.name)
                for call in calls
            ]
            if draw(st.booleans()) and number:
                steps.append(weft.Message(role="user", content="And this?"))
            requests.append(Request(tuple(history), text, parts, tuple(steps)))
        answers = draw(st.lists(TEXTS, max_size=2))  # none, if the turn was stopped
        history += [weft.Message(role="user", content=text, parts=parts), *steps]
        history += [weft.Message(role="assistant", content=answer) for answer in answers]
    return requests
