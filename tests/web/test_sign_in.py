"""Signing in with a token, proofs of forms, and `weft inspect`, which only reads."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import Server, Window, follow, serving, window

TOKEN = "a-long-secret-token"  # noqa: S105 - of these tests alone
HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("token") / "home"
    script = [f"Answer {at}." for at in range(6)]
    with serving(home, script, http=f'token = "{TOKEN}"') as running:
        headers = {"authorization": f"Bearer {TOKEN}"}
        for sender in ("", "bob"):
            body = {"text": f"Hello from {sender or 'the owner'}", "sender": sender, "session": "talk"}
            httpx.post(f"{running.address}/api/turns", json=body, headers=headers).raise_for_status()
        yield running


@pytest.fixture
def one(chrome: Any, server: Server) -> Iterator[Window]:
    with window(chrome, server.address) as opened:
        yield opened


def sign_in(one: Window, token: str = TOKEN, place: str = "/") -> Any:
    page = one.open(place)
    page.get_by_label("Token").fill(token)
    follow(page.get_by_role("button", name="Sign in"))
    return page


def test_a_browser_is_led_to_the_sign_in_page_and_back(one: Window, server: Server) -> None:
    page = sign_in(one, "wrong", "/memory/facts?key=city")
    assert "not a token of this server" in page.get_by_role("alert").inner_text()

    page.get_by_label("Token").fill(TOKEN)
    follow(page.get_by_role("button", name="Sign in"))

    page.get_by_role("heading", name="Facts").wait_for()
    assert page.url == f"{server.address}/memory/facts?key=city"
    follow(page.get_by_role("button", name="Sign out"))
    page.get_by_role("heading", name="Sign in").wait_for()
    one.open("/memory")
    page.get_by_role("heading", name="Sign in").wait_for()


def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_send_it(one: Window) -> None:
    page = sign_in(one)
    page.get_by_role("heading", name="What is on your mind?").wait_for()

    cookies = [each for each in page.context.cookies() if each["name"].startswith("weft_")]

    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Lax")]
    assert page.evaluate("document.cookie") == ""
    assert TOKEN not in str(cookies)


def test_a_person_sees_their_own_and_nobody_elses(one: Window, server: Server) -> None:
    token = server.weft("token", "add", "http:bob").strip()
    page = sign_in(one, token)
    page.get_by_role("link", name="Hello from bob").wait_for()
    assert page.get_by_role("link", name="Hello from the owner").count() == 0

    for path in ("/people", "/health", "/memory?person=owner"):
        assert one.page.goto(f"{server.address}{path}").status in (403, 404)
    server.weft("token", "revoke", "http:bob")
    one.open("/memory")
    page.get_by_role("heading", name="Sign in").wait_for()


def test_the_turns_of_the_owner_are_not_there_for_another_person(server: Server) -> None:
    token = server.weft("token", "add", "http:bob", "--name", "second").strip()
    owner = httpx.Client(base_url=server.address, headers={"authorization": f"Bearer {TOKEN}", **HTML})
    bob = httpx.Client(base_url=server.address, headers={"authorization": f"Bearer {token}", **HTML})
    with owner, bob:
        listed = set(re.findall(r'href="(/sessions/\w+)"', owner.get("/sessions").text))
        own = set(re.findall(r'href="(/sessions/\w+)"', bob.get("/sessions").text))
        (foreign,) = listed - own
        turn = re.findall(r'href="(/turns/\w+)"', owner.get(foreign).text)[0]

        places = [foreign, foreign.replace("sessions", "talk"), turn, f"{turn}/diff", f"{turn}/request"]
        answers = [bob.get(place) for place in [*places, f"{turn}/items/0", f"{turn}/why?text=hello"]]

    assert own
    assert {answer.status_code for answer in answers} == {404}


@pytest.mark.parametrize("proof", ["", "wrong"])
def test_a_form_without_the_proof_of_a_page_changes_nothing(server: Server, proof: str) -> None:
    with httpx.Client(base_url=server.address, headers=HTML) as browser:
        found = re.search(r'name="proof" value="(\w+)"', browser.get("/sign-in").text)
        assert found
        browser.post("/sign-in", data={"token": TOKEN, "proof": found[1]}).raise_for_status  # noqa: B018
        facts = {"key": "city", "value": "Atlantis", "proof": proof}

        answer = browser.post("/memory/facts", data=facts)

    assert answer.status_code == 403
    assert "Atlantis" not in server.weft("memory", "facts", "owner")


def test_the_proof_of_one_browser_is_none_for_another(server: Server) -> None:
    with httpx.Client(base_url=server.address, headers=HTML) as first:
        found = re.search(r'name="proof" value="(\w+)"', first.get("/sign-in").text)
        assert found
        with httpx.Client(base_url=server.address, headers=HTML) as second:
            second.get("/sign-in")

            answer = second.post("/sign-in", data={"token": TOKEN, "proof": found[1]})

    assert answer.status_code == 403


def test_a_page_of_another_site_is_refused(server: Server) -> None:
    headers = {**HTML, "origin": "http://evil.example", "authorization": f"Bearer {TOKEN}"}

    assert httpx.get(f"{server.address}/memory", headers=headers).status_code == 403


def test_a_cookie_opens_no_route_for_programs(one: Window, server: Server) -> None:
    page = sign_in(one)
    page.get_by_role("heading", name="What is on your mind?").wait_for()

    status = page.evaluate("async () => (await fetch('/api/sessions')).status")

    assert status == 401


def test_nobody_is_led_to_another_site_after_signing_in(one: Window, server: Server) -> None:
    page = one.open("/sign-in?next=//evil.example/")
    page.get_by_label("Token").fill(TOKEN)
    follow(page.get_by_role("button", name="Sign in"))

    page.get_by_role("heading", name="What is on your mind?").wait_for()
    assert page.url == f"{server.address}/"


def test_programs_still_get_json(server: Server) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}

    assert httpx.get(server.address, headers=headers).json()["name"] == "weft"
    assert httpx.get(server.address).json()["error"]["code"] == "invalid_api_key"


@pytest.fixture(scope="module")
def inspected(server: Server) -> Iterator[Server]:
    home = server.home
    settings = (home / "config.toml").read_text()
    with serving(home, command=("inspect", "--no-browser")) as running:
        (home / "config.toml").write_text(settings)
        yield running


def link_of(inspected: Server) -> str:
    found = re.search(r"http://\S+/enter\?key=\S+", inspected.said.read_text())
    assert found
    return found[0]


def test_inspect_opens_one_browser_with_its_link_and_takes_no_form(chrome: Any, inspected: Server) -> None:
    with window(chrome, inspected.address) as one, window(chrome, inspected.address) as other:
        one.open("/")
        one.page.get_by_role("heading", name="Sign in").wait_for()
        assert httpx.head(link_of(inspected), headers=HTML).status_code == 403  # it is not used up by that
        one.page.goto(link_of(inspected))
        one.page.get_by_role("link", name="Hello from the owner").wait_for()
        other.page.goto(link_of(inspected))
        other.page.get_by_role("heading", name="Sign in").wait_for()

        for path in ("/", "/memory", "/memory/block?label=notes", "/memory/facts", "/tasks", "/people"):
            page = one.open(path)
            assert page.locator("form[method=post]:not([action='/sign-out'])").count() == 0, path
        assert "reads only" in one.page.locator("header").inner_text()

        proof = one.page.locator("meta[name=proof]").get_attribute("content")
        cookies = {each["name"]: each["value"] for each in one.page.context.cookies()}
        body = {"key": "city", "value": "Atlantis", "proof": proof}
        answer = httpx.post(f"{inspected.address}/memory/facts", data=body, cookies=cookies, headers=HTML)

    assert answer.status_code == 403
    assert "only reads" in answer.text


def test_inspect_has_no_routes_for_programs(inspected: Server) -> None:
    for path in ("/api/sessions", "/v1/models", "/api/blocks"):
        assert httpx.get(f"{inspected.address}{path}").status_code in (401, 404)


def test_inspect_without_anything_stored_says_what_to_do(tmp_path: Path) -> None:
    from browsing import run

    done = run(tmp_path / "empty", "inspect", "--no-browser")

    assert done.returncode == 2
    assert done.stderr.startswith("weft: There is nothing to look at yet")
    assert not (tmp_path / "empty" / "weft.db").exists()


def test_a_server_ends_at_once_while_a_page_watches_a_block(chrome: Any, tmp_path: Path) -> None:
    running = serving(tmp_path / "home")
    with running as server, window(chrome, server.address) as one:
        server.weft("memory", "edit", "notes", "Something")
        one.open("/memory/block?label=notes")
        one.page.wait_for_timeout(300)
        started = time.monotonic()
        server.stop()

    assert time.monotonic() - started < 15, "it waited for the page, which would watch for ever"


def test_the_link_of_inspect_is_in_no_list_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, noted = tmp_path / "home", tmp_path / "called with"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > "{noted}"\ncp "${{1#file://}}" "{tmp_path}/page.html"\n')
    script.chmod(0o700)
    with serving(home) as server:
        server.weft("memory", "edit", "notes", "Something")
    monkeypatch.setattr("browsing.BROWSER", str(script))

    with serving(home, command=("inspect",)) as running:
        link = link_of(running)
        for _ in range(100):
            if (tmp_path / "page.html").exists() and "http" in (tmp_path / "page.html").read_text():
                break
            time.sleep(0.05)

    assert "key=" not in noted.read_text()
    assert link in (tmp_path / "page.html").read_text()
    assert not (home / "inspect.html").exists()
