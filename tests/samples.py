"""Data that many tests build on: messages, offers, and one workspace that shows every layer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import weft
from weft.testing import (
    InMemoryBlocks,
    InMemoryFacts,
    InMemoryMessages,
    InMemoryRecall,
    InMemoryStore,
    InMemorySummaries,
    InMemoryTasks,
)
from weft.tokens import counter
from weft.types.session import Entry, Tail

NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)
STAMP = "2026-11-15T20:30:00Z"


def user(text: str) -> weft.Message:
    return weft.Message(role="user", content=text)


def assistant(text: str, *calls: str) -> weft.Message:
    made = tuple(weft.ToolCall(id=call, name="look_up", arguments={"q": call}) for call in calls)
    return weft.Message(role="assistant", content=text, tool_calls=made)


def result(call: str, text: str = "found") -> weft.Message:
    return weft.Message(role="tool", content=text, tool_call_id=call, tool_name="look_up")


def tail_of(messages: Sequence[weft.Message], *, count: str = "chars/4", before: int = 0) -> Tail:
    """A loaded history; `before` messages of one token each lie before it."""
    entries = [Entry(message, counter(count).message(message)) for message in messages]
    return Tail(entries=entries, messages_before=before, tokens_before=before)


def write_workspace(root: Path) -> Path:
    """A small workspace with every file a recipe may read."""
    files = {
        "SOUL.md": "You are Iris, a calm assistant.\n",
        "AGENTS.md": "Answer in one sentence.\n",
        "USER.md": "The user is Ada, who dives.\n",
        "TOOLS.md": "look_up: find something by its name.\n",
        "memory/MEMORY.md": "# Memory\n\n- Ada is allergic to peanuts.\n- The boat leaves from pier 4.\n",
        "skills/packing/SKILL.md": (
            "---\nname: packing\ndescription: Write a packing list.\ntrigger: pack|journey\n---\n"
            "# Packing\n\nDocuments first.\n"
        ),
        "skills/tides/SKILL.md": '---\nname = "tides"\ntrigger = "tide|boat"\n---\nRead the tide table.\n',
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def all_bytes(folder: Path) -> bytes:
    """Return the content of all files below a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def whole_store(history: Sequence[weft.Message] = ()) -> InMemoryStore:
    """A store that has something for every layer, for agent "iris" and sender telegram:42."""
    blocks = InMemoryBlocks(
        {
            "iris": [
                weft.RenderedBlock(
                    id="b1",
                    label="persona",
                    content="I keep things short.",
                    description="Who I am.",
                    block_type=weft.BlockType.CORE,
                    permission=weft.Permission.READ_ONLY,
                ),
                weft.RenderedBlock(id="b2", label="today", content="Dive at 07:30.", pinned=True),
                weft.RenderedBlock(id="b3", label="idle", content="Not shown."),
                weft.RenderedBlock(
                    id="b4",
                    label="team",
                    content="Clara brings the tanks.",
                    pinned=True,
                    permission=weft.Permission.APPEND,
                    shared_from="Archive",
                ),
            ]
        }
    )
    sender = "telegram:42"
    return InMemoryStore(
        memory=blocks,
        messages=InMemoryMessages(history),
        facts=InMemoryFacts(
            {sender: [weft.Fact(key="name", value="Ada"), weft.Fact(key="city", value="Lisbon")]}
        ),
        summaries=InMemorySummaries({("telegram", "42"): [weft.Summary(text="Ada asked about tides.")]}),
        tasks=InMemoryTasks({sender: [weft.Task(id="a1b2c3d4e5", text="Buy batteries", due=NOW)]}),
        recall=InMemoryRecall(
            {sender: [weft.Recalled(text="The boat is called Marlin.", speaker="User", timestamp=NOW)]}
        ),
    )
