"""The line editor of `weft chat`: several lines, history at the arrow keys, completion on Tab."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from weft.channels.completions import Completions


def make_prompt(lines: Sequence[str] = (), completions: Completions | None = None) -> PromptSession[str]:
    """Make an editor that recalls these lines."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return PromptSession(
        history=InMemoryHistory(list(lines)),
        key_bindings=keys,
        prompt_continuation="  ",
        completer=_TabCompleter(completions) if completions else None,
        complete_while_typing=False,
    )


async def print_above(draw: Callable[[], None]) -> None:
    """Draw something above the line that is being typed."""
    drawing: Awaitable[None] = run_in_terminal(draw)
    await drawing


class _TabCompleter(Completer):
    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        word, candidates = await self._completions.find(document.text_before_cursor)
        for text, about in candidates:
            yield Completion(text, start_position=-len(word), display_meta=about)
