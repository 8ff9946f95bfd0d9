"""Claude Code as a provider, against a program that speaks its protocol, well and badly."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import weft
from fake_claude import FakeClaude, delta, install, result
from weft.config import Config
from weft.models import make_provider
from weft.providers.claude_code import ClaudeCode, ClaudeCodeSettings
from weft.types.reply import Done, TextDelta

CONTEXT = weft.Context(system_prompt="Be calm.", current_message="Where?")
TIDE = weft.McpServer(name="tide", command="npx", args=("-y", "tide"))
WITH_TIDE = weft.Context(current_message="Where?", mcp_servers=(TIDE,))


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClaude:
    return install(tmp_path, monkeypatch)


def provider(model: str = "", **settings: Any) -> ClaudeCode:
    return ClaudeCode(ClaudeCodeSettings(**settings), weft.ModelInfo(id=model, provider="claude_code"))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_an_answer_comes_in_parts_and_as_a_whole_with_its_cost(claude: FakeClaude) -> None:
    claude.says(
        {"type": "system", "subtype": "init", "model": "claude-x", "session_id": "s-1"},
        delta("At "),
        delta("sea."),
        {
            "type": "assistant",
            "message": {"model": "claude-x", "content": [{"type": "text", "text": "At sea."}]},
        },
        result("At sea."),
    )

    events = [event async for event in provider().stream(CONTEXT)]

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["At ", "sea."]
    assert isinstance(events[-1], Done)
    reply = events[-1].reply
    assert (reply.text, reply.model, reply.stop_reason) == ("At sea.", "claude-x", "end")
    assert reply.usage == weft.Usage(input_tokens=105, output_tokens=7, cached_tokens=100)
    assert reply.provider_data == {"provider": "claude_code", "session_id": "s-1", "total_cost_usd": 0.01}


async def test_the_command_line_names_model_and_budget_only_where_they_are_set(claude: FakeClaude) -> None:
    await provider().complete(CONTEXT)
    await provider("opus", max_budget_usd=0.5).complete(CONTEXT)
    await provider("opus").complete(weft.Context(current_message="Where?", model="haiku"))

    first, second, third = (call["args"] for call in claude.calls())
    assert first == [
        "-p",
        CONTEXT.to_prompt_string(),
        *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
    ]
    assert second[6:] == ["--model", "opus", "--max-budget-usd", "0.5"]
    assert third[6:] == ["--model", "haiku"]


async def test_lines_that_nobody_knows_are_passed_over(claude: FakeClaude) -> None:
    claude.says(
        "npm notice a new version is there",
        "{broken",
        "[]",
        "null",
        {"type": "stream_event", "event": None},
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": []}},
        {"type": "assistant", "message": {"content": "odd"}},
        {"type": "novelty"},
        delta("of a helper", parent_tool_use_id="t"),
        delta("At sea."),
        result("At sea."),
    )

    events = [event async for event in provider().stream(CONTEXT)]

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["At sea."]


async def test_texts_before_and_after_a_tool_are_apart_and_the_reply_is_the_last(claude: FakeClaude) -> None:
    start = {"type": "stream_event", "event": {"type": "message_start", "message": {}}}
    claude.says(start, delta("I look."), start, delta("At sea."), result("At sea."))

    events = [event async for event in provider().stream(CONTEXT)]

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I look.\n\nAt sea."
    assert isinstance(events[-1], Done)
    assert events[-1].reply.text == "At sea."


async def test_whole_messages_do_where_nothing_comes_in_parts(claude: FakeClaude) -> None:
    claude.says(
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "At sea."}]}}, result("")
    )

    events = [event async for event in provider().stream(CONTEXT)]

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["At sea."]
    assert isinstance(events[-1], Done)
    assert events[-1].reply.text == "At sea."


async def test_a_very_long_line_is_read_whole(claude: FakeClaude) -> None:
    text = "x" * 3_000_000
    claude.says(result(text))

    assert (await provider().complete(CONTEXT)).text == text


@pytest.mark.parametrize(
    ("lines", "more", "says"),
    [
        ((), {}, "broke off before its end: ask again"),
        ((delta("At"),), {}, "broke off before its end: ask again"),
        ((), {"code": 3, "stderr": "no\nmoon.\n"}, "broke off before its end (code 3), saying: no moon: ask"),
        ((result("Not today.", is_error=True),), {"code": 1}, "could not answer: Not today: ask again"),
        ((result("Please run /login", is_error=True),), {}, "start `claude` in a terminal and log in"),
        ((result("", subtype="error_max_budget_usd"),), {}, "raise `claude_code.max_budget_usd`"),
        ((result("", subtype="error_during_execution", errors=["a", "b"]),), {}, "could not answer: a; b: "),
        ((result("", is_error=True),), {}, "it did not say why"),
    ],
)
async def test_what_goes_wrong_is_one_sentence_with_a_remedy(
    claude: FakeClaude, lines: tuple[Any, ...], more: dict[str, Any], says: str
) -> None:
    claude.says(*lines, **more)

    with pytest.raises(weft.ProviderError) as caught:
        await provider().complete(WITH_TIDE)

    assert says in str(caught.value)
    assert not claude.settings.parent.exists()


async def test_complaints_are_cut_short_and_hold_no_key(claude: FakeClaude) -> None:
    key = "ghp_" + "abcdEFGH1234567890abcdEFGH12345678"
    claude.says(stderr="x" * 1000 + f" the key {key} is wrong", code=1)

    with pytest.raises(weft.ProviderError) as caught:
        await provider().complete(CONTEXT)

    assert "the key *** is wrong" in str(caught.value)
    assert len(str(caught.value)) < 500


async def test_a_missing_program_and_a_missing_folder_are_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(weft.ProviderError, match=r"no command 'weft-none': install Claude Code with `npm"):
        await provider(command="weft-none").complete(CONTEXT)
    with pytest.raises(weft.ProviderError, match=r"set `claude_code\.working_dir`"):
        await provider(working_dir=str(tmp_path / "none")).complete(CONTEXT)
    broken = tmp_path / "broken"
    broken.write_text("\0")
    broken.chmod(0o755)
    with pytest.raises(weft.ProviderError, match="cannot be started"):
        await provider(command=str(broken)).complete(CONTEXT)
    with pytest.raises(weft.EmptyMessage):
        await provider().complete(weft.Context(current_message=" "))


async def test_too_long_a_call_ends_with_all_that_it_started(claude: FakeClaude) -> None:
    claude.says(delta("At "), spawn=True, wait_for="never", then=[])

    with pytest.raises(
        weft.ProviderError, match=r"within 2 seconds: ask for less, or raise `claude_code\.sec"
    ):
        await provider(seconds=2).complete(WITH_TIDE)

    assert not runs(claude.call["pid"])
    await until(lambda: not runs(claude.call["child"]))
    assert not claude.settings.exists()


async def test_who_stops_listening_ends_the_call(claude: FakeClaude) -> None:
    claude.says(delta("At "), spawn=True, wait_for="never", then=[])
    asked = asyncio.create_task(provider().complete(WITH_TIDE))
    await until(lambda: bool(claude.calls()))

    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked

    assert asked.cancelled()
    await until(lambda: not runs(claude.call["pid"]) and not runs(claude.call["child"]))
    assert not claude.settings.exists()


async def test_a_call_that_is_cancelled_while_its_process_starts_leaves_nothing_behind(
    claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude.says(delta("At "), spawn=True, wait_for="never", then=[])
    start = asyncio.create_subprocess_exec

    async def slow(*args: Any, **options: Any) -> Any:
        process = await start(*args, **options)
        await until(lambda: bool(claude.calls()))
        asked.cancel()
        await asyncio.sleep(0)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    asked = asyncio.create_task(provider().complete(WITH_TIDE))
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(asked, 30)

    assert asked.cancelled()
    await until(lambda: not runs(claude.call["pid"]) and not runs(claude.call["child"]))


async def test_closing_ends_the_calls_that_are_under_way(claude: FakeClaude) -> None:
    claude.says(delta("At "), wait_for="never", then=[])
    asking = provider()
    asked = asyncio.create_task(asking.complete(CONTEXT))
    await until(lambda: bool(claude.calls()))

    await asking.close()

    with pytest.raises(weft.ProviderError, match="was closed before it had answered"):
        await asked
    assert not runs(claude.call["pid"])
    with pytest.raises(weft.ProviderError, match="was closed: connect again"):
        await asking.complete(CONTEXT)


async def test_what_is_left_running_after_an_answer_is_ended(claude: FakeClaude) -> None:
    claude.says(result("At sea."), spawn=True)

    assert (await provider().complete(CONTEXT)).text == "At sea."
    await until(lambda: not runs(claude.call["child"]))


async def test_the_environment_passes_through_but_not_the_mark_of_an_outer_session(
    claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    await provider().complete(CONTEXT)

    assert not {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"} & set(claude.call["environment"])
    assert claude.call["environment"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"


async def test_keys_of_others_do_not_reach_it(claude: FakeClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "WEFT_TOKEN"):
        monkeypatch.setenv(name, "hidden")

    await provider().complete(CONTEXT)

    assert "hidden" not in claude.call["environment"].values()


@pytest.mark.parametrize("name", ["", "a b", "a*", "ä", "a/b", "a,b", "a\n"])
async def test_a_server_whose_name_could_be_something_else_is_refused(claude: FakeClaude, name: str) -> None:
    odd = weft.Context(current_message="Where?", mcp_servers=(weft.McpServer(name=name, command="x"),))

    with pytest.raises(weft.ProviderError, match="cannot name an MCP server"):
        await provider().complete(odd)

    assert claude.calls() == []


async def test_a_prompt_with_a_zero_byte_or_half_a_character_goes_through(claude: FakeClaude) -> None:
    await provider().complete(weft.Context(current_message="a\0b"))
    await provider().complete(weft.Context(current_message="a\ud800b"))

    assert [call["stdin"] for call in claude.calls()] == ["[User]\na\0b", ""]
    assert claude.calls()[1]["args"][1] == "[User]\na?b"


async def test_the_users_settings_come_back_byte_for_byte(claude: FakeClaude) -> None:
    before = b'{"permissions":  {"allow": ["Bash(ls)"]},\r\n "mcpServers": {"own": {"command": "own"}}}\n\n'
    claude.settings.parent.mkdir()
    claude.settings.write_bytes(before)
    claude.settings.chmod(0o640)

    await provider().complete(WITH_TIDE)

    during = json.loads(claude.call["settings"])
    assert during == {
        "permissions": {"allow": ["Bash(ls)"]},
        "mcpServers": {"own": {"command": "own"}, "tide": {"command": "npx", "args": ["-y", "tide"]}},
    }
    assert claude.settings.read_bytes() == before
    assert claude.settings.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in claude.settings.parent.iterdir()] == ["settings.local.json"]


@pytest.mark.parametrize("before", [b"not json", b"[]", b'{"mcpServers": 5}'])
async def test_settings_that_cannot_be_read_stay_and_the_call_works(
    claude: FakeClaude, before: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    claude.settings.parent.mkdir()
    claude.settings.write_bytes(before)

    assert (await provider().complete(WITH_TIDE)).text == "At sea."

    assert claude.settings.read_bytes() == before
    assert "is left as it is" in caplog.text


async def test_two_calls_at_once_share_the_file_and_the_last_one_tidies_up(claude: FakeClaude) -> None:
    other = weft.Context(current_message="?", mcp_servers=(weft.McpServer(name="moon", command="m"),))
    claude.says(wait_for="one", then=[result("one")])
    one = asyncio.create_task(provider().complete(WITH_TIDE))
    await until(lambda: len(claude.calls()) == 1)
    claude.says(wait_for="two", then=[result("two")])
    two = asyncio.create_task(provider().complete(other))
    await until(lambda: len(claude.calls()) == 2)

    assert set(json.loads(claude.calls()[1]["settings"])["mcpServers"]) == {"tide", "moon"}
    claude.go_on("one")
    assert (await one).text == "one"
    assert set(json.loads(claude.settings.read_text())["mcpServers"]) == {"moon"}
    claude.go_on("two")
    assert (await two).text == "two"
    assert not claude.settings.parent.exists()


async def test_what_somebody_else_writes_meanwhile_stays(claude: FakeClaude) -> None:
    claude.settings.parent.mkdir()
    claude.settings.write_text('{"mcpServers": {"tide": {"command": "mine"}}}')
    claude.says(wait_for="now", then=[result("At sea.")])
    asked = asyncio.create_task(provider().complete(WITH_TIDE))
    await until(lambda: bool(claude.calls()))
    changed = json.loads(claude.settings.read_text()) | {"permissions": {"allow": ["Read"]}}
    claude.settings.write_text(json.dumps(changed))

    claude.go_on("now")
    await asked

    assert json.loads(claude.settings.read_text()) == {
        "permissions": {"allow": ["Read"]},
        "mcpServers": {"tide": {"command": "mine"}},
    }


async def test_the_folder_can_be_set_and_no_file_is_written_without_servers(
    claude: FakeClaude, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    await provider(working_dir=str(elsewhere)).complete(CONTEXT)
    await provider(working_dir=str(elsewhere)).complete(WITH_TIDE)

    first, second = claude.calls()
    assert (first["folder"], first["settings"]) == (str(elsewhere), None)
    assert json.loads(second["settings"])["mcpServers"]["tide"]["command"] == "npx"
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "window"), [(None, 200_000), ("sonnet", 200_000), ("claude-sonnet-5", 1_000_000)]
)
def test_its_own_names_of_models_have_the_window_of_a_claude(model: str | None, window: int) -> None:
    assert make_provider("claude_code", Config(model=model), {}).info.max_tokens == window
