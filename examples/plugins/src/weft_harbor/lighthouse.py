"""A vendor: one file with one object. Weft does the rest: HTTP, retries, keys, the window, `weft context`.

Lighthouse is made up. It wants turns of `keeper` and `lamp`, refuses ids of calls above twenty letters, and
streams server-sent events of text that end with the whole answer.
"""

from collections.abc import Mapping
from typing import Any

import weft
from weft.wire import Assembler, Model, Rule, Vendor, WireRequest


def to_wire(request: WireRequest) -> dict[str, Any]:
    """Write a request. Its messages are repaired already, by the rule below."""
    turns = [_turn(message) for message in request.messages]
    tools = [{"tool": tool.name, "takes": dict(tool.parameters)} for tool in request.tools]
    return {"model": request.model, "orders": request.system_text, "turns": turns, "tools": tools}


def _turn(message: weft.Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"who": "keeper", "text": message.content, "answers": message.tool_call_id}
    calls = [{"id": call.id, "tool": call.name, "with": dict(call.arguments)} for call in message.tool_calls]
    return {
        "who": "lamp" if message.role == "assistant" else "keeper",
        "text": message.content,
        "calls": calls,
    }


def from_wire(answer: Mapping[str, Any]) -> weft.Reply:
    calls = tuple(
        weft.ToolCall(id=call["id"], name=call["tool"], arguments=call["with"])
        for call in answer.get("calls", ())
    )
    seen, said = answer.get("tokens", (0, 0))
    return weft.Reply(
        text=answer.get("text", ""),
        tool_calls=calls,
        stop_reason="tools" if calls else "end",
        usage=weft.Usage(input_tokens=seen, output_tokens=said),
        model=answer.get("model", ""),
    )


def violations(payload: Mapping[str, Any]) -> list[str]:
    turns = payload.get("turns") or [{}]
    ids = [call["id"] for turn in turns for call in turn.get("calls", ())]
    answers = [turn["answers"] for turn in turns if turn.get("answers")]
    rules = {
        "the first turn is not the keeper's": turns[0].get("who") == "keeper",
        "the last turn is not the keeper's": turns[-1].get("who") == "keeper",
        "an id is too long": all(0 < len(id_) <= 20 for id_ in ids),
        "calls and answers do not match": ids == answers,
    }
    return [violation for violation, holds in rules.items() if not holds]


class Stream(Assembler):
    """Events are `{"text": ...}`, and at the end `{"answer": {...}}`."""

    def add(self, event: Mapping[str, Any]) -> str:
        if "answer" in event:
            self.answer, self.done = event["answer"], True
        return str(event.get("text", ""))


LIGHTHOUSE = Vendor(
    name="lighthouse",
    address="https://lighthouse.example",
    address_variable="LIGHTHOUSE_BASE_URL",
    key_variable="LIGHTHOUSE_API_KEY",
    path="/v1/{model}/shine",
    headers={"x-lamp-key": "{key}"},
    default_model="beam-2",
    models=(Model(start="beam-", window=16_000, max_output=2_000, ratio=1.25),),
    rule=Rule(longest_id=20, user_first=True),
    to_wire=to_wire,
    from_wire=from_wire,
    violations=violations,
    assembler=Stream,
)
