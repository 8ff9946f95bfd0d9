"""How a call becomes a command line, and that no value can be more than a value."""

import asyncio
import getopt
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from skill_programs import SHOW_ARGV, bench, descriptor, executable, on_path, program, shell_program
from weft.errors import ToolError
from weft.tools.descriptor import Argument, Descriptor, Execution, doubts, parse
from weft.tools.execute import Plan, Resolving, ToolEnvironment, argv, plan, run
from weft.tools.process import ExecutionSettings

TITLE = {"param": "title", "kind": "positional"}
BODY = {"param": "body", "kind": "flag", "flag": "--content"}
SHORT = {"param": "body", "kind": "flag", "flag": "-c"}
REPLACE = {
    "param": "replace",
    "kind": "flagifboolean",
    "flagIfTrue": "--overwrite",
    "flagIfFalse": "--append",
}
HOSTILE = [
    "; rm -rf /", "$(id)", "`id`", "a | b", "a && b", "> /etc/passwd", "'", '"', "\\", "*", "~", "$HOME",
    "%s", "a\nb", "a\r\nb", "\t", "", " ", "-", "--", "-x", "--danger", "--content=x", "-rf", "- -", "–en",
    "größer 😀",
]  # fmt: skip


def words(args: Sequence[Mapping[str, Any]], **arguments: Any) -> list[str]:
    """What stands behind `notes add`."""
    binary, subcommand, *rest = argv(descriptor(args).execution["add_note"], arguments)
    assert (binary, subcommand) == ("notes", "add")
    return rest


