"""MCP servers are guests: one that offers or sends too much loses that, and never the turn."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import ToolError
from weft.tools.base import Tool
from weft.tools.mcp import McpSettings, McpTools
from weft.tools.mcp_meter import MessageMeter
from weft.types.message import McpServer
from weft.workspace.skills import Skill, Skills

GREEDY = '''
"""A server that offers and sends more than anybody wants."""
import os, sys
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("greedy", log_level="CRITICAL")
WHAT = sys.argv[1]
OUT = os.dup(1)

@server.tool()
def send(chars: int) -> str:
    """Send so many characters."""
    return "x" * chars

@server.tool()
def fail(chars: int) -> str:
    """Fail with so many characters."""
    raise ToolError("password=hunter22x " + "x" * chars)

@server.tool()
def endless() -> str:
    """Write a line that does not end."""
    while True:
        os.write(OUT, b"x" * 65536)

if "described" in WHAT:
    server.add_tool(lambda: "", name="wordy", description="x" * 9000)
    server.add_tool(eval("lambda " + ", ".join(f"parameter_{n}='{'x' * 50}'" for n in range(100)) + ": ''"),
        name="strict", description="")
if "hinted" in WHAT:
    from mcp.types import ToolAnnotations
    for name, reads, is_open in (("look", True, False), ("browse", True, True), ("write", False, False)):
        hints = ToolAnnotations(read_only_hint=reads, open_world_hint=is_open)
        server.add_tool(lambda: "", name=name, description="", annotations=hints)
if "many" in WHAT:
    for n in range(130):
        server.add_tool(lambda: "", name=f"tool{n}", description="")
if "loud" in WHAT:
    os.write(1, b"x" * 10_000)
server.run()
'''
CALLER = weft.Caller(agent_id="weft")


@asynccontextmanager
async def greedy(tmp_path: Path, what: str = "", **settings: Any) -> AsyncIterator[McpTools]:
    script = tmp_path / "greedy.py"
    script.write_text(GREEDY, "utf-8")
    server = McpServer(name="greedy", command=sys.executable, args=(str(script), what))

    async def load() -> Skills:
        return Skills(usable=(Skill(name="greedy", description="", mcp_servers=(server,)),))

    source = McpTools(load, McpSettings(**settings))
    try:
        yield source
    finally:
        await source.close()


async def offered(source: McpTools) -> dict[str, Tool]:
    return {tool.name.removeprefix("mcp__greedy__"): tool for tool in await source.tools("")}


async def test_a_tool_with_too_long_a_description_or_schema_is_left_out_with_a_warning(
    tmp_path: Path,
) -> None:
    async with greedy(tmp_path, "described") as source:
        names = list(await offered(source))

        assert names == ["send", "fail", "endless"]
        assert source.warnings == (
            "The MCP server 'greedy' describes 'wordy', 'strict' in more than 8192 bytes: left out; "
            "shorten the description and the schema, or raise `mcp.max_tool_bytes`.",
        )


async def test_the_limit_of_a_description_is_a_setting(tmp_path: Path) -> None:
    async with greedy(tmp_path, "described", max_tool_bytes=100_000) as source:
        assert {"wordy", "strict"} <= set(await offered(source))
        assert source.warnings == ()


async def test_of_too_many_tools_the_first_are_offered_with_a_warning(tmp_path: Path) -> None:
    async with greedy(tmp_path, "many") as source:
        names = list(await offered(source))

        assert (len(names), names[-1]) == (128, "tool124")
        assert source.warnings == (
            "The MCP server 'greedy' offers more than 128 tools: 'tool125', 'tool126', 'tool127', 'tool128', "
            "'tool129' and all behind are left out; let it offer fewer, or raise `mcp.max_tools`.",
        )


async def test_the_turn_goes_on_and_its_receipt_names_the_server_the_tools_and_the_remedy(
    tmp_path: Path,
) -> None:
    async with greedy(tmp_path, "described many", max_tools=4) as source:
        registry = weft.ToolRegistry(sources=[source])
        offer = await registry.offered("hi")

    assert [definition.name for definition in offer.definitions] == [
        "mcp__greedy__send",
        "mcp__greedy__fail",
        "mcp__greedy__endless",
    ]
    assert len(offer.warnings) == 2
    assert all("'greedy'" in warning and "raise `mcp." in warning for warning in offer.warnings)


async def test_a_long_result_is_cut(tmp_path: Path) -> None:
    async with greedy(tmp_path, max_result_chars=10) as source:
        tools = await offered(source)
        assert await tools["send"].run({"chars": 10}, CALLER) == "x" * 10
        text = await tools["send"].run({"chars": 11}, CALLER)

    assert text == "x" * 10 + "\n[Cut: the server sent 11 characters, and 10 are used.]"


async def test_a_long_error_is_cut(tmp_path: Path) -> None:
    async with greedy(tmp_path, max_result_chars=100) as source:
        tools = await offered(source)
        with pytest.raises(ToolError) as failure:
            await tools["fail"].run({"chars": 100_000}, CALLER)

    assert len(str(failure.value)) == 100


@pytest.mark.parametrize("call", [("send", {"chars": 200_000}), ("endless", {})])
async def test_a_message_without_an_end_is_an_error_and_the_next_call_gets_a_fresh_server(
    tmp_path: Path, call: tuple[str, dict[str, Any]]
) -> None:
    async with greedy(tmp_path, max_message_bytes=100_000) as source:
        tools = await offered(source)
        name, arguments = call
        with pytest.raises(ToolError) as failure:
            await tools[name].run(arguments, CALLER)
        assert await tools["send"].run({"chars": 3}, CALLER) == "xxx"

    assert str(failure.value) == (
        "The MCP server 'greedy' sent a message of more than 100000 bytes or 6000 parts during the call of "
        f"{name!r}: ask for less, or raise `mcp.max_message_bytes`."
    )


async def test_a_server_that_sends_too_much_before_it_is_ready_costs_a_warning(tmp_path: Path) -> None:
    async with greedy(tmp_path, "loud", max_message_bytes=5_000) as source:
        assert await offered(source) == {}
        assert source.warnings == (
            "The MCP server 'greedy' sent a message of more than 5000 bytes or 6000 parts: "
            "let it list fewer tools, or raise `mcp.max_message_bytes`.",
        )


def test_the_length_of_a_message_is_counted_from_line_to_line() -> None:
    meter = MessageMeter(5)
    assert all(meter.count(part) for part in ("12345", "\n123", "45\n\n12345", "\n"))
    assert not meter.count("123456")
    assert not meter.count("\n")


async def test_only_a_tool_that_changes_nothing_and_reaches_nobody_is_free_after_text_from_outside(
    tmp_path: Path,
) -> None:
    async with greedy(tmp_path, "hinted") as tools:
        kinds = {tool.name.rpartition("__")[2]: tool.kind for tool in await tools.tools("go")}

    assert {name: kinds[name] for name in ("look", "browse", "write", "send")} == {
        "look": "read",
        "browse": "servers",
        "write": "servers",
        "send": "servers",
    }
