"""Draw `receipt.svg`, `turn.svg` and `epochs.svg` from the sample workspace. Run by `make picture`."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import weft
from weft.cli.demo import LIMITS, QUESTION, make_sample, read_conversation
from weft.compose import make_builder
from weft.config import Config
from weft.web.receipt import receipt_svg
from weft.wire.items import encode, join

FOLDER = Path(__file__).parent
_WIDTH, _ROW = 860, 24
_WHITE, _GRAY, _BLUE, _YELLOW = "#e6edf3", "#8b949e", "#4c8eda", "#d4a72c"
_TALK = (
    ("the first turn", "Hi!"),
    ("the next", "When is the next dive?"),
    ("a new fact", "I live in Lisbon. And you?"),
    ("the next", "What do we pack?"),
    ("SOUL.md changed", "Who are you now?"),
    ("the next", "Thank you."),
)
"""What happens, and the message of the turn after it."""
_ASKED = "When is high tide at pier 4? Then we go diving."
Line = tuple[int, str, str]
"""How far a line is indented, its color, its text."""


async def receipt() -> str:
    """Draw the receipt of the demo's question as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_sample(Path(folder))
        history = read_conversation(Path(folder) / "conversation.jsonl")
        builder = make_builder(Config(workspace=str(workspace), context=LIMITS)).with_messages(history)
        context = await builder.at(datetime(2026, 11, 15, 20, 30, tzinfo=UTC)).build(QUESTION)
    assert context.receipt is not None
    return receipt_svg(context.receipt)


def tide(pier: int) -> str:
    """Tell when the tide is high at a pier."""
    return f"pier {pier}: high tide at six"


async def turn() -> str:
    """Draw the steps of a turn with one call of a tool, as they happened."""
    call = weft.ToolCall(id="1", name="tide", arguments={"pier": 4})
    model = weft.ScriptedProvider([weft.Reply(tool_calls=(call,)), "At six. Pack the mask tonight."])
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_sample(Path(folder))
        config = Config(workspace=str(workspace))
        app = await weft.connect(config, provider=model, tools=[tide], database=":memory:")
        events = [event async for event in app.stream(_ASKED, session="demo")]
        await app.close()
    return _draw([line for step in _steps(events, model.requests) for line in step])


def _steps(events: list[Any], requests: list[weft.Context]) -> Iterator[list[Line]]:
    waiting = iter(zip(requests, _sizes(requests), strict=True))
    yield [(0, _WHITE, f"> {_ASKED}")]
    for event in events:
        match event:
            case weft.TurnStarted():
                yield [(1, _GRAY, "stored: the message, before anything is done with it")]
                yield _request(*next(waiting))
            case weft.ToolStarted(call=call):
                yield [(1, _YELLOW, f"the model calls {call.name}({json.dumps(dict(call.arguments))})")]
            case weft.ToolFinished(result=result):
                yield [(2, _GRAY, f"result: {result}")]
                yield _request(*next(waiting))
            case weft.Done(reply=reply):
                yield [(1, _WHITE, reply.text)]
                items = len(reply.receipt.items) if reply.receipt else 0
                yield [(1, _GRAY, f"stored: both requests, the answer, a receipt of {items} items")]


def _request(context: weft.Context, size: tuple[int, int]) -> list[Line]:
    assert context.receipt is not None
    layers = [f"{layer} {tokens:,}" for layer, tokens in context.receipt.by_layer.items()]
    half = (len(layers) + 1) // 2
    total, same = size
    head = f"request of {context.receipt.total_tokens:,} tokens to the model"
    if same:
        head += f", {same:,} of {total:,} bytes as before"
    return [
        (1, _BLUE, head),
        (2, _GRAY, ", ".join(layers[:half])),
        (2, _GRAY, ", ".join(layers[half:])),
    ]


def _sizes(requests: list[weft.Context]) -> list[tuple[int, int]]:
    """Return the bytes of each request, and how many of them the one before had."""
    sent = ["".join(map(json.dumps, weft.wire.to_wire("openai", each)["messages"])) for each in requests]
    pairs = zip(["", *sent], sent, strict=False)
    return [(len(now), len(before) if now.startswith(before) else 0) for before, now in pairs]


async def epochs() -> str:
    """Draw how much of each request the one before had, while a fact and then a file are changed."""
    model = weft.ScriptedProvider(["Yes."] * len(_TALK))
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_sample(Path(folder))
        async with await weft.open(":memory:") as store:
            app = await weft.connect(Config(workspace=str(workspace)), provider=model, store=store)
            requests = []
            for before, text in _TALK:
                if before == "a new fact":
                    await store.facts.set("app:owner", "city", "Lisbon")
                elif before == "SOUL.md changed":
                    (workspace / "SOUL.md").write_text(
                        "You are Iris, who answers in one sentence.\n", "utf-8"
                    )
                reply = await app.ask(text, session="demo")
                requests.append((await store.turns.requests(reply.turn_id))[0])
            await app.close()
    rows: list[str] = []
    for number, (each, (before, _)) in enumerate(zip(requests, _TALK, strict=True)):
        total = len(encode(join(each.request)))
        rows += _bar(16 + _ROW * number, before, total, round(total * each.share))
    return _picture(16 + _ROW * len(_TALK), "How much of each request was sent before", rows)


def _bar(y: int, name: str, total: int, same: int) -> list[str]:
    scale = 440 / 12_000
    return [
        _text(16, y + 16, _WHITE, name),
        f'<rect x="150" y="{y + 4}" width="{round(total * scale)}" height="15" fill="{_YELLOW}"/>',
        f'<rect x="150" y="{y + 4}" width="{round(same * scale)}" height="15" fill="{_BLUE}"/>',
        _text(590, y + 16, _GRAY, f"{same:,} of {total:,} bytes as before"),
    ]


def _draw(lines: list[Line]) -> str:
    rows = [
        _text(16 + 24 * depth, 34 + _ROW * number, color, text)
        for number, (depth, color, text) in enumerate(lines)
    ]
    return _picture(_ROW * len(lines) + 16, "The steps of one turn", rows)


def _text(x: int, y: int, color: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{color}">{escape(text)}</text>'


def _picture(height: int, label: str, rows: list[str]) -> str:
    height += 16
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}" '
            'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
            f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#0d1117"/>',
            *rows,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    for name, picture in (("receipt", receipt), ("turn", turn), ("epochs", epochs)):
        (FOLDER / f"{name}.svg").write_text(asyncio.run(picture()), "utf-8")
