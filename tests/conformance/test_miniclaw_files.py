"""miniclaw's lines on files: where they are, when they are read, and the large, missing and strange ones."""

import json
import logging
import os
import sys
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import weft
from weft.config import find_paths
from weft.testing import InMemoryMessages
from weft.tokens import Counter
from weft.types.session import Tail

FILES = {
    "SOUL.md": "I am Claw.",
    "AGENTS.md": "Ask first.",
    "TOOLS.md": "grep(pattern)",
    "memory/MEMORY.md": "- The cat is called Mia.",
    "skills/notes/SKILL.md": "---\nname: notes\ndescription: Write notes.\n---\nbody\n",
    "skills/search/SKILL.md": "---\nname: search\ndescription: Search.\n---\nbody\n",
}


class Opened:
    """The files of one folder that were opened while it listened. A hook for audit events stays for good."""

    hooked: ClassVar[bool] = False
    listening: ClassVar["Opened | None"] = None

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.plain: Tally[str] = Tally()
        self.raw: Tally[str] = Tally()

    def times(self) -> dict[str, int]:
        """How often each file was opened: `open` with an opener reports twice, so the larger count is it."""
        return {name: max(self.plain[name], self.raw[name]) for name in self.plain | self.raw}

    def clear(self) -> None:
        self.plain.clear()
        self.raw.clear()

    def note(self, path: object, mode: object) -> None:
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if name.startswith(self.folder) and name.endswith(".md"):
            tally = self.raw if mode is None else self.plain
            tally[os.path.relpath(name, self.folder)] += 1


def on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and Opened.listening is not None:
        Opened.listening.note(arguments[0], arguments[1])


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with every file that the documents name; what lies beside it is outside."""
    for name, text in FILES.items():
        write(tmp_path / "workspace" / name, text)
    return tmp_path / "workspace"


@pytest.fixture
def opened(workspace: Path) -> Iterator[Opened]:
    if not Opened.hooked:
        sys.addaudithook(on_audit_event)
        Opened.hooked = True
    Opened.listening = Opened(workspace)
    yield Opened.listening
    Opened.listening = None


def builder(workspace: Path) -> weft.ContextBuilder:
    return weft.ContextBuilder(recipe="miniclaw").with_workspace(workspace)


def receipt_of(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


async def layers(source: weft.ContextBuilder) -> dict[str, str]:
    """The text of each system layer of the next context."""
    return {section.layer: section.text for section in (await source.build("hello")).sections}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [r for r in caplog.records if r.levelno == logging.WARNING and r.name.startswith("weft")]
    return [record.getMessage() for record in found]


# --- places


async def test_M20_the_files_of_a_workspace_are_found_at_their_places(workspace: Path) -> None:
    messages = (await builder(workspace).build("hello")).to_messages()

    system = [message.content for message in messages if message.role == "system"]
    assert system[0] == "I am Claw.\n\nAsk first."
    assert system[2:] == [
        "Relevant memories:\n- The cat is called Mia.",
        "Available skills:\n- notes: Write notes.\n- search: Search.",
        "Available tools:\ngrep(pattern)",
    ]


async def test_M20_a_file_at_another_place_is_not_taken_for_it(tmp_path: Path) -> None:
    write(tmp_path / "MEMORY.md", "- STRAY memory")
    write(tmp_path / "skills" / "SKILL.md", "STRAY skill")
    write(tmp_path / "docs" / "SOUL.md", "STRAY soul")

    context = await builder(tmp_path).build("hello")

    assert "STRAY" not in context.to_json()
    assert [message.role for message in context.to_messages()] == ["system", "system", "system", "user"]


def test_M20_the_default_workspace_is_below_weft_home(tmp_path: Path) -> None:
    assert find_paths({"WEFT_HOME": str(tmp_path)}).workspace == tmp_path / "workspace"


def test_M20_without_weft_home_the_places_follow_the_xdg_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEFT_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    paths = find_paths(os.environ)

    assert paths.workspace == tmp_path / "data" / "weft" / "workspace"
    assert paths.config_file == tmp_path / "config" / "weft" / "config.toml"


def test_M20_the_xdg_folders_are_those_of_the_environment_that_is_passed(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}

    paths = find_paths(environ)

    assert paths.workspace == tmp_path / "data" / "weft" / "workspace"
    assert paths.config_file == tmp_path / "config" / "weft" / "config.toml"


# --- when files are read


async def test_M21_one_build_reads_each_file_once_and_gives_all_layers(
    workspace: Path, opened: Opened
) -> None:
    found = await layers(builder(workspace))

    assert list(found) == ["instructions", "bootstrap", "memory_file", "skills", "tool_docs"]
    assert opened.times() == dict.fromkeys(FILES, 1)


async def test_M21_a_large_file_holds_up_none_of_the_other_layers(workspace: Path) -> None:
    write(workspace / "memory" / "MEMORY.md", "".join(f"- entry {n}\n" for n in range(60_000)))

    found = await layers(builder(workspace))

    assert list(found) == ["instructions", "bootstrap", "memory_file", "skills", "tool_docs"]
    assert len(found["memory_file"].splitlines()) >= 20


async def test_M22_everything_but_the_tool_documentation_is_fresh_in_each_turn(workspace: Path) -> None:
    source = builder(workspace)
    await source.build("hello")
    write(workspace / "SOUL.md", "I am Paw.")
    write(workspace / "AGENTS.md", "Act first.")
    write(workspace / "memory" / "MEMORY.md", "- The dog is called Rex.")
    write(workspace / "skills" / "draw" / "SKILL.md", "---\nname: draw\ndescription: Draw.\n---\n")
    (workspace / "skills" / "notes" / "SKILL.md").unlink()

    found = await layers(source)

    assert found["instructions"] == "I am Paw.\n\nAct first."
    assert "- The dog is called Rex." in found["memory_file"]
    assert "Mia" not in found["memory_file"]
    assert "- draw: Draw." in found["skills"]
    assert "notes" not in found["skills"]


async def test_M22_M23_a_change_of_the_tool_documentation_shows_only_after_a_reload(workspace: Path) -> None:
    source = builder(workspace)
    await source.build("hello")
    write(workspace / "TOOLS.md", "find(name)")

    cached = await layers(source)
    of_a_step = await layers(source.with_session("telegram_1"))
    source.reload()
    reloaded = await layers(source)

    assert "grep(pattern)" in cached["tool_docs"]
    assert "grep(pattern)" in of_a_step["tool_docs"]
    assert "find(name)" in reloaded["tool_docs"]


async def test_M22_the_second_turn_opens_every_file_but_the_tool_documentation(
    workspace: Path, opened: Opened
) -> None:
    source = builder(workspace)
    await source.build("hello")
    opened.clear()

    await source.build("hello again")

    assert opened.times() == {name: 1 for name in FILES if name != "TOOLS.md"}


def open_descriptors() -> list[str]:
    """What the open file descriptors of this process stand for."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return [os.readlink(at) for at in links if os.path.islink(at)]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open watches are listed only on Linux")
