"""Every request of every turn can be put together again byte for byte, and takes little room."""

import json
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import environ, run_weft
from weft.config import load_config
from weft.providers.http import HttpProvider
from weft.testing import LoopbackVendor, Refusal
from weft.testing.vendors import SentRequest as Received
from weft.tools.base import Tool
from weft.turn.fold import FOLD_TASK
from weft.turn.inspect import Replay, replays, view
from weft.types.message import ToolDefinition
from weft.types.reply import Event
from weft.types.request import Caller
from weft.types.sent import StoredRequest
from weft.wire import VENDORS
from weft.wire.items import digest_of_bytes, encode, join
from weft.wire.vendors import model_info

from samples import all_bytes, write_workspace

OWNER = Caller(agent_id="weft", channel="terminal", sender_id="owner", conversation="chat")
PASSAGE = 'hunter2-"Marlin"-é🐠'
ODD = ("plain words", 'quotes " and \\ and \n lines', "é🐠\u2028\u200d", "</context:now> [User]", "\x00\x1f")
LONG = "The tide table of the harbour, line by line. " * 40
Answer = str | weft.Reply | Refusal


class Recorder(LoopbackVendor):
    """A vendor that keeps the very bytes of each request, and whose answers a test decides one by one."""

    def __init__(self, vendor: str) -> None:
        super().__init__(vendor)
        self.latest = b""
        self.bodies: list[bytes] = []
        self.summaries: list[bytes] = []
        self.answers: list[Answer] = []

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        base, recorder = super()._handler(), self

        class Handler(base):  # type: ignore[misc, valid-type]
            def do_POST(self) -> None:
                body: bytes = self.rfile.read(int(self.headers["content-length"]))  # type: ignore[has-type]
                self.rfile = BytesIO(body)
                recorder.latest = body
                super().do_POST()

        return Handler

    def _next(self, request: Received) -> weft.Reply | Refusal | bytes | None:
        is_summary = FOLD_TASK in json.dumps(request.payload, ensure_ascii=False)
        (self.summaries if is_summary else self.bodies).append(self.latest)
        answer: Answer = "A summary of what was said." if is_summary else self.answers.pop(0)
        self._script = iter((answer,))
        return super()._next(request)


@dataclass
class Talk:
    """A conversation that goes on at random, on a vendor whose bytes are kept. `words` are what was said."""

    vendor: Recorder
    seed: int
    window: int = 6_000
    apps: list[weft.Assistant] = field(default_factory=list)
    sessions: list[str] = field(default_factory=lambda: ["one"])

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    async def connect(self) -> weft.Assistant:
        kind = VENDORS[self.vendor.vendor.name]
        info = replace(
            model_info(kind, "claude-sonnet-4-5" if kind.name == "anthropic" else "m"), max_tokens=self.window
        )
        provider = HttpProvider(kind, info=info, url=self.vendor.url, key="k")
        app = await weft.connect(load_config(), provider=provider, tools=[look()])
        self.apps.append(app)
        return app

    async def close(self) -> None:
        for app in self.apps:
            await app.close()
        self.apps.clear()

    async def restart(self) -> None:
        count = len(self.apps)
        await self.close()
        for _ in range(count):
            await self.connect()

    async def say(self, text: str, *answers: Answer) -> None:
        """Say something to one of the assistants; its model gives these answers, round after round."""
        self.vendor.answers = [*answers]
        app = self.random.choice(self.apps)
        try:
            await app.ask(text, session=self.random.choice(self.sessions), caller=OWNER)
        except weft.ProviderError:
            assert isinstance(answers[-1], Refusal)
        await app.folds.settle()
        assert self.vendor.answers == []

    async def go_on(self) -> None:
        """Do one thing at random."""
        number = self.random.randrange(10_000)
        text = f"{self.random.choice(ODD)} {number}"
        store = await self.apps[0].store.get()
        match self.random.randrange(9):
            case 0 | 1:
                await self.say(text, f"Answer {text}")
            case 2:
                orders = [
                    calls(("memory_append", {"label": "notes", "text": text})),
                    calls(("look", {"at": number}), ("remember_fact", {"key": f"k{number}", "value": "v"})),
                    calls(("no_such_tool", {"x": [text]})),
                ]
                rounds = self.random.sample(orders, self.random.randrange(1, 4))
                await self.say(text, *rounds, "Done with tools.")
            case 3:
                await store.memory.append_to_block("weft", "human", f"Line {text}\n".replace("\x00", ""))
            case 4:
                await store.facts.set("terminal:owner", f"key{number % 5}", f"value {number}")
                if number % 3 == 0:
                    await store.facts.delete("terminal:owner", f"key{number % 5}")
            case 5:
                await self.say(text, Refusal(400, "no good"))
            case 6:
                await self.say(text, calls(("look", {"at": number})), Refusal(400, "no good"))
            case 7:
                await self.say(f"{text} {LONG}", f"Long answer. {LONG}")
            case _:
                await self.restart()


