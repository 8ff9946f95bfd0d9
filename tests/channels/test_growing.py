"""An answer is drawn block by block while it comes, and nothing of it is lost."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from weft.channels import growing
from weft.channels.growing import GrowingText, split_complete


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

    monkeypatch.setattr(growing, "_FENCE", Fence())

    shown(["```\n", *(piece for n in range(200) for piece in ("line ", f"{n}\n")), "```\n\n"], terminal=True)

    assert len(looked) == 203


def shown(pieces: list[str], *, terminal: bool) -> str:
    out = Console(file=io.StringIO(), force_terminal=terminal, width=80, height=30, color_system=None)
    with GrowingText(out) as growing:
        for piece in pieces:
            growing.add(piece)
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


def test_lines_of_ours_stay_out_of_a_pipe() -> None:
    for terminal in (True, False):
        out = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
        with GrowingText(out) as growing:
            growing.add("Let me look.")
            growing.line("tide {}", mark="→")
            growing.add("At six.")
        assert isinstance(out.file, io.StringIO)
        assert ("→ tide {}" in out.file.getvalue()) is terminal
