"""What somebody tries who wants more than their own: foreign cookies, old tokens, odd requests."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import browsing
from crossing import secret, world
from page_browsers import HTML, Browser, browsers
from weft.channels.pages import blocks
from weft.channels.pages.browsers import Browsers
from weft.web.marked import marked

ODD = "小明 & a/b?c=d\n"


async def live(browser: Browser, label: str = "notes") -> Any:
    return browser.client.stream("GET", "/memory/block/live", params={"label": label})


def test_what_a_search_marks_is_escaped_too() -> None:
    assert marked("<b>x</b>", re.compile("<b>")) == "<mark>&lt;b&gt;</mark>x&lt;/b&gt;"


# --- cookies and links


def test_a_cookie_of_another_port_does_not_hide_ours() -> None:
    """`http.cookies` reads nothing at all where one cookie has a character too many."""
    browsers_ = Browsers(1)
    header = f'theme={{"dark": true}}; {browsers_.cookie_name}=abc; other="x,y'

    assert browsers_.cookie_of(header) == "abc"
    assert browsers_.cookie_of("weft_2=abc") == ""
    assert browsers_.cookie_of("") == ""


def test_a_cookie_that_was_planted_is_replaced_when_a_browser_signs_in() -> None:
    browsers_ = Browsers(1)
    planted = browsers_.new_cookie()

    cookie = browsers_.sign_in("a token")

    assert cookie != planted
    assert browsers_.token_of(planted) == ""
    assert not browsers_.proves(cookie, browsers_.proof(planted))


def test_only_so_many_browsers_stay_signed_in() -> None:
    browsers_ = Browsers(1)
    cookies = [browsers_.sign_in("a token") for _ in range(1_001)]

    assert browsers_.token_of(cookies[0]) == ""
    assert browsers_.token_of(cookies[-1]) == "a token"


def test_a_one_time_link_works_once_and_for_ten_minutes() -> None:
    now = [0.0]
    browsers_ = Browsers(1, clock=lambda: now[0])
    first, second = browsers_.make_link("a token"), browsers_.make_link("a token")

    assert [browsers_.take_link(first), browsers_.take_link(first)] == ["a token", ""]
    now[0] = 601.0
    assert browsers_.take_link(second) == ""
    assert browsers_.take_link("guessed") == ""


async def test_signing_in_leads_back_to_the_address_with_its_query() -> None:
    async with world() as lived, browsers(lived) as opened:
        await opened["ada"].client.post("/sign-out", headers={"x-weft-proof": opened["ada"].proof})
        answer = await opened["ada"].client.get("/memory/block", params={"label": ODD})

    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=" + quote(
        "/memory/block?" + str(httpx.QueryParams(label=ODD)), safe=""
    )


# --- streams that are open


async def test_a_window_that_shows_a_block_is_told_no_more_once_its_token_is_revoked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "_LOOK_SECONDS", 0.02)
    async with world() as lived, browsers(lived) as opened:
        for end in ("revoked", "signed out"):
            async with await live(opened["ada" if end == "revoked" else "bob"]) as stream:
                parts = stream.aiter_text()
                assert "secret-of-" in await anext(parts)
                if end == "revoked":
                    await lived.store.auth.revoke_token("ada")
                else:
                    proof = {"x-weft-proof": opened["bob"].proof}
                    await opened["bob"].client.post("/sign-out", headers=proof)
                async with asyncio.timeout(10):
                    assert [part async for part in parts if part] == []


async def test_the_first_event_of_a_block_has_its_text() -> None:
    """Without it a change between the page and its stream put the word "undefined" into the editor."""
    async with world() as lived, browsers(lived) as opened, await live(opened["ada"]) as stream:
        event = json.loads((await anext(stream.aiter_text()))[6:])

    assert event["text"].startswith(secret("ada"))


async def test_one_person_has_so_many_live_windows_and_others_have_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "_MOST_LIVE", 3)
    async with world() as lived, browsers(lived) as opened:
        streams = [await live(opened["ada"]) for _ in range(3)]
        texts = [(await stream.__aenter__()).aiter_text() for stream in streams]
        for text in texts:
            await anext(text)
        async with await live(opened["ada"]) as fourth, await live(opened["bob"]) as other:
            assert (fourth.status_code, other.status_code) == (429, 200)
        for stream in streams:
            await stream.__aexit__(None, None, None)
        async with asyncio.timeout(10):
            while True:
                async with await live(opened["ada"]) as again:
                    if again.status_code == 200:
                        break


def test_a_server_stops_at_once_though_a_window_shows_a_block(tmp_path: Path) -> None:
    with browsing.serving(tmp_path / "home") as server:
        httpx.get(f"{server.address}/memory", headers=HTML).raise_for_status()
        body = {"label": "list", "kind": "text"}
        httpx.post(f"{server.address}/api/blocks", json=body).raise_for_status()
        with httpx.stream("GET", f"{server.address}/memory/block/live?label=list") as stream:
            next(stream.iter_text())
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < 15


# --- odd requests


@pytest.mark.parametrize(
    "place",
    [
        "/static/..%2fpage.py",
        "/static/%2e%2e%2f%2e%2e%2fpage.py",
        "/static/..",
        "/static/%00.css",
        f"/static/{'a' * 5_000}.css",
        "/static/weft.css%00.js",
        f"/turns/none/items/{'9' * 5_000}",
        "/turns/none/items/-1",
        "/talk/%ff%fe",
        "/sessions/..%2f..",
        f"/search?q={'%ff' * 500}&since=%00&who=%ed%a0%80",
        f"/memory/block?label={'a' * 20_000}",
        "/memory/block?label=notes&version=99999999999",
        "/sessions?page=99999999999",
        "/memory?page=99999999999",
        "/recipes/edit?name=../../etc/passwd",
        "/recipes/compare?a=/etc/passwd&b=weft",
        "/enter?key=%00&next=//evil",
        f"/nowhere?{'a=b&' * 10_000}",
    ],
)
async def test_an_odd_address_is_no_bug(place: str) -> None:
    async with world() as lived, browsers(lived) as opened:
        [turn] = lived.named("turn", "owner")
        answer = await opened["owner"].client.get(place.replace("none", turn))

    assert answer.status_code < 500, answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("words", ["", "q=boat&"])
async def test_a_search_in_what_does_not_exist_says_so_on_its_page(words: str) -> None:
    async with world() as lived, browsers(lived) as opened:
        client = opened["owner"].client
        refused = await client.get(f"/search?{words}in=nonsense")
        allowed = await client.get(f"/search?{words}in=facts&in=blocks")

    assert (refused.status_code, allowed.status_code) == (400, 200)
    assert "There is nothing called &#39;nonsense&#39; to search in" in refused.text
    assert re.findall(r'value="(\w+)" checked', allowed.text) == ["blocks", "facts"]


@pytest.mark.parametrize("place", ["/memory/facts", "/memory/archive", "/tasks", "/memory"])
async def test_after_a_form_about_a_person_the_owner_is_back_at_that_person(place: str) -> None:
    """A name in another script, or with a line break, is no header of its own."""
    form = {"key": "city", "value": "Porto", "text": "a note", "label": "new", "type": "working"}
    async with world() as lived, browsers(lived) as opened:
        owner = opened["owner"]
        for person in ("ada", ODD):
            headers = {"x-weft-proof": owner.proof}
            answer = await owner.client.post(place, data=form | {"person": person}, headers=headers)

            assert answer.status_code == 303, answer.text
            assert f"person={httpx.QueryParams(x=person)}".replace("x=", "") in answer.headers["location"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_a_page_has_no_other_methods(method: str) -> None:
    async with world() as lived, browsers(lived) as opened:
        for place in ("/memory", "/talk", "/people", "/sign-in"):
            answer = await opened["owner"].client.request(method, place)
            assert answer.status_code == 405


async def test_giant_and_broken_forms_are_refused_in_one_sentence() -> None:
    async with world() as lived, browsers(lived) as opened:
        ada = opened["ada"]
        proof = {"x-weft-proof": ada.proof, "content-type": "application/x-www-form-urlencoded"}
        many = await ada.client.post("/memory/facts", content="a=b&" * 2_000, headers=proof)
        large = await ada.client.post("/memory/facts", content="a" * 5_000_000, headers=proof)
        broken = await ada.client.post("/memory/facts", content=b"key=\xff&value=%ff%fe", headers=proof)
        title = {"title": "x" * 100_000}
        [session] = lived.named("session", "ada")
        await ada.client.post(f"/talk/{session}/title", data=title, headers=proof)
        stored = await lived.store.sessions.get(session)

    assert [many.status_code, large.status_code, broken.status_code] == [400, 413, 303]
    assert len(stored.title) <= 200


@pytest.mark.parametrize(
    "body",
    [
        {"text": "hi", "session": "\ud800"},
        {"text": "\ud800"},
        {"text": "hi", "session": 5},
        {"text": "hi", "files": [{"name": "../../x\n\u202e", "data": "aGk="}]},
        {"text": "hi", "files": [{"name": "", "data": ""}]},
        {"text": "hi", "files": [{"name": "x", "data": "!"}]},
        {"text": "hi", "files": [{"name": "x" * 100_000, "data": "aGk="}]},
        {"text": "hi", "files": [{}] * 21},
        {"text": "hi", "session": "x" * 100_000},
        {"text": ["hi"]},
        [],
    ],
)
async def test_an_odd_message_is_answered_or_refused(body: Any) -> None:
    async with world() as lived, browsers(lived) as opened:
        headers = {"x-weft-proof": opened["ada"].proof, "content-type": "application/json"}
        answer = await opened["ada"].client.post("/talk/say", content=json.dumps(body), headers=headers)

    assert answer.status_code < 500, answer.text
    assert "broke off" not in answer.text


def _save_recipe(folder: Path) -> None:
    folder.mkdir()
    (folder / "private.txt").write_text("what only the owner reads")
    layers = (
        f'source = "instructions"\nfiles = ["{folder / "private.txt"}"]',
        'source = "history"',
        'source = "message"',
    )
    text = "".join(f"[[layers]]\n{layer}\n" for layer in layers)
    recipe = f'name = "mine"\n[limits]\nmax_tokens = 8000\n{text}'
    (folder / "mine.toml").write_text(recipe)


async def test_what_an_own_recipe_shows_is_the_owners_alone(tmp_path: Path) -> None:
    """A recipe may name any file of the machine; the pages let only its owner look through it."""
    folder = tmp_path / "recipes"
    async with world() as lived, browsers(lived, recipes=folder) as opened:
        _save_recipe(folder)
        order = {"base": "mine", "order": "0,1,2", "on-0": "on", "max_tokens": "8000"}
        answers = {}
        for person in ("ada", "owner"):
            one = opened[person]
            shown = await one.client.get("/recipes/edit?name=mine")
            listed = await one.client.get("/recipes")
            compared = await one.client.get("/recipes/compare?a=mine&b=weft")
            preview = await one.send("POST", "/recipes/preview", order)
            saved = await one.send("POST", "/recipes/save", order | {"name": "stolen"})
            answers[person] = (shown.status_code, compared.status_code, preview[0], saved[0])
            texts = listed.text + compared.text + preview[1]
            assert ("name=mine" in texts) == (person == "owner")

    assert answers["ada"] == (400, 400, 400, 403)
    assert answers["owner"] == (200, 200, 200, 303)


async def test_each_item_of_a_turn_has_the_mark_of_its_origin_beside_the_color() -> None:
    """Who sees no colors reads the mark and the name."""
    async with world() as lived, browsers(lived) as opened:
        [turn] = lived.named("turn", "ada")
        text = (await opened["ada"].client.get(f"/turns/{turn}")).text
        marks = set(re.findall(r'origin-(\w+)"[^>]*><span aria-hidden="true">(.)</span> (\w+)</span>', text))

    assert {("operator", "◆", "operator"), ("user", "●", "user")} <= marks