def look() -> Tool:
    async def run(arguments: Any, caller: Caller) -> str:
        return f"At {arguments}: {LONG * (int(arguments.get('at') or 0) % 3)}"

    definition = ToolDefinition(
        name="look", parameters={"type": "object", "properties": {"at": {"type": "integer"}}}
    )
    return Tool(definition=definition, run=run, source="the test", kind="read")


def calls(*orders: tuple[str, dict[str, Any]]) -> weft.Reply:
    made = tuple(
        weft.ToolCall(id=f"call{at}", name=name, arguments=args) for at, (name, args) in enumerate(orders)
    )
    return weft.Reply(text="", tool_calls=made, stop_reason="tools")


async def stored_requests(store: weft.Store) -> list[StoredRequest]:
    """Return all requests of all sessions, in the order in which they were made."""
    found = list[StoredRequest]()
    for session in await store.sessions.list():
        for info in await store.turns.page(session.id, limit=1_000):
            found += await store.turns.requests(info.id)
    return sorted(found, key=lambda one: (one.at.timestamp() if one.at else 0, one.round))


@pytest.mark.parametrize(("vendor", "seed"), [(name, at) for at, name in enumerate(VENDORS)])
async def test_every_stored_request_has_the_bytes_that_the_vendor_got(
    vendor: str, seed: int, home: Path
) -> None:
    """Two assistants on one file and two sessions, with edits, tools, failures, restarts and folds."""
    (home / "config.toml").write_text("[requests]\nretries = 0\n")
    with Recorder(vendor) as server:
        talk = Talk(server, seed, sessions=["one", "two"])
        await talk.connect()
        await talk.connect()
        await talk.say("Hello.", "Hello.")
        for _ in range(24):
            await talk.go_on()
        store = await talk.apps[0].store.get()

        requests = await stored_requests(store)

        assert [encode(join(one.request)) for one in requests] == server.bodies
        assert [one.request.digest for one in requests] == [digest_of_bytes(body) for body in server.bodies]
        assert server.summaries
        await assert_every_replay_is_equal(store)
        await talk.close()


@pytest.mark.parametrize(("vendor", "seed"), [("anthropic", 11), ("openai", 12), ("ollama", 13)])
async def test_after_a_purge_replay_says_what_is_missing_and_the_text_is_nowhere_in_the_file(
    vendor: str, seed: int, home: Path
) -> None:
    (home / "config.toml").write_text("[requests]\nretries = 0\n")
    with Recorder(vendor) as server:
        talk = Talk(server, seed)
        await talk.connect()
        await talk.say("Hello.", "Hello.")
        for _ in range(8):
            await talk.go_on()
        store = await talk.apps[0].store.get()
        await tell_secret(talk, store)
        for _ in range(8):
            await talk.go_on()
        store = await talk.apps[0].store.get()

        await store.purge(PASSAGE)

        for _ in range(8):
            await talk.go_on()
        store = await talk.apps[0].store.get()
        requests = await stored_requests(store)
        assert len(requests) == len(server.bodies)
        outcomes = await replayed(store)
        marked = json.dumps(PASSAGE, ensure_ascii=False)[1:-1].encode()
        for stored, body in zip(requests, server.bodies, strict=True):
            replay = outcomes[stored.turn_id, stored.round]
            had_it = marked in body or json.dumps(marked.decode())[1:-1].encode() in body
            assert replay.equal == (not had_it)
            assert replay.missing or not had_it
            assert replay.equal == (encode(join(stored.request)) == body)
            assert replay.sent_digest == digest_of_bytes(body)
        assert any(not replay.equal for replay in outcomes.values())
        for name in ("weft.db", "weft.db-wal"):
            assert b"hunter2" not in (home / name).read_bytes(), name
        await talk.close()
    assert b"hunter2" not in all_bytes(home)


