"""A day of miniclaw: its own folder below HOME, seven layers on the wire, 4000 tokens, and session files."""

import json
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from days import Home, Server, calls, said, tools_of, write
from fake_telegram import TOKEN, FakeTelegram
from programs import run_weft
from weft.testing import LoopbackVendor

SOUL, AGENTS = "I am Claw, a cat.", "Ask first.\n\nThen act."
TOOLS = "## say\n\nSays a text again. Parameters: text (string).\n\nExample: say(text='meow')"
HEADER = "# Long-term memory"
ENTRIES = [f"- Fact {number}: {'the sea is wide and deep and very blue ' * 2}." for number in range(24)]
CAT = "- The cat Mia sleeps on the boat."
SAY = {
    "tools": [
        {
            "name": "say",
            "description": "Says it again.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "What to say."}},
                "required": ["text"],
            },
        }
    ],
    "allowlist": {"echo": [""]},
    "execution": [
        {
            "tool": "say",
            "binary": "echo",
            "subcommand": "",
            "args": [{"param": "text", "kind": "positional"}],
        }
    ],
}


@dataclass
class Day:
    """What happened: requests by their names."""

    home: Home
    telegram: FakeTelegram
    requests: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.home.path.parent / ".miniclaw" / "workspace"

    def write(self, text: str) -> str:
        """Write to the bot. Returns what it says to it."""
        before = len(self.telegram.sent)
        self.telegram.write(text)
        return self.telegram.wait(before + 1)[-1]

    def ask(self, name: str, text: str) -> None:
        """Write a message that the model answers. Its first request is remembered by this name."""
        at = len(self.home.payloads)
        self.write(text)
        self.requests[name] = self.home.payloads[at]


def skill(workspace: Path, name: str, head: str, body: str = "A body.") -> Path:
    return write(workspace / "skills" / name / "SKILL.md", f"---\n{head}---\n\n{body}\n").parent


def furnish(workspace: Path) -> None:
    write(workspace / "SOUL.md", f"\n{SOUL}\n\n")
    write(workspace / "AGENTS.md", f"{AGENTS}\n")
    write(workspace / "TOOLS.md", f"{TOOLS}\n")
    memories = [*ENTRIES[:3], CAT, *ENTRIES[3:]]
    write(workspace / "memory" / "MEMORY.md", "\n".join([HEADER, "", *memories]) + "\n")
    echo = skill(workspace, "echo", "name: echo\ndescription: Says things again.\n")
    write(echo / "tools.json", json.dumps(SAY))
    skill(workspace, "notes", "name: notes\ndescription: Writes notes.\n", "The whole secret manual.")
    skill(workspace, "broken", "name: [broken\n")


SESSION: dict[str, Any] = {
    "session_id": "telegram_9",
    "channel": "telegram",
    "chat_id": "9",
    "created_at": "2026-11-01T08:00:00Z",
    "last_accessed": "2026-11-01T08:00:03Z",
    "messages": [
        {"role": "user", "content": "When is the tide?", "timestamp": "2026-11-01T08:00:00Z"},
        {
            "role": "assistant",
            "content": "",
            "timestamp": "2026-11-01T08:00:01Z",
            "tool_calls": [{"id": "c1", "name": "tide", "arguments": {"harbor": "Faro"}}],
        },
        {"role": "tool", "content": "at six", "timestamp": "2026-11-01T08:00:02Z", "tool_call_id": "c1"},
        {"role": "assistant", "content": "At six.", "timestamp": "2026-11-01T08:00:03Z"},
    ],
}


