"""Weft's own tools: memory, within the permissions of its blocks, and results that were too long to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from weft.errors import InvalidEdit, StoreError, ToolError
from weft.memory.edits import BlockEdit
from weft.memory.permission import Action, ConsentRequest
from weft.memory.store import MemoryStore
from weft.store.base import Recall, Turns
from weft.tools.base import Order, Tool, ToolKind
from weft.tools.function import tool_from
from weft.types.escape import one_line, quoted_lines
from weft.types.memory import Permission
from weft.types.request import AskConsent, Caller
from weft.types.schema import BlockSchema, TextSchema, make_schema
from weft.types.section import OUTSIDE

SOURCE = "Weft itself"
_PAGE = 16_000
_NOTE = 100
"""Characters of a page that say where to read on."""
_MOST = 20
_NOTICE = 80
"""Characters of a text that are repeated to the person after the answer."""


_TOOLS_FOR = {
    "text": "memory_append, memory_replace or memory_rewrite",
    "map": "memory_edit with set, increment or push",
    "list": "memory_append, or memory_edit with set, insert or remove",
    "log": "memory_append",
    "composite": "memory_append or memory_edit with a section",
}
"""The tools that change a block, by its kind."""

Value = str | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class _Consent:
    """Who is asked to agree to a change: whoever is in the conversation, or the owner of the assistant."""

    caller: Caller
    change: str

    async def ask(self, request: ConsentRequest) -> bool:
        what = "add to" if request.action is Action.APPEND else "change"
        question = f"May I {what} the memory block “{one_line(request.label)}”?\n\n{self.change}"
        if self.caller.agreed and (self.caller.is_owner or request.permission is not Permission.PARTNER):
            return True  # the person has just seen and agreed to this very call
        if request.permission is Permission.PARTNER and not self.caller.is_owner:
            who = one_line(self.caller.person or self.caller.sender)
            return await _asked(self.caller.ask_owner, f"For {who}: {question}")
        return await _asked(self.caller.ask, question)


async def _asked(ask: AskConsent | None, question: str) -> bool:
    return False if ask is None else await ask(question)


class MemoryTools:
    """An agent's operations on its memory. The caller says whose memory it is, never the model."""

    def __init__(self, memory: MemoryStore, recall: Recall) -> None:
        self._memory, self._recall = memory, recall

    async def memory_create(
        self,
        label: str,
        caller: Caller,
        description: str = "",
        text: str = "",
        kind: Literal["text", "list", "map", "log", "composite"] = "text",
        fields: list[str] | None = None,
    ) -> str:
        """Create a memory block for a subject of its own. You see it in every conversation from then on.

        Args:
            label: A short name, such as garden or project-atlas.
            description: What belongs into the block, in one sentence.
            text: What a text holds at first.
            kind: A map has named values, a log entries with times, a composite sections.
            fields: Names of a map's values or of the values of a list's items, as name or name:type (number,
                boolean, list, timestamp, counter); for a composite its sections as name:kind.
        """
        schema = make_schema(kind, fields or ())
        first = text if text.strip() and kind == "text" else ""
        await self._create(caller, label, description=description, schema=schema, text=first)
        caller.changes.append(f"made the memory block {one_line(label)}")
        return await self._done(caller, label, text if kind == "text" else None)

    async def memory_append(self, label: str, text: str, caller: Caller, section: str = "") -> str:
        """Remember something for good: add it to a memory block, as a line, a list's item or a log's entry.

        Use this whenever the person asks you to remember something. `human` is for what you learn about the
        person, `notes` for everything else. A block that does not exist is created.

        Args:
            label: The block's label, as in its tag.
            text: What to add: one full sentence that makes sense alone; for items with values, JSON.
            section: The section of a composite.
        """
        document = await self._memory.find_usable_block(caller.agent_id, label)
        if document is None:
            await self._create(caller, label)
        edit = BlockEdit(verb="append", value=text, section=section, is_typed=True)
        await self._edit(caller, label, edit, quoted_lines(f"{_at(section)}{text}", "+ "))
        caller.changes.append(f"remembered in {one_line(label)}: {_excerpt(text)}")
        before = _content(caller, label)
        is_text = document is None or isinstance(document.schema, TextSchema)
        expected = f"{before}\n{text}" if before else text
        return await self._done(caller, label, expected if is_text else None)

    async def memory_edit(  # noqa: PLR0913 - what an edit may need
        self,
        label: str,
        verb: Literal["set", "increment", "push", "insert", "remove"],
        caller: Caller,
        value: Value | None = None,
        field: str = "",
        index: int = 0,
        section: str = "",
    ) -> str:
        """Change a memory block that is a list or a map, or a section that is one.

        Args:
            label: The block's label, as in its tag.
            verb: A map's value is set, a counter incremented, a list in it pushed to; in a list an item is
                set, inserted or removed.
            value: The new value, or how much to count.
            field: The name of a map's value.
            index: The number of a list's item as it is shown, from 1.
            section: The section of a composite.
        """
        edit = BlockEdit(
            verb=verb, value=value, field=field, index=index or None, section=section, is_typed=True
        )
        what = " ".join(filter(None, (verb, field or (f"item {index}" if index else ""))))
        change = _at(section) + (what if value is None else f"{what}: {value}")
        await self._edit(caller, label, edit, quoted_lines(change, "+ "))
        caller.changes.append(f"changed {one_line(label)}: {_excerpt(change)}")
        return await self._done(caller, label, None)

    async def _create(
        self,
        caller: Caller,
        label: str,
        *,
        description: str = "",
        schema: BlockSchema | None = None,
        text: str = "",
    ) -> None:
        await self._memory.authored(caller.author).create_block(
            caller.agent_id,
            label,
            text=text,
            description=description,
            schema=schema or TextSchema(),
            pinned=True,
        )

    async def _edit(self, caller: Caller, label: str, edit: BlockEdit, change: str) -> Any:
        """Make an edit.

        Raises:
            ToolError: the block has no such verb; the error names the tools that it has.
        """
        memory = self._memory.authored(caller.author).with_consent(_Consent(caller, change))
        try:
            return await memory.edit_block(caller.agent_id, label, edit)
        except InvalidEdit as error:
            remedy = f" Use {_TOOLS_FOR[error.kind]}." if error.kind in _TOOLS_FOR else ""
            raise ToolError(f"{error}{remedy}") from error

    async def _text_block(self, caller: Caller, label: str) -> None:
        """Raise ToolError if a block is not a text; the error names the tools that change it."""
        document = await self._memory.find_usable_block(caller.agent_id, label)
        if document is not None and not isinstance(document.schema, TextSchema):
            kind = document.schema.kind
            raise ToolError(f"{label!r} is a {kind}: use {_TOOLS_FOR.get(kind, 'memory_append')}")

    async def memory_replace(self, label: str, old: str, new: str, caller: Caller) -> str:
        """Replace a piece of text in a memory block.

        Args:
            label: The block's label, as in its tag.
            old: The text to replace, exactly as it stands in the block.
            new: What to put in its place; empty to remove it.
        """
        await self._text_block(caller, label)
        change = "\n".join(quoted_lines(text, mark) for mark, text in (("- ", old), ("+ ", new)) if text)
        memory = self._memory.authored(caller.author).with_consent(_Consent(caller, change))
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
        await self._text_block(caller, label)
        block = caller.visible_blocks.get(label)
        if block is None:
            raise ToolError(f"you were not shown the block {label!r}: use memory_append or memory_replace")
        change = "\n".join(
            quoted_lines(part, mark) for mark, part in (("- ", block.content), ("+ ", text)) if part
        )
        memory = self._memory.authored(caller.author).with_consent(_Consent(caller, change))
        await memory.update_block_text(caller.agent_id, label, text, base=block.version)
        caller.changes.append(f"rewrote {one_line(label)}")
        return await self._done(caller, label, text)

    async def _done(self, caller: Caller, label: str, expected: str | None) -> str:
        """Tell the model what became of a block: its size, or its text if that is not what it expects."""
        document = await self._memory.find_usable_block(caller.agent_id, label)
        if document is None:
            raise StoreError(f"There is no block {label!r} any more.")
        text, block = document.render(), caller.visible_blocks.get(label)
        if block is not None:
            caller.visible_blocks[label] = replace(block, content=text, version=document.version)
        if expected is None:
            return f"done: {label!r} reads now:\n{text}"
        answer = f"done: {label!r} has {len(text)} characters now"
        if block is None or text == expected:
            return answer
        return f"{answer}, for others changed it too. It reads:\n{text}"

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
        metadata = {"asked_by": ", ".join(caller.outside)} if caller.outside else None
        return f"kept as {await self._memory.insert_archival(caller.agent_id, text, metadata)}"

    async def archival_search(self, query: str, caller: Caller, limit: int = 5) -> str:
        """Search the notes that were kept.

        Args:
            query: What to look for.
            limit: How many at most.
        """
        notes = await self._memory.search_archival(caller.agent_id, query, max(1, min(limit, _MOST)))
        caller.read_outside.extend(filter(None, (str((n.metadata or {}).get("asked_by", "")) for n in notes)))
        return _listed([f"[{_when(note.created_at)}] {note.content}" for note in notes])

    async def conversation_search(self, query: str, caller: Caller, limit: int = 5) -> str:
        """Search everything that was said in conversations with this person.

        Args:
            query: What to look for.
            limit: How many lines at most.
        """
        hits = await self._recall.recall(
            query, sender=caller.sender, session_id="", limit=max(1, min(limit, _MOST))
        )
        lines = [hit for hit in hits if hit.relevance]
        caller.read_outside.extend(
            f"conversation ({line.origin})" for line in lines if line.origin in OUTSIDE
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
        place = (caller.session_id, id, max(offset, 0), self._page_chars)
        text, length, outside = await self._turns.read_result(*place)
        caller.read_outside.extend(filter(None, (outside,)))
        end = max(offset, 0) + len(text)
        return text + (f"\n[{length - end} more characters from offset {end} on.]" if end < length else "")


def memory_tools(memory: MemoryStore, recall: Recall) -> list[Tool]:
    tools = MemoryTools(memory, recall)
    kinds: dict[Callable[..., Any], tuple[ToolKind, Order]] = {
        tools.memory_create: ("memory", ""),
        tools.memory_append: ("memory", "remember"),
        tools.memory_edit: ("memory", ""),
        tools.memory_replace: ("memory", ""),
        tools.memory_rewrite: ("memory", ""),
        tools.memory_history: ("read", ""),
        tools.archival_insert: ("memory", "remember"),
        tools.archival_search: ("read", ""),
        tools.conversation_search: ("read", ""),
    }
    return [
        tool_from(function, source=SOURCE, kind=kind, order=order)
        for function, (kind, order) in kinds.items()
    ]


def result_tools(turns: Turns, *, max_chars: int = _PAGE + _NOTE) -> list[Tool]:
    """Return the tool that reads on, in pages that fit into `max_chars` and so are not cut themselves."""
    page_chars = max(min(_PAGE, max_chars - _NOTE), 1)
    return [tool_from(ResultTools(turns, page_chars).read_result, source=SOURCE, kind="read")]


def _content(caller: Caller, label: str) -> str:
    """Return a block's text as the model last saw it."""
    block = caller.visible_blocks.get(label)
    return "" if block is None else block.content


def _at(section: str) -> str:
    return f"[{one_line(section)}] " if section else ""


def _excerpt(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _NOTICE else f"{flat[: _NOTICE - 1]}…"


def _when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "some time ago"


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines) or "(nothing found)"
