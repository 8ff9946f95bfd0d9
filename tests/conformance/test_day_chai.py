"""A day of Chai: its own folder, skills with real programs, Telegram chats and Ollama, all on loopback."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from days import Home, Server, calls, results, said, system_of, text_of, tools_of, write
from fake_telegram import TOKEN, FakeTelegram
from skill_programs import program, shell_program
from weft.testing import LoopbackVendor

FULL_INTRO = "You have access to the following skills. Use them when relevant."
COMPACT_INTRO = (
    "You have access to the following skills. Use the read_skill tool to load a skill's full documentation "
    "when it clearly applies to the user's request, before using that skill's tools."
)
NOTES = """
import json, sys
words = sys.argv[1:]
if words[0] == "fail":
    print("half done")
    sys.exit("the shelf is full")
print(f"  tag-{words[1]}  " if words[0] == "find" else json.dumps(words))
"""
TOOLS: dict[str, Any] = {
    "tools": [
        {
            "name": "note_add",
            "description": "Add a note.",
            "parameters": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "urgent": {"type": "boolean"}},
                "required": ["title"],
            },
        },
        {"name": "note_fail", "parameters": {"type": "object", "properties": {}}},
        {"name": "note_drop", "parameters": {"type": "object", "properties": {}}},
    ],
    "allowlist": {"notes": ["add", "find", "fail"]},
    "execution": [
        {
            "tool": "note_add",
            "binary": "notes",
            "subcommand": "add",
            "args": [
                {"param": "title", "kind": "positional"},
                {"param": "body", "kind": "flag", "flag": "--body", "normalizeNewlines": True},
                {
                    "param": "urgent",
                    "kind": "flagifboolean",
                    "flagIfTrue": "--urgent",
                    "flagIfFalse": "--calm",
                },
                {
                    "param": "folder",
                    "kind": "flag",
                    "flag": "--in",
                    "resolveCommand": {"script": "find.sh", "args": ["$param"]},
                },
                {
                    "param": "tag",
                    "kind": "flag",
                    "flag": "--tag",
                    "resolveCommand": {"binary": "notes", "subcommand": "find", "args": ["$param"]},
                },
            ],
        },
        {"tool": "note_fail", "binary": "notes", "subcommand": "fail", "args": []},
        {"tool": "note_drop", "binary": "notes", "subcommand": "drop", "args": []},
    ],
}
NOTES_BODY = "# notes\n\nUse note_add with a title.\n\n---\n\nA rule above, and a {brace}."
AGENTS = "Keep the light burning.\n\n- Be brief."


@dataclass
class Day:
    """What happened: requests by their names."""

    home: Home
    telegram: FakeTelegram
    requests: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def write(self, text: str, *, sender: int = 7, chat: int = 7) -> str:
        """Write to the bot. Returns what it says to it."""
        before = len(self.telegram.sent)
        self.telegram.write(text, sender=sender, chat=chat)
        return self.telegram.wait(before + 1)[-1]

    def ask(self, name: str, text: str, *, sender: int = 7, chat: int = 7) -> str:
        """Write a message that the model answers. Its requests are `name`, `name 2`, and so on."""
        at = len(self.home.payloads)
        reply = self.write(text, sender=sender, chat=chat)
        for number, payload in enumerate(self.home.payloads[at:], 1):
            self.requests[name if number == 1 else f"{name} {number}"] = payload
        return reply


def skill(folder: Path, name: str, body: str, description: str = "") -> Path:
    head = f"name: {name}\n" + (f"description: {description}\n" if description else "")
    return write(folder / name / "SKILL.md", f"---\n{head}---\n\n{body}\n").parent


def configure(day: Day, **skills: Any) -> None:
    base = day.home.path.parent
    folders = {"directory": str(base / "more"), "extraDirs": [str(base / "extra")], **skills}
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in folders.items())
    write(
        day.home.path / "config.toml",
        f'recipe = "chai"\n[telegram]\napi_url = "{day.telegram.url}"\nallowed = ["7", "8"]\n'
        f"poll_seconds = 2\n[learn]\nenabled = false\n[skills]\n{keys}",
    )


def furnish(base: Path) -> None:
    """Write the workspace, and a folder of programs."""
    workspace = base / ".chai" / "workspace"
    write(workspace / "AGENTS.md", f"\n  {AGENTS}\n\n")
    notes = skill(workspace / "skills", "notes", NOTES_BODY, "Keep notes.")
    write(notes / "tools.json", json.dumps(TOOLS))
    shell_program(notes / "scripts", "find.sh", '[ "$1" = inbox ] && echo " 2026/inbox "')
    skill(workspace / "skills", "tides", "Old tides.", "Old.")
    skill(base / "more", "birds", "Watch birds.")
    skill(base / "extra", "tides", "New tides.", "Know the tides.")
    program(base / "bin", "notes", NOTES)


def script() -> list[str | weft.Reply]:
    adds = [
        calls("note_add", "c1", title="Lamp", body="a\\nb", urgent=True, folder="inbox", tag="oil"),
        calls("note_add", "c2", title="Oil", folder="attic", urgent="no"),
        calls("note_add", "c3", body="no title"),
        calls("note_fail", "c4"),
        calls("note_drop", "c5"),
    ]
    endless = [calls("note_add", f"e{number}", title=f"Note {number}") for number in range(6)]
    read: list[str | weft.Reply] = [
        calls("note_add", "r1", title="too early"),
        calls("read_skill", "r2", skill_name="notes"),
        calls("read_skill", "r3", skill_name="nots"),
        calls("note_add", "r4", title="Wick", folder="inbox"),
        "Read.",
    ]
    fillers = [f"Filled {number}." for number in range(30)]
    return ["Hello.", *adds, "Noted.", "Still so.", "Hi.", "Other.", *fillers, "New.", *endless, *read]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    base = tmp_path_factory.mktemp("chai")
    furnish(base)
    path = f"{base / 'bin'}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "WEFT_MODEL": "llama3.1", "TELEGRAM_BOT_TOKEN": TOKEN}
    with LoopbackVendor("ollama", script()) as vendor, FakeTelegram() as telegram:
        day = Day(Home(base / "weft", vendor, tuple(variables.items())), telegram)
        configure(day, allowScripts=True)
        with day.home.serving() as server:
            first_day(day, server, base)
        yield day


def first_day(day: Day, server: Server, base: Path) -> None:
    day.ask("first", "hello")
    day.ask("tools", "Note the lamp.")
    workspace = base / ".chai" / "workspace"
    write(workspace / "AGENTS.md", "Put the light out.")
    skill(workspace / "skills", "notes", "Nothing.", "Forget notes.")
    day.ask("after a change", "Again?")
    day.ask("by another", "And me?", sender=8)
    day.ask("in another chat", "Where?", sender=7, chat=70)
    for number in range(30):
        day.ask(f"filler {number}", f"Filler {number}.", chat=70)
    day.notes["new"] = day.write("/NEW")
    day.ask("after new", "hello")
    day.notes["endless"] = day.ask("endless", "Note everything.")
    server.stop()
    configure(day, contextMode="readOnDemand", enforceRead=True)
    with day.home.serving() as again:
        day.ask("on demand", "Note the wick.")
        again.stop()
    for session in json.loads(day.home.run("sessions", "list", "--json").stdout):
        shown = json.loads(day.home.run("sessions", "show", session["id"], "--json").stdout)
        day.notes.setdefault("sessions", []).append(shown)


def results_of(payload: Any) -> list[str]:
    return [text.strip() for text in results(payload)]


def without_system(payload: Any) -> list[tuple[str, str]]:
    return said(payload)[1:]


# --- the system message and the tools


def test_C6_C7_C8_C9_C10_C11_C12_C15_C16_C25_the_first_message_brings_the_files_alone(
    day: Day,
) -> None:
    expected = (
        f"{AGENTS}\n\n{FULL_INTRO}\n\n"
        f"## notes\nKeep notes.\n\n{NOTES_BODY}\n\n"
        "## tides\nKnow the tides.\n\nNew tides.\n\n"
        "## birds\nWatch birds.\n\n"
    )

    assert said(day.requests["first"]) == [("system", expected), ("user", "hello")]


def test_C6_C20_C21_tools_are_those_of_tools_json_in_the_shape_of_the_document(day: Day) -> None:
    add, *plain = TOOLS["tools"]

    assert day.requests["first"]["tools"] == [
        {"type": "function", "function": add},
        *({"type": "function", "function": tool} for tool in plain),
    ]
    assert "description" not in day.requests["first"]["tools"][1]["function"]


def test_C5_C18_every_call_carries_the_system_message_first_the_history_and_the_tools(day: Day) -> None:
    before = [payload for name, payload in day.requests.items() if not name.startswith("on demand")]
    first = before[0]

    assert len(before) > 40
    for payload in before:
        assert said(payload)[0] == said(first)[0]
        assert [role for role, _ in said(payload)].count("system") == 1
        assert payload["tools"] == first["tools"]


def test_C4_C5_files_are_read_once_and_a_change_needs_a_restart(day: Day) -> None:
    changed, restarted = day.requests["after a change"], day.requests["on demand"]

    assert system_of(changed) == system_of(day.requests["first"])
    assert system_of(restarted).startswith("Put the light out.\n\n")
    assert "Forget notes." in system_of(restarted)


# --- turns and sessions


def test_C1_C17_C19_a_session_goes_on_with_calls_and_results_for_everybody_in_the_chat(day: Day) -> None:
    last = day.requests["tools 6"]
    shown = day.requests["after a change"]["messages"]

    assert shown[: len(last["messages"])] == last["messages"]
    assert without_system(day.requests["after a change"])[-2:] == [
        ("assistant", "Noted."),
        ("user", "Again?"),
    ]
    call, answer = shown[4:6]
    assert (call["role"], call["tool_calls"][0]["function"]["name"]) == ("assistant", "note_add")
    assert (answer["role"], answer["tool_name"]) == ("tool", "note_add")
    assert day.requests["by another"]["messages"][: len(shown)] == shown
    assert without_system(day.requests["in another chat"]) == [("user", "Where?")]


def test_C19_all_messages_of_a_session_are_sent(day: Day) -> None:
    expected = [("user", "Where?"), ("assistant", "Other.")]
    for number in range(29):
        expected += [("user", f"Filler {number}."), ("assistant", f"Filled {number}.")]

    assert without_system(day.requests["filler 29"]) == [*expected, ("user", "Filler 29.")]


def test_C2_new_binds_an_empty_session_whatever_its_case(day: Day) -> None:
    assert day.notes["new"].startswith("A new session begins.")
    assert "/NEW" not in json.dumps(day.home.payloads)
    assert without_system(day.requests["after new"]) == [("user", "hello")]
    assert without_system(day.requests["endless"]) == [
        ("user", "hello"),
        ("assistant", "New."),
        ("user", "Note everything."),
    ]


def test_C2_C18_each_session_is_stored_without_the_system_message(day: Day) -> None:
    roles = [{message["role"] for message in session} for session in day.notes["sessions"]]

    assert len(roles) == 3, "the chat before and after /new, and the other chat"
    assert {"user", "assistant", "tool"} in roles
    assert not any("system" in seen for seen in roles)


def test_C3_a_message_has_one_reply_and_at_most_5_rounds_of_tools(day: Day) -> None:
    asked = [name for name in day.requests if name.startswith("endless")]
    last = day.requests["endless 6"]

    assert len(asked) == 6
    assert [json.loads(text)[1] for text in results_of(last)] == [f"Note {number}" for number in range(5)]
    assert day.notes["endless"] == (
        "[The limit of 5 rounds of tool calls was reached before there was an answer.]"
    )
    questions = 1 + 1 + 3 + 30 + 1 + 1 + 1 + 1
    assert len(day.telegram.sent) == questions


# --- programs


def test_C22_a_call_becomes_words_of_a_command_without_a_shell(day: Day) -> None:
    lamp, oil, untitled, failed, dropped = results_of(day.requests["tools 6"])

    assert json.loads(lamp)[:5] == ["add", "Lamp", "--body", "a\nb", "--urgent"]
    assert json.loads(oil)[:3] == ["add", "Oil", "--calm"], "no flag for what is missing"
    assert untitled == "error: missing parameter: title"
    assert failed.startswith("error: ")
    assert "half done" in failed
    assert "the shelf is full" in failed
    assert dropped == "error: subcommand not allowlisted: drop"


def test_C23_values_are_resolved_by_a_script_that_is_allowed_or_an_allowlisted_command(day: Day) -> None:
    lamp, oil, *_ = results_of(day.requests["tools 6"])

    assert json.loads(lamp)[5:] == ["--in", "2026/inbox", "--tag", "tag-oil"]
    assert json.loads(oil)[3:] == ["--in", "attic"], "the script failed"
    assert json.loads(results_of(day.requests["on demand 5"])[-1]) == [
        "add",
        "Wick",
        "--calm",
        "--in",
        "inbox",
    ]


# --- skills that are read on demand


def test_C13_C20_on_demand_a_compact_list_is_shown_and_read_skill_comes_first(day: Day) -> None:
    system = system_of(day.requests["on demand"])

    assert system == (
        f"Put the light out.\n\n{COMPACT_INTRO}\n\n## Available skills\n"
        "- **notes**: Forget notes.\n- **tides**: Know the tides.\n- **birds**: (no description)"
    )
    assert tools_of(day.requests["on demand"]) == ["read_skill", "note_add", "note_fail", "note_drop"]
    [read, *_] = day.requests["on demand"]["tools"]
    assert read["function"]["parameters"]["required"] == ["skill_name"]
    assert read["function"]["parameters"]["properties"]["skill_name"]["type"] == "string"


def test_C14_C24_a_skill_is_read_in_process_and_then_its_tools_run(day: Day) -> None:
    early, read, unknown, late = results_of(day.requests["on demand 5"])[-4:]

    assert early == 'error: read the skill first: call read_skill with skill_name "notes"'
    assert read == "Nothing."
    assert unknown == "error: unknown skill: nots"
    assert json.loads(late)[:2] == ["add", "Wick"]


# --- other workspaces


@pytest.mark.parametrize(
    ("agents", "with_skill", "system"),
    [
        ("\n Be brief.\n", False, "Be brief.\n\n"),
        (" \n", True, f"{FULL_INTRO}\n\n## tides\nRead them.\n\n"),
        (None, False, None),
    ],
    ids=["only AGENTS.md", "only a skill", "nothing"],
)
def test_C7_C10_C18_what_is_missing_or_empty_is_left_out(
    tmp_path: Path, agents: str | None, with_skill: bool, system: str | None
) -> None:
    workspace = tmp_path / "place"
    workspace.mkdir()
    if agents is not None:
        write(workspace / "AGENTS.md", agents)
    if with_skill:
        skill(workspace / "skills", "tides", "Read them.")
    with LoopbackVendor("ollama", ["Hello."]) as vendor:
        Home(tmp_path / "weft", vendor).run("ask", "-r", "chai", "-w", str(workspace), "hello")

    expected = [("system", system)] if system else []
    assert said(vendor.requests[0].payload) == [*expected, ("user", "hello")]


def test_C26_a_cap_on_history_is_a_setting_and_off_without_it(tmp_path: Path) -> None:
    write(tmp_path / "weft" / "config.toml", "[context]\nmax_messages = 2\n")
    with LoopbackVendor("ollama", ["A.", "B.", "C."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        home.chat("a", "b", "c", words=("-r", "chai"))

    assert said(home.payloads[-1]) == [("user", "b"), ("assistant", "B."), ("user", "c")]


def test_C27_the_exact_system_string_can_be_seen_without_asking_the_model(tmp_path: Path) -> None:
    workspace = tmp_path / "place"
    write(workspace / "AGENTS.md", "Be brief.")
    skill(workspace / "skills", "tides", "Read them.", "Know the tides.")
    with LoopbackVendor("ollama", ["Hello."]) as vendor:
        home = Home(tmp_path / "weft", vendor)
        words = ("-r", "chai", "-w", str(workspace))
        seen = json.loads(home.run("context", *words, "--json", "hello").stdout)
        asked_before = len(home.payloads)
        home.run("ask", *words, "hello")

    assert asked_before == 0
    assert seen["system_prompt"] == text_of(home.payloads[0]["messages"][0]["content"])
    assert seen["system_prompt"].endswith("## tides\nKnow the tides.\n\nRead them.\n\n")