def first_day(day: Day, server: Server) -> None:
    day.ask("first", "Where is the cat Mia?")
    day.ask("tools", "Say meow.")
    day.ask("after tools", "Thank you.")
    write(day.workspace / "SOUL.md", "I am Paw.")
    write(day.workspace / "TOOLS.md", "Other tools.")
    write(day.workspace / "memory" / "MEMORY.md", "- A new memory.")
    skill(day.workspace, "tides", "name: tides\n", "Knows the tides.\n\nAnd more.")
    day.ask("after changes", "Who are you?")
    day.notes["reload"] = day.write("/reload")
    day.ask("after reload", "And your tools?")
    furnish(day.workspace)
    for number in range(30):
        day.ask(f"filler {number}", f"Filler {number}.")
    for number in range(9):
        day.ask(f"long {number}", f"Long {number} " + "x" * 1600)
    day.ask("crowded", "The cat Mia " + "y" * 14200)
    day.ask("too large", "The cat Mia " + "z" * 30000)
    day.notes["log"] = server.stop()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    base = tmp_path_factory.mktemp("miniclaw")
    fillers = ["Fine."] * 60
    script: list[str | weft.Reply] = ["On the boat.", calls("say", text="meow"), "Meow.", *fillers]
    with LoopbackVendor("openai", script) as vendor, FakeTelegram() as telegram:
        day = Day(Home(base / "weft", vendor, (("TELEGRAM_BOT_TOKEN", TOKEN),)), telegram)
        furnish(day.workspace)
        write(
            day.home.path / "config.toml",
            f'recipe = "miniclaw"\ntime_zone = "UTC"\n[telegram]\napi_url = "{telegram.url}"\n'
            'allowed = ["7"]\npoll_seconds = 2\n[learn]\nenabled = false\n',
        )
        day.home.run("people", "link", "telegram:7", "owner")
        with day.home.serving("--log-level", "debug", "--log-format", "json") as server:
            first_day(day, server)
        day.home.run("sessions", "export", "telegram_7", str(base / "out.json"), "--format", "miniclaw")
        day.notes["exported"] = json.loads((base / "out.json").read_text("utf-8"))
        yield day


def layers(payload: Any) -> list[str]:
    return [text for role, text in said(payload) if role == "system"]


def spoken(payload: Any) -> list[tuple[str, str]]:
    return [(role, text) for role, text in said(payload) if role != "system"]


