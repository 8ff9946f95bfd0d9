"""The tools of `files`: what is in the folders can be used, and nothing else."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

import weft
from weft.channels.terminal import show
from weft.config import Config, ToolSettings
from weft.errors import ToolError
from weft.tools.files import MAX_BYTES, FileTools, FileToolSettings
from weft.types.request import Caller


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "docs"
    (place / "trips").mkdir(parents=True)
    (place / "boat.md").write_text("The boat leaves at six.\nBring a hat.\n", "utf-8")
    (place / "trips" / "faro.md").write_text("Faro by BOAT.\n", "utf-8")
    (tmp_path / "outside.txt").write_text("outside\n", "utf-8")
    return place


@pytest.fixture
def tools(folder: Path, tmp_path: Path) -> FileTools:
    return FileTools([str(folder)], [tmp_path / "docs" / "weft.db"])


class Person:
    """Somebody who answers every question the same way, and remembers it."""

    def __init__(self, *, agrees: bool) -> None:
        self.agrees, self.questions = agrees, list[str]()

    async def ask(self, question: str) -> bool:
        self.questions.append(question)
        return self.agrees


def test_files_are_read_listed_and_searched(tools: FileTools, folder: Path) -> None:
    assert tools.read_file("boat.md") == tools.read_file(str(folder / "boat.md"))
    assert tools.list_files() == f"{folder}/"
    assert tools.list_files(str(folder)).splitlines() == [str(folder / "boat.md"), f"{folder / 'trips'}/"]
    assert tools.search_files("boat").splitlines() == [
        f"{folder / 'boat.md'}:1: The boat leaves at six.",
        f"{folder / 'trips' / 'faro.md'}:1: Faro by BOAT.",
    ]
    assert tools.search_files("plane") == "(nothing found)"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "trips/../../outside.txt",
        "/etc/passwd",
        "~/notes.md",
        "link.txt",
        "folder/outside.txt",
    ],
)
def test_nothing_outside_of_the_folders_is_reached(tools: FileTools, folder: Path, path: str) -> None:
    (folder / "link.txt").symlink_to(folder.parent / "outside.txt")
    (folder / "folder").symlink_to(folder.parent)

    with pytest.raises(ToolError):
        tools.read_file(path)

    assert "outside" not in tools.search_files("outside")
    assert "link.txt" not in tools.list_files(str(folder))


@pytest.mark.parametrize(
    "name", [".env", ".ssh/config", "id_rsa", "server.pem", "credentials.json", "weft.db", "weft.db-wal"]
)
def test_files_with_secrets_are_out_of_reach(tools: FileTools, folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("hush", "utf-8")

    with pytest.raises(ToolError):
        tools.read_file(name)
    assert tools.search_files("hush") == "(nothing found)"
    assert name not in tools.list_files(str(folder))


def test_only_text_of_a_fair_size_is_read(tools: FileTools, folder: Path) -> None:
    (folder / "picture").write_bytes(b"\x89PNG\0")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "large.txt").write_bytes(b"a" * (MAX_BYTES + 1))
    os.mkfifo(folder / "pipe")

    for name in ("picture", "latin.txt", "large.txt", "pipe", "trips", "missing.txt"):
        with pytest.raises(ToolError):
            tools.read_file(name)


async def test_a_write_is_shown_as_a_diff_and_done_when_the_person_agrees(
    tools: FileTools, folder: Path
) -> None:
    person = Person(agrees=True)
    (folder / "boat.md").chmod(0o640)

    await tools.write_file("boat.md", "The boat leaves at seven.\nBring a hat.\n", Caller(ask=person.ask))
    await tools.write_file("new/trip.md", "Sagres\n", Caller(ask=person.ask))

    assert (folder / "boat.md").read_text("utf-8").startswith("The boat leaves at seven.")
    assert (folder / "boat.md").stat().st_mode & 0o777 == 0o640
    assert (folder / "new" / "trip.md").read_text("utf-8") == "Sagres\n"
    assert "-The boat leaves at six.\n+The boat leaves at seven.\n" in person.questions[0]
    assert "+Sagres" in person.questions[1]


async def test_a_person_sees_each_line_of_a_change_on_a_line_of_its_own(
    tools: FileTools, folder: Path
) -> None:
    person = Person(agrees=True)
    text = "# Trip\nBring a hat.\n```sh\nls\n```\n* and shoes\n"
    await tools.write_file("__plan__.md", text, Caller(ask=person.ask))

    out = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
    show(person.questions[0], out)
    lines = [line.strip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[0] == f"May I make the file {folder / '__plan__.md'}?"
    assert [line for line in lines if line.startswith("+")] == ["+++ after"] + [
        f"+{line}" for line in text.splitlines()
    ]


async def test_nothing_is_written_where_nobody_agrees_or_can_be_asked(tools: FileTools, folder: Path) -> None:
    for caller in (Caller(), Caller(ask=Person(agrees=False).ask)):
        with pytest.raises(ToolError, match="nobody agreed"):
            await tools.write_file("boat.md", "gone", caller)

    assert "six" in (folder / "boat.md").read_text("utf-8")


async def test_a_change_that_a_person_cannot_see_whole_is_refused(tools: FileTools) -> None:
    person = Person(agrees=True)

    with pytest.raises(ToolError, match="smaller steps"):
        await tools.write_file("boat.md", "line\n" * 10_000, Caller(ask=person.ask))

    assert person.questions == []


async def test_a_file_that_changed_while_the_person_was_asked_is_kept(tools: FileTools, folder: Path) -> None:
    async def ask(question: str) -> bool:
        (folder / "boat.md").write_text("by somebody else", "utf-8")
        return True

    with pytest.raises(ToolError, match="changed"):
        await tools.write_file("boat.md", "mine", Caller(ask=ask))

    assert (folder / "boat.md").read_text("utf-8") == "by somebody else"


async def test_the_model_is_offered_what_is_enabled_and_reads_a_file_with_it(folder: Path) -> None:
    call = weft.ToolCall(id="1", name="read_file", arguments={"path": "boat.md"})
    model = weft.ScriptedProvider([weft.Reply(tool_calls=(call,)), "At six."])
    settings = ToolSettings(enabled=("files", "fetch"), files=FileToolSettings(folders=(str(folder),)))

    for config, is_offered in ((Config(tools=settings), True), (Config(), False)):
        assistant = await weft.connect(config, provider=model, database=":memory:")
        await weft_reply(assistant)
        await assistant.close()
        offered = {tool.name for tool in model.requests[0].tools}
        assert (offered >= {"read_file", "write_file", "fetch_page"}) is is_offered
        if is_offered:
            assert model.requests[1].steps[-1].content == (folder / "boat.md").read_text("utf-8")
        model = weft.ScriptedProvider(["Nothing."])


async def weft_reply(assistant: weft.Assistant) -> None:
    async for _ in assistant.stream("When does the boat leave?", session="boats"):
        pass
