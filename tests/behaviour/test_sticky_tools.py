"""MCP tools that come with a word stay while the epoch lasts, and servers start when they are needed."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from epoch_chaos import ME, Model, check_begins, receipt_of, small

SERVER = '''
"""A small server that speaks MCP. It writes its process id down when it starts, and may be told not to."""
import json, os, sys
from pathlib import Path

folder, name = Path(sys.argv[1]), sys.argv[2]
if (folder / "broken").exists():
    sys.exit("no moon today")
(folder / f"{name}-{os.getpid()}.pid").touch()
reads = {"readOnlyHint": True, "openWorldHint": False}
schema = {"type": "object", "properties": {"what": {"type": "string"}}}
tools = [
    {"name": "ask", "description": "Ask the server.", "inputSchema": schema, "annotations": reads},
    {"name": "crash", "description": "End the server.", "inputSchema": {"type": "object"}},
]
for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params") or {}
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "unknown"}}
    if message["method"] == "initialize":
        about = {"name": name, "version": "1"}
        version = params["protocolVersion"]
        answer = {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
    elif message["method"] == "tools/list":
        answer = {"result": {"tools": tools}}
    elif message["method"] == "tools/call":
        if params["name"] == "crash":
            os._exit(3)
        text = f"{name} says {params['arguments']['what']}"
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
'''
SKILL = """---
name: {skill}
description: Ask for {skill}.
trigger: {skill}
mcp:
  {server}:
    command: {python}
    args: ["{script}", "{folder}", "{process}"]