def tokens(payload: Any) -> int:
    return sum(len(text) // 4 for _, text in said(payload))


def fillers(first: int, last: int) -> list[tuple[str, str]]:
    pairs = [(("user", f"Filler {number}."), ("assistant", "Fine.")) for number in range(first, last)]
    return [message for pair in pairs for message in pair]


def long(number: int) -> str:
    return f"Long {number} " + "x" * 1600


# --- the seven layers


def test_M1_M2_M3_M13_M20_M33_M34_seven_layers_are_messages_in_this_order(day: Day) -> None:
    payload = day.requests["after tools"]
    system, bootstrap, memory, skills, tools = layers(payload)

    assert [role for role, _ in said(payload)] == ["system"] * 5 + [
        "user", "assistant", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert system == f"{SOUL}\n\n{AGENTS}"
    assert bootstrap.startswith("Current date and time: ")
    assert memory.startswith("Relevant memories:\n- ")
    assert skills.startswith("Available skills:\n- ")
    assert tools == f"Available tools:\n{TOOLS}"
    assert said(payload)[-1] == ("user", "Thank you.")
    assert all(set(message) == {"role", "content"} for message in payload["messages"][:5])


def test_M5_the_bootstrap_has_time_version_tools_workspace_capabilities_and_environment(day: Day) -> None:
    payload = day.requests["first"]
    clock, version, tools, workspace, capabilities, environment = layers(payload)[1].split("\n")

    days = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
    stamp = rf"Current date and time: \d{{4}}-\d\d-\d\d \d\d:\d\d \(({days})\) UTC\+00:00"
    assert re.fullmatch(stamp, clock)
    assert version == f"Agent version: weft {weft.__version__}"
    assert (tools, tools_of(payload)) == ("Available tools: 1", ["say"])
    assert workspace == f"Workspace: {day.workspace}"
    assert capabilities == "Capabilities: memory, skills"
    python = ".".join(platform.python_version_tuple()[:2])
    assert environment == f"Environment: {platform.system()}, Python {python}, telegram"


def test_M6_M7_M37_20_memories_are_shown_the_relevant_first_and_then_the_newest(day: Day) -> None:
    newest_first = ENTRIES[::-1]

    assert layers(day.requests["first"])[2] == "\n".join(["Relevant memories:", CAT, *newest_first[:19]])
    assert layers(day.requests["tools"])[2] == "\n".join(["Relevant memories:", *newest_first[:20]])


def test_M8_skills_are_described_in_a_line_and_an_invalid_one_is_skipped_with_a_warning(day: Day) -> None:
    shown = "Available skills:\n- echo: Says things again.\n- notes: Writes notes."

    assert layers(day.requests["first"])[3] == shown
    assert layers(day.requests["after changes"])[3] == f"{shown}\n- tides: Knows the tides."
    assert "secret manual" not in json.dumps(day.home.payloads)
    warnings = [line for line in log_of(day) if line["level"] == "warning"]
    assert any(line["path"].endswith("broken/SKILL.md") for line in warnings if "path" in line)


def test_M22_files_are_read_fresh_and_only_the_tools_are_cached_until_a_reload(day: Day) -> None:
    system, _, memory, _, tools = layers(day.requests["after changes"])

    assert (system, memory) == (f"I am Paw.\n\n{AGENTS}", "Relevant memories:\n- A new memory.")
    assert tools == f"Available tools:\n{TOOLS}"
    assert layers(day.requests["after reload"])[4] == "Available tools:\nOther tools."


# --- history


def test_M11_M31_calls_and_results_stay_in_the_history_with_their_roles(day: Day) -> None:
    asked, call, result, answer = day.requests["after tools"]["messages"][7:11]

    assert asked == {"role": "user", "content": "Say meow."}
    assert [(one["id"], one["function"]["name"]) for one in call["tool_calls"]] == [("call_1", "say")]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"text": "meow"}
    assert (result["tool_call_id"], result["content"].strip()) == ("call_1", "meow")
    assert answer == {"role": "assistant", "content": "Meow."}


def test_M11_the_50_most_recent_messages_are_shown_in_order(day: Day) -> None:
    assert spoken(day.requests["filler 29"]) == [*fillers(4, 29), ("user", "Filler 29.")]


def test_M13_M14_M15_the_oldest_messages_go_first_until_4000_tokens_are_left(day: Day) -> None:
    payload = day.requests["long 8"]
    everything = fillers(0, 30)
    for number in range(8):
        everything += [("user", long(number)), ("assistant", "Fine.")]
    *shown, last = spoken(payload)

    assert last == ("user", long(8))
    assert 0 < len(shown) < 16
    assert shown == everything[-len(shown) :]
    dropped = everything[-len(shown) - 1]
    assert tokens(payload) <= 4000 < tokens(payload) + len(dropped[1]) // 4
    assert len(layers(payload)) == 5


def test_M16_memories_give_way_after_the_history_and_the_least_relevant_first(day: Day) -> None:
    payload = day.requests["crowded"]
    system, _, memory, *_ = layers(payload)
    shown = memory.split("\n")[1:]

    assert system == f"{SOUL}\n\n{AGENTS}"
    assert spoken(payload) == [("user", "The cat Mia " + "y" * 14200)], "no history is left"
    assert 1 < len(shown) < 20
    assert shown == [CAT, *ENTRIES[::-1]][: len(shown)]
    assert tokens(payload) <= 4000 < tokens(payload) + 2 * (len(ENTRIES[0]) // 4 + 25)


def test_M16_M17_M19_what_is_protected_is_sent_even_if_it_is_too_large(day: Day) -> None:
    payload = day.requests["too large"]
    system, bootstrap, *_ = layers(payload)

    assert system == f"{SOUL}\n\n{AGENTS}"
    assert bootstrap.startswith("Current date and time: ")
    assert spoken(payload) == [("user", "The cat Mia " + "z" * 30000)]
    assert "Relevant memories:" not in json.dumps(payload)
    assert day.telegram.sent[-1]["text"] == "Fine.", "no error"


def test_M18_M29_M36_sizes_and_what_was_left_out_are_logged_by_layer(day: Day) -> None:
    lines = log_of(day)

    sizes = [line for line in lines if line["event"].startswith("context built: ")]
    assert len(sizes) == len(day.requests)
    assert sizes[0]["layers"]["memory_file"] > 0
    left_out = [line for line in lines if line["event"].startswith("left out")]
    assert any(line["layer"] == "history" and line["tokens"] > 1000 for line in left_out)
    assert any(line.get("layer") == "skills" and line.get("file_count") == 3 for line in lines)
    assert any(re.search(r"has \d+ tokens and the limit is 4000", line["event"]) for line in lines)


def log_of(day: Day) -> list[dict[str, Any]]:
    return [json.loads(line) for line in day.notes["log"] if line.startswith("{")]


# --- sessions


def test_M30_a_session_is_named_by_channel_and_chat_and_exported_with_its_newest_50(day: Day) -> None:
    exported = day.notes["exported"]

    assert (exported["channel"], exported["chat_id"]) == ("telegram", "7")
    assert len(exported["messages"]) == 50
    assert [(one["role"], one["content"]) for one in exported["messages"][-2:]] == [
        ("user", "The cat Mia " + "z" * 30000),
        ("assistant", "Fine."),
    ]
    assert all(one["timestamp"] for one in exported["messages"])


def test_M11_M30_a_session_file_is_imported_goes_on_and_is_exported_again(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good.json", json.dumps(SESSION)), write(tmp_path / "bad.json", '{"mess')
    with LoopbackVendor("openai", ["Still at six."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        done = run_weft(home.environ, "sessions", "import", str(bad), str(good))
        home.chat("And now?", words=("-r", "miniclaw", "-s", "telegram_9"))
        home.run("sessions", "export", "telegram_9", str(tmp_path / "out.json"), "--format", "miniclaw")
    shown = [message for message in home.payloads[0]["messages"] if message["role"] != "system"]
    exported = json.loads((tmp_path / "out.json").read_text("utf-8"))["messages"]

    assert "bad" in done.stderr
    assert bad.read_text("utf-8") == '{"mess', "nothing of it is lost"
    assert [message["role"] for message in shown] == ["user", "assistant", "tool", "assistant", "user"]
    assert shown[1]["tool_calls"][0]["function"]["name"] == "tide"
    assert (shown[2]["tool_call_id"], shown[2]["content"]) == ("c1", "at six")
    for before, after in zip(SESSION["messages"], exported, strict=False):
        role = "tool_result" if before["role"] == "tool" else before["role"]
        assert (after["role"], after["content"]) == (role, before["content"])
        assert after.get("tool_call_id") == before.get("tool_call_id")
    [call] = exported[1]["tool_calls"]
    assert (call["id"], call["name"]) == ("c1", "tide")
    assert "Faro" in json.dumps(call["arguments"])
    assert [(one["role"], one["content"]) for one in exported[4:]] == [
        ("user", "And now?"),
        ("assistant", "Still at six."),
    ]


def test_M12_a_message_with_an_unknown_role_is_the_users(tmp_path: Path) -> None:
    head = {"kind": "weft-session", "id": "old-session", "channel": "terminal", "conversation": "old"}
    lines = [head, {"role": "user", "content": "Hi."}, {"role": "robot", "content": "Beep."}]
    file = write(tmp_path / "old.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    with LoopbackVendor("openai", ["Yes."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        home.run("sessions", "import", str(file))
        home.chat("And now?", words=("-r", "miniclaw", "-s", "old-session"))

    assert spoken(home.payloads[0]) == [("user", "Hi."), ("user", "Beep."), ("user", "And now?")]


# --- other workspaces


@pytest.mark.parametrize(
    ("files", "system"),
    [
        ((), "You are miniclaw, a helpful AI assistant."),
        (("SOUL.md",), f"{SOUL}\n\nBe helpful, accurate and concise."),
        (("AGENTS.md",), f"You are miniclaw, a helpful AI assistant.\n\n{AGENTS}"),
    ],
    ids=["nothing", "only SOUL.md", "only AGENTS.md"],
)
def test_M4_M6_M8_M25_missing_files_have_defaults_or_no_layer(
    tmp_path: Path, files: tuple[str, ...], system: str
) -> None:
    workspace = tmp_path / "place"
    workspace.mkdir()
    for name in files:
        write(workspace / name, {"SOUL.md": SOUL, "AGENTS.md": AGENTS}[name])
    with LoopbackVendor("openai", ["Hello."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        done = home.run("-v", "ask", "-r", "miniclaw", "-w", str(workspace), "Hi")
    shown = layers(home.payloads[0])

    assert shown[0] == system
    assert [text.partition(":")[0] for text in shown[1:]] == ["Current date and time", "Available tools"]
    missing = {"SOUL.md", "AGENTS.md", "TOOLS.md", "MEMORY.md"} - set(files)
    assert all(f"{name} is missing" in done.stderr for name in missing)


def test_M9_M10_without_tools_md_each_tool_has_its_parameters_and_an_example(
    tmp_path: Path,
) -> None:
    furnish(tmp_path / "place")
    (tmp_path / "place" / "TOOLS.md").unlink()
    with LoopbackVendor("openai", ["Hello."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        home.run("ask", "-r", "miniclaw", "-w", str(tmp_path / "place"), "Hi")

    assert layers(home.payloads[0])[4] == (
        "Available tools:\n- say: Says it again.\n  - text (string, required): What to say.\n"
        '  - example: {"name": "say", "arguments": {"text": "text"}}'
    )


def test_M24_M35_large_files_are_read_and_files_outside_are_not(tmp_path: Path) -> None:
    workspace = tmp_path / "place"
    wide = "\n".join(f"- Line {number} of the long sea log." for number in range(60_000))
    memory = write(workspace / "memory" / "MEMORY.md", f"- The harbor master is Zerzura.\n{wide}\n")
    write(tmp_path / "outside.md", "A secret of somebody else.")
    (workspace / "SOUL.md").symlink_to(tmp_path / "outside.md")
    with LoopbackVendor("openai", ["Zerzura."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        words = ("ask", "-r", "miniclaw", "-w", str(workspace), "Who is the harbor master?")
        done = home.run(*words)
    shown = layers(home.payloads[0])

    assert memory.stat().st_size > 1_000_000
    assert shown[2].startswith("Relevant memories:\n- The harbor master is Zerzura.\n- Line ")
    assert "A secret" not in json.dumps(home.payloads)
    assert "SOUL.md leads out of its folder" in done.stderr


def test_M26_M27_limits_and_the_workspace_are_settings_of_a_recipe(tmp_path: Path) -> None:
    furnish(tmp_path / "place")
    with LoopbackVendor("openai", ["A.", "B.", "C."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        recipe = home.run("recipes", "show", "miniclaw").stdout
        for key, value in (("max_tokens", 900), ("max_messages", 2), ("max_entries", 3)):
            recipe = re.sub(rf"^{key} = .*", f"{key} = {value}", recipe, flags=re.MULTILINE)
        path = f"workspace_path = {json.dumps(str(tmp_path / 'place'))}\n"
        file = write(tmp_path / "mine.toml", path + recipe)
        home.chat("a", "b", "Mia " + "c" * 2800, words=("-r", str(file)))
        wrong = run_weft(home.environ, "ask", "-r", "miniclaw", "-w", str(tmp_path / "nowhere"), "Hi")
    second, third = home.payloads[1:]

    assert layers(second)[0] == f"{SOUL}\n\n{AGENTS}"
    assert layers(second)[2] == "\n".join(["Relevant memories:", *ENTRIES[::-1][:3]])
    assert spoken(second) == [("user", "a"), ("assistant", "A."), ("user", "b")]
    assert [role for role, _ in spoken(third)][-1] == "user"
    assert len(spoken(third)) <= 3
    assert tokens(third) <= 900
    assert (wrong.returncode, "nowhere" in wrong.stderr) == (2, True)
