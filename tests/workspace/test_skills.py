"""Skills: what a folder with a SKILL.md says, and which of them can be used."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft.types.message import McpServer
from weft.types.recipe import Reload
from weft.workspace import files
from weft.workspace.files import FileReader
from weft.workspace.skills import LeftOut, Skill, SkillLoader, Skills, parse_skill, split_front_matter


def write_skill(folder: Path, name: str, text: str | bytes = "") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def parsed(front: str, directory: str = "packing") -> Skill:
    return parse_skill(f"---\n{front}\n---\nBody.", directory=directory)


async def load(*folders: Path, disabled: tuple[str, ...] = ()) -> Skills:
    return await SkillLoader(FileReader()).load(folders, disabled=frozenset(disabled))


def names(skills: Skills) -> list[str]:
    return [skill.name for skill in skills.usable]


# --- front matter


@pytest.mark.parametrize(
    ("text", "front", "body"),
    [
        ("---\nname: a\n---\nBody.\n", "name: a\n", "Body."),
        ("---\r\nname: a\r\n---\r\nBody.\r\n", "name: a\r\n", "Body."),
        ("---  \nname: a\n---\t\n\n\nBody.\n", "name: a\n", "Body."),
        ("---\n---\nBody.", "", "Body."),
        ("---\nname: a\n---", "name: a\n", ""),
        ("---\nname: a\n---\nBody.\n\n---\n\nMore.", "name: a\n", "Body.\n\n---\n\nMore."),
        ("---\nname: a\nBody.\n", None, "---\nname: a\nBody.\n"),
        ("---\nname: a\n----\nBody.", None, "---\nname: a\n----\nBody."),
        ("Body.\n---\nname: a\n---\n", None, "Body.\n---\nname: a\n---\n"),
        (" ---\nname: a\n---\n", None, " ---\nname: a\n---\n"),
        ("", None, ""),
    ],
)
def test_front_matter_is_what_stands_between_two_marks_at_the_very_beginning(
    text: str, front: str | None, body: str
) -> None:
    assert split_front_matter(text) == (front, body)


@pytest.mark.parametrize(
    "front",
    [
        "name: tides\ndescription: Read the table.\ntrigger: tide|boat",
        'name = "tides"\ndescription = "Read the table."\ntrigger = "tide|boat"',
        "name: tides\r\ndescription: Read the table.\r\ntrigger: tide|boat\r",
        "{name: tides, description: Read the table., trigger: tide|boat}",
        "name: tides\ndescription: >\n  Read\n  the table.\ntrigger: [tide, boat]",
    ],
)
def test_yaml_and_toml_say_the_same(front: str) -> None:
    skill = parsed(front, "tides")

    assert (skill.name, skill.description, skill.trigger) == ("tides", "Read the table.", "tide|boat")
    assert (skill.body, skill.warnings) == ("Body.", ())


@pytest.mark.parametrize(
    "front", ['description = "Packing: what to take"', 'description = "a: b"\nlicense = "c: d"']
)
def test_toml_with_a_colon_in_a_text_is_still_toml(front: str) -> None:
    assert parsed(front).description in ("Packing: what to take", "a: b")


def test_without_front_matter_the_name_is_that_of_the_directory() -> None:
    skill = parse_skill("Just a body.\n", directory="packing", path="/skills/packing/SKILL.md")

    assert (skill.name, skill.description, skill.directory) == ("packing", "", "/skills/packing")
    assert skill.body == skill.content == "Just a body.\n"


@pytest.mark.parametrize("front", ["", "# only a comment", "name:", "name: ''", "name: [a]", "name: {a: b}"])
def test_a_name_that_is_not_given_is_that_of_the_directory(front: str) -> None:
    assert parsed(front).name == "packing"


@pytest.mark.parametrize(
    "front",
    [
        "name: [unclosed",
        "just words",
        "- a\n- list",
        "name: a\n  badly: indented",
        "name = unquoted",
        "name: &a [*a, *b]",
    ],
)
def test_front_matter_that_cannot_be_read_is_a_value_error(front: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(front)


@pytest.mark.parametrize(
    ("front", "text"),
    [
        ("made: 2026-13-45", "2026-13-45"),
        ("made: !!timestamp noon", "noon"),
        ("made: !!int ''", ""),
        ("made: !!bool perhaps", "perhaps"),
        ("made: !!python/object:os.system x", "x"),
        ("made: yes", "yes"),
    ],
)
def test_yaml_of_any_type_is_taken_as_the_text_that_is_written(front: str, text: str) -> None:
    assert parsed(front).fields["made"] == text


@pytest.mark.parametrize("front", ["name: " + "[" * 5000, "name = " + "[" * 5000])
def test_front_matter_nested_beyond_reason_is_a_value_error(front: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(front)


async def test_a_byte_order_mark_does_not_hide_front_matter(tmp_path: Path) -> None:
    write_skill(tmp_path, "tides", b"\xef\xbb\xbf---\nname: tides\ndescription: d\n---\nBody.")

    skills = await load(tmp_path)

    assert [(skill.description, skill.body) for skill in skills.usable] == [("d", "Body.")]


async def test_a_broken_skill_is_left_out_with_its_path_and_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = write_skill(tmp_path, "broken", "---\nname: [unclosed\n---\nBody.")
    write_skill(tmp_path, "tides", "Body.")

    skills = await load(tmp_path)

    assert names(skills) == ["tides"]
    [out] = skills.left_out
    assert (out.name, out.broken) == ("broken", True)
    assert out.reason.startswith(f"{broken} has front matter that cannot be read: ")
    assert out.reason in skills.warnings
    assert out.reason in caplog.text


@pytest.mark.parametrize(
    "front", ["made: !!timestamp noon", "metadata: {requires: {bins: 5}}", "mcp: {a: {command: b, args: 5}}"]
)
async def test_no_odd_front_matter_of_one_skill_costs_the_others(tmp_path: Path, front: str) -> None:
    write_skill(tmp_path, "odd", f"---\n{front}\n---\nBody.")
    write_skill(tmp_path, "tides", "Body.")

    skills = await load(tmp_path)

    assert "tides" in names(skills)


async def test_a_skill_that_is_not_text_is_left_out_with_a_warning(tmp_path: Path) -> None:
    write_skill(tmp_path, "binary", b"\0\1\2")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)

    skills = await load(tmp_path)

    assert [(out.name, out.broken) for out in skills.left_out] == [("binary", True), ("folder", True)]
    assert len(skills.warnings) == 2


# --- limits, gates, triggers


@pytest.mark.parametrize(
    ("front", "directory", "said"),
    [
        ("name: Packing\ndescription: d", "Packing", "a name has 1-64 characters"),
        ("name: a--b\ndescription: d", "a--b", "a name has 1-64 characters"),
        (f"name: {'a' * 65}\ndescription: d", "a" * 65, "a name has 1-64 characters"),
        ("name: tides\ndescription: d", "packing", "the name differs from its directory 'packing'"),
        ("name: packing", "packing", "a description is missing"),
        (
            f"name: packing\ndescription: {'d' * 1025}",
            "packing",
            "the description has 1025 characters of 1024",
        ),
    ],
)
def test_a_skill_outside_the_limits_warns_and_is_used_all_the_same(
    front: str, directory: str, said: str
) -> None:
    skill = parsed(front, directory)

    [warning] = skill.warnings
    assert said in warning
    assert repr(skill.name) in warning


def test_a_skill_at_the_limits_does_not_warn() -> None:
    assert parsed(f"name: {'a' * 64}\ndescription: {'d' * 1024}", "a" * 64).warnings == ()


async def test_a_skill_needs_its_programs_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tidectl").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(programs))
    for name, needed in (("able", "[tidectl]"), ("unable", "[tidectl, moonctl, sunctl]")):
        write_skill(tmp_path / "skills", name, f"---\nmetadata: {{requires: {{bins: {needed}}}}}\n---\nBody.")

    skills = await load(tmp_path / "skills")

    assert names(skills) == ["able"]
    assert skills.left_out == (LeftOut(name="unable", reason="needs moonctl, sunctl on the PATH"),)


async def test_a_program_that_is_installed_later_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_skill(tmp_path / "skills", "tides", "---\nmetadata: {requires: {bins: [tidectl]}}\n---\nBody.")
    loader = SkillLoader(FileReader())
    before = await loader.load([tmp_path / "skills"])

    (tmp_path / "tidectl").touch(mode=0o755)
    after = await loader.load([tmp_path / "skills"])

    assert (names(before), names(after)) == ([], ["tides"])


@pytest.mark.parametrize("bins", ["tidectl", "[tidectl]"])
def test_one_program_may_be_written_as_a_word_or_as_a_list(bins: str) -> None:
    assert parsed(f"metadata: {{requires: {{bins: {bins}}}}}").requires_bins == ("tidectl",)


@pytest.mark.parametrize(
    "front", ["metadata: words", "metadata: {requires: []}", "metadata: {requires: {bins: null}}"]
)
def test_metadata_of_another_shape_requires_nothing(front: str) -> None:
    assert parsed(front).requires_bins == ()


async def test_a_skill_that_is_switched_off_is_left_out_by_name(tmp_path: Path) -> None:
    write_skill(tmp_path, "tides")
    write_skill(tmp_path, "packing")

    skills = await load(tmp_path, disabled=("tides",))

    assert names(skills) == ["packing"]
    assert skills.left_out == (LeftOut(name="tides", reason="switched off by `skills.disabled`"),)
    assert all("tides" not in warning for warning in skills.warnings)


@pytest.mark.parametrize(
    ("trigger", "message", "triggered"),
    [
        ("due", "What is due today?", True),
        ("due", "DUE", True),
        ("due", "overdue residue", False),
        ("due", "the dues", True),
        ("due", "(due)", True),
        ("pack|journey", "Plan my journey", True),
        ("pack | journey ", "Plan my journey", True),
        ("pack|journey", "Plan my trip", False),
        ("last time", "as last time", True),
        ("c++", "is C++ hard", True),
        ("a.c", "abc", False),
        ("Ω", "what is ω", True),
        ("旅行", "旅行の計画", True),
        ("", "anything", False),
        ("|", "anything | else", False),
        (" | ", "anything", False),
    ],
)
def test_a_trigger_matches_where_a_word_begins(trigger: str, message: str, triggered: bool) -> None:
    assert Skill(name="a", trigger=trigger).is_triggered_by(message) is triggered


@pytest.mark.parametrize(
    ("front", "trigger"),
    [
        ("trigger: a|b", "a|b"),
        ("trigger: [a, b]", "a|b"),
        ("trigger: 5", "5"),
        ("trigger:", ""),
        ("x: y", ""),
    ],
)
def test_a_trigger_may_be_a_text_or_a_list(front: str, trigger: str) -> None:
    assert parsed(front).trigger == trigger


# --- MCP servers


@pytest.mark.parametrize(
    "front",
    [
        "mcp:\n  tide:\n    command: npx\n    args: [-y, tide server]",
        '[mcp.tide]\ncommand = "npx"\nargs = ["-y", "tide server"]',
        "mcp-tide: npx -y 'tide server'",
        'mcp-tide: npx -y "tide server"',
    ],
)
def test_an_mcp_server_is_declared_in_any_of_three_spellings(front: str) -> None:
    assert parsed(front).mcp_servers == (McpServer(name="tide", command="npx", args=("-y", "tide server")),)


def test_several_servers_keep_their_order() -> None:
    front = "mcp:\n  b: {command: one}\n  a: {command: two, args: null}\nmcp-c: three"

    assert [(s.name, s.command, s.args) for s in parsed(front).mcp_servers] == [
        ("b", "one", ()),
        ("a", "two", ()),
        ("c", "three", ()),
    ]


@pytest.mark.parametrize(
    "front", ["mcp: words", "mcp: {a: words}", "mcp: {a: {args: [b]}}", "mcp-a: ''", "mcp: []"]
)
def test_a_server_without_a_command_is_none(front: str) -> None:
    assert parsed(front).mcp_servers == ()


def test_arguments_written_as_one_text_are_not_taken_letter_by_letter() -> None:
    [server] = parsed("mcp: {tide: {command: npx, args: -y server}}").mcp_servers

    assert server.args in (("-y", "server"), ("-y server",))


# --- folders


async def test_directories_go_by_name_and_files_beside_them_are_no_skills(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        write_skill(tmp_path, name)
    (tmp_path / "README.md").write_text("not a skill", "utf-8")
    (tmp_path / "empty").mkdir()

    assert names(await load(tmp_path)) == ["a", "b", "c"]


async def test_a_later_folder_replaces_a_skill_of_the_same_name_in_its_place(tmp_path: Path) -> None:
    write_skill(tmp_path / "one", "a", "first")
    write_skill(tmp_path / "one", "b", "first")
    write_skill(tmp_path / "two", "x", "---\nname: a\n---\nsecond")

    skills = await load(tmp_path / "one", tmp_path / "two")

    assert [(skill.name, skill.body) for skill in skills.usable] == [("a", "second"), ("b", "first")]


async def test_a_later_skill_that_cannot_be_used_does_not_replace_one_that_can(tmp_path: Path) -> None:
    write_skill(tmp_path / "one", "a", "first")
    write_skill(tmp_path / "two", "a", "---\nname: [\n---\nsecond")

    skills = await load(tmp_path / "one", tmp_path / "two")

    assert [skill.body for skill in skills.usable] == ["first"]


@pytest.mark.parametrize("folder", ["missing", "file", "nul\0name", "x" * 300])
async def test_a_folder_that_cannot_be_listed_has_no_skills(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("text", "utf-8")
    write_skill(tmp_path / "good", "a")

    assert names(await load(tmp_path / folder, tmp_path / "good")) == ["a"]


async def test_one_folder_can_be_loaded_alone(tmp_path: Path) -> None:
    loader = SkillLoader(FileReader())
    write_skill(tmp_path, "tides", "---\ndescription: d\n---\nBody.")
    write_skill(tmp_path, "unable", "---\nmetadata: {requires: {bins: [no-such-program-here]}}\n---\n")

    found = await loader.load_one(tmp_path / "tides")
    unable = await loader.load_one(tmp_path / "unable")
    missing = await loader.load_one(tmp_path / "missing")

    assert isinstance(found, Skill)
    assert found.description == "d"
    assert unable == LeftOut(name="unable", reason="needs no-such-program-here on the PATH")
    assert isinstance(missing, LeftOut)
    assert missing.broken


# --- remembering


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read long after they were written, so that what was read of them can be trusted."""
    hour_ns = 3600 * 10**9
    later = SimpleNamespace(time_ns=lambda: time.time_ns() + hour_ns, monotonic=time.monotonic)
    monkeypatch.setattr(files, "time", later)


