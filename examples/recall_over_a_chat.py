"""Recall over a chat that was exported from somewhere else, without a model.

The file has one JSON object a line, with `at`, `who` and `text`:

    python examples/recall_over_a_chat.py examples/chat.jsonl "Who repairs the engine?"
"""

import asyncio
import json
import sys
from datetime import datetime
from pathlib import Path

import weft


def read_chat(path: Path) -> list[weft.Message]:
    """Read the lines. Their origin is `import`: they are a stranger's, whatever they say."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [
        weft.Message(
            role="user",
            name=row["who"],
            content=row["text"],
            timestamp=datetime.fromisoformat(row["at"]),
            origin="import",
        )
        for row in rows
    ]


async def main(path: Path, question: str) -> None:
    async with await weft.open(":memory:") as store:
        session = await store.sessions.find_or_create("import", path.stem, "owner", agent_id="weft")
        await store.messages.append(session.id, *read_chat(path))
        lines = await store.recall.recall(question, sender="import:owner", session_id="", limit=3)
        for line in lines:
            reasons = ", ".join(f"{name} {share:.1f}" for name, share in line.reasons.items())
            print(f"{line.timestamp:%Y-%m-%d} {line.speaker}: {line.text}  ({reasons})")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
