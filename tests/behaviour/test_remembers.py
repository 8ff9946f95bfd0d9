"""It remembers: a fresh home, real processes, and a vendor on loopback that calls tools as a model would."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import environ, run_weft
from weft.gateway.background import learn_from
from weft.gateway.remember import explicit_memory
from weft.testing import LoopbackVendor, Refusal


def calls(name: str, **arguments: Any) -> weft.Reply:
    call = weft.ToolCall(id="call_1", name=name, arguments=arguments)
    return weft.Reply(tool_calls=(call,), stop_reason="tools")


def run(
    home: Path, *words: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    around = {"OLLAMA_HOST": "127.0.0.1:1", "NO_COLOR": "1", **(env or {})}
    return run_weft(environ(home, **around), *words, stdin=stdin)


def prompt(server: LoopbackVendor, at: int = -1) -> str:
    return json.dumps(server.requests[at].payload, ensure_ascii=False)


PROVIDERS = ["anthropic", "openai", "openai_responses", "openrouter", "ollama", "gemini"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_remember_that_i_live_in_lisbon_works_on_a_fresh_install(tmp_path: Path, provider: str) -> None:
    script = (
        calls("memory_append", label="notes", text="I live in Lisbon"),
        "I will remember that.",
        "You live in Lisbon.",
        "Still Lisbon.",
    )
    with LoopbackVendor(provider, script) as server:
        env = {**server.environ, "WEFT_PROVIDER": provider, "WEFT_MODEL": "gpt-4o"}
        first = run(tmp_path, "chat", stdin="remember that I live in Lisbon\nWhere do I live?\n", env=env)
        again = run(tmp_path, "chat", stdin="/new\nAnd now?\n", env=env)

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    notice = "Remembered in notes: I live in Lisbon (/undo takes it back)"
    assert first.stderr.count(notice) == 1, first.stderr
    assert "I live in Lisbon" in prompt(server, 2)  # the very next turn
    assert "I live in Lisbon" in prompt(server, 3)  # another session, after a restart
    offered = prompt(server, 0)
    for tool in ("memory_create", "memory_append", "memory_replace", "remember_fact", "forget_fact"):
        assert tool in offered
    for label in ("human", "persona", "notes"):
        assert f"<block:{label} " in offered.replace("\\", "")


def test_a_fact_is_remembered_forgotten_and_taken_back(tmp_path: Path) -> None:
    script = (
        calls("remember_fact", key="city", value="Lisbon"),
        "Noted.",
        calls("remember_fact", key="city", value="Porto"),
        "Moved.",
        calls("forget_fact", key="city"),
        "Forgotten.",
    )
    with LoopbackVendor("openai", script) as server:
        env = {**server.environ, "WEFT_MODEL": "gpt-4o"}
        lines = (
            "I live in Lisbon\nI moved to Porto\n/undo\n/facts\nforget where I live\n/facts\n/undo\n/facts\n"
        )
        done = run(tmp_path, "chat", stdin=lines, env=env)

    assert done.returncode == 0, done.stderr
    assert "Remembered city: Lisbon (/undo takes it back)" in done.stderr
    assert "Forgot city (/undo takes it back)" in done.stderr
    answers = [line for line in done.stdout.splitlines() if line]
    assert answers == [
        "Noted.",
        "Moved.",
        "The last change of the fact **city** was taken back. It is Lisbon again.",
        "- **city**: Lisbon",
        "Forgotten.",
        "I know nothing about you yet.",
        "The last change of the fact **city** was taken back. It is Lisbon again.",
        "- **city**: Lisbon",
    ]


def test_a_block_that_is_not_there_is_made_pinned_and_undo_takes_its_line_back(tmp_path: Path) -> None:
    script = (calls("memory_append", label="garden", text="The roses are red."), "Done.")
    with LoopbackVendor("openai", script) as server:
        env = {**server.environ, "WEFT_MODEL": "gpt-4o"}
        done = run(tmp_path, "chat", stdin="note: roses\n/undo\n/memory garden\n", env=env)
        blocks = json.loads(run(tmp_path, "memory", "list", "--json").stdout)
        history = run(tmp_path, "memory", "history", "garden").stdout

    assert "The last change of **garden** was taken back." in done.stdout
    assert done.stdout.endswith("(empty)\n")
    assert {"garden": True}.items() <= {row["label"]: row["pinned"] for row in blocks}.items()
    assert re.findall(r"(?:edit|undo|create)\S*\s+(.*)", history) == ["weft", "weft", "owner (/undo)"]


def test_every_way_of_changing_memory_has_its_own_author_and_you_is_the_model_alone(tmp_path: Path) -> None:
    script = (calls("memory_append", label="notes", text="By the model."), "Done.", "ok")
    with LoopbackVendor("openai", script) as server:
        env = {**server.environ, "WEFT_MODEL": "gpt-4o"}
        run(tmp_path, "chat", stdin="remember\n", env=env)
        run(tmp_path, "memory", "append", "notes", " By hand.")
        run(tmp_path, "chat", stdin="hi\n", env=env)
        authors = [
            row["author"] for row in json.loads(run(tmp_path, "memory", "history", "notes", "--json").stdout)
        ]

    assert authors == ["system", "weft", "owner (command line)"]
    shown = prompt(server)
    assert "[YOU]: changed the block 'notes'" in shown
    assert "[SYSTEM]: owner (command line) changed the block 'notes'" in shown


def test_what_one_person_is_told_is_not_shown_to_another_and_follows_them_when_linked(tmp_path: Path) -> None:
    code = """
