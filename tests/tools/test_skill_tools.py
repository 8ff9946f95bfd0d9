"""The tools of skills: where they come from, when they change, and what a wrong file does."""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skill_programs import SHOW_ARGV, described, on_path, program
from weft.errors import ToolError
from weft.tools.base import Tool
from weft.tools.process import ExecutionSettings
from weft.tools.registry import ToolRegistry
from weft.tools.skills import Freshness, SkillTools
from weft.types.request import Caller
from weft.workspace import files
from weft.workspace.files import FileReader
from weft.workspace.skills import SkillLoader, Skills

TITLE = [{"param": "title"}]


def write_skill(workspace: Path, name: str, tools: dict[str, Any] | str | None = None) -> Path:
    folder = workspace / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: About {name}.\n---\n\nHow to use {name}.\n"
    (folder / "SKILL.md").write_text(text, "utf-8")
    if tools is not None:
        write_tools(folder, tools)
    return folder


def write_tools(folder: Path, tools: dict[str, Any] | str) -> Path:
    path = folder / "tools.json"
    path.write_text(tools if isinstance(tools, str) else json.dumps(tools), "utf-8")
    return path


def named(*names: str) -> dict[str, Any]:
    """A `tools.json` with tools of these names, all of which run `notes add`."""
    return {
        "tools": [{"name": name} for name in names],
        "allowlist": {"notes": ["add"]},
        "execution": [{"tool": name, "binary": "notes", "subcommand": "add"} for name in names],
    }


def skill_tools(workspace: Path, **settings: Any) -> SkillTools:
    reader = FileReader()
    loader = SkillLoader(reader)

    async def load() -> Skills:
        return await loader.load([workspace / "skills"], workspace=workspace)

    return SkillTools(load=load, reader=reader, workspace=workspace, **settings)


async def names(tools: SkillTools) -> list[str]:
    return [tool.name for tool in await tools.tools("hello")]