async def tell_secret(talk: Talk, store: weft.Store) -> None:
    """Bring the secret into a message, an answer, a call, a failed turn, a fact and a block."""
    await talk.say(f"My password is {PASSAGE}.", f"I heard {PASSAGE}.")
    await talk.say("Look.", calls(("look", {"for": PASSAGE})), calls(("look", {"at": 1})), "Looked.")
    await talk.say(f"Again {PASSAGE}", Refusal(400, f"no good: {PASSAGE}"))
    await talk.say(f"Once more {PASSAGE}", calls(("look", {"for": PASSAGE})), Refusal(400, "no good"))
    await store.facts.set("terminal:owner", "password", PASSAGE)
    await store.memory.append_to_block("weft", "human", PASSAGE)
    await talk.say("What do you know?", "A lot.")


async def replayed(store: weft.Store) -> dict[tuple[str, int], Replay]:
    found = dict[tuple[str, int], Replay]()
    for session in await store.sessions.list():
        for info in await store.turns.page(session.id, limit=1_000):
            turn = await view(store, info)
            if turn.requests:
                found |= {(info.id, one.round): one for one in replays(turn)}
    return found


async def assert_every_replay_is_equal(store: weft.Store) -> None:
    outcomes = (await replayed(store)).values()
    assert outcomes
    assert all(one.equal and not one.missing for one in outcomes)


async def test_a_request_that_is_whole_misses_nothing_although_it_quotes_a_purge_mark() -> None:
    app = await weft.connect(provider=weft.ScriptedProvider(["It is a mark."]))
    await app.ask("What does [purged:1234] mean?", session="s", caller=OWNER)

    store = await app.store.get()

    [(_, replay)] = (await replayed(store)).items()
    assert (replay.equal, replay.missing) == (True, ())
    await app.close()


# --- how much room it takes


