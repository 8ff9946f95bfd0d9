"""Hostile or unlucky surroundings: long runs, links, many at once, terminals."""

import asyncio
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import weft
from programs import environ, run_weft
from weft.channels.terminal import show_answer, show_receipt
from weft.providers.scripted import ScriptedProvider
from weft.tokens import Counter
from weft.types.escape import without_labels, without_tags
from weft.workspace import files

from samples import write_workspace


@pytest.mark.parametrize("clean", [without_tags, without_labels])
@pytest.mark.parametrize("hostile", ["<" + " " * 500_000, "< " * 250_000, "<" * 500_000, "\n\\" * 250_000])
def test_a_long_run_of_marks_costs_no_more_than_its_length(clean: object, hostile: str) -> None:
    # A pattern that looks again and again would take hours here, not milliseconds.
    assert callable(clean)
    assert len(clean(hostile)) >= len(hostile)


async def test_many_builds_at_once_read_every_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_JUST_WRITTEN_NS", 0)  # a file that was just written is read again
    builder = weft.ContextBuilder().with_workspace(write_workspace(tmp_path))

    contexts = await asyncio.gather(*(builder.build(f"question {n}") for n in range(10)))

    assert len({context.system_prompt for context in contexts}) == 1
    assert builder.files.reader.reads == 7


async def test_a_list_of_messages_is_counted_once_however_often_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = [weft.Message(role="user", content=f"message {n}") for n in range(100)]
    counted: list[weft.Message] = []
    count = Counter.message

    def noted(self: Counter, message: weft.Message) -> int:
        counted.append(message)
        return count(self, message)

    monkeypatch.setattr(Counter, "message", noted)
    builder, built = weft.ContextBuilder(), []
    for messages in (history, history, list(history)):
        await builder.with_messages(messages).build("Hi")
        built.append(sum(message in history for message in counted))

    assert built == [100, 100, 200], "a copy of the list is another one"


async def test_messages_may_come_from_a_generator() -> None:
    said = (weft.Message(role="user", content=f"message {n}") for n in range(3))

    context = await weft.ContextBuilder().with_messages(said).build("Hi")

    assert len(context.history) == 3


async def test_a_skills_folder_that_leads_out_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    outside = write_workspace(tmp_path / "outside")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "skills").symlink_to(outside / "skills")

    context = await weft.ContextBuilder().with_workspace(workspace).build("Hi")

    assert context.receipt is not None
    assert "packing" not in context.system_prompt
    assert any("leads out" in warning for warning in context.receipt.warnings)


async def test_a_block_too_large_for_the_memory_hides_no_other() -> None:
    from weft.testing import InMemoryBlocks

    blocks = InMemoryBlocks(
        {
            "a": [
                weft.RenderedBlock(id="1", label="big", content="x " * 13_000, pinned=True),
                weft.RenderedBlock(id="2", label="small", content="kept", pinned=True),
            ]
        }
    )

    context = await weft.ContextBuilder(blocks).for_agent("a").build("Hi")

    assert context.receipt is not None
    assert "<block:small" in context.system_prompt
    (dropped,) = [item for item in context.receipt.dropped if item.layer == "blocks"]
    assert (dropped.title, "12000 tokens for memory blocks" in dropped.reason) == ("big", True)


async def test_a_terminal_gets_no_control_characters_from_outside(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path)
    (workspace / "memory" / "MEMORY.md").write_text("- x \x1b]0;owned\x07 \x1b[2J y\n", "utf-8")
    context = await weft.ContextBuilder().with_workspace(workspace).build("Hi")
    provider = ScriptedProvider(["an \x1b[31manswer\x07"])
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, color_system=None, width=200)

    assert context.receipt is not None
    show_receipt(context.receipt, terminal)
    await show_answer(provider.stream(context), terminal, Console(file=io.StringIO()), waiting="a")

    assert "\x1b]0;" not in screen.getvalue()
    assert "\x07" not in screen.getvalue()
    assert "\\x1b[31manswer" in screen.getvalue()


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full to write to")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "weft", "context", "-p", "scripted", "x" * 100_000]
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environ(tmp_path),
            timeout=60,
            check=False,
        )

    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["a[/]b", "[red]x", "[/bold]"])
def test_names_that_look_like_markup_are_printed_as_they_are(name: str, tmp_path: Path) -> None:
    done = run_weft(environ(tmp_path), "init", "--workspace", str(tmp_path / name))

    assert done.returncode == 0, done.stderr
    assert str(tmp_path / name / "SOUL.md") in done.stdout