def only(tools: Sequence[Tool]) -> Tool:
    (tool,) = tools
    return tool


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled as soon as they are written, so that no test has to wait for that."""
    monkeypatch.setattr(files, "_JUST_WRITTEN_NS", -10_000_000_000)


async def test_the_tools_of_all_skills_stand_in_the_order_of_skills_and_files(tmp_path: Path) -> None:
    write_skill(tmp_path, "b-notes", named("second", "third"))
    write_skill(tmp_path, "a-notes", named("first"))
    write_skill(tmp_path, "text-only")

    tools = skill_tools(tmp_path)

    assert await names(tools) == ["first", "second", "third"]
    assert [tool.source for tool in await tools.tools("")][:2] == [
        "the skill 'a-notes'",
        "the skill 'b-notes'",
    ]
    assert tools.warnings == ()


async def test_a_tool_of_a_skill_runs_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(on_path(monkeypatch, tmp_path / "bin"), "notes", f"{SHOW_ARGV}\nimport os\nprint(os.getcwd())")
    write_skill(tmp_path / "ws", "notes", described(TITLE))

    tool = only(await skill_tools(tmp_path / "ws").tools("hello"))

    assert await tool.run({"title": "a b"}, Caller()) == f'["add", "a b"]\n{tmp_path}/ws\n'


async def test_scripts_and_limits_are_those_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(on_path(monkeypatch, tmp_path / "bin"), "notes", SHOW_ARGV)
    folder = write_skill(
        tmp_path / "ws", "notes", described([{"param": "title", "resolveCommand": {"script": "day"}}])
    )
    (folder / "scripts").mkdir()
    (folder / "scripts" / "day.sh").write_text("echo resolved", "utf-8")

    strict = only(await skill_tools(tmp_path / "ws").tools(""))
    free = only(await skill_tools(tmp_path / "ws", settings=ExecutionSettings(allow_scripts=True)).tools(""))

    assert json.loads(await strict.run({"title": "x"}, Caller())) == ["add", "x"]
    assert json.loads(await free.run({"title": "x"}, Caller())) == ["add", "resolved"]


async def test_a_wrong_file_is_one_warning_logged_once_and_the_others_keep_their_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = write_skill(tmp_path, "broken", '{"tools": [],\n"alowlist": {}}')
    write_skill(tmp_path, "sound", named("add_note"))
    tools = skill_tools(tmp_path)

    with caplog.at_level(logging.WARNING):
        offered = [await names(tools) for _ in range(3)]

    said = (
        f"The skill 'broken' is used without its tools: {broken}/tools.json, line 2, key 'alowlist': "
        "this key is not known here: did you mean 'allowlist'?"
    )
    assert offered == [["add_note"]] * 3
    assert tools.warnings == (said,)
    assert [record.getMessage() for record in caplog.records] == [said]


async def test_a_skill_with_a_wrong_file_can_still_be_read(tmp_path: Path) -> None:
    write_skill(tmp_path, "broken", "{")
    tools = skill_tools(tmp_path, read_on_demand=True)

    read_skill = only(await tools.tools("hello"))

    assert await read_skill.run({"skill_name": "broken"}, Caller()) == "How to use broken."


@pytest.mark.parametrize(
    "content", [b'{"tools": []}\xff', b"\0", b'{"tools": [{"name": "caf\xe9"}]}', b" " * 1_000_001]
)
async def test_a_file_that_is_no_proper_text_gives_a_warning_and_no_tools(
    tmp_path: Path, content: bytes
) -> None:
    folder = write_skill(tmp_path, "notes")
    (folder / "tools.json").write_bytes(content)
    tools = skill_tools(tmp_path)

    assert await names(tools) == []
    (warning,) = tools.warnings
    assert warning.startswith(f"The skill 'notes' is used without its tools: {folder}/tools.json")


async def test_a_file_that_leads_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    outside = write_tools(tmp_path, named("stranger"))
    folder = write_skill(tmp_path / "ws", "notes")
    (folder / "tools.json").symlink_to(outside)
    tools = skill_tools(tmp_path / "ws")

    assert await names(tools) == []
    assert "leads out of its folder" in tools.warnings[0]


# --- when files change


async def test_a_changed_file_gives_other_tools_and_an_unchanged_one_is_not_read_again(
    tmp_path: Path, settled: None
) -> None:
    folder = write_skill(tmp_path, "notes", named("add_note"))
    tools = skill_tools(tmp_path)
    before = await tools.tools("hello")
    reads = tools.reader.reads

    again = await tools.tools("hello")

    assert again is before
    assert tools.reader.reads == reads
    write_tools(folder, named("add_note", "drop_note"))
    assert await names(tools) == ["add_note", "drop_note"]
    os.unlink(folder / "tools.json")
    assert await names(tools) == []


async def test_a_mended_file_takes_its_warning_back(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "notes", "{}}")
    tools = skill_tools(tmp_path)
    assert await names(tools) == []
    before = tools.warnings

    write_tools(folder, named("add_note"))

    assert await names(tools) == ["add_note"]
    assert (len(before), len(tools.warnings)) == (1, 0)


async def test_a_recipe_that_loads_at_startup_keeps_its_tools_and_one_with_a_time_looks_again_after_it(
    tmp_path: Path, settled: None
) -> None:
    folder = write_skill(tmp_path, "notes", named("old"))
    now = 0.0
    at_startup = skill_tools(tmp_path, freshness=Freshness(reload="startup"))
    with_time = skill_tools(
        tmp_path, freshness=Freshness(reload="ttl", ttl_seconds=10), monotonic=lambda: now
    )
    assert [await names(tools) for tools in (at_startup, with_time)] == [["old"], ["old"]]

    write_tools(folder, named("new"))

    assert [await names(tools) for tools in (at_startup, with_time)] == [["old"], ["old"]]
    now = 10.0
    assert [await names(tools) for tools in (at_startup, with_time)] == [["old"], ["new"]]


async def test_a_new_skill_brings_its_tools_also_where_files_are_looked_at_only_at_startup(
    tmp_path: Path,
) -> None:
    write_skill(tmp_path, "notes", named("add_note"))
    tools = skill_tools(tmp_path, freshness=Freshness(reload="startup"))
    assert await names(tools) == ["add_note"]

    write_skill(tmp_path, "tides", named("read_tides"))

    assert await names(tools) == ["add_note", "read_tides"]


# --- names


async def test_of_two_skills_with_the_same_tool_the_first_is_offered(tmp_path: Path) -> None:
    write_skill(tmp_path, "a-notes", named("add_note"))
    write_skill(tmp_path, "b-notes", named("add_note"))

    offered = await ToolRegistry(sources=[skill_tools(tmp_path)]).offered("hello")

    assert offered.tools["add_note"].source == "the skill 'a-notes'"
    assert offered.warnings == ("The tool 'add_note' of the skill 'b-notes' is left out: the name is taken.",)


async def test_a_skill_cannot_take_the_place_of_read_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, "a-notes", named("read_skill"))

    offered = await ToolRegistry(sources=[skill_tools(tmp_path, read_on_demand=True)]).offered("hello")

    assert await offered.tools["read_skill"].run({"skill_name": "a-notes"}, Caller()) == "How to use a-notes."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing parameter: skill_name"),
        ({"skill_name": None}, "missing parameter: skill_name"),
        ({"skill_name": "nots"}, "unknown skill: nots"),
        ({"skill_name": "../notes"}, "unknown skill: ../notes"),
        ({"skill_name": ["notes"]}, "unknown skill: ['notes']"),
        ({"skill_name": ""}, "unknown skill: "),
    ],
)
async def test_read_skill_knows_only_the_skills_by_their_names(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    write_skill(tmp_path, "notes")
    read_skill = only(await skill_tools(tmp_path, read_on_demand=True).tools("hello"))

    with pytest.raises(ToolError) as caught:
        await read_skill.run(arguments, Caller())

    assert str(caught.value) == said