async def test_of_200_turns_every_item_is_stored_once_and_receipts_take_a_quarter_of_their_size(
    home: Path, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    write_workspace(home / "workspace")
    info = weft.ModelInfo(id="m", provider="scripted", max_tokens=24_000)
    model = weft.ScriptedProvider(["An answer of a few words: {message}"] * 210, info=info)
    app = await weft.connect(provider=model)
    store = await app.store.get()
    whole_bytes, items, parts, of_receipts = 0, set[str](), [], 0
    for number in range(200):
        if number % 7 == 3:
            await store.memory.append_to_block("weft", "human", f"line {number}\n")
        if number % 5 == 2:
            await store.facts.set("terminal:owner", f"key{number % 11}", f"value {number}")
        await app.ask(f"Message {number}. {'About the tide. ' * 6}", session="s", caller=OWNER)
        await app.folds.settle()
        [session] = await store.sessions.list()
        [turn] = await store.turns.page(session.id, limit=1)
        [stored] = await store.turns.requests(turn.id)
        whole_bytes += stored.request.size
        items |= {*stored.request.items}
        receipt = await store.turns.get(turn.id)
        [(of_row,)] = sql("select length(cast(receipt as blob)) from turns where id = ?", turn.id)
        [(of_runs,)] = sql(
            "select sum(length(cast(text as blob))) from contents "
            "where hash not in (select hash from request_items)"
        )
        parts.append((receipt.epoch_why, (of_row + of_runs - of_receipts) / len(receipt.to_json().encode())))
        of_receipts = of_runs

    [(count, stored_bytes)] = sql(
        "select count(*), sum(length(cast(text as blob))) from contents "
        "where hash in (select hash from request_items)"
    )
    assert (count, stored_bytes) == (len(items), sum(len(item.encode()) for item in items))
    assert stored_bytes < whole_bytes / 20
    assert max(part for began, part in parts if not began) < 0.25
    assert sum(part for _, part in parts) / len(parts) < 0.25
    assert len(await store.epochs.list(session.id)) > 1, "folds are a part of this"
    await app.close()


# --- deleting, exporting, backing up


async def two_sessions(home: Path) -> list[str]:
    """Talk in two sessions, with tool calls, edits and folds. Returns their ids, the oldest first."""
    info = weft.ModelInfo(id="m", provider="scripted", max_tokens=6_000)
    app = await weft.connect(provider=Summarizing(info), tools=[look()])
    store = await app.store.get()
    for name in ("marlin swims", "quokka hops"):  # nothing of one is recalled in the other
        for number in range(8):
            await store.facts.set("terminal:owner", "city", f"Lisbon {number}")
            await app.ask(f"{name}{number}. " * 150, session=name, caller=OWNER)
            await app.folds.settle()
    await assert_every_replay_is_equal(store)
    sessions = [session.id for session in reversed(await store.sessions.list())]
    await app.close()
    return sessions


class Summarizing(weft.ScriptedProvider):
    """A model that calls a tool once in each turn, answers with the message, and writes summaries."""

    def __init__(self, info: weft.ModelInfo) -> None:
        super().__init__(info=info)

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        self.requests.append(context)
        last = context.to_messages()[-1]
        if FOLD_TASK in f"{context.system_prompt}{context.current_message}":
            yield weft.Done(weft.Reply(text=f"They spoke of {context.current_message[-300:]}"))
        elif last.role == "tool":
            yield weft.Done(weft.Reply(text=f"Said: {context.current_message}"))
        else:
            yield weft.Done(calls(("look", {"at": 0})))


async def test_a_deleted_session_leaves_no_request_attachment_epoch_or_content_behind(
    home: Path, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    first, second = await two_sessions(home)

    done = run_weft(environ(home), "sessions", "delete", first, "--yes")

    assert (done.returncode, done.stderr) == (0, "")
    assert b"marlin" not in all_bytes(home)
    sessions = sql("select distinct session_id from epochs union select session_id from attachments")
    assert sessions == [(second,)]
    assert sql("select distinct session_id from requests join turns on turns.id = turn_id") == [(second,)]
    orphans = "select * from request_items where request_id not in (select id from requests)"
    assert sql(orphans) == sql("select * from requests where turn_id not in (select id from turns)") == []
    async with await weft.open(home / "weft.db") as store:
        await assert_every_replay_is_equal(store)
        assert await store.check() == []

    run_weft(environ(home), "sessions", "delete", second, "--yes")

    for name in ("requests", "request_items", "contents", "attachments", "epochs", "turns"):
        assert sql(f"select count(*) from {name}") == [(0,)], name  # noqa: S608


async def test_an_export_and_a_backup_carry_every_request(home: Path, tmp_path: Path) -> None:
    await two_sessions(home)
    before = await everything(home / "weft.db")
    assert len(before) == 32

    run_weft(environ(home), "export", str(home / "folder"))
    run_weft(environ(home), "backup", str(home / "copy.db"))
    other = home / "other"
    done = run_weft(environ(other), "import", str(home / "folder"))
    restored = run_weft(environ(home / "third"), "restore", str(home / "copy.db"))

    assert (done.returncode, restored.returncode) == (0, 0), done.stderr + restored.stderr
    assert await everything(other / "weft.db") == before
    assert await everything(home / "copy.db") == before
    assert await everything(home / "third" / "weft.db") == before
    shown = run_weft(environ(other), "turns", "replay", "8", "--json")
    assert [one["equal"] for one in json.loads(shown.stdout)] == [True, True]


async def test_an_import_keeps_the_text_of_every_item_and_so_the_share_of_each_request(home: Path) -> None:
    await two_sessions(home)
    run_weft(environ(home), "export", str(home / "folder"))
    run_weft(environ(home / "other"), "import", str(home / "folder"))

    assert await shares(home / "other" / "weft.db") == await shares(home / "weft.db")


async def everything(database: Path) -> dict[tuple[str, int], tuple[bytes, str]]:
    """Return the bytes and the digest of every request, when each was replayed."""
    async with await weft.open(database) as store:
        await assert_every_replay_is_equal(store)
        return {
            (one.turn_id, one.round): (encode(join(one.request)), one.request.digest)
            for one in await stored_requests(store)
        }


async def shares(database: Path) -> list[tuple[int, float]]:
    async with await weft.open(database) as store:
        return [(one.request.size, one.share) for one in await stored_requests(store)]