@pytest.mark.usefixtures("an_hour_later")
async def test_while_nothing_changes_the_very_same_skills_come_back(tmp_path: Path) -> None:
    write_skill(tmp_path, "a")
    write_skill(tmp_path, "b", "---\nname: [\n---\n")
    reader = FileReader()
    loader = SkillLoader(reader)

    first, second = await loader.load([tmp_path]), await loader.load([tmp_path])

    assert first is second
    assert reader.reads == 2


@pytest.mark.usefixtures("an_hour_later")
async def test_a_change_of_one_file_gives_other_skills_and_reads_only_that_file(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "a", "one")
    write_skill(tmp_path, "b")
    reader = FileReader()
    loader = SkillLoader(reader)
    first = await loader.load([tmp_path])

    path.write_text("another", "utf-8")
    os.utime(path, (1, 1))
    second = await loader.load([tmp_path])

    assert [skill.body for skill in second.usable] == ["another", ""]
    assert second is not first
    assert second.usable[1] is first.usable[1]
    assert reader.reads == 3


async def test_a_skill_that_is_added_or_taken_away_is_noticed(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "a")
    loader = SkillLoader(FileReader())
    assert names(await loader.load([tmp_path])) == ["a"]

    write_skill(tmp_path, "b")
    assert names(await loader.load([tmp_path])) == ["a", "b"]

    path.unlink()
    assert names(await loader.load([tmp_path])) == ["b"]


