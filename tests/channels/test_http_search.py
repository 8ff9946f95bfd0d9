"""`/api/search`: the filters, the reasons, and whose things are found."""

from datetime import UTC, datetime
from typing import Any

import pytest

import weft
from http_server import serving


async def filled(server: Any) -> None:
    store = await server.store()
    session = await store.sessions.new("http", "chat", "owner", agent_id="weft")
    lines = [
        weft.Message(role="user", name="Ada", content="The boat is blue.", timestamp=_may(1)),
        weft.Message(role="assistant", content="A fine boat.", timestamp=_may(2)),
        weft.Message(role="user", content="Sold the boat.", timestamp=_may(20)),
    ]
    await store.messages.append(session.id, *lines)
    await store.facts.set("http:owner", "boat", "Marlin")
    await store.facts.set("http:ben", "boat", "Dory")


def _may(day: int) -> datetime:
    return datetime(2026, 5, day, tzinfo=UTC)


async def test_results_have_reasons_and_keep_their_old_keys() -> None:
    async with serving() as server, server.client() as http:
        await filled(server)
        results = (await http.get("/api/search", params={"q": "boat", "around": 1})).json()["results"]

    message = next(one for one in results if one["content"] == "A fine boat.")
    for key in ("source", "id", "content", "snippet", "score", "at", "session_id", "speaker", "place"):
        assert key in message
    assert message["reasons"]["words"] > 0
    assert [line["content"] for line in message["around"]] == [
        "The boat is blue.",
        *["A fine boat.", "Sold the boat."],
    ]
    assert "boat: Marlin" in [one["content"] for one in results]
    assert "Dory" not in str(results)


@pytest.mark.parametrize(
    ("params", "contents"),
    [
        ({"since": "2026-05-10", "in": "messages"}, {"Sold the boat."}),
        ({"until": "2026-05-02", "who": "assistant"}, {"A fine boat."}),
        ({"who": "ada"}, {"The boat is blue."}),
        ({"in": "facts"}, {"boat: Marlin"}),
        ({"in": "facts", "sender": "ben"}, {"boat: Dory"}),
        ({"in": "messages", "limit": 1000}, {"The boat is blue.", "A fine boat.", "Sold the boat."}),
    ],
)
async def test_filters_leave_out_all_else(params: dict[str, Any], contents: set[str]) -> None:
    async with serving() as server, server.client() as http:
        await filled(server)
        results = (await http.get("/api/search", params={"q": "boat", **params})).json()["results"]

    assert {one["content"] for one in results} == contents


@pytest.mark.parametrize(
    "params",
    [
        {"since": "banana"},
        {"who": "nobody"},
        {"in": "mail"},
        {"around": 21},
        {"around": -1},
        {"who": "x" * 201},
    ],
)
async def test_a_wrong_filter_is_refused_with_a_sentence(params: dict[str, Any]) -> None:
    async with serving() as server, server.client() as http:
        await filled(server)
        answer = await http.get("/api/search", params={"q": "boat", **params})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
