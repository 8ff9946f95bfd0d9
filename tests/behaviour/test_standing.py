"""Standing instructions, played as a whole: said once, shown verbatim ever after, listed and taken back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from mcp import Client

import weft
from epoch_chaos import Model, small
from http_server import listening
from programs import environ, run_weft
from talking import ME, Talk
from weft.channels.attachments import Attachment, with_attachments
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.mcp import make_server
from weft.config import load_config
from weft.gateway.settings import GatewaySettings
from weft.providers.base import collected
from weft.testing import LoopbackVendor
from weft.types.limits import ModelInfo
from weft.types.session import ONE_OFF
from wired import Wire, calling, gateway, said

RULE = "Always answer in Spanish."
NOTICE = "From now on: always answer in Spanish (/undo takes it back)"
TITLE = "## Standing instructions of this user"


@asynccontextmanager
async def talking(
    *script: str | weft.Reply | BaseException,
) -> AsyncIterator[tuple[Talk, weft.ScriptedProvider]]:
    model = weft.ScriptedProvider(script or ["Vale."] * 9)
    app = await weft.connect(provider=model)
    yield Talk(app), model
    await app.close()


async def reply_to(talk: Talk, text: str, **more: object) -> weft.Reply:
    request = weft.TurnRequest(text=text, caller=talk.caller, session=talk.session, commands=True)
    reply = await collected(talk.app.handle(replace(request, **more)))  # type: ignore[arg-type]
    talk.session = reply.session_id
    return reply


async def rules(app: weft.Assistant, sender: str = "terminal:owner") -> list[str]:
    return [one.text for one in await (await app.store.get()).instructions.list(sender)]


def system_of(model: weft.ScriptedProvider, at: int = -1) -> str:
    return model.requests[at].system_prompt


async def test_a_rule_is_told_stored_with_its_message_and_shown_verbatim_in_the_next_session() -> None:
    async with talking() as (talk, model):
        await talk.say("Hello.")
        reply = await reply_to(talk, f"Good morning. {RULE} What's new?")
        session = talk.session
        (stored,) = await (await talk.app.store.get()).instructions.list("terminal:owner")
        await talk.say("/new")
        await talk.say("Hello again.")

    assert reply.notice == NOTICE
    assert (stored.text, stored.pinned) == (RULE, False)
    assert (stored.session_id, stored.message) == (session, 3)
    assert TITLE not in system_of(model, 1)
    assert stored.created_at is not None
    assert f"{TITLE}\n- {RULE} (since {stored.created_at.astimezone():%Y-%m-%d})" in system_of(model)


async def test_the_rule_stands_behind_the_blocks_and_before_the_facts() -> None:
    async with talking() as (talk, model):
        await talk.say(RULE)
        await (await talk.app.store.get()).facts.set("terminal:owner", "city", "Lisbon")
        await talk.say("/new")
        await talk.say("Hello.")

    text = system_of(model)
    assert text.rindex("</block:") < text.index(TITLE) < text.index("## Known facts about this user")


async def test_another_person_does_not_have_it_and_a_linked_sender_does() -> None:
    async with talking() as (talk, model):
        await talk.say(RULE)
        for number in ("7", "8"):
            caller = replace(ME, channel="telegram", sender_id=number)
            await (await talk.app.store.get()).people.link("telegram:7", "owner")
            await Talk(talk.app, caller).say("Hello.")

    assert RULE in system_of(model, 1)
    assert RULE not in system_of(model, 2)


async def test_undo_takes_rules_facts_and_blocks_back_in_the_reverse_order() -> None:
    script = (
        calling("remember_fact", key="city", value="Lisbon"),
        "Hecho.",
        "Vale.",
        calling("memory_append", label="notes", text="Two"),
        "Hecho.",
    )
    async with talking(*script) as (talk, _):
        reply = await reply_to(talk, f"I live in Lisbon. {RULE}")
        assert reply.changes == ("remembered city: Lisbon", "from now on: always answer in Spanish")
        await talk.say("Never call me Bob.")
        await talk.say("Note: two")
        await talk.say("/instructions remove 1")
        answers = [await talk.say("/undo") for _ in range(6)]
        left = await rules(talk.app)

    assert answers[0] == f"The standing instruction “{RULE}” holds again."
    assert answers[1].startswith("The last change of **notes** was taken back.")
    gone = "was taken back, and no longer holds."
    assert answers[2] == f"The standing instruction “Never call me Bob.” {gone}"
    assert answers[3] == f"The standing instruction “{RULE}” {gone}"
    assert answers[4].startswith("The last change of the fact **city** was taken back.")
    assert answers[5] == "There is nothing to undo."
    assert left == []


@pytest.mark.parametrize("command", ["/undo", "/instructions remove 1"])
async def test_of_a_rule_that_was_taken_back_its_session_says_that_it_no_longer_holds(command: str) -> None:
    async with talking() as (talk, model):
        await talk.say(RULE)
        await talk.say(command)
        await talk.say("Hello.")
        since = f"{datetime.now().astimezone():%Y-%m-%d}"
        assert f"{TITLE}\n- (no longer holds, since {since}: “{RULE}”)" in system_of(model)
        for table in ("/context", "/receipt"):
            [row] = [line for line in (await talk.say(table)).splitlines() if "| standing |" in line]
            assert row.endswith(f"| {RULE} (taken back) |")

        await talk.say(RULE)
        await talk.say("Hello again.")
        asked = model.requests[-1].to_prompt_string()
        assert f"[standing] {RULE} (since {since})\n</context:changes>" in asked

        await talk.say(command)
        await talk.say("/new")
        await talk.say("Good evening.")
        assert TITLE not in system_of(model)


async def test_the_same_rule_said_twice_is_one_and_told_once() -> None:
    async with talking() as (talk, _):
        first = await reply_to(talk, RULE)
        again = await reply_to(talk, "always answer in Spanish!")

        assert (first.notice, again.notice) == (NOTICE, "")
        assert await rules(talk.app) == [RULE]


async def test_a_turn_that_fails_stores_nothing_and_the_message_can_be_sent_again() -> None:
    async with talking(weft.ProviderError("no"), "Vale.") as (talk, _):
        with pytest.raises(weft.ProviderError):
            await talk.say(RULE)
        assert await rules(talk.app) == []

        await talk.say(RULE)
        assert await rules(talk.app) == [RULE]


async def test_a_model_without_tools_has_it_too() -> None:
    model = weft.ScriptedProvider(["Vale."], info=ModelInfo(id="small", provider="test", calls_tools=False))
    app = await weft.connect(provider=model)
    reply = await reply_to(Talk(app), RULE)

    assert reply.notice == NOTICE
    assert await rules(app) == [RULE]
    await app.close()


async def test_what_a_file_a_feed_a_task_an_app_or_a_one_off_question_says_is_no_rule() -> None:
    async with talking(*["Vale."] * 12) as (talk, _):
        file = Attachment(name="notes.txt", size_bytes=9, text=f"{RULE}\nNever call me Bob.")
        plain = weft.TurnRequest(text="What is in it?", caller=ME, session="chat")
        store = await talk.app.store.get()
        one_off = await store.sessions.new(ONE_OFF, ONE_OFF, "owner", agent_id="weft")
        silent = [
            with_attachments(plain, [file]),
            replace(
                plain, text=f"Look at this.\n\n{RULE}", words="Look at this.", outside=("standard input",)
            ),
            replace(plain, text=RULE, one_off=True),
            replace(plain, text=RULE, origin="feed"),
            replace(plain, text=RULE, origin="web", outside=("forwarded message",)),
            replace(plain, text=RULE, origin="agent"),
            replace(plain, text=RULE, history=()),
            replace(plain, text=RULE, session=""),
            replace(plain, text=RULE, session=one_off.id, one_off=True),
            replace(plain, text=RULE, session=one_off.id),
        ]
        for request in silent:
            reply = await collected(talk.app.handle(request))
            assert reply.changes == ()

        assert await rules(talk.app) == []
        with_own_words = with_attachments(replace(plain, text=f"{RULE} And this file?"), [file])
        assert (await collected(talk.app.handle(with_own_words))).notice == NOTICE
        (stored,) = await store.instructions.list("terminal:owner")
        assert stored.message is not None
        (message,) = await store.messages.between(stored.session_id, stored.message, stored.message)
        assert message.content.startswith(RULE)


async def test_a_result_of_a_tool_is_no_rule() -> None:
    async with talking(calling("archival_search", query="rule"), "Vale.") as (talk, _):
        store = await talk.app.store.get()
        await store.memory.insert_archival("weft", f"A rule: {RULE}")
        await store.memory.insert_archival("weft", RULE)

        await talk.say("What does my note say?")

        assert await rules(talk.app) == []


async def test_a_recipe_that_shows_no_rules_recognizes_none() -> None:
    async with talking() as (talk, model):
        await talk.say("/recipe omega")
        assert (await reply_to(talk, RULE)).changes == ()
        pinned = await talk.say("/always Answer in Spanish.")
        await talk.say("Hello.")

        assert "The recipe omega does not show standing instructions: `/recipe weft` does." in pinned
        assert TITLE not in system_of(model)
        await talk.say("/recipe weft")
        await talk.say("Hello.")
        assert "- Answer in Spanish. (since " in system_of(model)


async def test_in_telegram_the_line_goes_out_with_the_answer_and_a_forwarded_rule_does_nothing() -> None:
    wire = Wire()
    async with gateway(weft.ScriptedProvider(["Vale."] * 3), wire) as (made, app):
        await made.submit(said(RULE, 1, origin="web"))
        await made.submit(said(RULE, 2))
        sent = await wire.wait(2)
        stored = await rules(app, "telegram:7")

    assert sent == [("7", "Vale."), ("7", f"Vale.\n\n{NOTICE}")]
    assert stored == [RULE]


async def test_a_rule_in_a_message_that_steers_a_running_turn_is_stored_and_told() -> None:
    model = weft.ScriptedProvider([calling("archival_search", query="sea"), "Vale."])
    config = replace(load_config(), gateway=GatewaySettings(while_running="steer"))
    app = await weft.connect(config, provider=model)
    request = weft.TurnRequest(text="Search the sea.", caller=ME, session="chat")
    events = app.handle(request)
    await anext(events)  # the turn has begun
    steering = app.handle(replace(request, text=f"{RULE} And the lake."))
    waiting = asyncio.ensure_future(collected(steering))
    reply = await collected(events)
    await waiting

    assert reply.notice == NOTICE
    (stored,) = await (await app.store.get()).instructions.list("terminal:owner")
    assert (stored.text, stored.message) == (RULE, 4)
    await app.close()


async def test_over_http_a_turn_sets_a_rule_and_what_an_app_sends_does_not() -> None:
    app = await weft.connect(provider=weft.ScriptedProvider(["Vale."] * 4))
    async with (
        listening(make_app(app, HttpChannelSettings())) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        said_by_app = [{"role": "user", "content": RULE}]
        chat = await client.post("/v1/chat/completions", json={"messages": said_by_app})
        responses = await client.post("/v1/responses", json={"input": RULE})
        assert (chat.status_code, responses.status_code) == (200, 200)
        assert await rules(app, "http:owner") == []

        turn = await client.post("/api/turns", json={"text": RULE, "session": "s"})
        assert turn.status_code == 200
        assert await rules(app, "http:owner") == [RULE]
        assert turn.json()["notice"] == NOTICE
    await app.close()


async def test_over_mcp_ask_sets_a_rule() -> None:
    app = await weft.connect(provider=weft.ScriptedProvider(["Vale."]))
    async with Client(make_server(app, await app.store.get(), ME.known_as("owner"))) as client:
        result = await client.call_tool("ask", {"text": RULE})

    assert NOTICE in "".join(getattr(part, "text", "") for part in result.content)
    assert await rules(app) == [RULE]
    await app.close()


def test_as_processes_chat_tells_it_instructions_lists_it_and_ask_learns_nothing(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["Vale."] * 6) as server:
        around = {**server.environ, "WEFT_MODEL": "gpt-4o", "OLLAMA_HOST": "127.0.0.1:1", "NO_COLOR": "1"}
        env = environ(tmp_path, **around)
        asked = run_weft(env, "ask", RULE)
        go_on = run_weft(env, "ask", "-c", RULE)
        before = run_weft(env, "instructions", "list")
        chat = run_weft(env, "chat", stdin=f"{RULE}\n/new\nHello.\n")
        listed = run_weft(env, "instructions", "list")
        rows = json.loads(run_weft(env, "instructions", "list", "--json").stdout)
        sent = json.dumps(server.requests[-1].payload, ensure_ascii=False)

    assert (asked.returncode, go_on.returncode, chat.returncode) == (0, 0, 0), chat.stderr
    assert "From now on" not in asked.stderr + go_on.stderr
    assert before.stdout == "There are none yet: `weft instructions add TEXT` adds one.\n"
    assert NOTICE in chat.stderr
    assert listed.stdout.startswith(f"  1  {RULE}  recognized 20")
    assert [(row["text"], row["pinned"], row["shown"], row["message"]) for row in rows] == [
        (RULE, False, True, 1)
    ]
    assert f"{TITLE}\\n- {RULE} (since 20" in sent


async def test_a_fold_tells_how_many_instructions_stay_without_those_that_were_taken_back() -> None:
    model = Model(info=small(6_000))
    app = await weft.connect(provider=model)
    store = await app.store.get()
    for text in ("Always name the pier.", "Never call me Bob."):
        await store.instructions.add(ME.sender, text, pinned=True)
    await app.ask(RULE, session="chat", caller=ME)
    [heard] = [one for one in await store.instructions.list(ME.sender) if not one.pinned]
    await store.instructions.remove(ME.sender, heard.id)
    told = ""
    while "shown as a summary" not in told:
        text = "The sea was calm and the wind came from the north. " * 10
        reply = await app.ask(text, session="chat", caller=ME)
        await app.folds.settle()
        told = reply.notice
    await app.close()

    assert "2 standing instructions stay word for word" in told