---
Ask the server.
"""


@dataclass
class Sea:
    """A home with skills whose MCP servers are real processes, and a model that lists what it was asked."""

    home: Path
    model: Model = field(default_factory=Model)

    def add_skill(self, skill: str, server: str = "", process: str = "") -> None:
        script = self.home / "server.py"
        script.write_text(SERVER, "utf-8")
        path = self.home / "workspace" / "skills" / skill / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = SKILL.format(
            skill=skill,
            server=server or skill,
            process=process or skill,
            python=sys.executable,
            script=script,
            folder=self.home,
        )
        path.write_text(text, "utf-8")

    def pids(self, name: str) -> list[int]:
        """Return the ids of the processes that were started of a server."""
        return [int(path.stem.rpartition("-")[2]) for path in self.home.glob(f"{name}-*.pid")]

    @asynccontextmanager
    async def app(self) -> AsyncIterator[weft.Assistant]:
        app = await weft.connect(provider=self.model)
        try:
            yield app
        finally:
            await app.close()

    def tools(self, at: int = -1) -> list[str]:
        """Return the MCP tools that a request offers, in its order."""
        return [tool.name for tool in self.model.requests[at].tools if tool.name.startswith("mcp__")]

    def whys(self) -> list[str]:
        return [receipt_of(request).epoch_why.partition(":")[0] for request in self.model.requests]

    def script(self, *answers: Any) -> None:
        queue = [*answers]
        self.model.answer = lambda _: queue.pop(0) if queue else "Noted."


@pytest.fixture
def sea(home: Path) -> Sea:
    sea = Sea(home)
    sea.add_skill("tide")
    return sea


def calling(name: str, **arguments: str) -> weft.Reply:
    call = weft.ToolCall(id="call-1", name=name, arguments=arguments)
    return weft.Reply(text="", tool_calls=(call,), stop_reason="tools")


def results(context: weft.Context) -> list[str]:
    return [step.content for step in context.steps if step.role == "tool"]


TIDE = ["mcp__tide__ask", "mcp__tide__crash"]
WIND = ["mcp__wind__ask", "mcp__wind__crash"]


async def test_tools_that_came_with_a_word_stay_with_the_same_bytes_when_the_word_is_gone(sea: Sea) -> None:
    async with sea.app() as app:
        await app.ask("Good morning.", session="chat")
        assert (sea.tools(), sea.pids("tide")) == ([], []), "nobody has asked for the server yet"
        for text in ("When is the tide?", "Thanks.", "And how are you?", "The tide again.", "Bye."):
            await app.ask(text, session="chat")

    assert [sea.tools(at) for at in range(1, 6)] == [TIDE] * 5
    assert sea.whys() == ["start", "tools", "", "", "", ""]
    assert "mcp__tide__ask" in receipt_of(sea.model.requests[1]).epoch_why
    for at in (2, 3, 4, 5):
        check_begins(sea.model.requests[at], sea.model.requests[at - 1])
    assert len(sea.pids("tide")) == 1


async def test_a_tool_that_stayed_can_be_called_in_a_turn_without_the_word(sea: Sea) -> None:
    sea.script("Noted.", calling("mcp__tide__ask", what="hello"), "It says hello.")
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
        await app.ask("Ask it to greet me.", session="chat")

    assert results(sea.model.requests[-1]) == ["tide says hello"]


async def test_of_several_servers_each_starts_at_its_word_and_all_stay_in_one_order(sea: Sea) -> None:
    sea.add_skill("wind")
    sea.add_skill("moon")
    async with sea.app() as app:
        for text in (
            "The wind?",
            "Thanks.",
            "The tide?",
            "Thanks.",
            "The wind, then the tide.",
            "wind",
            "Bye.",
        ):
            await app.ask(text, session="chat")

    assert sea.whys() == ["start", "", "tools", "", "", "", ""]
    assert [sorted(sea.tools(at)) for at in range(7)] == [WIND] * 2 + [TIDE + WIND] * 5
    for at in (1, 3, 4, 5, 6):
        check_begins(sea.model.requests[at], sea.model.requests[at - 1])
    assert [len(sea.pids(name)) for name in ("wind", "tide", "moon")] == [1, 1, 0]


@pytest.mark.parametrize("end", ["killed", "crashed"])
async def test_a_server_that_dies_meanwhile_keeps_its_tools_and_is_started_by_the_next_call(
    sea: Sea, end: str
) -> None:
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
        [pid] = sea.pids("tide")
        if end == "killed":
            os.kill(pid, signal.SIGKILL)
        else:
            sea.script(calling("mcp__tide__crash"), "It ended.")
            await app.ask("End it.", session="chat")
        await app.ask("Thanks.", session="chat")
        assert len(sea.pids("tide")) == 1, "no message needs it"
        for _ in range(2):  # the first call may be the one that notices
            sea.script(calling("mcp__tide__ask", what="hello"), "Done.")
            await app.ask("Ask it.", session="chat")

    assert sea.whys() == ["start"] + [""] * (len(sea.model.requests) - 1)
    assert results(sea.model.requests[-1]) == ["tide says hello"]
    assert len(sea.pids("tide")) == 2


async def test_a_new_process_goes_on_in_the_epoch_and_starts_no_server_before_a_tool_is_called(
    sea: Sea,
) -> None:
    sea.add_skill("wind")
    async with sea.app() as app:
        await app.ask("When is the tide, and the wind?", session="chat")
    async with sea.app() as app:
        await app.ask("Thanks.", session="chat")
        assert [len(sea.pids(name)) for name in ("tide", "wind")] == [1, 1]
        sea.script(calling("mcp__wind__ask", what="hello"), "Done.")
        await app.ask("Ask it.", session="chat")
        await app.ask("Thanks.", session="chat")

    assert sea.whys() == ["start"] + [""] * 4
    for at in (1, 2, 4):
        check_begins(sea.model.requests[at], sea.model.requests[at - 1])
    assert results(sea.model.requests[3]) == ["wind says hello"]
    assert [len(sea.pids(name)) for name in ("tide", "wind")] == [1, 2]


@pytest.mark.parametrize("text", ["Thanks.", "The tide again."])
async def test_a_server_that_no_longer_starts_costs_its_calls_and_not_the_epoch(sea: Sea, text: str) -> None:
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
    (sea.home / "broken").touch()
    sea.script(calling("mcp__tide__ask", what="hello"), "It does not work.")
    async with sea.app() as app:
        await app.ask(text, session="chat")

    assert sea.whys() == ["start", "", ""]
    assert "no moon today" in results(sea.model.requests[-1])[0]
    check_begins(sea.model.requests[-1], sea.model.requests[0])


@pytest.mark.parametrize("server", ["deep.tide", "deep__tide", "t" * 60])
async def test_a_server_with_an_unusual_name_keeps_its_tools_too(home: Path, server: str) -> None:
    sea = Sea(home)
    sea.add_skill("wave", server=server)
    sea.add_skill("wind", server="deep")
    async with sea.app() as app:
        await app.ask("The wave?", session="chat")
        await app.ask("Thanks.", session="chat")
    async with sea.app() as app:
        await app.ask("Thanks again.", session="chat")

    assert len(sea.tools(0)) == 2
    assert sea.whys() == ["start", "", ""]
    check_begins(sea.model.requests[2], sea.model.requests[0])
    assert sea.pids("wind") == []


@pytest.mark.parametrize(("word", "process"), [("aaa", "first"), ("zzz", "second")])
async def test_of_two_skills_with_one_name_for_a_server_the_one_that_was_offered_is_called(
    home: Path, word: str, process: str
) -> None:
    sea = Sea(home)
    sea.add_skill("aaa", server="tide", process="first")
    sea.add_skill("zzz", server="tide", process="second")
    async with sea.app() as app:
        await app.ask(f"Now {word}.", session="chat")
        sea.script(calling("mcp__tide__ask", what="hello"), "Done.")
        await app.ask("Ask it.", session="chat")

    assert results(sea.model.requests[-1]) == [f"{process} says hello"]


async def test_a_skill_that_is_taken_away_takes_its_tools_with_it_and_begins_an_epoch(sea: Sea) -> None:
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
    (sea.home / "workspace" / "skills" / "tide" / "SKILL.md").unlink()
    async with sea.app() as app:
        await app.ask("Thanks.", session="chat")

    assert sea.tools() == []
    assert receipt_of(sea.model.requests[-1]).epoch_why


async def test_after_something_was_forgotten_the_tools_are_chosen_anew(sea: Sea) -> None:
    async with sea.app() as app:
        store = await app.store.get()
        await store.facts.set(ME, "city", "Porto")
        await app.ask("When is the tide?", session="chat")
        await store.facts.delete(ME, "city")
        await app.ask("Thanks.", session="chat")

    assert sea.tools() == []
    assert receipt_of(sea.model.requests[-1]).epoch == 2


async def test_another_session_is_not_offered_the_tools_of_this_one(sea: Sea) -> None:
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
        await app.ask("Hello.", session="other")

    assert sea.tools() == []


async def test_the_tools_stay_when_another_model_answers(sea: Sea) -> None:
    async with sea.app() as app:
        await app.ask("When is the tide?", session="chat")
    sea.model.info = small(30_000, "model-b")
    async with sea.app() as app:
        await app.ask("Thanks.", session="chat")

    assert sea.whys() == ["start", "model"]
    assert sea.tools() == TIDE


async def test_a_tool_that_only_reads_needs_no_consent_in_a_new_process_either(sea: Sea) -> None:
    for _ in range(2):
        async with sea.app() as app:
            sea.script(calling("mcp__tide__ask", what="hello"), "Done.")
            await app.ask("Ask the tide." if not sea.model.requests else "Ask it again.", session="chat")

    assert receipt_of(sea.model.requests[-1]).outside, "the answer of the server is text from outside"
    assert results(sea.model.requests[-1]) == ["tide says hello"]


async def test_a_tool_that_acts_is_not_called_in_a_new_process_without_consent(sea: Sea) -> None:
    sea.script(calling("mcp__tide__ask", what="hello"), "Done.")
    async with sea.app() as app:
        await app.ask("Ask the tide.", session="chat")
    sea.script(calling("mcp__tide__crash"), "Not done.")
    async with sea.app() as app:
        await app.ask("End it.", session="chat")

    assert results(sea.model.requests[-1])[0].startswith("not done: ")