def refused(args: Sequence[Mapping[str, Any]], **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        words(args, **arguments)
    return str(caught.value)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the PATH, with a program `notes` that prints its arguments."""
    folder = on_path(monkeypatch, tmp_path / "bin")
    program(folder, "notes", SHOW_ARGV)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


# --- the words


def test_the_words_are_binary_subcommand_and_the_arguments_in_the_order_of_the_file() -> None:
    assert words([TITLE, BODY, REPLACE], title="a b", body="c", replace=True) == [
        "a b", "--content", "c", "--overwrite",
    ]  # fmt: skip
    assert words([BODY, TITLE], title="a b", body="c") == ["--content", "c", "a b"]


def test_without_a_subcommand_there_is_no_word_for_it_and_one_of_two_words_is_two() -> None:
    plain = Execution(tool="t", binary="cat", args=(Argument(param="path"),))
    nested = Execution(tool="t", binary="gh", subcommand="issue list")

    assert argv(plain, {"path": "a.md"}) == ("cat", "a.md")
    assert argv(nested, {}) == ("gh", "issue", "list")


@pytest.mark.parametrize(
    ("flag", "written"), [("--content", "--content"), ("content", "--content"), ("-c", "-c"), ("", "--body")]
)
def test_an_option_is_written_with_its_dashes_and_named_after_its_parameter_if_it_has_no_name(
    flag: str, written: str
) -> None:
    assert words([{"param": "body", "kind": "flag", "flag": flag}], body="x") == [written, "x"]


@pytest.mark.parametrize("arguments", [{}, {"title": None}])
def test_a_positional_argument_must_be_there(arguments: dict[str, Any]) -> None:
    assert refused([TITLE], **arguments) == "missing parameter: title"


@pytest.mark.parametrize("arguments", [{}, {"body": None}])
def test_an_option_without_a_value_is_left_out(arguments: dict[str, Any]) -> None:
    assert words([BODY], **arguments) == []


@pytest.mark.parametrize("given_value", [True, "true", "True", " TRUE ", 1, -1, 0.5])
def test_what_is_true_gives_the_flag_for_true(given_value: Any) -> None:
    assert words([REPLACE], replace=given_value) == ["--overwrite"]


@pytest.mark.parametrize("given_value", [False, "false", "yes", "1", "", 0, 0.0, None, [], [1], {"a": 1}])
def test_anything_else_gives_the_flag_for_false(given_value: Any) -> None:
    assert words([REPLACE], replace=given_value) == ["--append"]


def test_an_absent_boolean_is_false_and_a_flag_that_is_not_defined_is_nothing() -> None:
    assert words([REPLACE]) == ["--append"]
    assert words([{"param": "all", "kind": "flagifboolean", "flagIfTrue": "-a"}]) == []
    assert words([{"param": "all", "kind": "flagifboolean", "flagIfFalse": "-a"}], all=True) == []


@pytest.mark.parametrize(
    ("given_value", "written"),
    [(5, "5"), (5.0, "5"), (0.1, "0.1"), (1e300, "1e+300"), (True, "true"), (False, "false"), ("", "")],
)
def test_numbers_and_booleans_are_written_as_people_write_them(given_value: Any, written: str) -> None:
    assert words([TITLE], title=given_value) == [written]
    assert words([BODY], body=given_value) == ["--content", written]


@pytest.mark.parametrize(
    ("given_value", "said"),
    [
        (["a"], "must be text, a number or true or false, not a list."),
        ({"a": 1}, "must be text, a number or true or false, not an object."),
        (float("nan"), "is not a finite number"),
        (float("inf"), "is not a finite number"),
        pytest.param(10**5000, "cannot be written", id="a huge number"),
        ("a\0b", "holds a NUL character"),
        ("\ud800", "cannot be written as UTF-8"),
    ],
)
@pytest.mark.parametrize("arg", [TITLE, BODY, SHORT])
def test_what_cannot_be_an_argument_is_refused(arg: dict[str, str], given_value: Any, said: str) -> None:
    assert said in refused([arg], **{arg["param"]: given_value})


@pytest.mark.parametrize(
    ("given_value", "written"),
    [
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("a\\nb\\r\\nc", "a\nb\nc"),
        ("a\\tb", "a\\tb"),
        ("\r\r", "\n\n"),
    ],
)
def test_newlines_are_made_real_only_where_the_file_asks_for_it(given_value: str, written: str) -> None:
    assert words([{**TITLE, "normalizeNewlines": True}], title=given_value) == [written]
    assert words([TITLE], title=given_value) == [given_value]


# --- a value is never an option


@pytest.mark.parametrize("value", ["-x", "--danger", "--", "-", "-5"])
def test_the_value_of_an_option_that_begins_with_a_dash_is_written_in_one_word_with_it(value: str) -> None:
    assert words([BODY], body=value) == [f"--content={value}"]
    assert refused([SHORT], body=value) == "a value must not begin with a dash: body"


@pytest.mark.parametrize("value", ["-x", "--danger", "--", "-", "-delete"])
def test_a_positional_value_that_begins_with_a_dash_is_refused_unless_the_program_honors_a_double_dash(
    value: str,
) -> None:
    spec = descriptor([TITLE], end_of_options=False).execution["add_note"]

    with pytest.raises(ToolError, match="a value must not begin with a dash: title"):
        argv(spec, {"title": value})


def test_positional_values_that_begin_with_a_dash_stand_behind_the_options_and_a_double_dash() -> None:
    two = [TITLE, BODY, {"param": "place"}, REPLACE]

    assert words(two, title="a", body="b", place="-x") == [
        "--content", "b", "--append", "--", "a", "-x",
    ]  # fmt: skip
    assert words([TITLE], title=-5) == ["--", "-5"]
    assert words([TITLE], title="--") == ["--", "--"]


STRINGS = (
    st.text()
    | st.text(st.characters())
    | st.text().map(lambda text: f"-{text}")
    | st.sampled_from([*HOSTILE, "\0", "-xc", "--dang"])
)


def understood(found: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options and the other words, as the usual parser of programs understands them."""
    options, rest = getopt.gnu_getopt(list(found), "c:x", ["content=", "danger", "append", "overwrite"])
    return dict(options), rest


@given(title=STRINGS, place_name=STRINGS, body=STRINGS, note=STRINGS)
def test_every_text_reaches_a_parser_as_the_value_it_is_or_is_refused(
    title: str, place_name: str, body: str, note: str
) -> None:
    args = [TITLE, BODY, {"param": "place"}, {"param": "note", "kind": "flag", "flag": "-c"}, REPLACE]
    arguments = {"title": title, "body": body, "place": place_name, "note": note}
    try:
        found = words(args, **arguments)
    except ToolError:
        texts = "".join(arguments.values())
        is_unsendable = "\0" in texts or texts.encode("utf-8", "replace").decode() != texts
        assert is_unsendable or note.startswith("-")
        return

    options, rest = understood(found)

    assert options == {"--content": body, "-c": note, "--append": ""}
    assert rest == [title, place_name]


@pytest.fixture(scope="module")
def parsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolEnvironment]:
    """A program that says what it was given and what it understood."""
    folder = tmp_path_factory.mktemp("parsing")
    source = (
        "import getopt, json, sys\nfound = getopt.gnu_getopt(sys.argv[2:], 'c:x', ['content=', 'danger'])"
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        program(on_path(monkeypatch, folder / "bin"), "notes", f"{source}\nprint(json.dumps(found))")
        short = {"param": "note", "kind": "flag", "flag": "-c"}
        (folder / "workspace").mkdir()
        yield bench(folder / "workspace", [TITLE, BODY, {"param": "place"}, short])


@settings(max_examples=40, deadline=None)
@given(title=STRINGS, place_name=STRINGS, body=STRINGS, note=STRINGS)
def test_every_text_reaches_the_program_as_the_value_it_is_or_is_refused(
    parsing: ToolEnvironment, title: str, place_name: str, body: str, note: str
) -> None:
    arguments = {"title": title, "body": body, "place": place_name, "note": note}
    expected = [[["--content", body], ["-c", note]], [title, place_name]]
    try:
        said = asyncio.run(run("add_note", arguments, parsing))
    except ToolError as error:
        said = str(error)

    is_refused = said.startswith(("The parameter ", "a value must not begin with a dash: note"))
    assert is_refused or json.loads(said) == expected


@pytest.mark.parametrize("value", HOSTILE)
async def test_no_shell_reads_a_value(programs: Path, place: Path, value: str) -> None:
    said = await run("add_note", {"title": value, "body": value}, bench(place, [TITLE, BODY]))

    guarded = value.startswith("-")
    option = [f"--content={value}"] if guarded else ["--content", value]
    expected = [*option, "--", value] if guarded else [value, *option]
    assert json.loads(said) == ["add", *expected]
    assert os.listdir(place) == []


# --- what may run


@pytest.mark.parametrize(
    "binary", ["other", "Notes", "NOTES", "notes ", "./notes", "/bin/notes", "../bin/notes", ""]
)
async def test_only_a_listed_binary_runs(programs: Path, place: Path, binary: str) -> None:
    spec = Execution(tool="t", binary=binary, subcommand="add")
    allowed = Descriptor(allowlist={"notes": frozenset({"add"})}, execution={"t": spec})

    with pytest.raises(ToolError) as caught:
        await run("t", {}, ToolEnvironment(descriptor=allowed, directory=str(place)))

    assert str(caught.value) == f"binary not allowlisted: {binary}"


@pytest.mark.parametrize(
    "subcommand", ["remove", "Add", "add ", " add", "add --all", "add remove", "", "-add"]
)
async def test_only_a_listed_subcommand_runs(programs: Path, place: Path, subcommand: str) -> None:
    spec = Execution(tool="t", binary="notes", subcommand=subcommand)
    allowed = Descriptor(allowlist={"notes": frozenset({"add"})}, execution={"t": spec})

    with pytest.raises(ToolError) as caught:
        await run("t", {}, ToolEnvironment(descriptor=allowed, directory=str(place)))

    assert str(caught.value) == f"subcommand not allowlisted: {subcommand}"


@pytest.mark.parametrize("binary", ["./notes", "/bin/sh", "../notes"])
async def test_a_path_does_not_run_even_if_it_is_listed(place: Path, binary: str) -> None:
    executable(place / "notes", "#!/bin/sh\necho ran\n")
    spec = Execution(tool="t", binary=binary)
    listed = Descriptor(allowlist={binary: frozenset({""})}, execution={"t": spec})

    with pytest.raises(ToolError, match="binary not allowlisted: "):
        await run("t", {}, ToolEnvironment(descriptor=listed, directory=str(place), workspace=str(place)))


async def test_an_unknown_tool_leads_to_the_known_ones(place: Path) -> None:
    with pytest.raises(ToolError, match="There is no tool 'add_nte': did you mean 'add_note'"):
        await run("add_nte", {}, bench(place))


async def test_a_program_that_fails_gives_its_code_and_both_streams(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", "echo found nothing; echo no such vault >&2; exit 3")

    with pytest.raises(ToolError) as caught:
        await run("add_note", {}, bench(place))

    assert str(caught.value) == (
        "notes add failed with exit code 3.\nstdout:\nfound nothing\nstderr:\nno such vault"
    )


async def test_what_a_program_says_on_success_is_the_answer_also_on_the_other_stream(
    programs: Path, place: Path
) -> None:
    shell_program(programs, "notes", "echo said; echo warned >&2")
    assert await run("add_note", {}, bench(place)) == "said\n"

    shell_program(programs, "notes", "echo created >&2")
    assert await run("add_note", {}, bench(place)) == "created\n"


# --- resolving values


def resolving(**resolve: Any) -> list[dict[str, Any]]:
    return [{**TITLE, "resolveCommand": resolve}]


async def title_given(place: Path, title: str, *, allow_scripts: bool = True, **resolve: Any) -> str:
    """The title that `notes` gets in the end."""
    where = bench(place, resolving(**resolve), allow_scripts=allow_scripts)
    *_, last = json.loads(await run("add_note", {"title": title}, where))
    return str(last)


async def test_the_trimmed_output_of_a_script_takes_the_place_of_the_value(
    programs: Path, place: Path
) -> None:
    executable(place / "scripts" / "day.sh", '#!/bin/sh\necho "  Daily/$1 for $2  "\n')

    assert (
        await title_given(place, "today", script="day.sh", args=["$param", "$name"])
        == "Daily/today for title"
    )


async def test_a_script_may_be_named_without_sh_and_need_not_be_executable(
    programs: Path, place: Path
) -> None:
    executable(place / "scripts" / "day.sh", 'echo "Daily/$1"\n').chmod(0o644)

    assert await title_given(place, "today", script="day", args=["$param"]) == "Daily/today"


async def test_a_script_may_name_its_own_interpreter(programs: Path, place: Path) -> None:
    program(place / "scripts", "day", "import sys\nprint(sys.argv[1].upper())")

    assert await title_given(place, "today", script="day", args=["<$param>"]) == "<TODAY>"


async def test_without_leave_no_script_runs_and_the_value_stays(programs: Path, place: Path) -> None:
    executable(place / "scripts" / "day.sh", f"#!/bin/sh\ntouch {place}/ran\necho other\n")

    assert await title_given(place, "today", allow_scripts=False, script="day.sh") == "today"
    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    "source", ["exit 0", "echo '  '", "echo other; exit 1", "printf 'a\\0b'", "kill -9 $$"]
)
async def test_where_resolving_fails_or_says_nothing_the_value_stays(
    programs: Path, place: Path, source: str
) -> None:
    executable(place / "scripts" / "day.sh", f"#!/bin/sh\n{source}\n")

    assert await title_given(place, "today", script="day.sh") == "today"


async def test_a_listed_binary_may_resolve_a_value_and_no_other(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", f'[ "$1" = day ] && echo "Daily/$2" && exit; {programs}/show "$@"')
    program(programs, "show", SHOW_ARGV)
    shell_program(programs, "other", f"touch {place}/ran; echo other")
    resolve = {"binary": "notes", "subcommand": "day", "args": ["$param"]}
    listed = descriptor(resolving(**resolve), allowlist={"notes": ["add", "day"]})
    strange = descriptor(resolving(**{**resolve, "binary": "other"}), allowlist={"notes": ["add", "day"]})

    allowed = await run("add_note", {"title": "x"}, ToolEnvironment(descriptor=listed, directory=str(place)))
    refused_ = await run(
        "add_note", {"title": "x"}, ToolEnvironment(descriptor=strange, directory=str(place))
    )

    assert json.loads(allowed) == ["add", "Daily/x"]
    assert json.loads(refused_) == ["add", "x"]
    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    ("args", "value", "seen"),
    [
        (["$param"], "-x", None),
        (["-f", "$param", "--"], "-x", None),
        (["--on", "$param"], "--danger", None),
        (["$param$param"], "--", None),
        (["--", "$param"], "-x", ["--", "-x"]),
        (["--on=$param"], "-x", ["--on=-x"]),
        (["a$param"], "-x", ["a-x"]),
        (["$param"], "$name; id", ["$name; id"]),
        (["$params", "$param.$name"], "v", ["$params", "v.title"]),
    ],
)
async def test_a_value_is_no_option_of_the_command_that_resolves_it_either(
    programs: Path, place: Path, args: list[str], value: str, seen: list[str] | None
) -> None:
    program(place / "scripts", "show", SHOW_ARGV)

    found = await title_given(place, value, script="show", args=args, endOfOptions=True)

    assert found == (value if seen is None else json.dumps(seen))


async def test_a_double_dash_protects_a_value_only_from_a_command_that_is_said_to_honor_it(
    programs: Path, place: Path
) -> None:
    program(place / "scripts", "show", SHOW_ARGV)
    args = ["--", "$param"]

    assert await title_given(place, "-x", script="show", args=args) == "-x", "it was not resolved"
    assert await title_given(place, "x", script="show", args=args) == json.dumps(["--", "x"])


async def test_find_cannot_be_made_to_delete_by_a_value(place: Path) -> None:
    (place / "precious.txt").write_text("do not delete")
    execution = {"tool": "look", "binary": "find", "subcommand": "", "args": [{"param": "where"}]}

    def read(**more: bool) -> Descriptor:
        data = {"tools": [{"name": "look"}], "allowlist": {"find": [""]}, "execution": [execution | more]}
        return parse(json.dumps(data), path="tools.json")

    with pytest.raises(ToolError, match="'find' takes what stands behind `--` as orders too"):
        read(endOfOptions=True)
    where = ToolEnvironment(descriptor=read(), directory=str(place), workspace=str(place))
    for value in ("-delete", "--delete", "-exec", "-"):
        with pytest.raises(ToolError, match="a value must not begin with a dash: where"):
            await run("look", {"where": value}, where)

    assert (place / "precious.txt").exists()


async def test_a_resolved_value_is_no_option_either(programs: Path, place: Path) -> None:
    executable(place / "scripts" / "day.sh", "echo --danger\n")
    where = bench(place, resolving(script="day"), allow_scripts=True)

    assert json.loads(await run("add_note", {"title": "x"}, where)) == ["add", "--", "--danger"]


@pytest.mark.parametrize("name", ["linked.sh", "missing", "folder", "../outside.sh", "/bin/echo", "..", ""])
async def test_a_script_that_is_not_really_below_the_skills_scripts_does_not_run(
    programs: Path, place: Path, name: str
) -> None:
    outside = executable(place / "outside.sh", f"#!/bin/sh\ntouch {place}/ran\necho other\n")
    (place / "scripts" / "folder").mkdir(parents=True)
    (place / "scripts" / "linked.sh").symlink_to(outside)
    good = bench(place, resolving(script="x"), allow_scripts=True)
    spec = good.descriptor.execution["add_note"]
    assert spec.args[0].resolve is not None
    resolve = type(spec.args[0].resolve)(script=name, binary="other")
    forged = Execution(
        tool="add_note", binary="notes", subcommand="add", args=(Argument(param="title", resolve=resolve),)
    )
    where = ToolEnvironment(
        descriptor=Descriptor(allowlist=good.descriptor.allowlist, execution={"add_note": forged}),
        directory=str(place),
        settings=ExecutionSettings(allow_scripts=True),
    )

    assert json.loads(await run("add_note", {"title": "x"}, where)) == ["add", "x"]
    assert not (place / "ran").exists()


async def test_a_scripts_folder_that_is_a_link_out_of_the_skill_is_not_used(
    programs: Path, place: Path, tmp_path: Path
) -> None:
    executable(tmp_path / "elsewhere" / "day.sh", "echo other\n")
    (place / "scripts").symlink_to(tmp_path / "elsewhere")

    assert await title_given(place, "today", script="day.sh") == "today"


# --- plans


def test_a_plan_says_what_would_run_and_runs_nothing(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", f"touch {place}/ran")
    script = executable(place / "scripts" / "day.sh", f"#!/bin/sh\ntouch {place}/ran\n")
    where = bench(place, resolving(script="day", args=["$param"]), allow_scripts=True)

    assert plan("add_note", {"title": "-x y"}, where) == Plan(
        argv=("notes", "add", "--", "-x y"),
        program=str(programs / "notes"),
        directory=str(place),
        resolving=(
            Resolving(
                param="title",
                refused="The value of 'title' would be an option of the command that resolves it.",
            ),
        ),
    )
    assert plan("add_note", {"title": "x"}, where).resolving == (
        Resolving(param="title", argv=(str(script), "x")),
    )
    assert not (place / "ran").exists()


def test_a_plan_is_refused_where_the_call_would_be(programs: Path, place: Path) -> None:
    with pytest.raises(ToolError, match="missing parameter: title"):
        plan("add_note", {}, bench(place, [TITLE]))


def test_a_plan_says_why_a_script_would_not_run(programs: Path, place: Path) -> None:
    found = plan("add_note", {"title": "x"}, bench(place, resolving(script="day")))

    assert found.resolving == (
        Resolving(
            param="title",
            refused="Scripts of skills may not run: set `skills.allowScripts` to allow them.",
        ),
    )


# --- shells and interpreters


@pytest.mark.parametrize("binary", ["sh", "bash", "python3", "env"])
async def test_an_interpreter_of_an_allowlist_runs_only_where_scripts_may(place: Path, binary: str) -> None:
    execution = {"tool": "go", "binary": binary, "subcommand": "", "args": [{"param": "what"}]}
    data = {"tools": [{"name": "go"}], "allowlist": {binary: [""]}, "execution": [execution]}
    listed = parse(json.dumps(data), path="tools.json")
    closed = ToolEnvironment(descriptor=listed, directory=str(place))
    opened = replace(closed, settings=ExecutionSettings(allow_scripts=True))

    with pytest.raises(ToolError, match=r"runs whatever it is given, which needs `skills.allow_scripts"):
        await run("go", {"what": "x"}, closed)

    assert plan("go", {"what": "x"}, opened).argv == (binary, "x")
    assert f"tool 'go' is refused: {binary!r} runs whatever" in " ".join(doubts(listed, allow_scripts=False))
    assert not any("refused" in doubt for doubt in doubts(listed, allow_scripts=True))
