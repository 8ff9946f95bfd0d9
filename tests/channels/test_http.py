"""The server itself: our own API, who may come in, how much and how often, and what is counted."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from http_server import Slow, serving
from weft.channels.http import HttpServer, make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.limits import RateLimit
from weft.gateway.transcript import match

SECRET = "secret"  # noqa: S105 - it guards nothing
GUARDED = ("/v1/models", "/api/sessions", "/api/blocks", "/metrics", "/openapi.json")
CHAT = {"model": "weft", "messages": [{"role": "user", "content": "hi"}]}


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# --- our own API


async def test_a_turn_begins_a_session_and_the_next_turn_can_continue_it() -> None:
    async with serving(["r1", "r2", "r3"]) as server, server.client() as http:
        first = (await http.post("/api/turns", json={"text": "one"})).json()
        second = (await http.post("/api/turns", json={"text": "two", "session": first["session"]})).json()
        other = (await http.post("/api/turns", json={"text": "three"})).json()

        assert set(first) == {"turn", "session", "reply"}
        assert (first["reply"], second["reply"]) == ("r1", "r2")
        assert second["session"] == first["session"] != other["session"]
        assert [m.content for m in server.model.requests[1].history] == ["one", "r1"]
        assert server.model.requests[2].history == ()


async def test_a_turn_by_its_id_has_its_receipt() -> None:
    async with serving(["r1", "r2"]) as server, server.client() as http:
        body = {"text": "one", "session": "boat"}
        turns = [(await http.post("/api/turns", json=body)).json()["turn"] for _ in range(2)]

        receipts = [(await http.get(f"/api/turns/{turn}")).json() for turn in turns]
        missing = await http.get("/api/turns/none")

        store = await server.store()
        assert receipts == [json.loads((await store.turns.get(turn)).to_json()) for turn in turns]
        assert receipts[0] != receipts[1], "the second turn had a history"
        for receipt in receipts:
            assert receipt["total_tokens"] == sum(item["tokens"] for item in receipt["items"] if item["kept"])
        assert code(missing) == (404, "turn_not_found")


async def test_a_context_is_shown_with_its_receipt_and_no_model_is_asked() -> None:
    async with serving(["r1"]) as server, server.client() as http:
        turn = (await http.post("/api/turns", json={"text": "one", "session": "boat"})).json()
        seen = await http.post("/api/context", json={"text": "two", "session": turn["session"]})
        pattern = await http.post("/api/context", json={"text": "two", "recipe": "pattern"})
        unknown = await http.post("/api/context", json={"text": "two", "recipe": "../etc/passwd"})
        missing = await http.post("/api/context", json={"text": "two", "recipe": "stew"})

        assert seen.json()["current_message"] == "two"
        assert [m["content"] for m in seen.json()["history"]] == ["one", "r1"]
        assert seen.json()["receipt"]["recipe"] == "weft"
        assert pattern.json()["receipt"]["recipe"] == "pattern"
        assert code(unknown) == code(missing) == (400, "invalid_value")
        assert len(server.model.requests) == 1
        assert len(await server.log()) == 1


async def test_sessions_blocks_and_what_is_remembered_can_be_read() -> None:
    async with serving(["The boat is Marlin."]) as server, server.client() as http:
        empty = [
            (await http.get(path)).json() for path in ("/api/sessions", "/api/blocks", "/api/search?q=x")
        ]
        await http.post("/api/turns", json={"text": "Which boat?", "sender": "ada"})
        memory = (await server.store()).memory
        await memory.create_block("weft", "boat")
        await memory.update_block_text("weft", "boat", "A blue boat.")

        (session,) = (await http.get("/api/sessions?limit=5")).json()["sessions"]
        *_, block = (await http.get("/api/blocks")).json()["blocks"]  # the owner's, not those of ada
        found = (await http.get("/api/search", params={"q": "boat", "limit": 3})).json()["results"]

        assert empty == [{"sessions": []}, {"blocks": []}, {"results": []}]
        assert (session["channel"], session["sender"]) == ("http", "ada")
        assert (block["label"], block["content"]) == ("boat", "A blue boat.")
        assert any("blue boat" in hit["content"] for hit in found)


async def test_two_senders_see_neither_facts_nor_history_of_each_other() -> None:
    async with serving(["r1", "r2", "r3"]) as server, server.client() as http:
        await (await server.store()).facts.set("http:ada", "boat", "Marlin")

        async def says(text: str, sender: str, session: str) -> Any:
            body = {"text": text, "sender": sender, "session": session}
            return (await http.post("/api/turns", json=body)).json()

        ada = await says("My code is 4711.", "ada", "chat")
        ben = await says("What is the code?", "ben", "chat")
        sly = await says("What is the code?", "ben", ada["session"])
        look = await http.post(
            "/api/context", json={"text": "the code", "sender": "ben", "session": ada["session"]}
        )

        assert len({ada["session"], ben["session"], sly["session"]}) == 3
        assert "Marlin" in server.model.requests[0].to_json()
        for seen in (*(request.to_json() for request in server.model.requests[1:]), look.text):
            assert "Marlin" not in seen
            assert "4711" not in seen


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/api/turns", {"text": "hi", "colour": "red"}, "colour"),
        ("/api/turns", {"text": ""}, "text"),
        ("/api/turns", {"text": " \n"}, "message is empty"),
        ("/api/turns", {"text": "hi", "session": "x" * 201}, "session"),
        ("/api/turns", {"text": "hi", "sender": 7}, "sender"),
        ("/api/turns", [], "The request"),
        ("/api/context", {"text": "hi", "recipes": "weft"}, "recipes"),
        ("/v1/responses", {"model": "weft"}, "input"),
        ("/v1/chat/completions", {"messages": "hi"}, "messages"),
    ],
)
async def test_a_body_of_the_wrong_shape_is_refused_and_says_where(path: str, body: Any, told: str) -> None:
    async with serving(["never"]) as server, server.client() as http:
        answer = await http.post(path, json=body)

        assert answer.status_code == 400
        assert told in answer.json()["error"]["message"]
        assert server.model.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"text": "\\ud800"}',
        b"[" * 100_000,
        b'{"text": ' + b"9" * 5000 + b"}",
        b'{"messages": [{"role": "user", "content": "hi"}], '
        b'"tools": [{"function": {"name": "f", "parameters": '
        + b'{"a": ' * 900
        + b"1"
        + b"}" * 900
        + b"}}]}",
    ],
    ids=["open", "not utf-8", "surrogate", "deep", "long number", "deep schema"],
)
@pytest.mark.parametrize("path", ["/api/turns", "/v1/chat/completions"])
async def test_a_malicious_body_is_refused(path: str, body: bytes) -> None:
    async with serving(["never"]) as server, server.client() as http:
        answer = await http.post(path, content=body, headers={"content-type": "application/json"})

        assert answer.status_code == 400
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert server.model.requests == []


async def test_unknown_fields_of_the_openai_api_are_passed_over() -> None:
    async with serving(["ok"]) as server, server.client() as http:
        answer = await http.post("/v1/chat/completions", json={**CHAT, "temperature": 0.5, "novel": [1]})

        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"] == "ok"


async def test_there_is_a_description_and_there_are_no_pages_with_foreign_scripts() -> None:
    async with serving() as server, server.client() as http:
        described = (await http.get("/openapi.json")).json()

        assert set(described["paths"]) == {
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/models",
            "/v1/models/{model}",
            "/api/turns",
            "/api/turns/{turn_id}",
            "/api/turns/{turn_id}/requests",
            "/api/turns/{turn_id}/diff",
            "/api/turns/{turn_id}/replay",
            "/api/turns/{turn_id}/why",
            "/api/sessions/{session_id}/turns",
            "/api/context",
            "/api/sessions",
            "/api/blocks",
            "/api/blocks/{label}",
            "/api/blocks/{label}/edits",
            "/api/search",
            "/api/health",
            "/metrics",
        }
        page = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")
        assert [path for path in described["paths"] if f" {path}" not in page] == []
        about = await http.get("/")
        assert (about.status_code, about.json()["version"]) == (200, weft.__version__)
        assert "weft docs http" in about.json()["about"]
        for path in ("/docs", "/redoc", "/nowhere"):
            answer = await http.get(path)
            assert answer.status_code == 404
            assert answer.json()["error"]["type"] == "not_found_error"


# --- who may come in


@pytest.mark.parametrize(
    "given", ["", "Bearer wrong", "Bearer", "Basic secret", "Bearer s\u00e9cret", "secret"]
)
async def test_without_the_token_every_route_but_health_is_refused(given: str) -> None:
    headers = {b"authorization": given.encode("latin-1")} if given else {}
    async with serving(["never"], token=SECRET) as server, server.client() as http:
        for path in (*GUARDED, "/nowhere"):
            answer = await http.get(path, headers=headers)
            assert code(answer) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert code(await http.post("/v1/chat/completions", json=CHAT, headers=headers))[0] == 401
        health = await http.get("/api/health", headers=headers)

        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert server.model.requests == []


async def test_with_the_token_everything_works() -> None:
    headers = {"authorization": "bearer secret"}
    async with serving(["ok"], token=SECRET) as server, server.client(headers=headers) as http:
        assert (await http.post("/v1/chat/completions", json=CHAT)).status_code == 200
        for path in (*GUARDED, "/api/health"):
            assert (await http.get(path)).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]", ""])
async def test_a_foreign_host_is_refused(host: str) -> None:
    async with serving() as server, server.client() as http:
        answer = await http.get("/v1/models", headers={"host": host})

        assert code(answer) == (403, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:8713", "127.0.0.1", "weft.home:80"])
async def test_the_names_of_this_machine_are_known(host: str) -> None:
    async with serving(names=("weft.home",)) as server, server.client() as http:
        assert (await http.get("/v1/models", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost", "file://"]
)
async def test_pages_of_other_sites_are_refused_even_with_the_token(origin: str) -> None:
    headers = {"origin": origin, "authorization": "Bearer secret"}
    async with serving(["never"], token=SECRET) as server, server.client(headers=headers) as http:
        answer = await http.post("/v1/chat/completions", json=CHAT)

        assert code(answer) == (403, "wrong_origin")
        assert "access-control-allow-origin" not in answer.headers
        assert server.model.requests == []


async def test_a_page_of_the_server_itself_may_ask() -> None:
    async with serving() as server, server.client(headers={"origin": server.url}) as http:
        assert (await http.get("/v1/models")).status_code == 200


async def test_a_server_that_listens_everywhere_is_called_by_any_number_and_by_no_foreign_name() -> None:
    settings = HttpChannelSettings(host="0.0.0.0")  # noqa: S104 - nothing listens
    app = await weft.connect(provider=weft.ScriptedProvider())
    with pytest.raises(weft.ConfigError, match="set WEFT_TOKEN"):
        make_app(app, settings)
    with pytest.raises(weft.ConfigError, match="set WEFT_TOKEN"):
        HttpServer(settings)
    transport = httpx.ASGITransport(make_app(app, settings, token=SECRET))
    headers = {"authorization": "Bearer secret"}

    async with httpx.AsyncClient(transport=transport, headers=headers) as http:
        assert (await http.get("http://192.168.1.7:8713/v1/models")).status_code == 200
        assert (await http.get("http://evil.example/v1/models")).status_code == 403
    await app.close()


# --- how much, and how often


async def test_a_body_that_is_too_large_is_refused_with_a_sentence() -> None:
    async with serving(["never"], max_body_bytes=100) as server, server.client() as http:
        answer = await http.post("/api/turns", json={"text": "x" * 100})

        assert code(answer) == (413, "too_large")
        assert "at most 100 bytes" in answer.json()["error"]["message"]
        assert server.model.requests == []


@pytest.mark.parametrize(
    ("header", "sent"),
    [
        (b"content-length: 10001", b""),
        (b"transfer-encoding: chunked", (b"3e8\r\n" + b" " * 1000 + b"\r\n") * 11),
    ],
    ids=["declared", "chunked"],
)
async def test_a_body_is_refused_as_soon_as_it_is_known_to_be_too_large(header: bytes, sent: bytes) -> None:
    """The body never ends, so a server that reads all of it first would not answer."""
    async with serving(["never"], max_body_bytes=10_000) as server:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /api/turns HTTP/1.1\r\nhost: localhost\r\n" + header + b"\r\n\r\n" + sent)
        status = await asyncio.wait_for(reader.readline(), 30)
        writer.close()
        await writer.wait_closed()

    assert b"413" in status
    assert server.model.requests == []


async def test_a_client_that_asks_too_often_is_told_when_to_come_back() -> None:
    async with serving(requests_per_minute=2) as server, server.client() as http:
        answers = [await http.get("/v1/models") for _ in range(3)]

        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert code(answers[2])[1] == "rate_limit_exceeded"
        assert 1 <= int(answers[2].headers["retry-after"]) <= 30


async def test_guesses_at_the_token_are_limited_and_do_not_use_up_the_owners_requests() -> None:
    async with serving(requests_per_minute=2, token=SECRET) as server, server.client() as http:
        guesses = [await http.get("/v1/models", headers={"authorization": f"Bearer {n}"}) for n in range(3)]
        right = await http.get("/v1/models", headers={"authorization": "Bearer secret"})

        assert [guess.status_code for guess in guesses] == [401, 401, 429]
        assert right.status_code == 200


def test_requests_come_back_with_time_and_each_client_has_its_own() -> None:
    now = 0.0
    limit = RateLimit(60, clock=lambda: now)

    assert [limit.wait_seconds("a") for _ in range(61)] == [0] * 60 + [1]
    assert limit.wait_seconds("b") == 0
    now = 2.0
    assert [limit.wait_seconds("a") for _ in range(3)] == [0, 0, 1]
    assert RateLimit(0).wait_seconds("a") == 0


def test_so_many_clients_are_remembered_and_the_one_silent_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.channels.limits._MAX_CLIENTS", 2)
    limit = RateLimit(1, clock=lambda: 0.0)

    assert [limit.wait_seconds(client) for client in "abbc"] == [0, 0, 60, 0]
    assert limit.wait_seconds("b") == 60, "it asked last but one"
    assert limit.wait_seconds("a") == 0, "it was forgotten, and has its request again"


async def test_a_full_queue_is_service_unavailable() -> None:
    model = Slow(["one", "two"])
    async with serving(model=model, at_once=1, max_waiting=0) as server, server.client() as http:
        first = asyncio.create_task(http.post("/api/turns", json={"text": "one"}))
        await model.began.wait()
        answers = [
            await http.post("/api/turns", json={"text": "two"}),
            await http.post("/v1/chat/completions", json={**CHAT, "stream": True}),
        ]
        model.go_on.set()

        assert [code(answer) for answer in answers] == [(503, "busy")] * 2
        assert [answer.headers["retry-after"] for answer in answers] == ["1"] * 2
        assert (await first).json()["reply"] == "one"


# --- who goes away


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_cancels_its_turn(stream: bool) -> None:
    model = Slow()
    async with serving(model=model, requests_per_minute=0) as server:
        async with server.client() as http:
            asking = asyncio.create_task(http.post("/v1/chat/completions", json={**CHAT, "stream": stream}))
            await asyncio.wait_for(model.began.wait(), 10)
            asking.cancel()
            await asyncio.wait({asking})
        await asyncio.wait_for(model.stopped.wait(), 10)
        async with server.client() as http:
            for _ in range(1000):
                numbers = (await http.get("/metrics")).text
                if 'weft_turns_total{outcome="cancelled"} 1' in numbers:
                    break

        assert 'weft_turns_total{outcome="cancelled"} 1' in numbers
        assert "weft_turns_running 0" in numbers
        ((asked, note),) = await server.log()
        assert asked == ("user", "hi")
        assert "cancelled" in note[1]


# --- what is counted


async def test_requests_and_turns_are_counted() -> None:
    async with serving(["ok", weft.ProviderError("no")]) as server, server.client() as http:
        await http.post("/v1/chat/completions", json=CHAT)
        await http.post("/v1/chat/completions", json=CHAT)
        await http.get("/api/turns/one")
        await http.get("/nowhere/at/all")
        numbers = (await http.get("/metrics")).text

    assert numbers.endswith("\n")
    for line in (
        'weft_requests_total{route="/v1/chat/completions",status="200"} 1',
        'weft_requests_total{route="/v1/chat/completions",status="502"} 1',
        'weft_requests_total{route="/api/turns/{turn_id}",status="404"} 1',
        'weft_requests_total{route="none",status="404"} 1',
        "weft_turns_running 0",
        'weft_turns_total{outcome="answered"} 1',
        'weft_turns_total{outcome="failed"} 1',
        'weft_turn_seconds_bucket{le="+Inf"} 2',
        "weft_turn_seconds_count 2",
    ):
        assert line in numbers.splitlines()


async def test_a_server_answers_until_it_is_told_to_stop() -> None:
    app = await weft.connect(provider=weft.ScriptedProvider(["ok"]))
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stopped = asyncio.Event()
    server = HttpServer(HttpChannelSettings(port=0))
    running = asyncio.create_task(server.run(app, stopped, ready.set_result))
    async with httpx.AsyncClient(base_url=(await ready).split()[-1]) as http:
        assert (await http.get("/api/health")).json() == {"status": "ok"}
        stopped.set()
        await asyncio.wait_for(running, 30)
        with pytest.raises(httpx.ConnectError):
            await http.get("/api/health")
    await app.close()


# --- what of a conversation is new


def said(text: str) -> list[weft.Message]:
    """Messages from letters: `u1 a1` are a user's and an answer."""
    roles = {"u": "user", "a": "assistant"}
    return [weft.Message(role=roles[word[0]], content=word[1:]) for word in text.split()]


