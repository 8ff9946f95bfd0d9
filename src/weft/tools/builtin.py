"""Weft's own tools: memory, within the permissions of its blocks, and results that were too long to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from weft.errors import StoreError, ToolError
from weft.memory.permission import Action, ConsentRequest
from weft.memory.store import MemoryStore
from weft.store.base import Recall, Turns
from weft.tools.base import Tool
from weft.tools.function import tool_from
from weft.types.escape import one_line
from weft.types.request import Caller

SOURCE = "Weft itself"
_PAGE = 16_000
_NOTE = 100
"""Characters of a page that say where to read on."""
_MOST = 20
_SHOWN = 500
_NOTICE = 80
"""Characters of a text that are repeated to the person after the answer."""


@dataclass(frozen=True, slots=True)
class _Person:
    """The person in the conversation, who is asked to agree to a change of a block that wants this."""

    caller: Caller
    change: str

    async def ask(self, request: ConsentRequest) -> bool:
        if self.caller.ask is None:
            return False
        what = "add to" if request.action is Action.APPEND else "change"
        return await self.caller.ask(
            f"May I {what} the memory block “{one_line(request.label)}”?\n\n{self.change}"
        )


class MemoryTools:
    """An agent's operations on its memory. The caller says whose memory it is, never the model."""

    def __init__(self, memory: MemoryStore, recall: Recall) -> None:
        self._memory, self._recall = memory, recall

    async def memory_create(self, label: str, caller: Caller, description: str = "", text: str = "") -> str:
        """Create a memory block for a subject of its own. You see it in every conversation from then on.

        Args:
            label: A short name, such as garden or project-atlas.
            description: What belongs into the block, in one sentence.
            text: What it holds at first.
        """
        await self._create(caller, label, description=description, text=text if text.strip() else "")
        caller.changes.append(f"made the memory block {one_line(label)}")
        return await self._done(caller, label, text)

    async def memory_append(self, label: str, text: str, caller: Caller) -> str:
        """Remember something for good: add it to a memory block, on a line of its own.

        Use this whenever the person asks you to remember something. `human` is for what you learn about the
        person, `notes` for everything else. A block that does not exist is created.

        Args:
            label: The block's label, as in its tag.
            text: What to add: one full sentence that makes sense alone.
        """
        if await self._memory.get_block(caller.agent_id, label) is None:
            await self._create(caller, label)
        memory = self._memory.with_consent(_Person(caller, _quoted("+", text)))
        await memory.append_to_block(caller.agent_id, label, text, own_line=True)
        caller.changes.append(f"remembered in {one_line(label)}: {_excerpt(text)}")
        before = _content(caller, label)
        return await self._done(caller, label, f"{before}\n{text}" if before else text)

    async def _create(self, caller: Caller, label: str, *, description: str = "", text: str = "") -> None:
        await self._memory.create_block(
            caller.agent_id, label, text=text, description=description, pinned=True
        )

    async def memory_replace(self, label: str, old: str, new: str, caller: Caller) -> str:
        """Replace a piece of text in a memory block.

        Args:
            label: The block's label, as in its tag.
            old: The text to replace, exactly as it stands in the block.
            new: What to put in its place; empty to remove it.
        """
        change = "\n".join(_quoted(mark, text) for mark, text in (("-", old), ("+", new)) if text)
        memory = self._memory.with_consent(_Person(caller, change))
        if not await memory.replace_in_block(caller.agent_id, label, old, new):
            raise ToolError(f"the text was not found in {label!r}: copy it exactly as it stands there")
        done = f"now “{_excerpt(new)}”" if new.strip() else "gone"
        caller.changes.append(f"changed {one_line(label)}: “{_excerpt(old)}” is {done}")
        return await self._done(caller, label, _content(caller, label).replace(old, new, 1))

    async def memory_rewrite(self, label: str, text: str, caller: Caller) -> str:
        """Rewrite a whole memory block that you were shown. What others wrote meanwhile is kept.

        Args:
            label: The block's label, as in its tag.
            text: The whole new text.
        """
        block = caller.visible_blocks.get(label)
        if block is None:
            raise ToolError(f"you were not shown the block {label!r}: use memory_append or memory_replace")
        change = "\n".join(_quoted(mark, part) for mark, part in (("-", block.content), ("+", text)) if part)
        memory = self._memory.with_consent(_Person(caller, change))
        await memory.update_block_text(caller.agent_id, label, text, base=block.version)
        caller.changes.append(f"rewrote {one_line(label)}")
        return await self._done(caller, label, text)

    async def _done(self, caller: Caller, label: str, expected: str) -> str:
        """Tell the model what became of a block: its size, or its text if that is not what it expects."""
        document = await self._memory.get_block(caller.agent_id, label)
        if document is None:
            raise StoreError(f"There is no block {label!r} any more.")
        text, block = document.render(), caller.visible_blocks.get(label)
        answer = f"done: {label!r} has {len(text)} characters now"
        if block is None:
            return answer
        caller.visible_blocks[label] = replace(block, content=text, version=document.version)
        return answer if text == expected else f"{answer}, for others changed it too. It reads:\n{text}"

    async def memory_history(self, label: str, caller: Caller, limit: int = 10) -> str:
        """List the latest changes of a memory block: version, time, and who made them.

        Args:
            label: The block's label.
            limit: How many changes at most.
        """
        versions = await self._memory.block_history(caller.agent_id, label)
        newest = list(versions)[-max(1, min(limit, _MOST)) :]
        lines = [f"{v.version}: {_when(v.at)} {v.kind} by {v.author or 'unknown'}" for v in newest]
        return "\n".join(lines) or "(no changes)"

    async def archival_insert(self, text: str, caller: Caller) -> str:
        """Keep a note for later. It is not shown unless it is searched for.

        Args:
            text: The note; best a full sentence that makes sense alone.
        """
        return f"kept as {await self._memory.insert_archival(caller.agent_id, text)}"

    async def archival_search(self, query: str, caller: Caller, limit: int = 5) -> str:
        """Search the notes that were kept.

        Args:
            query: What to look for.
            limit: How many at most.
        """
        notes = await self._memory.search_archival(caller.agent_id, query, max(1, min(limit, _MOST)))
        return _listed([f"[{_when(note.created_at)}] {note.content}" for note in notes])

    async def conversation_search(self, query: str, caller: Caller, limit: int = 5) -> str:
        """Search everything that was said in conversations with this person.

        Args:
            query: What to look for.
            limit: How many lines at most.
        """
        lines = await self._recall.recall(
            query, sender=caller.sender, session_id="", limit=max(1, min(limit, _MOST))
        )
        return _listed([f"[{_when(line.timestamp)}] {line.speaker}: {line.text}" for line in lines])


