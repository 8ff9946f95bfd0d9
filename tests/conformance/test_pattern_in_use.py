"""Pattern's blocks as people, programs and the model use them: commands, HTTP, MCP and real turns."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import weft
from http_server import serving
from programs import environ, run_weft
from weft.testing import LoopbackVendor
from wire_marks import text_in

Script = list[str | weft.Reply]


def calls(name: str, number: int = 1, **arguments: Any) -> weft.Reply:
    call = weft.ToolCall(id=f"call_{number}", name=name, arguments=arguments)
    return weft.Reply(tool_calls=(call,), stop_reason="tools")


class Home:
    """A home, and the commands that a person runs there."""

    def __init__(self, path: Path) -> None:
        self.path, self.environ = path, environ(path, OLLAMA_HOST="127.0.0.1:1", NO_COLOR="1")

    def __call__(self, *words: str) -> str:
        done = run_weft(self.environ, "memory", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def refused(self, *words: str) -> tuple[int, str]:
        done = run_weft(self.environ, "memory", *words)
        return done.returncode, done.stderr

    def chat(self, script: Script, *lines: str, **env: str) -> tuple[str, list[Mapping[str, Any]]]:
        """Talk to a model that answers by a script. Returns what stood on stderr, and the requests."""
        with LoopbackVendor("openai", script) as vendor:
            around = {**self.environ, **vendor.environ, "WEFT_PROVIDER": "openai", **env}
            done = run_weft(around, "chat", stdin="".join(f"{line}\n" for line in lines))
        assert done.returncode == 0, done.stderr
        return done.stderr, [request.payload for request in vendor.requests]


@pytest.fixture
def memory(tmp_path: Path) -> Home:
    return Home(tmp_path)


# --- the command line


def test_P21_a_map_is_made_and_edited_by_its_own_verbs(memory: Home) -> None:
    memory("create", "game", "--schema", "map", "-f", "name", "-f", "score:counter", "-f", "tags:list")
    memory("set", "game", "name", "Ada")
    assert memory("increment", "game", "score", "5") == "5"
    assert memory("increment", "game", "score", "-2") == "3"
    memory("push", "game", "new", "--field", "tags")

    assert memory("show", "game") == "name: Ada\nscore: 3\ntags:\n- new"
    assert [version["author"] for version in json.loads(memory("history", "game", "--json"))] == [
        "owner (command line)"
    ] * 5
    memory("undo", "game")
    assert "new" not in memory("show", "game")


def test_P22_a_list_is_made_and_edited_by_its_own_verbs(memory: Home) -> None:
    memory("create", "todo", "--schema", "list", "-f", "task", "-f", "done:boolean")
    memory("push", "todo", "Review PR")
    memory("push", "todo", '{"task": "Ship", "done": true}')
    memory("insert", "todo", "1", "Urgent")
    assert memory("show", "todo") == "[ ] Urgent\n[ ] Review PR\n[x] Ship"
    memory("set", "todo", "2", '{"task": "Review PR", "done": true}')
    memory("remove", "todo", "1")

    assert memory("show", "todo") == "[x] Review PR\n[x] Ship"


def test_P23_a_log_is_made_and_added_to(memory: Home) -> None:
    memory("create", "diary", "--schema", "log", "--type", "log")
    memory("log", "diary", "Began")
    memory("log", "diary", '{"timestamp": "2025-01-01T00:00:00Z", "message": "Went on"}')

    first, second = memory("show", "diary").splitlines()
    assert first == "[2025-01-01T00:00:00Z] Went on"
    assert second.endswith("] Began")


def test_P24_a_composite_is_made_and_its_sections_edited(memory: Home, tmp_path: Path) -> None:
    schema = {
        "kind": "composite",
        "sections": [
            {"name": "notes", "schema": {"kind": "text"}},
            {
                "name": "stats",
                "schema": {"kind": "map", "fields": [{"name": "count", "type": "counter"}]},
                "read_only": True,
            },
        ],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema), "utf-8")
    memory("create", "project", "--schema", str(tmp_path / "schema.json"))
    memory("create", "plain", "--schema", "composite", "-f", "notes", "-f", "todo:list")
    memory("set", "project", "notes", "Hello.", "--section", "notes")
    memory("increment", "project", "count", "--section", "stats")
    memory("push", "plain", "one", "--section", "todo")

    assert memory("show", "project") == "=== notes ===\n\nHello.\n\n=== stats [read-only] ===\n\ncount: 1"
    assert memory("show", "plain") == "=== notes ===\n\n=== todo ===\n\n1. one"


def test_P13_each_setting_of_a_block_can_be_chosen_and_changed_later(memory: Home) -> None:
    memory(
        "create", "law", "--type", "core", "--permission", "ReadOnly", "--limit", "40", "-d", "The rules.",
        "--unpinned",
    )  # fmt: skip
    memory("set-permission", "law", "append")
    memory("set-type", "law", "working")
    memory("set-description", "law", "All of the rules.")
    memory("limit", "law", "10")
    memory("pin", "law")
    memory("rename", "law", "rules")
    [block] = json.loads(memory("list", "--json"))

    assert {**block, "characters": 0} == {
        "label": "rules",
        "type": "working",
        "permission": "Append",
        "pinned": True,
        "shared_from": "",
        "shared_with": {},
        "characters": 0,
    }
    code, sentence = memory.refused("append", "rules", "far too long a text")
    assert (code, "at most 10 characters" in sentence) == (1, True)
    _, requests = memory.chat(["Hi."], "Hello")
    assert "All of the rules." in json.dumps(requests[0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("push", "notes", "x"), "'notes' is a text and cannot push: it can append, set."),
        (("increment", "todo", "x"), "'todo' is a list and cannot increment"),
        (("remove", "todo", "9"), "has no index 8: it is empty"),
        (("set", "game", "nme", "x"), "has no field 'nme': did you mean 'name'?"),
        (("set", "game", "score", "many"), "'score'"),
        (("create", "x", "--schema", "lsit"), "did you mean 'list'?"),
        (("create", "x", "--schema", "map", "-f", "a:txt"), "did you mean 'text'?"),
        (("create", "x", "--permission", "admn"), "did you mean 'Admin'?"),
        (("create", "todo"), "There is a block 'todo' already"),
        (("rename", "todo", "game"), "There is a block 'game' already"),
        (("push", "nowhere", "x"), "has no block 'nowhere'"),
    ],
)
def test_P13_P21_P22_wrong_calls_are_one_sentence_and_change_nothing(
    memory: Home, words: tuple[str, ...], sentence: str
) -> None:
    memory("edit", "notes", "Hello.")
    memory("create", "todo", "--schema", "list")
    memory("create", "game", "--schema", "map", "-f", "name", "-f", "score:counter")
    before = memory("list", "--json")

    code, complaint = memory.refused(*words)

    assert code in (1, 2)
    assert sentence in complaint
    assert len(complaint.splitlines()) == 1
    assert memory("list", "--json") == before


# --- the model


def test_P21_P22_P23_P24_the_model_makes_and_edits_blocks_of_every_kind(memory: Home) -> None:
    script: Script = [
        calls("memory_create", 1, label="todo", kind="list", fields=["task", "done:boolean"]),
        calls("memory_append", 2, label="todo", text="Buy tanks"),
        calls("memory_edit", 3, label="todo", verb="insert", value="Call Clara", index=1),
        calls(
            "memory_edit", 4, label="todo", verb="set", index=2, value='{"task": "Buy tanks", "done": true}'
        ),
        calls("memory_create", 5, label="game", kind="map", fields=["name", "score:counter", "tags:list"]),
        calls("memory_edit", 6, label="game", verb="set", field="name", value="Ada"),
        calls("memory_edit", 7, label="game", verb="increment", field="score", value=3),
        calls("memory_edit", 8, label="game", verb="push", field="tags", value="diver"),
        calls("memory_create", 9, label="diary", kind="log"),
        calls("memory_append", 10, label="diary", text="Dived at noon."),
        calls("memory_create", 11, label="trip", kind="composite", fields=["plan", "pack:list"]),
        calls("memory_append", 12, label="trip", section="pack", text="fins"),
        calls("memory_edit", 13, label="todo", verb="remove", index=1),
        "All done.",
        "I see.",
    ]
    told, requests = memory.chat(script, "Keep lists for me.", "What do you have?")

    failed = [
        text_in(message["content"])
        for message in requests[-1]["messages"]
        if message["role"] == "tool" and text_in(message["content"]).startswith("error")
    ]
    assert failed == []
    assert memory("show", "todo") == "[x] Buy tanks"
    assert memory("show", "game") == "name: Ada\nscore: 3\ntags:\n- diver"
    assert memory("show", "diary").endswith("] Dived at noon.")
    assert memory("show", "trip") == "=== plan ===\n\n=== pack ===\n\n1. fins"
    shown = json.dumps(requests[-1])
    assert "[x] Buy tanks" in shown
    assert "changed game: increment score: 3" in told


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("list", {"name": "memory_replace", "old": "a", "new": "b"}),
        ("list", {"name": "memory_rewrite", "text": "b"}),
        ("list", {"name": "memory_edit", "verb": "increment", "field": "x"}),
        ("map", {"name": "memory_edit", "verb": "remove", "index": 1}),
        ("map", {"name": "memory_append", "text": "x"}),
        ("log", {"name": "memory_edit", "verb": "set", "field": "x", "value": "y"}),
        ("text", {"name": "memory_edit", "verb": "remove", "index": 1}),
        ("composite", {"name": "memory_append", "text": "x"}),
    ],
)
def test_P21_P22_a_tool_that_does_not_fit_answers_with_tools_that_the_model_has(
    memory: Home, kind: str, call: dict[str, Any]
) -> None:
    fields = {"map": ("-f", "name"), "composite": ("-f", "part")}.get(kind, ())
    memory("create", "it", "--schema", kind, *fields)
    arguments = {key: value for key, value in call.items() if key != "name"}
    script: Script = [calls(call["name"], label="it", **arguments), "I see."]
    _, requests = memory.chat(script, "Go")

    offered = {tool["function"]["name"] for tool in requests[0]["tools"]}
    [answer] = [text_in(m["content"]) for m in requests[-1]["messages"] if m["role"] == "tool"]
    named = {word.strip(".,:`") for word in answer.split() if word.startswith("memory_")}
    assert answer.startswith("error:")
    assert named
    assert named <= offered


# --- sharing


def test_P6_P12_a_shared_block_is_written_in_a_turn_with_the_permission_that_is_shown(memory: Home) -> None:
    memory("edit", "team", "Ada dives.", "--agent", "coach")
    memory("edit", "law", "No diving alone.", "--agent", "coach")
    memory("share", "team", "weft", "--permission", "Append", "--agent", "coach")
    memory("share", "law", "weft", "--permission", "ReadOnly", "--agent", "coach")
    script: Script = [
        calls("memory_append", 1, label="team", text="Clara dives too."),
        calls("memory_replace", 2, label="team", old="Ada dives.", new="Nobody dives."),
        calls("memory_append", 3, label="law", text="But on Sundays."),
        "Done.",
        "Both dive.",
    ]
    _, requests = memory.chat(script, "Note that Clara dives too.", "Who dives?")

    results = [text_in(m["content"]) for m in requests[-1]["messages"] if m["role"] == "tool"]
    assert results[0].startswith("done:")
    assert "add to it instead" in results[1]
    assert "cannot be written" in results[2]
    assert memory("show", "team", "--agent", "coach") == "Ada dives.\nClara dives too."
    assert memory("show", "law", "--agent", "coach") == "No diving alone."
    shown = json.dumps(requests[-1])
    assert r"<block:team permission=\"Append\" shared_from=\"coach\">" in shown
    assert "Clara dives too." in shown
    history = json.loads(memory("history", "team", "--json", "--agent", "coach"))
    assert history[-1]["author"] == "weft"
    assert "team" not in {block["label"] for block in json.loads(memory("list", "--json", "-a", "other"))}


def test_P6_P12_structured_shares_are_edited_by_their_verbs(memory: Home) -> None:
    memory("create", "todo", "--schema", "list", "--agent", "coach")
    memory("share", "todo", "weft", "--permission", "ReadWrite", "--agent", "coach")
    memory.chat([calls("memory_append", label="todo", text="fins"), "Done."], "Add fins")

    assert memory("show", "todo", "--agent", "coach") == "1. fins"


# --- programs


async def test_P13_P21_P22_P24_blocks_of_every_kind_over_http() -> None:
    async with serving(["hi"]) as server, server.client() as http:
        fields = ["name", "score:counter"]
        made = await http.post("/api/blocks", json={"label": "game", "kind": "map", "fields": fields})
        for edit in (
            {"verb": "set", "field": "name", "value": "Ada"},
            {"verb": "increment", "field": "score", "value": 5},
        ):
            last = await http.post("/api/blocks/game/edits", json=edit)
        schema = {"kind": "list", "max_items": 2}
        await http.post("/api/blocks", json={"label": "two", "schema": schema})
        for item in ("a", "b", "c"):
            third = await http.post("/api/blocks/two/edits", json={"verb": "push", "value": item})
        changed = await http.patch("/api/blocks/two", json={"permission": "ReadOnly", "label": "pair"})
        wrong = await http.post("/api/blocks/pair/edits", json={"verb": "increment", "field": "x"})
        theirs = await http.get("/api/blocks", params={"sender": "bob"})
        gone = await http.delete("/api/blocks/pair")
        missing = await http.get("/api/blocks/pair")

    assert (made.status_code, made.json()["schema"]["kind"]) == (201, "map")
    assert last.json()["content"] == "name: Ada\nscore: 5"
    assert (third.status_code, "at most 2 items" in third.json()["error"]["message"]) == (409, True)
    assert (changed.json()["label"], changed.json()["permission"]) == ("pair", "ReadOnly")
    assert (wrong.status_code, "cannot increment" in wrong.json()["error"]["message"]) == (400, True)
    assert theirs.json() == {"blocks": []}
    assert (gone.json(), missing.status_code) == ({"deleted": "pair"}, 404)


async def test_P13_P22_P24_blocks_of_every_kind_over_mcp(tmp_path: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "weft", "mcp"],
        env=environ(tmp_path, WEFT_PROVIDER="scripted"),
    )
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=60)
            assert not result.is_error, result.content
            return result.structured_content

        await call("create_block", label="trip", kind="composite", fields=["plan", "pack:list", "n:log"])
        await call("edit_block", label="trip", verb="push", value="fins", section="pack")
        await call("edit_block", label="trip", verb="insert", index=1, value="mask", section="pack")
        await call("edit_block", label="trip", verb="append", value="Go at noon.", section="plan")
        read = await call("read_block", label="trip")

    assert read["text"] == "=== plan ===\n\nGo at noon.\n\n=== pack ===\n\n1. mask\n2. fins\n\n=== n ==="