import asyncio, weft
async def main():
    async with await weft.open({path!r}) as store:
        call = weft.ToolCall(
            id="1", name="memory_append", arguments=dict(label="human", text="Ada likes tuna.")
        )
        first = weft.Reply(tool_calls=(call,), stop_reason="tools")
        provider = weft.ScriptedProvider([first, "ok", "hm", "hm"])
        app = await weft.connect(provider=provider, store=store)
        async def ask(channel, sender):
            caller = weft.Caller(channel=channel, sender_id=sender)
            return await app.ask("hello", session=f"{{channel}}-{{sender}}", caller=caller)
        print((await ask("telegram", "1")).notice)
        await store.facts.set("telegram:1", "city", "Lisbon")
        await store.facts.set("terminal:owner", "city", "Porto")
        await ask("http", "bob")
        print("tuna" in provider.requests[-1].to_prompt_string())
        facts = await store.people.link("telegram:1", "owner")
        print([fact.value for fact in facts])
        await ask("terminal", "owner")
        shown = provider.requests[-1].to_prompt_string()
        print("tuna" in shown, "city: Lisbon" in shown, "city: Porto" in shown)
        await app.close()
asyncio.run(main())
""".format(path=str(tmp_path / "w.db"))
    around = environ(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code], env=around, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stdout.splitlines() == [
        "Remembered in human: Ada likes tuna. (/undo takes it back)",
        "False",
        "['Porto', 'Lisbon']",
        "True True True",
    ], done.stderr


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("remember that I live in Lisbon", "I live in Lisbon"),
        ("Please remember: the key is under the mat.", "The key is under the mat."),
        ("Can you remember that my cat is Miso?", "My cat is Miso"),
        ("recuerda que vivo en Lisboa", "Vivo en Lisboa"),
        ("Merk dir, dass ich Tee mag.", "Ich Tee mag."),
        ("do you remember that song?", None),
        ("remember that time in Rome", None),
        ("remember me?", None),
        ("I remember that well", None),
        ("remember that " + "x" * 600, None),
    ],
)
def test_the_rule_for_models_without_tools_takes_only_explicit_words(text: str, what: str | None) -> None:
    assert explicit_memory(text) == what


async def test_a_model_without_tools_remembers_by_rule_and_says_so(tmp_path: Path) -> None:
    model = weft.ModelInfo(id="small", provider="scripted", calls_tools=False)
    provider = weft.ScriptedProvider(["Fine.", "Lisbon."], info=model)
    app = await weft.connect(provider=provider, database=tmp_path / "w.db")

    reply = await app.ask("remember that I live in Lisbon", session="one")
    await app.ask("Where do I live?", session="two")
    store = await app.store.get()
    authors = [version.author for version in await store.memory.block_history("weft", "notes")]
    labels = [info.label for info in await store.memory.list_blocks("weft")]
    await app.close()

    assert (authors, labels) == (["system", "owner (asked to remember)"], ["human", "persona", "notes"])
    shown = provider.requests[-1].to_prompt_string()
    assert "[SYSTEM]: owner (asked to remember) changed the block 'notes'" in shown
    assert "[YOU]" not in shown
    assert reply.notice == "Remembered in notes: I live in Lisbon (/undo takes it back)"
    assert "I live in Lisbon" in provider.requests[-1].system_prompt


async def test_a_passing_failure_of_the_model_costs_no_memory(tmp_path: Path) -> None:
    failing = weft.ProviderError("busy (500)")
    provider = weft.ScriptedProvider(["Hello.", failing, "They talked about Lisbon.", "city: Lisbon", "Yes."])
    app = await weft.connect(provider=provider, database=tmp_path / "w.db")
    await app.ask("I live in Lisbon", session="s")
    store = await app.store.get()
    (session,) = await store.sessions.list()

    await learn_from(app.engine, session)
    postponed = await store.sessions.list_unlearned(9e9)
    with sqlite3.connect(tmp_path / "w.db") as database:
        database.execute("update sessions set learn_at = 0")
    (later,) = await store.sessions.list_unlearned(9e9)
    await learn_from(app.engine, later)
    await app.ask("hi", session="another")
    await app.close()

    assert (list(postponed), later.learn_tries) == ([], 1)
    shown = provider.requests[-1].to_prompt_string()
    assert "They talked about Lisbon." in shown
    assert "city: Lisbon" in shown
    assert "summary unavailable" not in shown


async def test_a_summary_that_failed_for_a_week_is_never_shown(tmp_path: Path) -> None:
    provider = weft.ScriptedProvider(["Hello.", weft.ProviderError("gone"), "Yes."])
    app = await weft.connect(provider=provider, database=tmp_path / "w.db")
    await app.ask("I live in Lisbon", session="s")
    store = await app.store.get()
    with sqlite3.connect(tmp_path / "w.db") as database:
        database.execute("update sessions set learn_tries = 12")
    (session,) = await store.sessions.list()

    await learn_from(app.engine, session)
    await app.ask("hi", session="another")
    await app.close()

    with sqlite3.connect(tmp_path / "w.db") as database:
        texts = [row[0] for row in database.execute("select text from summaries")]
    assert texts == ["(2 messages, summary unavailable)"]
    assert "unavailable" not in provider.requests[-1].to_prompt_string()


def test_a_log_names_the_status_and_the_reason(tmp_path: Path) -> None:
    with LoopbackVendor("openai", [Refusal(503, "overloaded", 0.01), "Hello."]) as server:
        done = run(tmp_path, "ask", "hi", env={**server.environ, "WEFT_MODEL": "gpt-4o"})

    assert "openai is busy or failed (503): overloaded" in done.stderr
    assert "_Passing" not in done.stderr


async def test_a_block_that_a_running_server_has_not_rendered_yet_follows_its_person(tmp_path: Path) -> None:
    async with (
        await weft.open(tmp_path / "weft.db") as server,
        await weft.open(tmp_path / "weft.db") as other,
    ):
        for agent in ("weft", "weft/http:ana"):
            await server.memory.create_block(agent, "human", pinned=True)
        await server.memory.append_to_block("weft/http:ana", "human", "Likes kiwis.")
        await other.people.link("http:ana", "owner")
        blocks = {block.label: block.content for block in await other.memory.rendered_blocks("weft")}

    assert blocks == {"human": "", "human (http:ana)": "Likes kiwis."}
