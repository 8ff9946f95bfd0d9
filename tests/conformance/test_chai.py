"""Chai's lines of the specification: AGENTS.md, skills, their order, and the exact system string."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import weft
from weft.config import find_paths

INTRO = "You have access to the following skills. Use them when relevant.\n\n"
COMPACT_INTRO = (
    "You have access to the following skills. Use the read_skill tool to load a skill's full documentation "
    "when it clearly applies to the user's request, before using that skill's tools."
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def write_skill(folder: Path, name: str, description: str = "", body: str = "body") -> Path:
    """A skill in `folder`, whose directory and front matter both carry `name`."""
    described = f"description: {description}\n" if description else ""
    return write(folder / name / "SKILL.md", f"---\nname: {name}\n{described}---\n\n{body}\n")


def builder(workspace: Path, skills_mode: str = "full") -> weft.ContextBuilder:
    recipe = weft.Recipe.load("chai").replace(skills_mode=skills_mode)
    return weft.ContextBuilder(recipe=recipe).with_workspace(workspace)


async def system_of(workspace: Path, skills_mode: str = "full") -> str:
    return (await builder(workspace, skills_mode).build("hello")).system_prompt


def receipt_of(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


def contents(messages: Sequence[weft.Message]) -> list[str]:
    return [message.content for message in messages]


def talk(count: int) -> list[weft.Message]:
    roles = ("user", "assistant")
    return [weft.Message(role=roles[n % 2], content=f"message {n:04}") for n in range(count)]


def weft_command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "WEFT_HOME": str(home), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "weft", *arguments],
        env=environ,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def system_shown(home: Path, *options: str) -> str:
    """The system string that `weft context --recipe chai` would send with the settings in `home`."""
    done = weft_command(
        home, "context", "--recipe", "chai", "--json", "--provider", "scripted", *options, "hello"
    )
    assert done.returncode == 0, done.stderr
    system = json.loads(done.stdout)["system_prompt"]
    assert isinstance(system, str)
    return system


def headings(system: str) -> list[str]:
    return [line.removeprefix("## ") for line in system.splitlines() if line.startswith("## ")]


# --- AGENTS.md, then the skills


async def test_C7_agents_md_is_trimmed_and_followed_by_a_blank_line_and_the_skills(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "\n\n  Answer in one line.\n\nNever guess.  \n\n\n")
    write_skill(tmp_path / "skills", "notes", "Write notes.", "Use the notes tool.")

    system = await system_of(tmp_path)

    assert system == (
        "Answer in one line.\n\nNever guess.\n\n"
        "You have access to the following skills. Use them when relevant.\n\n"
        "## notes\nWrite notes.\n\nUse the notes tool.\n\n"
    )


@pytest.mark.parametrize("agents", [None, "", " \n\t\n "])
async def test_C7_without_agent_text_the_system_string_starts_with_the_skills(
    tmp_path: Path, agents: str | None
) -> None:
    if agents is not None:
        write(tmp_path / "AGENTS.md", agents)
    write_skill(tmp_path / "skills", "notes", "Write notes.", "Use the notes tool.")

    system = await system_of(tmp_path)

    assert system == INTRO + "## notes\nWrite notes.\n\nUse the notes tool.\n\n"


async def test_C7_agent_text_without_skills_keeps_its_blank_line(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "Answer in one line.\n")

    context = await builder(tmp_path).build("hello")

    assert context.system_prompt == "Answer in one line.\n\n"
    assert [(m.role, m.content) for m in context.to_messages()] == [
        ("system", "Answer in one line.\n\n"),
        ("user", "hello"),
    ]


async def test_C7_C10_with_neither_agent_text_nor_skills_there_is_no_system_message(tmp_path: Path) -> None:
    context = await builder(tmp_path).build("hello")

    assert context.system_prompt == ""
    assert [(m.role, m.content) for m in context.to_messages()] == [("user", "hello")]


def test_C8_the_default_place_is_the_workspace_below_weft_home(tmp_path: Path) -> None:
    paths = find_paths({"WEFT_HOME": str(tmp_path)})

    assert paths.workspace == tmp_path / "workspace"
    assert paths.config_file == tmp_path / "config.toml"
    assert paths.skills == tmp_path / "skills"


def test_C8_the_command_reads_agents_md_from_the_default_workspace(tmp_path: Path) -> None:
    write(tmp_path / "workspace" / "AGENTS.md", "Answer in one line.\n")

    assert system_shown(tmp_path) == "Answer in one line.\n\n"


def test_C8_another_workspace_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "workspace" / "AGENTS.md", "The default one.\n")
    write(tmp_path / "chai" / "AGENTS.md", "The named one.\n")

    assert system_shown(tmp_path, "--workspace", str(tmp_path / "chai")) == "The named one.\n\n"


# --- the skill context mode


async def test_C9_full_is_the_default_mode_and_read_on_demand_the_other(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "notes", "Write notes.", "The whole manual.")

    default = (await weft.ContextBuilder(recipe="chai").with_workspace(tmp_path).build("hello")).system_prompt

    assert default == await system_of(tmp_path, "full")
    assert "The whole manual." in default
    assert "The whole manual." not in await system_of(tmp_path, "readOnDemand")


def test_C9_the_setting_context_mode_chooses_the_mode(tmp_path: Path) -> None:
    write_skill(tmp_path / "workspace" / "skills", "notes", "Write notes.", "The whole manual.")

    assert system_shown(tmp_path).startswith(INTRO)
    write(tmp_path / "config.toml", '[skills]\ncontextMode = "readOnDemand"\n')
    assert system_shown(tmp_path).startswith(COMPACT_INTRO)
    write(tmp_path / "config.toml", '[skills]\ncontextMode = "full"\n')
    assert system_shown(tmp_path).startswith(INTRO)


def test_C9_an_unknown_context_mode_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    write(tmp_path / "config.toml", '[skills]\ncontextMode = "sometimes"\n')

    done = weft_command(tmp_path, "context", "--recipe", "chai", "--provider", "scripted", "hello")

    assert done.returncode == 2
    assert "sometimes" in done.stderr
    assert "readOnDemand" in done.stderr
    assert "Traceback" not in done.stderr


async def test_C10_the_intro_line_of_full_mode_is_exact(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "notes", "Write notes.")
    write_skill(tmp_path / "skills", "search", "Search the web.")

    system = await system_of(tmp_path)

    assert system.startswith(
        "You have access to the following skills. Use them when relevant.\n\n## notes\nWrite notes.\n\n"
    )
    assert system.count("You have access to the following skills.") == 1


async def test_C11_each_skill_is_a_heading_a_description_and_its_body(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "alpha", "First of all.", "# Alpha\n\nDo this.")
    write_skill(tmp_path / "skills", "beta", "", "# Beta\n\nDo that.")
    write(tmp_path / "skills" / "gamma" / "SKILL.md", '---\nname: gamma\ndescription: ""\n---\nDo more.\n')

    system = await system_of(tmp_path)

    assert system == (
        INTRO + "## alpha\nFirst of all.\n\n# Alpha\n\nDo this.\n\n"
        "## beta\n# Beta\n\nDo that.\n\n"
        "## gamma\nDo more.\n\n"
    )


async def test_C11_a_skill_without_a_name_is_named_after_its_directory(tmp_path: Path) -> None:
    write(tmp_path / "skills" / "notesmd-cli" / "SKILL.md", "---\ndescription: Notes.\n---\nUse it.\n")

    assert await system_of(tmp_path) == INTRO + "## notesmd-cli\nNotes.\n\nUse it.\n\n"


async def test_C11_front_matter_may_be_written_in_toml(tmp_path: Path) -> None:
    text = '---\nname = "notes"\ndescription = "Write notes."\n---\nUse it.\n'
    write(tmp_path / "skills" / "notes" / "SKILL.md", text)

    assert await system_of(tmp_path) == INTRO + "## notes\nWrite notes.\n\nUse it.\n\n"


async def test_C11_a_name_or_description_beyond_the_agent_skills_limits_warns_and_still_loads(
    tmp_path: Path,
) -> None:
    long = "d" * 1025
    write_skill(tmp_path / "skills", "long", long)
    write(tmp_path / "skills" / "odd" / "SKILL.md", "---\nname: Odd_Name\ndescription: x\n---\nbody\n")
    write_skill(tmp_path / "skills", "sound", "d" * 1024)

    context = await builder(tmp_path).build("hello")

    assert headings(context.system_prompt) == ["long", "Odd_Name", "sound"]
    warnings = receipt_of(context).warnings
    assert any("long" in sentence and "1024" in sentence for sentence in warnings)
    assert any("Odd_Name" in sentence for sentence in warnings)
    assert not any("sound" in sentence for sentence in warnings)


async def test_C11_unreadable_front_matter_skips_that_skill_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = write(tmp_path / "skills" / "broken" / "SKILL.md", "---\nname: [unclosed\n---\nbody\n")
    write_skill(tmp_path / "skills", "sound", "Works.")

    context = await builder(tmp_path).build("hello")

    assert context.system_prompt == INTRO + "## sound\nWorks.\n\nbody\n\n"
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any(str(bad) in sentence for sentence in warned)
    left_out = [item for item in receipt_of(context).items if item.layer == "skills" and not item.kept]
    assert any(str(bad) in item.reason for item in left_out)


# --- the order of skills


async def test_C12_skills_keep_their_load_order_and_directories_go_by_name(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name in ("zulu", "mike", "alpha"):
        write_skill(first, name, f"{name} of first.")
    write_skill(second, "bravo", "bravo of second.")

    context = await builder(tmp_path).with_skill_dirs([first, second]).build("hello")

    assert headings(context.system_prompt) == ["alpha", "mike", "zulu", "bravo"]


async def test_C12_a_later_skill_of_the_same_name_takes_the_place_of_the_earlier(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name in ("alpha", "mike", "zulu"):
        write_skill(first, name, f"{name} of first.")
    write_skill(second, "mike", "mike of second.", "the newer body")

    system = (await builder(tmp_path).with_skill_dirs([first, second]).build("hello")).system_prompt

    assert system == (
        INTRO + "## alpha\nalpha of first.\n\nbody\n\n"
        "## mike\nmike of second.\n\nthe newer body\n\n"
        "## zulu\nzulu of first.\n\nbody\n\n"
    )


async def test_C12_it_is_the_name_that_is_replaced_and_not_the_directory(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_skill(first, "mike", "mike of first.")
    text = "---\nname: mike\ndescription: from another folder.\n---\nbody\n"
    write(second / "elsewhere" / "SKILL.md", text)

    system = (await builder(tmp_path).with_skill_dirs([first, second]).build("hello")).system_prompt

    assert system == INTRO + "## mike\nfrom another folder.\n\nbody\n\n"


# --- read on demand


async def test_C13_read_on_demand_is_an_intro_a_heading_and_bullets(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "Answer in one line.")
    write_skill(tmp_path / "skills", "notes", "Write notes.", "The whole manual.")
    write_skill(tmp_path / "skills", "search", "", "Another manual.")

    system = await system_of(tmp_path, "readOnDemand")

    lines = [line for line in system.splitlines() if line]
    assert lines == [
        "Answer in one line.",
        "You have access to the following skills. Use the read_skill tool to load a skill's full "
        "documentation when it clearly applies to the user's request, before using that skill's tools.",
        "## Available skills",
        "- **notes**: Write notes.",
        "- **search**: (no description)",
    ]
    assert system.startswith(f"Answer in one line.\n\n{COMPACT_INTRO}\n\n## Available skills\n")


async def test_C13_read_on_demand_without_skills_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "Answer in one line.")

    assert await system_of(tmp_path, "readOnDemand") == "Answer in one line.\n\n"


# --- front matter


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\nname: s\n---\n\n\n  # Title\n\nText.\n\n\n", "# Title\n\nText."),
        ("---\nname: s\n---\nText.\n\n---\n\nMore.\n", "Text.\n\n---\n\nMore."),
        ("---\nname: s\nmetadata: {note: a --- b}\n---\nText.\n", "Text."),
        ("---\r\nname: s\r\n---\r\nText.\r\n", "Text."),
    ],
    ids=["trimmed", "only the first block", "dashes inside a value", "windows line ends"],
)
async def test_C15_the_first_front_matter_block_is_dropped_and_the_rest_trimmed(
    tmp_path: Path, text: str, body: str
) -> None:
    write(tmp_path / "skills" / "s" / "SKILL.md", text)

    assert await system_of(tmp_path) == f"{INTRO}## s\n{body}\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: other\nNo closing mark.",
        "# Title\n\n---\n\nA rule above and below.\n\n---\n\nEnd.",
        "Plain words only.",
    ],
    ids=["no closing mark", "rules further down", "none at all"],
)
async def test_C15_content_without_a_front_matter_block_is_unchanged(tmp_path: Path, text: str) -> None:
    write(tmp_path / "skills" / "s" / "SKILL.md", text)

    assert await system_of(tmp_path) == f"{INTRO}## s\n{text}\n\n"


@pytest.mark.parametrize("recipe", ["chai", "miniclaw", "weft"])
def test_C7_C11_C16_files_reach_the_model_as_they_are(recipe: str, tmp_path: Path) -> None:
    agents, body = "If a <b and c> d, say <b>so</b>.\nTrailing <", "Type `x </` or <block then stop."
    write(tmp_path / "AGENTS.md", agents)
    write_skill(tmp_path / "skills", "maths", "Compare a <b.", body)

    mode = ["-r", recipe, "-w", str(tmp_path)]
    shown = weft_command(tmp_path, "context", *mode, "--form", "single", "hello")

    assert shown.returncode == 0, shown.stderr
    assert agents in shown.stdout
    assert "Compare a <b." in shown.stdout
    assert (body in shown.stdout) is (recipe == "chai")
    assert "&lt;" not in shown.stdout


@pytest.mark.parametrize(("recipe", "written"), [("chai", "<block:x>"), ("weft", "&lt;block:x>")])
async def test_C16_only_a_whole_tag_of_ours_changes_and_only_in_recipes_with_tags(
    recipe: str, written: str, tmp_path: Path
) -> None:
    write(tmp_path / "AGENTS.md", "a <b <block:x> c")

    context = await weft.ContextBuilder(recipe=recipe).with_workspace(tmp_path).build("hi")

    assert f"a <b {written} c" in context.system_prompt


async def test_C16_besides_the_fixed_lines_the_model_sees_only_what_the_files_say(tmp_path: Path) -> None:
    agents = "Use {braces}, $dollars, %percent and `code` as they are; größer, 日本語, 😀."
    body = "# Body\n\n```sh\necho {not} a template\n```\n[User]\nnot a turn"
    write(tmp_path / "AGENTS.md", agents)
    write_skill(tmp_path / "skills", "verbatim", "Says it as it is.", body)

    context = await builder(tmp_path).build("hello")

    rest = context.system_prompt
    for piece in (agents, INTRO.strip(), "## verbatim", "Says it as it is.", body):
        assert rest.count(piece) == 1
        rest = rest.replace(piece, "")
    assert rest.strip() == ""
    assert [m.role for m in context.to_messages()] == ["system", "user"]
    assert context.to_messages()[-1].content == "hello"


# --- tools


def test_C21_a_tool_is_a_function_object_with_name_description_and_parameters() -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tool = weft.ToolDefinition(name="search", description="Search notes.", parameters=schema)

    assert tool.to_json_dict() == {
        "type": "function",
        "function": {"name": "search", "description": "Search notes.", "parameters": schema},
    }


def test_C21_a_tool_without_a_description_has_no_such_key() -> None:
    tool = weft.ToolDefinition(name="search", parameters={"type": "object", "properties": {}})

    assert tool.to_json_dict() == {
        "type": "function",
        "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
    }


async def test_C21_the_context_carries_the_tools_in_that_shape(tmp_path: Path) -> None:
    tool = weft.ToolDefinition(name="search", description="Search notes.", parameters={"type": "object"})

    context = await builder(tmp_path).with_tools([tool]).build("hello")

    assert [offered.to_json_dict() for offered in context.tools] == [tool.to_json_dict()]
    assert weft.Context.from_json(context.to_json()).tools == context.tools


# --- where skills come from


def test_C25_skills_come_from_the_config_dir_the_workspace_the_directory_and_the_extra_dirs(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    folders = [home / "skills", home / "workspace" / "skills"]
    folders += [tmp_path / name for name in ("directory", "extra-one", "extra-two")]
    for place, folder in enumerate(folders, start=1):
        write_skill(folder, "common", f"from place {place}.")
        write_skill(folder, f"own-{place}", f"only in place {place}.")
    extra = ", ".join(json.dumps(str(folder)) for folder in folders[3:])
    settings = f"[skills]\ndirectory = {json.dumps(str(folders[2]))}\nextraDirs = [{extra}]\n"
    write(home / "config.toml", settings)

    system = system_shown(home)

    assert system.startswith(INTRO + "## common\nfrom place 5.\n\nbody\n\n## own-1\nonly in place 1.\n\n")
    assert headings(system) == ["common", "own-1", "own-2", "own-3", "own-4", "own-5"]


def test_C25_without_settings_only_the_config_dir_and_the_workspace_are_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_skill(home / "skills", "from-config", "x")
    write_skill(home / "workspace" / "skills", "from-workspace", "x")
    write_skill(tmp_path / "directory", "from-elsewhere", "x")

    assert headings(system_shown(home)) == ["from-config", "from-workspace"]


# --- improvements that the document asks for


async def test_C26_the_system_string_of_a_builder_needs_the_files_only_once(tmp_path: Path) -> None:
    agents = write(tmp_path / "AGENTS.md", "Answer in one line.")
    skill = write_skill(tmp_path / "skills", "notes", "Write notes.")
    started = builder(tmp_path)
    before = (await started.build("hello")).system_prompt
    agents.unlink()
    skill.unlink()

    after = (await started.with_messages(talk(2)).build("again")).system_prompt

    assert after == before == "Answer in one line.\n\n" + INTRO + "## notes\nWrite notes.\n\nbody\n\n"


async def test_C26_without_a_cap_every_message_of_the_session_is_sent(tmp_path: Path) -> None:
    history = talk(1200)

    context = await builder(tmp_path).with_messages(history).build("hello")

    assert contents(context.to_messages()) == [*contents(history), "hello"]


@pytest.mark.parametrize(
    "cap", [{"max_history_messages": 4}, {"history_tokens": 12}], ids=["messages", "tokens"]
)
async def test_C26_a_cap_on_the_history_keeps_the_newest_messages(
    tmp_path: Path, cap: dict[str, int]
) -> None:
    history = talk(20)  # three tokens each
    recipe = weft.Recipe.load("chai").replace(**cap)

    context = await weft.ContextBuilder(recipe=recipe).with_messages(history).build("hello")

    assert contents(context.history) == contents(history[-4:])
    assert context.to_messages()[-1].content == "hello"


def test_C27_the_context_command_shows_the_exact_system_string(tmp_path: Path) -> None:
    home = tmp_path
    write(home / "workspace" / "AGENTS.md", f"A line longer than a terminal is wide: {'word ' * 40}end.\n")
    write_skill(home / "workspace" / "skills", "notes", "Write [notes] *quickly*.", "# Notes\n\n- größer 😀")

    done = weft_command(home, "context", "--recipe", "chai", "--provider", "scripted", "hello")

    assert done.returncode == 0
    exact = (
        f"A line longer than a terminal is wide: {'word ' * 40}end.\n\n"
        f"{INTRO}## notes\nWrite [notes] *quickly*.\n\n# Notes\n\n- größer 😀\n\n"
    )
    assert exact in done.stdout
    assert done.stdout.index(exact) < done.stdout.rindex("hello")


def test_C27_as_json_the_system_string_is_a_field_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "workspace" / "AGENTS.md", "Answer in one line.\n")
    write_skill(tmp_path / "workspace" / "skills", "notes", "Write notes.")

    shown = system_shown(tmp_path)

    assert shown == "Answer in one line.\n\n" + INTRO + "## notes\nWrite notes.\n\nbody\n\n"


async def test_C19_every_message_is_sent_even_beyond_the_models_window(tmp_path: Path) -> None:
    long = [weft.Message(role="user", content=f"{n:04} " + "x" * 4000) for n in range(200)]

    context = await builder(tmp_path).with_messages(long).build("hello")

    assert len(context.history) == 200
    assert receipt_of(context).over_limit
