"""A program gets no secrets and no input, and nothing of it is left when its call is over."""

import asyncio
import gc
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from skill_programs import Line, bench, executable, on_path, program, shell_program, wait_until_gone
from weft.errors import ToolError
from weft.tools import process
from weft.tools.execute import ToolEnvironment, run
from weft.tools.process import clean_environment, find_program

MANY = 100_000.0
LEAVES_CHILDREN = """
say='echo $$ > {line}; exec sleep 100000'
sh -c "$say" &
(setsid sh -c "$say" &)
say="$say" setsid sh -c 'trap "" TERM; (setsid sh -c "$say" &); exec sleep 100000' &
"""
"""Starts a child in the group, one that left it, and one that left it twice; each says its number."""
DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[2], "w") as line:
            line.write(f"{os.getpid()}\\n")
        time.sleep(100_000)
    os._exit(0)
os.wait()
time.sleep(100_000)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return on_path(monkeypatch, tmp_path / "bin")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    opened = Line(tmp_path / "line")
    yield opened
    opened.close()


async def failure(where: ToolEnvironment, **arguments: str) -> str:
    with pytest.raises(ToolError) as caught:
        await run("add_note", arguments, where)
    return str(caught.value)


# --- what a program knows


async def test_no_secret_of_the_environment_reaches_a_program(
    programs: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "HTTPS_PROXY"}
    for name in (*secrets, "LD_PRELOAD_", "PYTHONPATH", "BASH_ENV", "ENV", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("TZ", "Europe/Vienna")
    program(programs, "notes", "import json, os\nprint(json.dumps(dict(os.environ)))")

    seen = json.loads(await run("add_note", {}, bench(place)))

    assert "hunter2" not in seen.values()
    assert set(seen) <= {"PATH", "LC_TIME", "LC_CTYPE", "WEFT_CALL"} | process.PASSED_ON
    assert (seen["TZ"], seen["LC_TIME"]) == ("Europe/Vienna", "C")


async def test_a_program_has_no_input_and_runs_in_the_workspace(programs: Path, place: Path) -> None:
    program(programs, "notes", "import os, sys\nprint(repr(sys.stdin.read()), os.getcwd())")

    assert await run("add_note", {}, bench(place)) == f"'' {place}\n"


async def test_without_a_workspace_a_program_runs_in_the_folder_of_its_skill(
    programs: Path, place: Path
) -> None:
    shell_program(programs, "notes", "pwd")
    where = ToolEnvironment(descriptor=bench(place).descriptor, directory=str(place))

    assert await run("add_note", {}, where) == f"{place}\n"


def test_the_path_has_no_folder_that_is_relative_or_lies_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "outside").symlink_to(tmp_path / "ws")
    folders = [
        ".",
        "",
        "bin",
        "/usr/bin",
        f"{tmp_path}/ws",
        f"{tmp_path}/ws/bin",
        f"{tmp_path}/outside/bin",
        "/bin",
    ]

    clean = clean_environment({"PATH": os.pathsep.join(folders)}, workspace=str(tmp_path / "ws"))

    assert clean == {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize("environ", [{}, {"PATH": ""}, {"PATH": "."}])
def test_a_program_is_never_looked_for_in_the_current_folder(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "notes", "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ToolError, match=r"The program 'notes' is not on the PATH: install it\."):
        find_program("notes", clean_environment(environ))


async def test_a_program_in_the_workspace_cannot_take_the_name_of_another(
    programs: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell_program(programs, "notes", "echo right")
    on_path(monkeypatch, place / "bin")
    shell_program(place / "bin", "notes", "echo wrong")

    assert await run("add_note", {}, bench(place)) == "right\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("#!/no/such/interpreter\n", "notes could not be started"),
        ("\x7fnot a program", "notes could not be started"),
    ],
)
async def test_a_program_that_cannot_start_says_so(
    programs: Path, place: Path, source: str, said: str
) -> None:
    executable(programs / "notes", source)

    assert (await failure(bench(place))).startswith(said)


async def test_a_folder_that_is_gone_and_arguments_without_end_are_named(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", "pwd")

    too_long = await failure(bench(place, [{"param": "title"}]), title="x" * 10_000_000)
    gone = await failure(bench(place / "gone"))

    assert too_long == "notes could not be started: its arguments are too long."
    assert gone == f"notes could not be started: there is no folder {place / 'gone'}."


# --- what a program says


async def test_output_that_is_not_utf_8_is_shown_with_replacements(programs: Path, place: Path) -> None:
    program(programs, "notes", "import sys\nsys.stdout.buffer.write(b'caf\\xe9 \\xff ok')")

    assert await run("add_note", {}, bench(place)) == "caf\ufffd \ufffd ok"


async def test_output_is_cut_at_the_limit_with_a_notice_and_never_inside_a_character(
    programs: Path, place: Path
) -> None:
    program(programs, "notes", "import sys\nsys.stdout.buffer.write(('a' + 'é' * 100).encode())")

    cut = await run("add_note", {}, bench(place, max_output_bytes=10))
    whole = await run("add_note", {}, bench(place, max_output_bytes=201))

    assert cut == "aéééé\n[Output cut: it was longer than 10 bytes.]"
    assert whole == "a" + "é" * 100


async def test_both_streams_of_a_failure_are_cut(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", "echo 123456789; echo abcdefghi >&2; exit 1")

    assert await failure(bench(place, max_output_bytes=4)) == (
        "notes add failed with exit code 1.\n"
        "stdout:\n1234\n[Output cut: it was longer than 4 bytes.]\n"
        "stderr:\nabcd\n[Output cut: it was longer than 4 bytes.]"
    )


async def test_a_gigabyte_of_output_does_not_fill_the_memory(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", "head -c 1000000000 /dev/zero; head -c 50000000 /dev/zero >&2")
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    said = await run("add_note", {}, bench(place))

    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert said == "\0" * 1_000_000 + "\n[Output cut: it was longer than 1000000 bytes.]"
    assert grown_mb < 100


# --- how a program ends


async def test_what_a_program_left_behind_neither_holds_up_its_answer_nor_lives_on(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    gate = Line(tmp_path / "gate")
    source = LEAVES_CHILDREN.format(line=tmp_path / "line")
    shell_program(programs, "notes", f"{source}read word < {tmp_path}/gate\necho $word")
    call = asyncio.create_task(run("add_note", {}, bench(place, seconds=MANY)))
    pids = await asyncio.to_thread(line.words, 3)

    gate.say("done")

    assert await asyncio.wait_for(call, 60) == "done\n"
    for pid in pids:
        wait_until_gone(int(pid))
    gate.close()


async def test_all_processes_of_a_call_are_gone_after_its_time_also_those_that_left_the_group(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    source = LEAVES_CHILDREN.format(line=tmp_path / "line")
    shell_program(
        programs,
        "notes",
        f"trap '' TERM\necho $$ > {tmp_path}/line\n{source}echo begun\nwhile :; do sleep 100000; done",
    )

    said = await failure(bench(place, seconds=3.0))

    assert said == (
        "notes add was stopped because it ran longer than 3 seconds: "
        "ask for less, or raise `tools.seconds`.\n"
        "stdout:\nbegun"
    )
    for word in line.words(4):
        wait_until_gone(int(word))


async def test_a_cancelled_call_leaves_no_process_behind_not_even_a_double_fork(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    program(programs, "notes", DOUBLE_FORK)
    where = bench(place, [{"param": "line"}], seconds=MANY)
    call = asyncio.create_task(run("add_note", {"line": str(tmp_path / "line")}, where))
    (pid,) = await asyncio.to_thread(line.words, 1)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    wait_until_gone(int(pid))


async def test_a_call_made_by_a_program_of_a_call_ends_with_it(
    programs: Path, place: Path, line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell_program(programs, "notes", f"setsid sh -c 'echo $WEFT_CALL > {tmp_path}/line; sleep 100000'")
    monkeypatch.setenv("WEFT_CALL", ".outer")
    call = asyncio.create_task(run("add_note", {}, bench(place, seconds=MANY)))

    (marks,) = await asyncio.to_thread(line.words, 1)
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert marks.startswith(".outer.")
    assert len(marks) > len(".outer.")


async def test_a_second_cancellation_ends_the_waiting_but_not_the_killing(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    shell_program(
        programs, "notes", f"trap '' TERM\necho $$ > {tmp_path}/line\nwhile :; do sleep 100000; done"
    )
    call = asyncio.create_task(run("add_note", {}, bench(place, seconds=MANY)))
    (pid,) = await asyncio.to_thread(line.words, 1)

    call.cancel()
    await asyncio.sleep(0)
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.to_thread(wait_until_gone, int(pid))


def test_no_process_outlives_the_loop_it_was_started_in(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    shell_program(
        programs, "notes", f"trap '' TERM\necho $$ > {tmp_path}/line\nwhile :; do sleep 100000; done"
    )
    pids: list[str] = []

    async def leave() -> None:
        call = asyncio.create_task(run("add_note", {}, bench(place, seconds=MANY)))
        pids.extend(await asyncio.to_thread(line.words, 1))
        assert not call.done()

    asyncio.run(leave())

    wait_until_gone(int(pids[0]))


async def test_a_program_that_is_asked_to_stop_may_tidy_up(
    programs: Path, place: Path, line: Line, tmp_path: Path
) -> None:
    tidy = (
        f"trap 'touch {place}/tidied; exit 0' TERM\necho $$ > {tmp_path}/line\nwhile :; do sleep 0.01; done"
    )
    shell_program(programs, "notes", tidy)
    call = asyncio.create_task(run("add_note", {}, bench(place, seconds=MANY)))
    await asyncio.to_thread(line.words, 1)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert os.listdir(place) == ["tidied"]


async def test_many_calls_at_once_do_not_disturb_each_other(programs: Path, place: Path) -> None:
    program(programs, "notes", "import sys\nprint(sys.argv[2])")
    where = bench(place, [{"param": "title"}])

    said = await asyncio.gather(*(run("add_note", {"title": f"n{at}"}, where) for at in range(12)))

    assert said == [f"n{at}\n" for at in range(12)]


async def test_a_call_leaves_no_handle_open(programs: Path, place: Path) -> None:
    shell_program(programs, "notes", "echo said; sleep 100000 &")
    await run("add_note", {}, bench(place))
    before = set(os.listdir("/proc/self/fd"))

    await run("add_note", {}, bench(place))

    assert len(os.listdir("/proc/self/fd")) <= len(before)
