"""What a line of `weft chat` can go on with: commands, labels, models, sessions, recipes and files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from weft.errors import WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.commands import COMMANDS
from weft.gateway.conversation import Conversation
from weft.types.escape import one_line, printable
from weft.types.recipe import packaged
from weft.types.request import Caller
from weft.types.session import Session

Candidate = tuple[str, str]
"""A whole word, and what it is."""

_MOST = 50
_ABOUT_CHARS = 60


@dataclass(slots=True, kw_only=True)
class Completions:
    """Completes what a person types in a conversation. The models are asked for once."""

    assistant: Assistant
    caller: Caller
    list_models: Callable[[], Awaitable[Sequence[str]]]
    _models: Sequence[str] | None = field(default=None, init=False)

    async def find(self, text: str) -> tuple[str, list[Candidate]]:
        """Return the word before the cursor, and the words that begin so."""
        last = "" if text[-1:].isspace() else text.rsplit(" ", maxsplit=1)[-1].rsplit("\n", maxsplit=1)[-1]
        if last.startswith("@"):
            return last, [(f"@{path}", "") for path in _files(last[1:])]
        if not text.startswith("/") or "\n" in text:
            return "", []
        command, space, rest = text.partition(" ")
        if not space:
            return command, _fitting(command, [(f"/{name}", COMMANDS[name].about) for name in COMMANDS])
        try:
            return rest, _fitting(rest, await self._arguments(command))
        except WeftError:
            return rest, []  # a key must never end the conversation

    async def _arguments(self, command: str) -> list[Candidate]:
        match command:
            case "/memory" | "/undo":
                store = await self.assistant.store.get()
                blocks = await store.memory.list_blocks(self.caller.agent_id)
                return [(block.label, block.description) for block in blocks]
            case "/model":
                if self._models is None:
                    self._models = await self.list_models()
                return [(name, "") for name in self._models]
            case "/resume":
                engine = self.assistant.engine
                here = Conversation(
                    engine=engine, caller=self.caller, session=Session(id=""), provider=engine.provider
                )
                return [(one.id, one.title) for one in await here.sessions()]
            case "/recipe":
                return [(name, "") for name in packaged()]
        return []


def _fitting(start: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that begin so. What cannot be typed on one line is left out."""
    return [
        (text, one_line(about)[:_ABOUT_CHARS])
        for text, about in candidates
        if text.startswith(start) and printable(text) == text and "\n" not in text
    ]


def _files(start: str) -> list[str]:
    """Return the files and folders whose paths begin so."""
    folder, name = Path(start).parent, "" if start.endswith("/") else Path(start).name
    folder = Path(start) if start.endswith("/") else folder
    try:
        entries = islice(folder.expanduser().iterdir(), 1000)
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries if entry.name.startswith(name))
    except (OSError, RuntimeError):
        return []
    prefix = start.removesuffix(name)
    fitting = (f"{prefix}{entry}" for entry in names if name or not entry.startswith("."))
    return [path for path in fitting if printable(path) == path and " " not in path][:_MOST]
