"""MCP servers as real processes: their tools, their failures, and their end."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from weft.errors import ToolError
from weft.tools.base import Tool
from weft.tools.mcp import McpSettings, McpTools, tool_name
from weft.tools.process import MARK, clean_environment
from weft.types.message import McpServer
from weft.types.request import Caller
from weft.workspace.skills import Skill, Skills

SERVER = '''
"""A server of the real SDK. It writes its process id down when it starts."""
import os, signal, subprocess, sys, time
from pathlib import Path
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError

folder = Path(sys.argv[1])
server = MCPServer("tide", log_level="CRITICAL")

@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)

@server.tool(structured_output=False)
def several() -> list:
    return ["first", Image(data=b"123456", format="png"), "last"]

@server.tool()
def fail() -> str:
    raise ToolError("the tide is out")

@server.tool()
def crash() -> str:
    print("the moon fell down, ghp_" + "abcdEFGH1234567890abcdEFGH12345678", file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
async def wait_for(what: str) -> str:
    import anyio
    (folder / f"waiting-{what}").touch()
    while not (folder / what).exists():
        await anyio.sleep(0.01)
    return what

@server.tool()
def environment() -> str:
    return " ".join(sorted(os.environ))

@server.tool()
async def stubborn() -> str:
    """From now on nothing but SIGKILL ends this process or its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import signal, time;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE)
    child.stdout.readline()
    (folder / "deaf").touch()
    return str(child.pid)

@server.tool()
def leave_behind() -> str:
    """Begin something that outlives this server, in a session of its own."""
    nothing = subprocess.DEVNULL
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return str(subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing,
        start_new_session=True).pid)

(folder / f"{os.getpid()}.pid").touch()
server.run()
while (folder / "deaf").exists():
    time.sleep(1)