async def test_M23_no_file_is_watched(workspace: Path) -> None:
    source = builder(workspace)

    await source.build("hello")

    targets = open_descriptors()
    assert targets
    assert not any("inotify" in target or "fanotify" in target for target in targets)


# --- large and missing files


async def test_M24_a_file_above_one_megabyte_is_read_to_its_end(workspace: Path) -> None:
    text = "begin " + "ä" * 600_000 + " end"
    write(workspace / "SOUL.md", text)

    found = await layers(builder(workspace))

    assert found["instructions"] == f"{text}\n\nAsk first."


async def test_M24_a_file_above_one_megabyte_is_read_with_a_notice(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="weft")
    large = write(workspace / "memory" / "MEMORY.md", "- entry of the memory\n" * 100_000)

    context = await builder(workspace).build("hello")

    logged = [r.getMessage() for r in caplog.records if r.name.startswith("weft")]
    assert any(str(large) in sentence for sentence in [*logged, *receipt_of(context).warnings])


async def test_M24_a_memory_of_many_megabytes_is_ranked_in_pieces_to_its_end_and_the_rest_is_in_the_receipt(
    workspace: Path,
) -> None:
    filler = "".join(f"- entry {n} about nothing in particular, {'x' * 60}\n" for n in range(60_000))
    late = "- The lighthouse keeper is called Ada,\n  and she feeds two cats.\n"
    write(
        workspace / "memory" / "MEMORY.md", f"# Memory\n{filler}<!-- {filler} -->\n{late}{filler[:200_000]}"
    )
    assert (workspace / "memory" / "MEMORY.md").stat().st_size > 10_000_000

    context = await builder(workspace).build("What is the name of the lighthouse keeper?")

    shown = next(s.text for s in context.sections if s.layer == "memory_file")
    assert "- The lighthouse keeper is called Ada,\n  and she feeds two cats." in shown
    assert len(shown.splitlines()) == 22
    [rest] = [item for item in receipt_of(context).dropped if item.title.endswith("entries")]
    assert rest.title == f"{60_000 + 1 + filler[:200_000].count(chr(10)) + 1 - 20} entries"
    assert rest.tokens > 1_000_000
    assert any("read and ranked in pieces" in warning for warning in receipt_of(context).warnings)


