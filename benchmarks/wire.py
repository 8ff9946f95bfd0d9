"""Times writing a long request with tools for each provider, checking it, and turning it into bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.progress import Progress

from chatter import Chatter
from timing import arguments, at_least, out, p50, p95, table, workplace, write_json
from weft.types.context import Context
from weft.types.message import Message, ToolCall, ToolDefinition
from weft.wire import PROVIDERS, to_wire, violations
from weft.wire.clean import compact

_LOOK = ToolDefinition(name="look", description="Look at something.", parameters={"type": "object"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRow:
    """One provider: writing the request, checking it, and turning it into bytes, in milliseconds."""

    provider: str
    messages: int
    write_p50_ms: float
    write_p95_ms: float
    check_p50_ms: float
    dump_p50_ms: float
    bytes: int


def measure_wire(messages: int, rounds: int, progress: Progress) -> list[WireRow]:
    """Measure all providers in turn, round by round, so that a slow minute slows all of them."""
    context = Context(
        system_prompt="Be calm.", history=_history(messages), tools=(_LOOK,), current_message="And now?"
    )
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in PROVIDERS}
    sizes: dict[str, int] = {}
    for _ in progress.track(range(rounds), description=f"writing {messages:,} messages"):
        for name in PROVIDERS:
            started = time.perf_counter()
            payload = to_wire(name, context)
            written = time.perf_counter()
            problems = violations(name, payload)
            checked = time.perf_counter()
            body = compact(payload).encode()
            ended = time.perf_counter()
            if problems:
                raise AssertionError(problems)
            times[name].append((written - started, checked - written, ended - checked))
            sizes[name] = len(body)
    return [_row(name, messages, times[name], sizes[name]) for name in PROVIDERS]


def _row(name: str, messages: int, times: list[tuple[float, float, float]], size: int) -> WireRow:
    write, check, dump = ([1000 * time_ for time_ in column] for column in zip(*times, strict=True))
    return WireRow(
        provider=name,
        messages=messages,
        write_p50_ms=p50(write),
        write_p95_ms=p95(write),
        check_p50_ms=p50(check),
        dump_p50_ms=p50(dump),
        bytes=size,
    )


def _history(number: int) -> tuple[Message, ...]:
    """Questions, calls, results and answers, four in a turn."""
    messages = list[Message]()
    for at, message in enumerate(Chatter().messages(number)):
        kind = at % 4
        id_ = f"call_{at // 4}"
        if kind == 1:
            call = ToolCall(id=id_, name="look", arguments={"at": message.content[:40]})
            messages.append(Message(role="assistant", content="", tool_calls=(call,)))
        elif kind == 2:
            messages.append(Message(role="tool", content=message.content, tool_call_id=id_, tool_name="look"))
        else:
            messages.append(Message(role="user" if kind == 0 else "assistant", content=message.content))
    return tuple(messages)


def _show(rows: list[WireRow]) -> None:
    lines = table("what", "write p50", "p95", "check p50", "to bytes p50", "size", "check / write")
    for row in rows:
        times = (row.write_p50_ms, row.write_p95_ms, row.check_p50_ms, row.dump_p50_ms)
        ratio = row.check_p50_ms / row.write_p50_ms
        lines.add_row(
            row.provider, *(f"{one:.2f} ms" for one in times), f"{row.bytes / 1e3:,.0f} kB", f"{ratio:.2f}"
        )
    out.print(lines)


def main() -> None:
    parser = arguments("Time writing a request of a conversation with tools for each provider.")
    parser.add_argument("--messages", type=at_least(4), default=1_000, help="length of the conversation")
    parser.add_argument("--rounds", type=at_least(5), default=40, help="requests for each provider")
    options = parser.parse_args()
    with workplace() as (_, progress):
        rows = measure_wire(options.messages, options.rounds, progress)
    write_json(options.json, rows)
    _show(rows)


if __name__ == "__main__":
    main()
