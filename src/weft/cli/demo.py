"""`weft demo`: Weft in one minute."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from weft.channels.terminal import show_answer, show_receipt
from weft.cli.options import ProviderName, err, out, run, waiting_for, write
from weft.compose import connect
from weft.config import Config, ContextSettings
from weft.types.message import Message

app = typer.Typer(add_completion=False)
SAMPLE = Path(__file__).parent / "sample"
QUESTION = "What is the dive boat called, and where does it leave from?"
LIMITS = ContextSettings(max_tokens=620, reserved_response_tokens=120)
"""Small on purpose: the demo shows what happens when not everything fits."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the sample workspace is made.")] = Path(
        ".demo"
    ),
    provider: ProviderName = None,
) -> None:
    """See it work: a sample workspace, one question, its receipt."""
    workspace = make_sample(folder)
    history = read_conversation(folder / "conversation.jsonl")
    where = escape(str(workspace))
    out.print(f"[dim]A sample workspace is in {where}, with a conversation of {len(history)} messages.[/]")
    out.print(f"\n[bold]> {QUESTION}[/]")
    # The demo needs no network and costs nothing, whatever keys are around.
    config = Config(workspace=str(workspace), provider=provider or "local", context=LIMITS)

    async def work() -> None:
        assistant = await connect(config, database=":memory:")
        try:
            events = assistant.stream(QUESTION, history=history)
            waiting = waiting_for(assistant.engine.provider.info)
            reply = await show_answer(events, out, err, waiting=waiting)
            out.print()
            if reply is not None and reply.receipt is not None:
                show_receipt(reply.receipt, out)
        finally:
            await assistant.close()

    run(work())
    program = "weft" if shutil.which("weft") else sys.argv[0]
    out.print(f'\n[dim]See all of it: {escape(program)} context -w {where} "{QUESTION}"[/]', soft_wrap=True)


def make_sample(folder: Path) -> Path:
    """Create the sample workspace below a folder. Files that exist already stay as they are."""
    for source in sorted(path for path in SAMPLE.rglob("*") if path.is_file()):
        target = folder / source.relative_to(SAMPLE)
        if not target.exists():
            write(target, source.read_text("utf-8"))
    return folder / "workspace"


def read_conversation(path: Path) -> list[Message]:
    """Read messages from a file with one JSON object a line."""
    return [Message.from_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
