"""MCP servers belong to skills, and a message calls for them."""

import pytest

import weft
from weft.tools.mcp import McpTools
from weft.workspace.skills import Skill, Skills, parse_skill

BROWSER = """---
name: browser
description: Opens pages.
trigger: "browse|web page"
mcp:
  playwright: {command: npx, args: ["@playwright/mcp", "--headless"]}
---
Use the browser.
"""
PLAYWRIGHT = weft.McpServer(name="playwright", command="npx", args=("@playwright/mcp", "--headless"))


@pytest.mark.parametrize(
    ("message", "servers"),
    [
        ("Please browse to example.org", (PLAYWRIGHT,)),
        ("Show me that WEB PAGE again", (PLAYWRIGHT,)),
        ("good morning", ()),
        ("unbrowsed", ()),
    ],
)
def test_O4_servers_are_declared_by_skills_and_activated_by_the_message(
    message: str, servers: tuple[weft.McpServer, ...]
) -> None:
    skills = Skills(usable=(parse_skill(BROWSER, directory="browser"), Skill(name="plain")))

    assert skills.active_servers(message) == servers


async def test_O4_nothing_is_started_for_a_message_that_triggers_no_skill() -> None:
    never = weft.McpServer(name="never", command="/weft-no-such-command")

    async def load() -> Skills:
        return Skills(usable=(Skill(name="sea", trigger="tide", mcp_servers=(never,)),))

    source = McpTools(load)

    assert list(await source.tools("good morning")) == []
    assert not source._running
    await source.close()
