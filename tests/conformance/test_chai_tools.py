"""Chai's lines of the specification: tools.json, the generic executor, resolving values, read_skill."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import weft
from skill_programs import SHOW_ARGV, executable, on_path, program, shell_program
from weft.tools.base import Tool
from weft.tools.process import ExecutionSettings
from weft.tools.skills import SkillTools
from weft.types.request import Caller
from weft.workspace.files import FileReader
from weft.workspace.skills import SkillLoader, Skills

ALL_KINDS: dict[str, Any] = {
    "tools": [
        {
            "name": "notes_create",
            "description": "Create a note.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        }
    ],
    "allowlist": {"notes": ["create"]},
    "execution": [
        {
            "tool": "notes_create",
            "binary": "notes",
            "subcommand": "create",
            "args": [
                {"param": "path", "kind": "positional"},
                {"param": "content", "kind": "flag", "flag": "content", "normalizeNewlines": True},
                {
                    "param": "replace",
                    "kind": "flagifboolean",
                    "flagIfTrue": "--overwrite",
                    "flagIfFalse": "--append",
                },
            ],
        }
    ],
}


def write_skill(workspace: Path, name: str, tools: Any = None) -> Path:
    folder = workspace / "skills" / name
    folder.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: About {name}.\n---\n\n# {name}\n\nThe whole manual.\n"
    (folder / "SKILL.md").write_text(text, "utf-8")
    if tools is not None:
        text = tools if isinstance(tools, str) else json.dumps(tools, indent=2)
        (folder / "tools.json").write_text(text, "utf-8")
    return folder


def source(workspace: Path, *, read_on_demand: bool = False, allow_scripts: bool = False) -> SkillTools:
    reader = FileReader()
    loader = SkillLoader(reader)

    async def load() -> Skills:
        return await loader.load([workspace / "skills"], workspace=workspace)

    return SkillTools(
        load=load,
        reader=reader,
        workspace=workspace,
        settings=ExecutionSettings(allow_scripts=allow_scripts),
        read_on_demand=read_on_demand,
    )


async def tool_of(tools: SkillTools, name: str) -> Tool:
    return next(tool for tool in await tools.tools("hello") if tool.name == name)


async def called(tools: SkillTools, name: str, **arguments: Any) -> str:
    return await (await tool_of(tools, name)).run(arguments, Caller())


async def failure(tools: SkillTools, name: str, **arguments: Any) -> str:
    with pytest.raises(weft.ToolError) as caught:
        await called(tools, name, **arguments)
    return str(caught.value)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = on_path(monkeypatch, tmp_path / "bin")
    program(folder, "notes", SHOW_ARGV)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def changed(**execution: Any) -> dict[str, Any]:
    """The same tool with another execution."""
    return {**ALL_KINDS, "execution": [{**ALL_KINDS["execution"][0], **execution}]}


# --- where tools come from


async def test_C14_read_on_demand_lists_a_skill_and_read_skill_gives_its_whole_manual(
    workspace: Path,
) -> None:
    write_skill(workspace, "notes", ALL_KINDS)
    recipe = weft.Recipe.load("chai").replace(skills_mode="readOnDemand")
    context = await weft.ContextBuilder(recipe=recipe).with_workspace(workspace).build("hello")

    manual = await called(source(workspace, read_on_demand=True), "read_skill", skill_name="notes")

    assert "- **notes**: About notes." in context.system_prompt
    assert "The whole manual." not in context.system_prompt
    assert manual == "# notes\n\nThe whole manual."


async def test_C20_tools_come_only_from_skills_with_a_tools_json(workspace: Path) -> None:
    write_skill(workspace, "notes", ALL_KINDS)
    write_skill(workspace, "text-only")

    tools = await source(workspace).tools("hello")

    assert [tool.definition.to_json_dict() for tool in tools] == [
        {"type": "function", "function": ALL_KINDS["tools"][0]}
    ]


async def test_C20_read_skill_comes_first_where_skills_are_read_on_demand(workspace: Path) -> None:
    write_skill(workspace, "notes", ALL_KINDS)

    tools = await source(workspace, read_on_demand=True).tools("hello")

    assert [tool.name for tool in tools] == ["read_skill", "notes_create"]


async def test_C20_without_skills_there_is_no_read_skill(workspace: Path) -> None:
    (workspace / "skills").mkdir(parents=True)

    assert list(await source(workspace, read_on_demand=True).tools("hello")) == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{\n  "tools": [],\n  "allowList": {}\n}', "tools.json, line 3, key 'allowList'"),
        ('{\n  "tools": [,]\n}', "tools.json, line 2, is not JSON"),
        (json.dumps(changed(tool="other"), indent=2), "tools.json, line 4, key 'tools[0].name'"),
    ],
)
async def test_C20_a_bad_tools_json_is_a_warning_and_the_skill_loads_as_text(
    workspace: Path, caplog: pytest.LogCaptureFixture, broken: str, said: str
) -> None:
    write_skill(workspace, "notes", broken)
    tools = source(workspace, read_on_demand=True)

    with caplog.at_level(logging.WARNING):
        manual = await called(tools, "read_skill", skill_name="notes")

    assert manual == "# notes\n\nThe whole manual."
    assert [tool.name for tool in await tools.tools("hello")] == ["read_skill"]
    assert len(tools.warnings) == 1
    assert said in tools.warnings[0]
    assert [record.getMessage() for record in caplog.records] == list(tools.warnings)


# --- the generic executor


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"path": "a b", "content": "x\\ny", "replace": True},
            ["a b", "--content", "x\ny", "--overwrite"],
        ),
        ({"path": "a", "content": None, "replace": "true"}, ["a", "--overwrite"]),
        ({"path": "a", "replace": "no"}, ["a", "--append"]),
        ({"path": "a", "replace": 2}, ["a", "--overwrite"]),
        ({"path": 7, "content": False}, ["7", "--content", "false", "--append"]),
    ],
)
async def test_C22_the_command_line_is_built_from_the_execution_of_the_tool(
    programs: Path, workspace: Path, arguments: dict[str, Any], words: list[str]
) -> None:
    write_skill(workspace, "notes", ALL_KINDS)

    said = await called(source(workspace), "notes_create", **arguments)

    assert json.loads(said) == ["create", *words]


async def test_C22_a_missing_positional_parameter_is_named(programs: Path, workspace: Path) -> None:
    write_skill(workspace, "notes", ALL_KINDS)

    assert await failure(source(workspace), "notes_create", content="x") == "missing parameter: path"


@pytest.mark.parametrize(
    ("execution", "said"),
    [
        ({"binary": "sh"}, "binary not allowlisted: sh"),
        ({"subcommand": "remove"}, "subcommand not allowlisted: remove"),
        ({"subcommand": "create --force"}, "subcommand not allowlisted: create --force"),
    ],
)
async def test_C22_what_is_not_on_the_allowlist_does_not_run(
    programs: Path, workspace: Path, execution: dict[str, str], said: str
) -> None:
    write_skill(workspace, "notes", changed(**execution))

    assert await failure(source(workspace), "notes_create", path="x") == said


async def test_C22_a_program_that_fails_is_an_error_with_both_streams(
    programs: Path, workspace: Path
) -> None:
    shell_program(programs, "notes", "echo one; echo two >&2; exit 4")
    write_skill(workspace, "notes", ALL_KINDS)

    said = await failure(source(workspace), "notes_create", path="x")

    assert all(part in said for part in ("exit code 4", "one", "two"))


@pytest.mark.parametrize("value", ["$(touch ran)", "; touch ran", "a\nb"])
async def test_C22_a_value_is_no_command(programs: Path, workspace: Path, value: str) -> None:
    write_skill(workspace, "notes", ALL_KINDS)

    said = json.loads(await called(source(workspace), "notes_create", path=value, content=value))

    assert said[1] == value
    assert "--" not in said
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("value", ["--force", "-f", "--"])
async def test_C22_a_value_is_no_option(programs: Path, workspace: Path, value: str) -> None:
    write_skill(workspace, "notes", ALL_KINDS)
    said = await failure(source(workspace), "notes_create", path=value, content="x")
    described = json.dumps(changed(endOfOptions=True))
    (workspace / "skills" / "notes" / "tools.json").write_text(described, "utf-8")
    behind = json.loads(await called(source(workspace), "notes_create", path=value, content=value))

    assert said == "a value must not begin with a dash: path"
    assert behind[-2:] == ["--", value]
    assert f"--content={value}" in behind


# --- resolveCommand


def resolved_by(**resolve: Any) -> dict[str, Any]:
    return changed(args=[{"param": "path", "kind": "positional", "resolveCommand": resolve}])


@pytest.mark.parametrize(("allowed", "path"), [(True, "Daily/today.md"), (False, "today")])
async def test_C23_a_script_of_the_skill_resolves_a_value_only_if_scripts_are_allowed(
    programs: Path, workspace: Path, allowed: bool, path: str
) -> None:
    folder = write_skill(workspace, "notes", resolved_by(script="resolve-daily", args=["$param"]))
    executable(folder / "scripts" / "resolve-daily.sh", 'echo " Daily/$1.md "\n')

    said = await called(source(workspace, allow_scripts=allowed), "notes_create", path="today")

    assert json.loads(said) == ["create", path]


@pytest.mark.parametrize(
    ("allowlist", "path"),
    [
        ({"notes": ["create"], "day": ["path"]}, "Daily/today.md"),
        ({"notes": ["create"], "day": ["other"]}, "today"),
        ({"notes": ["create"]}, "today"),
    ],
)
async def test_C23_a_command_resolves_a_value_only_if_it_is_allowlisted(
    programs: Path, workspace: Path, allowlist: dict[str, list[str]], path: str
) -> None:
    shell_program(programs, "day", 'echo "Daily/$2.md"')
    tools = resolved_by(binary="day", subcommand="path", args=["$param"])
    write_skill(workspace, "notes", {**tools, "allowlist": allowlist})

    said = await called(source(workspace), "notes_create", path="today")

    assert json.loads(said) == ["create", path]


@pytest.mark.parametrize("script", ["exit 1", "true", "echo '   '"])
async def test_C23_where_the_command_fails_or_says_nothing_the_value_stays(
    programs: Path, workspace: Path, script: str
) -> None:
    folder = write_skill(workspace, "notes", resolved_by(script="resolve.sh", args=["$param"]))
    executable(folder / "scripts" / "resolve.sh", f"{script}\n")

    said = await called(source(workspace, allow_scripts=True), "notes_create", path="today")

    assert json.loads(said) == ["create", "today"]


# --- read_skill


async def test_C24_read_skill_is_answered_in_process_and_other_names_by_the_executor(
    programs: Path, workspace: Path
) -> None:
    write_skill(workspace, "notes", ALL_KINDS)
    tools = source(workspace, read_on_demand=True)

    assert await called(tools, "read_skill", skill_name="notes") == "# notes\n\nThe whole manual."
    assert json.loads(await called(tools, "notes_create", path="a")) == ["create", "a", "--append"]


async def test_C24_an_unknown_skill_is_named(workspace: Path) -> None:
    write_skill(workspace, "notes")

    said = await failure(source(workspace, read_on_demand=True), "read_skill", skill_name="maps")

    assert said == "unknown skill: maps"


async def test_C24_read_skill_has_one_required_parameter(workspace: Path) -> None:
    write_skill(workspace, "notes")

    tool = await tool_of(source(workspace, read_on_demand=True), "read_skill")

    parameters = tool.definition.parameters
    assert list(parameters["properties"]) == parameters["required"] == ["skill_name"]
    assert parameters["properties"]["skill_name"]["type"] == "string"