'''
CALLER = Caller(agent_id="weft")


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a condition, within bounds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Place:
    """A folder with the server's file, and the ids of the servers that were started from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "tide.py"
        self.script.write_text(SERVER, "utf-8")

    def server(self, name: str = "tide") -> McpServer:
        return McpServer(name=name, command=sys.executable, args=(str(self.script), str(self.folder)))

    def pids(self) -> list[int]:
        return [int(path.stem) for path in self.folder.glob("*.pid")]

    def allow(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def skill(name: str, *servers: McpServer, trigger: str = "") -> Skill:
    return Skill(name=name, description=name, trigger=trigger, mcp_servers=servers)


@asynccontextmanager
async def offering(*skills: Skill, **settings: Any) -> AsyncIterator[McpTools]:
    async def load() -> Skills:
        return Skills(usable=skills)

    source = McpTools(load, McpSettings(**settings))
    try:
        yield source
    finally:
        await source.close()


async def call(tools: Sequence[Tool], name: str, **arguments: object) -> str:
    (tool,) = [tool for tool in tools if tool.name == f"mcp__tide__{name}"]
    return await tool.run(arguments, CALLER)


async def test_a_server_starts_when_its_tools_are_listed_and_serves_the_messages_that_follow(
    place: Place,
) -> None:
    async with offering(skill("sea", place.server(), trigger="tide")) as source:
        assert list(await source.tools("good morning")) == []
        assert place.pids() == []

        first = await source.tools("when is the tide?")
        second = await source.tools("and the next tide?")

        assert await call(first, "add", a=2, b=3) == "5"
        assert await call(second, "add", a=2, b=4) == "6"
        assert len(place.pids()) == 1
        (add,) = [tool for tool in first if tool.name == "mcp__tide__add"]
        assert add.definition.description == "Add two numbers."
        assert set(add.definition.parameters["properties"]) == {"a", "b"}
        assert add.source == "the MCP server 'tide'"
    assert not any(map(runs, place.pids()))


async def test_what_a_tool_answers_is_text_and_a_failure_is_an_error_the_model_can_read(place: Place) -> None:
    async with offering(skill("sea", place.server())) as source:
        tools = await source.tools("")

        assert await call(tools, "several") == "first\n[image: image/png, about 6 bytes]\nlast"
        with pytest.raises(ToolError, match="the tide is out"):
            await call(tools, "fail")
        with pytest.raises(ToolError, match="b"):
            await call(tools, "add", a=1)
        assert await call(tools, "add", a=1, b=1) == "2"


async def test_calls_run_at_the_same_time_and_one_that_is_cancelled_does_not_disturb_the_others(
    place: Place,
) -> None:
    async with offering(skill("sea", place.server())) as source:
        tools = await source.tools("")
        one, two = (asyncio.create_task(call(tools, "wait_for", what=what)) for what in ("one", "two"))
        await until((place.folder / "waiting-one").exists)
        await until((place.folder / "waiting-two").exists)

        one.cancel()
        with suppress(asyncio.CancelledError):
            await one
        place.allow("two")

        assert await two == "two"
        assert len(place.pids()) == 1


async def test_a_server_that_crashes_during_a_call_is_named_and_started_again_on_the_next_use(
    place: Place,
) -> None:
    async with offering(skill("sea", place.server())) as source:
        tools = await source.tools("")

        with pytest.raises(ToolError, match="'tide' ended during the call of 'crash'") as caught:
            await call(tools, "crash")

        assert "the moon fell down, ***" in str(caught.value)
        assert await call(tools, "add", a=1, b=2) == "3"
        assert len(place.pids()) == 2


async def test_a_server_that_died_between_two_uses_is_started_again(place: Place) -> None:
    async with offering(skill("sea", place.server())) as source:
        tools = await source.tools("")
        (pid,) = place.pids()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not runs(pid))
        await until(lambda: not source._servers[place.server()]._process.usable)  # type: ignore[union-attr]

        assert await call(tools, "add", a=1, b=2) == "3"
        assert len(place.pids()) == 2


async def test_a_call_that_takes_too_long_is_an_error_and_the_next_one_gets_a_fresh_server(
    place: Place,
) -> None:
    async with offering(skill("sea", place.server()), seconds=1) as source:
        tools = await source.tools("")
        (pid,) = place.pids()

        with pytest.raises(ToolError, match="did not answer within 1 seconds"):
            await call(tools, "wait_for", what="never")

        assert await call(tools, "add", a=1, b=2) == "3"
        await until(lambda: not runs(pid))


@pytest.mark.parametrize(
    ("command", "args", "says"),
    [
        ("weft-no-such-command", (), "no command 'weft-no-such-command': install it"),
        (
            sys.executable,
            ("-c", "import sys; sys.exit('no moon today')"),
            "ended before it was ready (no moon",
        ),
        (sys.executable, ("-c", "input(); input(); input()"), "not ready within 1 seconds"),
        ("/", (), "cannot be started"),
        ("a\0b", (), "cannot be started"),
    ],
)
async def test_a_server_that_cannot_start_costs_a_warning_and_not_the_other_tools(
    place: Place, caplog: pytest.LogCaptureFixture, command: str, args: tuple[str, ...], says: str
) -> None:
    broken = McpServer(name="broken", command=command, args=args)
    async with offering(skill("bad", broken), start_seconds=1) as source:
        assert list(await source.tools("")) == []

    assert says in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_failed_start_is_remembered_for_a_while_and_the_others_are_offered(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    broken = McpServer(name="broken", command="weft-no-such-command")
    async with offering(skill("bad", broken), skill("sea", place.server()), retry_seconds=1000) as source:
        for _ in range(3):
            assert "mcp__tide__add" in [tool.name for tool in await source.tools("")]
    assert caplog.text.count("weft-no-such-command") == 1

    caplog.clear()
    async with offering(skill("bad", broken), retry_seconds=0) as source:
        for _ in range(3):
            await source.tools("")
    assert caplog.text.count("weft-no-such-command") == 3


async def test_closing_waits_until_a_stubborn_server_and_its_child_are_gone_even_if_it_is_cancelled(
    place: Place,
) -> None:
    async with offering(skill("sea", place.server())) as source:
        child = int(await call(await source.tools(""), "stubborn"))
        closing = asyncio.create_task(source.close())
        await asyncio.sleep(0)
        closing.cancel()
        closing.cancel()
        with suppress(asyncio.CancelledError):
            await closing
        assert runs(child)

        await source.close()

        assert not runs(child)
        assert not any(map(runs, place.pids()))


async def test_what_a_server_leaves_behind_ends_with_it(place: Place) -> None:
    async with offering(skill("sea", place.server())) as source:
        child = int(await call(await source.tools(""), "leave_behind"))
        assert runs(child)

        await source.close()

        assert not runs(child)


async def test_closing_ends_calls_and_starts_that_are_under_way(place: Place) -> None:
    async with offering(skill("sea", place.server())) as source:
        tools = await source.tools("")
        waiting = asyncio.create_task(call(tools, "wait_for", what="never"))
        await until((place.folder / "waiting-never").exists)

        await source.close()

        with pytest.raises(ToolError):
            await waiting
        with pytest.raises(ToolError, match="was stopped"):
            await call(tools, "add", a=1, b=1)
        assert list(await source.tools("")) == []

    async with offering(skill("sea", place.server())) as source:
        listing = asyncio.create_task(source.tools(""))
        await until(lambda: len(place.pids()) == 2)
        await source.close()
        assert list(await listing) == []
    assert not any(map(runs, place.pids()))


async def test_a_server_is_stopped_when_nobody_uses_it_but_not_during_a_call(place: Place) -> None:
    async with offering(skill("sea", place.server()), idle_seconds=0.05) as source:
        tools = await source.tools("")
        await until(lambda: not any(map(runs, place.pids())))

        waiting = asyncio.create_task(call(tools, "wait_for", what="now"))
        await until((place.folder / "waiting-now").exists)
        before = set(place.pids())
        async with offering(skill("lake", place.server()), idle_seconds=0.05) as witness:
            await witness.tools("")  # it starts later, so when it is stopped the first was idle for longer
            await until(lambda: not any(map(runs, set(place.pids()) - before)))
        place.allow("now")

        assert await waiting == "now"
        assert [tool.name for tool in await source.tools("")] == [tool.name for tool in tools]
        assert len(before) == 2, "the call did not need a third"
        assert len(place.pids()) == 3, "nor did what came after it"
        await until(lambda: not any(map(runs, place.pids())))


async def test_a_server_that_no_skill_declares_any_more_is_stopped(place: Place) -> None:
    skills = [Skills(usable=(skill("sea", place.server()),)), Skills()]

    async def load() -> Skills:
        return skills.pop(0)

    source = McpTools(load)
    assert await source.tools("")
    assert list(await source.tools("")) == []
    await until(lambda: not any(map(runs, place.pids())))
    await source.close()


async def test_a_server_sees_nothing_of_our_environment_but_what_it_needs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("WEFT_TOKEN", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    async with offering(skill("sea", place.server())) as source:
        names = set((await call(await source.tools(""), "environment")).split())

    assert {"PATH", "LC_TIME"} <= names
    assert names <= set(clean_environment(os.environ)) | {
        "LC_CTYPE",
        MARK,
        "SHELL",
        "TERM",
    }  # the last two come from the SDK
    assert not {"ANTHROPIC_API_KEY", "WEFT_TOKEN"} & names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a__b", "c"), ("a", "b__c")),
        (("a_", "b"), ("a", "_b")),
        (("a.b", "c"), ("a_b", "c")),
        (("a", "b.c"), ("a", "b_c")),
        (("a", "ä"), ("a", "ö")),
        (("a", "x" * 100), ("a", "x" * 101)),
    ],
)
def test_two_tools_never_have_the_same_name_and_every_vendor_takes_it(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    names = {tool_name(*one), tool_name(*other)}

    assert len(names) == 2
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert names == {tool_name(*one), tool_name(*other)}


def test_a_plain_name_stays_as_it_is() -> None:
    assert tool_name("sea-level", "get_tide") == "mcp__sea-level__get_tide"


def test_of_two_servers_with_the_same_name_the_first_counts_and_a_warning_says_so() -> None:
    first, second = McpServer(name="tide", command="a"), McpServer(name="tide", command="b")
    skills = Skills(usable=(skill("one", first), skill("two", second), skill("three", first)))

    assert skills.active_servers("") == (first,)
    (warning,) = skills.warnings
    assert "skill 'two'" in warning
    assert "'tide' is another one in the skill 'one'" in warning