@pytest.mark.parametrize(
    ("log", "history", "exchange", "known"),
    [
        ("", "", "u1", 0),
        ("u1 a1", "u1 a1", "u2", 0),
        ("u1 a1", "u1 a1", "u1", 0),
        ("u1 a1", "", "u1", 1),
        ("u1 a1 u1 a1", "u1 a1 u1 a1", "u1", 0),
        ("u1 a1 u2 a2", "u1 a1", "u2", 1),
        ("u1 a1 u2 a2", "u1 a1", "u3", 0),
        ("u5 a5", "u1 a1 u5 a5", "u6", 0),
        ("u1 a1 u2 a2", "u1 ax u2 a2", "u2", 0),
    ],
)
def test_only_the_last_exchange_of_the_log_is_continued(
    log: str, history: str, exchange: str, known: int
) -> None:
    assert match(said(log), said(history), said(exchange)).count == known


async def test_two_turns_of_one_conversation_at_the_same_time_do_not_store_anything_twice() -> None:
    async with serving(["r1", "r2"]) as server, server.client() as http:
        await asyncio.gather(*(http.post("/v1/chat/completions", json=CHAT) for _ in range(2)))

        assert await server.log() == [[("user", "hi"), ("assistant", "r1"), ("assistant", "r2")]]


