"""Make `docs/receipt.svg`, the picture of the README, from the sample workspace. Run by `make picture`."""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from weft.cli.demo import LIMITS, QUESTION, make_sample, read_conversation
from weft.compose import make_builder
from weft.config import Config
from weft.web.receipt import receipt_svg


async def picture() -> str:
    """Draw the receipt of the demo's question as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_sample(Path(folder))
        history = read_conversation(Path(folder) / "conversation.jsonl")
        builder = make_builder(Config(workspace=str(workspace), context=LIMITS)).with_messages(history)
        context = await builder.at(datetime(2026, 11, 15, 20, 30, tzinfo=UTC)).build(QUESTION)
    assert context.receipt is not None
    return receipt_svg(context.receipt)


if __name__ == "__main__":
    (Path(__file__).parent / "receipt.svg").write_text(asyncio.run(picture()), "utf-8")
