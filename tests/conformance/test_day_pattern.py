"""A day of Pattern: blocks of every kind, shares, consent, streams, rules and compression, in real turns."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from days import Home, Script, Server, calls, results, said, system_of, wait_until, write
from fake_telegram import TOKEN, FakeTelegram
from programs import run_weft
from weft.testing import LoopbackVendor

BASE = "You are Entropy, a task breakdown specialist."
MAP = {
    "kind": "map",
    "fields": [
        {"name": "state", "read_only": True},
        {"name": "score", "type": "counter"},
        {"name": "tags", "type": "list"},
        {"name": "unset"},
    ],
}
LOG = {"kind": "log", "display_limit": 2, "entry_schema": {"fields": [{"name": "message"}]}}
COMPOSITE = {
    "kind": "composite",
    "sections": [
        {"name": "notes", "schema": {"kind": "text"}},
        {"name": "diagnostics", "schema": {"kind": "list"}, "read_only": True},
    ],
}
BLOCKS: list[dict[str, Any]] = [
    {"label": "persona", "type": "core", "description": "Who I am."},
    {"label": "status", "type": "core", "schema": MAP},
    {"label": "book", "schema": {"kind": "text", "viewport": {"start_line": 2, "display_lines": 2}}},
    {"label": "todo", "kind": "list", "fields": ["task", "done:boolean"]},
    {"label": "diary", "schema": LOG},
    {"label": "project", "schema": COMPOSITE},
    {"label": "law", "permission": "ReadOnly", "description": "The law."},
    {"label": "journal", "permission": "Append"},
    {"label": "tea", "permission": "Human"},
    {"label": "budget", "permission": "Partner"},
    {"label": "box", "pinned": False},
    {"label": "filing", "pinned": False},
    {"label": "attic", "type": "archival"},
    {"label": "audit", "type": "log", "kind": "log"},
]
EDITS: list[tuple[str, dict[str, Any]]] = [
    ("persona", {"verb": "append", "value": "I am Entropy."}),
    ("status", {"verb": "set", "field": "state", "value": "active"}),
    ("status", {"verb": "increment", "field": "score", "value": 5}),
    ("status", {"verb": "push", "field": "tags", "value": "important"}),
    ("book", {"verb": "append", "value": "one\ntwo\nthree\nfour"}),
    ("todo", {"verb": "push", "value": {"task": "Review PR", "done": True}}),
    ("todo", {"verb": "insert", "index": 1, "value": {"task": "Urgent", "done": False}}),
    *(
        ("diary", {"verb": "log", "value": {"timestamp": f"2025-01-0{day}T00:00:00Z", "message": text}})
        for day, text in ((1, "Began"), (2, "Went on"), (3, "Ended"))
    ),
    ("project", {"verb": "append", "section": "notes", "value": "notes here"}),
    ("project", {"verb": "push", "section": "diagnostics", "value": "fine"}),
    ("law", {"verb": "append", "value": "Be kind."}),
    ("journal", {"verb": "append", "value": "Day one."}),
    ("tea", {"verb": "append", "value": "Green."}),
    ("budget", {"verb": "append", "value": "Ten."}),
    ("box", {"verb": "append", "value": "In the box."}),
    ("filing", {"verb": "append", "value": "File by date."}),
    ("attic", {"verb": "append", "value": "In the attic."}),
    ("audit", {"verb": "log", "value": "Logged in."}),
]
CORE = """<block:persona permission="ReadWrite">
Who I am.

I am Entropy.
</block:persona>

<block:status permission="ReadWrite">
state [read-only]: active
score: 5
tags:
- important
</block:status>"""
WORKING = """<block:book permission="ReadWrite">
[Showing lines 2-3 of 4]
two
three
</block:book>

<block:todo permission="ReadWrite">
[ ] Urgent
[x] Review PR
</block:todo>

<block:diary permission="ReadWrite">
[2025-01-03T00:00:00Z] Ended
[2025-01-02T00:00:00Z] Went on
</block:diary>

<block:project permission="ReadWrite">
=== notes ===

notes here

=== diagnostics [read-only] ===

1. fine
</block:project>

<block:law permission="ReadOnly">
The law.

Be kind.
</block:law>

<block:journal permission="Append">
Day one.
</block:journal>

<block:tea permission="Human">
Green.
</block:tea>

<block:budget permission="Partner">
Ten.
</block:budget>