async def test_M24_a_file_too_large_to_be_shown_whole_says_so_to_the_model_and_to_the_person(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    large = write(workspace / "SOUL.md", "begin " + "x" * 20_000_000 + " end")

    context = await builder(workspace).build("hello")

    shown = context.to_messages()[0].content
    assert shown.startswith("begin xxx")
    assert len(shown) < 20_000_000
    assert "20000010 bytes" in shown
    assert any(str(large) in sentence and "20000010" in sentence for sentence in warned(caplog))
    assert any(str(large) in sentence for sentence in receipt_of(context).warnings)


@pytest.mark.parametrize("missing", ["SOUL.md", "AGENTS.md", "TOOLS.md", "memory/MEMORY.md"])
async def test_M25_a_missing_file_is_a_warning_and_never_an_error(
    workspace: Path, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    (workspace / missing).unlink()

    context = await builder(workspace).build("hello")

    assert [sentence for sentence in warned(caplog) if missing in sentence] == warned(caplog) != []
    assert any(str(workspace / missing) in sentence for sentence in receipt_of(context).warnings)
    assert context.to_messages()[-1].content == "hello"


async def test_M25_M38_an_empty_workspace_gives_a_usable_context(tmp_path: Path) -> None:
    messages = (await builder(tmp_path).build("hello")).to_messages()

    assert [message.role for message in messages] == ["system", "system", "system", "user"]
    assert messages[0].content == "You are miniclaw, a helpful AI assistant."


async def test_M25_a_folder_and_bytes_that_are_no_text_in_place_of_files_do_no_harm(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workspace / "SOUL.md").unlink()
    (workspace / "SOUL.md").mkdir()
    (workspace / "TOOLS.md").write_bytes(b"grep\xff(pattern)")

    found = await layers(builder(workspace))

    assert found["instructions"] == "You are miniclaw, a helpful AI assistant.\n\nAsk first."
    assert "Available tools:" in found["tool_docs"]
    assert any("SOUL.md" in sentence for sentence in warned(caplog))
    assert any("TOOLS.md" in sentence for sentence in warned(caplog))


# --- errors and logs


class BrokenLog(InMemoryMessages):
    """A message log whose disk is gone."""

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        raise OSError("the disk is gone")


async def test_M28_a_failure_to_read_the_log_is_a_context_error(workspace: Path) -> None:
    with pytest.raises(weft.ContextError, match=r"^IO error: (\[Errno \d+\] )?the disk is gone") as caught:
        await builder(workspace).with_messages(BrokenLog()).build("hello")

    assert isinstance(caught.value.__cause__, OSError)


async def test_M29_every_layer_is_logged_with_its_name_and_how_many_files_it_was_made_of(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="weft")

    await builder(workspace).build("hello")

    logged = [record.__dict__ for record in caplog.records if record.getMessage().startswith("layer ")]
    counts = {record["layer"]: record["file_count"] for record in logged}
    assert counts == {"instructions": 2, "bootstrap": 0, "memory_file": 1, "skills": 2, "tool_docs": 1}
    assert all(record["tokens"] > 0 for record in logged)
    assert {record["name"] for record in logged} == {"weft.turn.decide"}


# --- size


async def test_M32_a_typical_context_is_far_below_a_megabyte(workspace: Path) -> None:
    history = [weft.Message(role="user", content="What about that? " * 10) for _ in range(200)]

    context = await builder(workspace).with_messages(history).build("hello")

    assert len(context.to_json().encode()) < 1_000_000
    assert len(json.loads(context.to_json())["history"]) <= 50


async def test_M32_the_number_of_file_reads_does_not_grow_with_the_history(
    workspace: Path, opened: Opened
) -> None:
    history = [weft.Message(role="user", content=f"message {n}") for n in range(5000)]

    await builder(workspace).with_messages(history[:1]).build("hello")
    with_one = opened.times()
    opened.clear()
    await builder(workspace).with_messages(history).build("hello")

    assert opened.times() == with_one == dict.fromkeys(FILES, 1)


async def test_M32_M38_many_skills_are_each_read_once(workspace: Path, opened: Opened) -> None:
    for n in range(100):
        write(workspace / "skills" / f"s{n:03}" / "SKILL.md", f"---\nname: s{n:03}\ndescription: x\n---\n")
    opened.clear()

    found = await layers(builder(workspace))

    assert len(found["skills"].splitlines()) == 1 + 102
    assert set(opened.times().values()) == {1}
    assert len(opened.times()) == len(FILES) + 100


# --- paths


@pytest.mark.parametrize("name", ["SOUL.md", "AGENTS.md", "TOOLS.md", "memory/MEMORY.md"])
async def test_M35_a_link_out_of_the_workspace_is_not_followed(
    workspace: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    secret = write(workspace.parent / "secret.md", "- SECRET")
    (workspace / name).unlink()
    (workspace / name).symlink_to(secret)

    context = await builder(workspace).build("hello")

    assert "SECRET" not in context.to_json()
    assert any(str(workspace / name) in sentence for sentence in warned(caplog))


async def test_M35_a_folder_that_links_out_of_the_workspace_is_not_followed(workspace: Path) -> None:
    write(workspace.parent / "elsewhere" / "MEMORY.md", "- SECRET")
    (workspace / "memory" / "MEMORY.md").unlink()
    (workspace / "memory").rmdir()
    (workspace / "memory").symlink_to(workspace.parent / "elsewhere")

    assert "SECRET" not in (await builder(workspace).build("hello")).to_json()


async def test_M35_a_skill_that_links_out_of_the_workspace_is_skipped_with_a_warning(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(workspace.parent / "elsewhere" / "SKILL.md", "---\nname: spy\ndescription: SECRET\n---\n")
    (workspace / "skills" / "spy").symlink_to(workspace.parent / "elsewhere")

    context = await builder(workspace).build("hello")

    assert "SECRET" not in context.to_json()
    assert "- notes: Write notes." in context.system_prompt
    assert any("spy" in sentence for sentence in warned(caplog))


async def test_M35_a_link_to_a_file_inside_the_workspace_is_followed(workspace: Path) -> None:
    write(workspace / "personas" / "calm.md", "I am calm.")
    (workspace / "SOUL.md").unlink()
    (workspace / "SOUL.md").symlink_to(Path("personas") / "calm.md")

    assert (await layers(builder(workspace)))["instructions"] == "I am calm.\n\nAsk first."


async def test_M35_a_workspace_that_is_itself_a_link_is_a_workspace(workspace: Path) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)

    found = await layers(builder(link))

    assert found["instructions"] == "I am Claw.\n\nAsk first."
    assert found["skills"] == "Available skills:\n- notes: Write notes.\n- search: Search."


async def test_M35_a_file_that_links_to_itself_counts_as_missing(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workspace / "TOOLS.md").unlink()
    (workspace / "TOOLS.md").symlink_to("TOOLS.md")

    found = await layers(builder(workspace))

    assert found["tool_docs"].startswith("Available tools:\n")
    assert any(str(workspace / "TOOLS.md") in sentence for sentence in warned(caplog))


async def test_M35_a_skill_folder_that_links_to_its_parent_is_no_skill(workspace: Path) -> None:
    (workspace / "skills" / "again").symlink_to(workspace / "skills")

    found = await layers(builder(workspace))

    assert found["skills"] == "Available skills:\n- notes: Write notes.\n- search: Search."


async def test_M8_M35_skill_folders_that_link_in_a_circle_hide_none_of_the_others(workspace: Path) -> None:
    (workspace / "skills" / "ping").symlink_to("pong")
    (workspace / "skills" / "pong").symlink_to("ping")

    found = await layers(builder(workspace))

    assert found.get("skills") == "Available skills:\n- notes: Write notes.\n- search: Search."


async def test_M35_a_recipe_cannot_name_a_file_above_the_workspace(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = write(workspace.parent / "secret.md", "- SECRET")
    layer = '[[layers]]\nsource = "instructions"\nfiles = [{}]\nkeep = "always"\n'
    head = 'name = "sly"\nform = "messages"\n[limits]\nmax_tokens = 4000\nreserved_response_tokens = 0\n'
    tail = '[[layers]]\nsource = "history"\n[[layers]]\nsource = "message"\n'
    asked = "".join(layer.format(json.dumps(path)) for path in ("../secret.md", str(secret), "SOUL.md"))
    recipe = write(workspace.parent / "sly.toml", head + asked + tail)

    context = await (
        weft.ContextBuilder(recipe=weft.Recipe.load(recipe)).with_workspace(workspace).build("hello")
    )

    assert [m.content for m in context.to_messages()] == ["I am Claw.", "hello"]
    assert len([sentence for sentence in warned(caplog) if "secret.md" in sentence]) == 2
