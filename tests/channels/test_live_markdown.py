"""An answer is drawn block by block while it comes, and nothing of it is lost."""

import asyncio
import io
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from screens import lines_on_screen
from weft.channels import live_markdown
from weft.channels.live_markdown import GrowingText, LastLines, split_complete


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", ""),
        ("one", ""),
        ("one\n\n", "one\n\n"),
        ("one\n\ntwo\nmore", "one\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nafter", "```\na\n\nb\n```\n\n"),
        ("````\n```\n\n````\n\nx", "````\n```\n\n````\n\n"),
        ("~~~ py\n\n", ""),
        ("# Head\n\n- a\n- b\n\n", "# Head\n\n- a\n- b\n\n"),
    ],
)
def test_a_block_is_complete_at_a_blank_line_outside_of_code(text: str, complete: str) -> None:
    assert split_complete(text) == (complete, text[len(complete) :])


def test_a_line_is_looked_at_once_however_long_its_block_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    class Fence:
        def match(self, line: str) -> "re.Match[str] | None":
            looked.append(line)
            return re.match(r"(`{3,})", line)

    monkeypatch.setattr(live_markdown, "_FENCE", Fence())

    shown(["```\n", *(piece for n in range(200) for piece in ("line ", f"{n}\n")), "```\n\n"], terminal=True)

    assert len(looked) == 203


def shown(pieces: list[str], *, terminal: bool) -> str:
    out = Console(file=io.StringIO(), force_terminal=terminal, width=80, height=30, color_system=None)
    with GrowingText(out) as live_markdown:
        for piece in pieces:
            live_markdown.add(piece)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@given(st.lists(st.text(alphabet="ab` \n#-*", max_size=12), max_size=8))
def test_a_pipe_gets_the_answer_as_it_is(pieces: list[str]) -> None:
    assert shown(pieces, terminal=False) == "".join(pieces) + ("\n" if pieces else "")


@given(st.lists(st.text(alphabet="abc \n", max_size=12), max_size=8))
def test_every_word_reaches_the_screen(pieces: list[str]) -> None:
    screen = shown(pieces, terminal=True)

    for word in "".join(pieces).split():
        assert word in screen


def test_control_characters_cannot_move_the_cursor() -> None:
    assert "\x1b[2J" not in shown(["evil \x1b[2J text\n\n", "end"], terminal=True)


@pytest.mark.parametrize("entity", ["&#8238;", "&#x202E;", "&#x2066;", "&#x9b;"])
def test_control_characters_written_as_entities_cannot_either(entity: str) -> None:
    screen = shown([f"tom {entity} & jerry `{entity}` &#38;\n\n"], terminal=True)

    assert not {"\u202e", "\u2066", "\x9b"} & set(screen)
    assert "& jerry" in screen


def test_a_link_shows_where_it_leads() -> None:
    assert "https://evil.example" in shown(
        ["[https://bank.example](https://evil.example)\n\n"], terminal=True
    )


def test_line_ends_of_other_systems_leave_no_marks() -> None:
    assert "x0d" not in shown(["# Head\r\n\r\n- one\r\n- two\r\n"], terminal=True)


def test_the_end_of_a_paragraph_longer_than_the_screen_is_seen_while_it_grows() -> None:
    out = Console(file=io.StringIO(), force_terminal=True, width=20, height=8, color_system=None)
    assert isinstance(out.file, io.StringIO)

    out.print(LastLines("\n".join(["first", *(" ".join(["word"] * 50),) * 2, "last"])))

    lines = out.file.getvalue().splitlines()
    assert lines[-1] == "last"
    assert len(lines) == 4


def test_lines_about_tools_are_shown_on_a_terminal_and_not_in_a_pipe() -> None:
    for terminal in (True, False):
        out = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
        with GrowingText(out) as live_markdown:
            live_markdown.add("Let me look.")
            live_markdown.line("tide {}", mark="→")
            live_markdown.add("At six.")
        assert isinstance(out.file, io.StringIO)
        assert ("→ tide {}" in out.file.getvalue()) is terminal


async def test_code_is_drawn_once_however_its_pieces_and_the_frames_of_the_screen_fall() -> None:
    text = "Here:\n\n```python\ndef f(x):\n    return x\n```\n\nand\n\n```\nls\n```\n"
    for size in range(1, 30):
        out = Console(file=io.StringIO(), force_terminal=True, width=60, height=30, color_system=None)
        before = threading.active_count()
        with GrowingText(out) as growing:
            assert threading.active_count() == before, "only the event loop draws"
            for start in range(0, len(text), size):
                growing.add(text[start : start + size])
                await asyncio.sleep(0)
        assert isinstance(out.file, io.StringIO)
        lines = [line.strip() for line in lines_on_screen(out.file.getvalue()) if line.strip()]
        assert lines == ["Here:", "def f(x):", "return x", "and", "ls"]


async def test_the_spinner_moves_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_markdown, "_FRAME_SECONDS", 0)
    out = Console(file=io.StringIO(), force_terminal=True, width=60, height=30, color_system=None)
    assert isinstance(out.file, io.StringIO)

    with GrowingText(out):
        for _ in range(10):
            await asyncio.sleep(0)

    assert out.file.getvalue().count("thinking") > 3