<block:shared_notes permission="Append" shared_from="archive">
Content shared from another agent
</block:shared_notes>"""


@dataclass
class Day:
    """What happened: requests by their names. Ada is the owner and has the chat 7, Bob has the chat 8."""

    home: Home
    telegram: FakeTelegram
    requests: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def ask(self, name: str, text: str, *, chat: int = 7) -> None:
        """Write a message that is answered at once. Its requests are `name`, `name 2`, and so on."""
        at, before = len(self.home.payloads), len(self.telegram.sent)
        self.telegram.write(text, sender=chat, chat=chat)
        self.telegram.wait(before + 1)
        self._name(name, at)

    def consent(self, name: str, text: str, *, chat: int, asked: int, answer: str) -> None:
        """Write a message for which somebody is asked. Whoever wrote it presses the button too, in vain."""
        at, before = len(self.home.payloads), len(self.telegram.sent)
        self.telegram.write(text, sender=chat, chat=chat)
        self.telegram.wait(before + 1)
        question = self.telegram.sent[before]
        [buttons] = json.loads(question["reply_markup"])["inline_keyboard"]
        self.notes[name] = (question["chat_id"], question["text"])
        [data] = [button["callback_data"] for button in buttons if button["text"] == answer]
        if asked != chat:
            self.telegram.wait_confirmed(self.telegram.press(data, sender=chat, chat=chat))
        self.telegram.press(data, sender=asked, chat=asked)
        self.telegram.wait(before + 2 + (asked != chat))
        self.notes[f"{name} answered"] = [
            (one["chat_id"], one["text"]) for one in self.telegram.sent[before + 1 :]
        ]
        self._name(name, at)

    def _name(self, name: str, at: int) -> None:
        for number, payload in enumerate(self.home.payloads[at:], 1):
            self.requests[name if number == 1 else f"{name} {number}"] = payload


def script() -> list[str | weft.Reply]:
    writes = [
        calls("memory_append", "w1", label="law", text="Or not."),
        calls("memory_append", "w2", label="journal", text="Day two."),
        calls("memory_replace", "w3", label="journal", old="Day one.", new="Nothing."),
        calls("memory_append", "w4", label="shared_notes", text="Mine too."),
        calls("memory_replace", "w5", label="shared_notes", old="Content", new="Lies"),
        calls("memory_replace", "w6", label="persona", old="Entropy", new="Order"),
        calls("memory_set", "w9", label="status", field="state", value="asleep"),
        calls("archival_insert", "w7", text="The tanks hold 12 liters."),
        calls("archival_search", "w8", query="tanks"),
    ]
    consents: list[str | weft.Reply] = [
        calls("memory_append", "a1", label="tea", text="Black."), "As you wish.",
        calls("memory_append", "b1", label="budget", text="Twenty."), "Spent.",
        calls("memory_append", "b2", label="tea", text="Oolong."), "Poured.",
    ]  # fmt: skip
    bob: list[str | weft.Reply] = [calls("archival_search", "b0", query="tanks"), "Hi Bob."]
    return ["Hello.", *writes, "Noted.", "So it is.", *bob, *consents, "A boat.", "Later.", "By HTTP."]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    base = tmp_path_factory.mktemp("pattern")
    (base / "inbox").mkdir()
    with LoopbackVendor("openai", script()) as vendor, FakeTelegram() as telegram:
        day = Day(Home(base / "weft", vendor, (("TELEGRAM_BOT_TOKEN", TOKEN),)), telegram)
        write(
            day.home.path / "config.toml",
            f'recipe = "pattern"\ntime_zone = "UTC"\n[prompts]\nsystem = "{BASE}"\n[telegram]\n'
            f'api_url = "{telegram.url}"\nallowed = ["7", "8"]\npoll_seconds = 2\n[learn]\nenabled = false\n'
            f'[[streams]]\nname = "inbox"\nfolder = "{base / "inbox"}"\nevery_seconds = 1\n'
            'blocks = ["filing"]\nchannel = "telegram"\nconversation = "7"\nsender = "7"\n',
        )
        day.home.run("people", "link", "telegram:7", "owner")
        shared = ("shared_notes", "Content shared from another agent")
        day.home.run("memory", "edit", *shared, "--agent", "archive")
        day.home.run("memory", "share", shared[0], "weft", "--permission", "Append", "--agent", "archive")
        with day.home.serving() as server:
            morning(day, server)
        for label, permission in (("tea", "Human"), ("budget", "Partner")):
            words = ("memory", "create", label, "--permission", permission)
            day.home.run(*words, "--agent", "weft/telegram:8")
        with day.home.serving() as server:
            evening(day, server, base)
        yield day


def morning(day: Day, server: Server) -> None:
    """Blocks are made and edited, the model writes to them, and the server is killed."""
    for block in BLOCKS:
        server.request("POST", "/api/blocks", **block)
    for label, edit in EDITS:
        server.request("POST", f"/api/blocks/{label}/edits", **edit)
    day.ask("first", "hello")
    day.ask("writes", "Write it all down.")


def evening(day: Day, server: Server, base: Path) -> None:
    """Settings change, people are asked, and a file arrives."""
    server.request("PATCH", "/api/blocks/box", pinned=True)
    server.request("PATCH", "/api/blocks/book", type="archival")
    server.request("PATCH", "/api/blocks/law", type="core", description="")
    server.request("DELETE", "/api/blocks/todo")
    day.ask("settings", "What now?")
    day.ask("bob", "hello", chat=8)
    day.consent("refused", "Note black tea.", chat=7, asked=7, answer="No")
    day.consent("partner", "Spend more.", chat=8, asked=7, answer="Yes")
    day.consent("human", "Note oolong.", chat=8, asked=8, answer="Yes")
    at = len(day.home.payloads)
    write(base / "inbox" / "boat.md", "The boat is Marlin.")
    wait_until(lambda: day.telegram.sent[-1]["text"] == "A boat.")
    day.requests["notice"] = day.home.payloads[at]
    day.ask("after the notice", "And now?")
    turn = server.say("What is used?")["turn"]
    day.notes["receipt"] = server.request("GET", f"/api/turns/{turn}")
    server.stop()
    for mode in ("fts", "vector", "hybrid"):
        found = run_weft(day.home.environ, "memory", "search", "boat", "--mode", mode, "--json")
        day.notes[mode] = (found.returncode, found.stdout, found.stderr)


def block(text: str, label: str) -> str:
    """Return the content of a block in a system prompt, or an empty text."""
    _, _, rest = text.partition(f"<block:{label} ")
    return rest.partition(">\n")[2].partition(f"\n</block:{label}>")[0]


def labels(payload: Any) -> list[str]:
    return re.findall(r"^<block:(\S+) ", system_of(payload), flags=re.MULTILINE)


# --- blocks in the prompt


def test_P4_P5_P6_P20_P21_P22_P23_P24_the_prompt_is_base_core_working_and_activity(day: Day) -> None:
    prompt, _, activity = system_of(day.requests["first"]).partition("\n\n# Recent Activity\n")

    assert prompt == f"{BASE}\n\n{CORE}\n\n{WORKING}"
    lines = activity.split("\n")
    assert len(lines) == 15
    assert all(re.match(r"\[\d\d:\d\d\] \[SYSTEM\]: owner \(HTTP\) changed", line) for line in lines)
    assert "# Tool Execution Rules" not in activity


def test_P26_P27_P28_P29_P30_P31_each_kind_renders_in_its_own_way(day: Day) -> None:
    system = system_of(day.requests["first"])

    assert block(system, "book") == "[Showing lines 2-3 of 4]\ntwo\nthree"
    assert block(system, "status") == "state [read-only]: active\nscore: 5\ntags:\n- important"
    assert block(system, "todo") == "[ ] Urgent\n[x] Review PR"
    assert block(system, "diary").startswith("[2025-01-03T00:00:00Z] Ended\n[2025-01-02T00:00:00Z] Went")
    assert (
        block(system, "project")
        == "=== notes ===\n\nnotes here\n\n=== diagnostics [read-only] ===\n\n1. fine"
    )


def test_P16_P37_archival_log_and_unpinned_blocks_stay_out(day: Day) -> None:
    for name in ("first", "after the notice"):
        assert not {"attic", "audit", "filing"} & set(labels(day.requests[name]))
    assert "box" not in labels(day.requests["first"])


def test_P8_P13_pinning_type_description_and_deletion_change_the_next_prompt(day: Day) -> None:
    system = system_of(day.requests["settings"])

    assert labels(day.requests["settings"]) == [
        "persona", "status", "law", "diary", "project", "journal", "tea", "budget", "box", "shared_notes",
    ]  # fmt: skip
    assert '<block:law permission="ReadOnly">\nBe kind.\n</block:law>' in system


def test_P14_P15_what_was_written_outlives_a_killed_server_in_one_file_without_keys(day: Day) -> None:
    system = system_of(day.requests["settings"])

    assert block(system, "persona") == "Who I am.\n\nI am Order."
    assert block(system, "journal") == "Day one.\nDay two."
    files = [path for path in day.home.path.iterdir() if path.name.startswith("weft.db")]
    assert {path.name for path in day.home.path.glob("*.db")} == {"weft.db"}
    assert not any(b"loopback-key" in path.read_bytes() for path in files)


def test_P7_the_receipt_counts_the_tokens_of_each_layer(day: Day) -> None:
    receipt = day.notes["receipt"].get("receipt", day.notes["receipt"])

    assert receipt["by_layer"]["blocks"] > 100
    assert receipt["total_tokens"] == sum(receipt["by_layer"].values())
    assert 0 < receipt["total_tokens"] <= receipt["limit"]


# --- what the model may do


def test_P9_P17_P19_the_permission_of_a_block_binds_the_model_but_not_the_owner(day: Day) -> None:
    law, appended, replaced, *_ = results(day.requests["settings"])

    assert law.startswith("error: ")
    assert "ReadOnly" in law
    assert appended.startswith("done")
    assert replaced.startswith("error: ")
    assert "Append" in replaced
    assert block(system_of(day.requests["first"]), "law").endswith("Be kind."), "the owner wrote it"


def test_P6_P12_a_shared_block_is_written_with_the_permission_that_is_shown(day: Day) -> None:
    _, _, _, appended, replaced, *_ = results(day.requests["settings"])
    shown = '<block:shared_notes permission="Append" shared_from="archive">\n'

    assert (appended.startswith("done"), replaced.startswith("error: ")) == (True, True)
    assert f"{shown}Content shared from another agent\nMine too.\n" in system_of(day.requests["settings"])


def test_P9_P31_text_is_replaced_and_a_read_only_field_is_not_set(day: Day) -> None:
    _, _, _, _, _, replaced, field_set, *_ = results(day.requests["settings"])

    assert replaced.startswith("done")
    assert field_set.startswith("error: ")
    assert block(system_of(day.requests["settings"]), "status").startswith("state [read-only]: active")


def test_P10_P11_notes_are_searched_on_demand_and_by_their_owner_only(day: Day) -> None:
    *_, kept, hit = results(day.requests["writes 10"])
    [nothing] = results(day.requests["bob 2"])

    assert kept.startswith("kept as ")
    assert hit.endswith("The tanks hold 12 liters.")
    assert "12 liters" not in nothing
    assert not any("12 liters" in system_of(payload) for payload in day.home.payloads)


def test_P36_fts_finds_words_vectors_need_an_embedder_and_hybrid_goes_without(day: Day) -> None:
    (code, found, _), (refused, _, remedy), (mixed, also, note) = (
        day.notes[mode] for mode in ("fts", "vector", "hybrid")
    )
    kinds = {hit["source"] for hit in json.loads(found)}

    assert (code, mixed) == (0, 0)
    assert kinds == {"block", "message"}
    assert refused != 0
    assert "embedder" in remedy
    assert "no embedder" in note
    assert [hit["id"] for hit in json.loads(also)] == [hit["id"] for hit in json.loads(found)]


def test_P4_activity_names_who_did_what(day: Day) -> None:
    _, _, activity = system_of(day.requests["settings"]).partition("# Recent Activity\n")

    assert [line.partition("] ")[2] for line in activity.split("\n")[-3:]] == [
        "[YOU]: changed the block 'journal'",
        "[YOU]: changed the block 'shared_notes'",
        "[YOU]: changed the block 'persona'",
    ]


# --- consent


def test_P17_human_asks_whoever_talks_and_a_no_leaves_the_block(day: Day) -> None:
    chat, question = day.notes["refused"]

    assert chat == "7"
    assert "tea" in question
    assert "Black." in question
    assert results(day.requests["refused 2"])[-1].startswith("error: ")
    assert block(system_of(day.requests["notice"]), "tea") == "Green."
    assert day.notes["human"][0] == "8"
    assert results(day.requests["human 2"])[-1].startswith("done")


def test_P17_partner_asks_the_owner_where_they_are_and_nobody_else_can_agree(day: Day) -> None:
    chat, question = day.notes["partner"]
    spent, in_vain = day.notes["partner answered"]

    assert chat == "7"
    assert question.startswith("For telegram:8: ")
    assert (spent[0], spent[1].startswith("Spent.")) == ("8", True)
    assert in_vain == ("8", "I am not asking you anything at the moment.")
    assert block(system_of(day.requests["human"]), "budget") == "Twenty."


# --- streams


def test_P37_a_notice_brings_its_blocks_for_that_turn_only(day: Day) -> None:
    notice, later = system_of(day.requests["notice"]), system_of(day.requests["after the notice"])

    assert said(day.requests["notice"])[-1][1].startswith("[Notification of the stream 'inbox']")
    assert block(notice, "filing") == "File by date."
    assert block(notice, "inbox/boat.md").endswith("The boat is Marlin.")
    assert block(later, "filing") == block(later, "inbox/boat.md") == ""
    assert block(later, "box") == "In the box."


# --- rules


RULES = """[[tools.rules]]
tool = "send_message"
exit_loop = true
[[tools.rules]]
tool = "search"
continue_loop = true
[[tools.rules]]
tool = "api_request"
max_calls = 3
[[tools.rules]]
tool = "context"
start_constraint = true
[[tools.rules]]
tool = "publish"
requires_prior = "search"
"""


def write_tools(workspace: Path, *names: str) -> None:
    """Write a skill whose tools say a text again."""
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    argument = {"param": "text", "kind": "positional"}
    tools = {
        "tools": [{"name": name, "parameters": text} for name in names],
        "allowlist": {"echo": [""]},
        "execution": [
            {"tool": name, "binary": "echo", "subcommand": "", "args": [argument]} for name in names
        ],
    }
    write(workspace / "skills" / "echo" / "SKILL.md", "---\nname: echo\n---\nSay it.\n")
    write(workspace / "skills" / "echo" / "tools.json", json.dumps(tools))


def test_P38_P39_P40_P41_P42_rules_are_in_the_prompt_and_are_enforced_in_each_turn(tmp_path: Path) -> None:
    write_tools(tmp_path / "workspace", "send_message", "search", "api_request", "context", "publish")
    write(tmp_path / "config.toml", RULES)
    names = ["search", "context", "publish", "search", "publish", *["api_request"] * 4, "send_message"]
    script = [calls(name, f"c{number}", text=f"{name} {number}") for number, name in enumerate(names)]
    again: Script = [
        calls("context", "d0", text="again"),
        calls("api_request", "d1", text="allowed"),
        "Done.",
    ]
    with LoopbackVendor("openai", [*script, *again]) as vendor:
        home = Home(tmp_path, vendor)
        first, second = home.chat("Go", "Again", words=("-r", "pattern"))

    rules = (
        "# Tool Execution Rules\n\n"
        "- Call `context` first before any other tools\n"
        "- The conversation will end after calling `send_message`\n"
        "- The conversation will be continued after calling `search`\n"
        "- Call `api_request` at most 3 times\n"
        "- Call `publish` only after calling `search`"
    )
    assert system_of(home.payloads[0]).endswith(f"\n\n{rules}")
    assert [text.startswith("error: ") for text in results(home.payloads[9])] == [
        True, False, True, False, False, False, False, False, True,
    ]  # fmt: skip
    assert (first, second) == ("send_message 9", "Done.")
    assert len(home.payloads) == 10 + 3, "the tool ended the turn, and no model was asked again"
    assert results(home.payloads[-1])[-1].strip() == "allowed", "calls are counted per turn"


# --- compression


def test_P34_P35_truncation_leaves_whole_batches_and_never_cuts_the_active_one(tmp_path: Path) -> None:
    limits = 'max_messages = 6\n[context.compression]\nstrategy = "truncate"\nkeep_recent = 4\n'
    write(tmp_path / "config.toml", f"[context]\n{limits}")
    long = [calls("archival_search", f"c{number}", query="x") for number in range(3)]
    with LoopbackVendor("openai", ["A.", "B.", "C.", *long, "D.", "E.", "F."]) as vendor:
        home = Home(tmp_path, vendor)
        home.chat("a", "b", "c", "d", "e", "f", words=("-r", "pattern"))
    roles = [[role for role, _ in said(payload)[1:]] for payload in home.payloads]
    whole, active, fifth, sixth = (home.payloads[at] for at in (3, 6, 7, 8))

    assert [text for _, text in said(whole)[1:]] == ["a", "A.", "b", "B.", "c", "C.", "d"], "within the cap"
    assert said(active)[: len(said(whole))] == said(whole)
    assert roles[6][7:] == ["assistant", "tool"] * 3
    assert roles[7] == ["user", *["assistant", "tool"] * 3, "assistant", "user"], "one batch at least"
    assert [said(fifth)[at][1] for at in (1, -2, -1)] == ["d", "D.", "e"]
    assert said(sixth)[1:] == [("user", "e"), ("assistant", "E."), ("user", "f")]


def test_P33_P34_history_over_its_tokens_is_cut_to_two_thirds_of_the_limit(tmp_path: Path) -> None:
    write(tmp_path / "config.toml", "[context]\nhistory_tokens = 600\n")
    lines = [f"{number} " + "x" * 398 for number in range(7)]
    with LoopbackVendor("openai", ["Fine."] * 7) as vendor:
        home = Home(tmp_path, vendor)
        home.chat(*lines, words=("-r", "pattern"))

    assert len(said(home.payloads[5])) == 1 + 10 + 1, "five exchanges are within the limit"
    assert [text for role, text in said(home.payloads[6]) if role == "user"] == lines[3:]


def test_P34_the_older_part_is_summarized_again_and_again_and_the_summary_is_shown(tmp_path: Path) -> None:
    limits = 'strategy = "summarize"\nchunk_size = 4\nsummarization_model = "gpt-4o-mini"\n'
    write(tmp_path / "config.toml", f"[context]\nmax_messages = 6\n[context.compression]\n{limits}")
    answers = ["A1.", "A2.", "A3.", "A4.", "SUM ONE", "A5.", "A6.", "SUM TWO", "A7."]
    with LoopbackVendor("openai", answers) as vendor:
        home = Home(tmp_path, vendor)
        home.chat(*(f"q{number}" for number in range(1, 8)), words=("-r", "pattern"))
    models = [payload["model"] for payload in home.payloads]
    again = "\n".join(text for _, text in said(home.payloads[7]))

    assert [at for at, model in enumerate(models) if model == "gpt-4o-mini"] == [4, 7]
    assert re.search(r"SUM ONE.*q3.*A3.*q4.*A4", again, flags=re.DOTALL), "the last summary comes first"
    shown = "\n".join(text for _, text in said(home.payloads[8]))
    assert "[Summary of messages 1-8 of this conversation]\nSUM TWO" in shown
    assert [text for _, text in said(home.payloads[8])[-5:]] == ["q5", "A5.", "q6", "A6.", "q7"]
    assert "q4" not in shown


# --- other models, and limits


def test_P3_P35_gemini_gets_a_first_user_message_tools_and_no_incomplete_batch(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "archival_search", "arguments": {"query": "x"}}
    messages = [
        {"role": "assistant", "content": "Good morning."},
        {"role": "user", "content": "Look it up. " + "x" * 2000},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "I am here."},
    ]
    session = {"id": "old-session", "channel": "terminal", "messages": messages}
    file = write(tmp_path / "s.json", json.dumps(session))
    write(tmp_path / "weft" / "config.toml", "[context]\nhistory_tokens = 300\n")
    with LoopbackVendor("gemini", ["Yes."]) as vendor:
        home = Home(tmp_path / "weft", vendor, (("WEFT_MODEL", "gemini-3-flash"),))
        home.run("sessions", "import", str(file))
        home.chat("And now?", words=("-r", "pattern", "-s", "old-session"))
    payload = home.payloads[0]

    assert [(entry["role"], entry["parts"][0].get("text")) for entry in payload["contents"]] == [
        ("user", "[Conversation start]"),
        ("model", "Good morning."),
        ("user", "Hello?"),
        ("model", "I am here."),
        ("user", "And now?"),
    ]
    declared = [tool["name"] for tool in payload["tools"][0]["functionDeclarations"]]
    assert {"memory_append", "archival_search"} <= set(declared)


def test_P16_P32_P33_options_are_settings_and_core_blocks_over_their_limit_are_named(tmp_path: Path) -> None:
    options = "include_schemas = true\ninclude_descriptions = false\nactivity_entries = 0\n"
    file = write(tmp_path / "config.toml", f"[context]\n{options}")
    with LoopbackVendor("openai", ["Hello."]) as vendor:
        home = Home(tmp_path, vendor)
        home.run("memory", "create", "law", "--type", "core", "-d", "The law.")
        home.run("memory", "append", "law", "Be kind. " * 60)
        home.run("ask", "-r", "pattern", "Hi")
        write(file, "[context]\nmemory_tokens = 50\n")
        refused = run_weft(home.environ, "ask", "-r", "pattern", "Hi")
    system = system_of(home.payloads[0])

    assert '<block:law permission="ReadWrite">\nSchema: {"kind":"text"}\nBe kind.' in system
    assert "The law." not in system
    assert "# Recent Activity" not in system
    assert (refused.returncode, len(home.payloads)) == (1, 1)
    assert "law" in refused.stderr