async def test_a_model_that_is_not_offered_is_not_asked() -> None:
    async with serving(["ok"]) as server, server.client() as http:
        names = [model["id"] for model in (await http.get("/v1/models")).json()["data"]]
        answer = await http.post("/v1/chat/completions", json={**CHAT, "model": "gpt-9"})

        assert names == ["weft", "scripted"]
        assert code(answer) == (404, "model_not_found")
        assert server.model.requests == []


async def test_health_reports_a_store_that_cannot_be_read_and_no_detail(tmp_path: Path) -> None:
    (tmp_path / "weft.db").write_bytes(b"this is no database, it is a letter" * 100)
    async with serving() as server, server.client() as http:
        answer = await http.get("/api/health")

        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})


async def test_health_says_that_the_database_was_deleted(tmp_path: Path) -> None:
    async with serving() as server, server.client() as http:
        await http.post("/v1/chat/completions", json=CHAT)
        assert (await http.get("/api/health")).json() == {"status": "ok"}
        for end in ("", "-wal", "-shm"):
            (tmp_path / f"weft.db{end}").unlink()

        health = await http.get("/api/health")
        answer = await http.post("/v1/chat/completions", json=CHAT)

    reason = "the database was deleted or replaced while it is open: start Weft again"
    assert (health.status_code, health.json()) == (503, {"status": "unavailable", "reason": reason})
    assert answer.status_code >= 500
    assert not (tmp_path / "weft.db").exists(), "nothing is written into a new file"