@pytest.mark.parametrize(
    ("reload", "passed", "expected"),
    [
        ("per_turn", 0.0, ["a", "b"]),
        ("startup", 9999.0, ["a"]),
        ("ttl", 29.9, ["a"]),
        ("ttl", 30.0, ["a", "b"]),
    ],
)
async def test_the_reload_rule_says_when_a_new_skill_is_seen(
    tmp_path: Path, reload: Reload, passed: float, expected: list[str]
) -> None:
    clock = Clock()
    loader = SkillLoader(FileReader(), monotonic=clock)
    write_skill(tmp_path, "a")
    await loader.load([tmp_path], reload=reload)

    write_skill(tmp_path, "b")
    clock.now += passed

    assert names(await loader.load([tmp_path], reload=reload)) == expected


async def test_after_forgetting_everything_is_looked_at_anew(tmp_path: Path) -> None:
    loader = SkillLoader(FileReader())
    write_skill(tmp_path, "a")
    await loader.load([tmp_path], reload="startup")
    write_skill(tmp_path, "b")

    loader.forget()

    assert names(await loader.load([tmp_path], reload="startup")) == ["a", "b"]


async def test_a_folder_is_not_taken_for_a_skill_that_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_skill(Path("one"), "two", "in one")
    write_skill(Path("two"), "a", "in two")
    loader = SkillLoader(FileReader())

    both = await loader.load([Path("one"), Path("two")], reload="startup")
    one = await loader.load([Path("one")], reload="startup", disabled=frozenset({"two"}))

    assert names(both) == ["two", "a"]
    assert names(one) == []
