"""Claude Code's command line: the servers' names, and where the prompt goes."""

import json
from pathlib import Path

import pytest

import weft
from fake_claude import FakeClaude, install
from weft.providers.claude_code import ClaudeCode, ClaudeCodeSettings

PROVIDER = weft.ModelInfo(provider="claude_code")
PLAYWRIGHT = weft.McpServer(name="playwright", command="npx", args=("@playwright/mcp", "--headless"))
TIDE = weft.McpServer(name="tide", command="tide-server")


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClaude:
    return install(tmp_path, monkeypatch)


async def ask(context: weft.Context) -> None:
    await ClaudeCode(ClaudeCodeSettings(), PROVIDER).complete(context)


async def test_O3_a_servers_name_is_its_key_in_the_settings_and_the_base_of_its_pattern(
    claude: FakeClaude,
) -> None:
    await ask(weft.Context(current_message="Look.", mcp_servers=(PLAYWRIGHT, TIDE)))

    args = claude.call["args"]
    allowed = [args[at + 1] for at, arg in enumerate(args) if arg == "--allowedTools"]
    servers = {
        "playwright": {"command": "npx", "args": ["@playwright/mcp", "--headless"]},
        "tide": {"command": "tide-server", "args": []},
    }
    assert json.loads(claude.call["settings"]) == {"mcpServers": servers}
    assert json.loads(args[args.index("--mcp-config") + 1]) == {"mcpServers": servers}
    assert allowed == ["mcp__playwright__*", "mcp__tide__*"]
    assert list(claude.work.iterdir()) == []


async def test_O3_without_servers_nothing_is_allowed_and_nothing_is_written(claude: FakeClaude) -> None:
    await ask(weft.Context(current_message="Look."))

    assert claude.call["settings"] is None
    assert not {"--allowedTools", "--mcp-config"} & set(claude.call["args"])


@pytest.mark.parametrize(("size", "as_argument"), [(131_071, True), (131_072, False), (400_000, False)])
@pytest.mark.parametrize("letter", ["x", "é"])
async def test_O30_the_flat_text_is_the_argument_of_p_or_standard_input_from_128_KiB_on(
    claude: FakeClaude, size: int, as_argument: bool, letter: str
) -> None:
    rest = size - len("[User]\n")
    wide = len(letter.encode())
    context = weft.Context(current_message=letter * (rest // wide) + "x" * (rest % wide))
    prompt = context.to_prompt_string()
    assert len(prompt.encode()) == size

    await ask(context)

    args, stdin = claude.call["args"], claude.call["stdin"]
    assert args[0] == "-p"
    assert (args[1] == prompt, stdin == prompt) == (as_argument, not as_argument)
    assert (prompt in args, stdin == "") == (as_argument, as_argument)