class ResultTools:
    """The tool that reads on in a result that was cut."""

    def __init__(self, turns: Turns, page_chars: int) -> None:
        self._turns, self._page_chars = turns, page_chars

    async def read_result(self, id: str, caller: Caller, offset: int = 0) -> str:  # noqa: A002
        """Read more of a tool's result that was too long to be shown.

        Args:
            id: The id that the cut result names.
            offset: From which character on.
        """
        text, length = await self._turns.read_result(caller.session_id, id, max(offset, 0), self._page_chars)
        end = max(offset, 0) + len(text)
        return text + (f"\n[{length - end} more characters from offset {end} on.]" if end < length else "")


def memory_tools(memory: MemoryStore, recall: Recall) -> list[Tool]:
    tools = MemoryTools(memory, recall)
    functions = (
        tools.memory_create,
        tools.memory_append,
        tools.memory_replace,
        tools.memory_rewrite,
        tools.memory_history,
        tools.archival_insert,
        tools.archival_search,
        tools.conversation_search,
    )
    return [tool_from(function, source=SOURCE) for function in functions]


def result_tools(turns: Turns, *, max_chars: int = _PAGE + _NOTE) -> list[Tool]:
    """Return the tool that reads on, in pages that fit into `max_chars` and so are not cut themselves."""
    page_chars = max(min(_PAGE, max_chars - _NOTE), 1)
    return [tool_from(ResultTools(turns, page_chars).read_result, source=SOURCE)]


def _content(caller: Caller, label: str) -> str:
    """Return a block's text as the model last saw it."""
    block = caller.visible_blocks.get(label)
    return "" if block is None else block.content


def _quoted(mark: str, text: str) -> str:
    """Show a person the beginning of a text that would be written, with a mark before each line."""
    excerpt = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    return "\n".join(f"    {mark} {line}" for line in excerpt.splitlines())


def _excerpt(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _NOTICE else f"{flat[: _NOTICE - 1]}…"


def _when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "some time ago"


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines) or "(nothing found)"
