"""The pages when something fails: nothing that a person typed is lost, and no page is a dead end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from browsing import Server, Window, serving, window
from weft.testing.vendors import Refusal

CALL = weft.ToolCall(id="c1", name="memory_append", arguments={"label": "notes", "text": "At nine."})


@pytest.fixture
def talk(chrome: Any, tmp_path: Path) -> Iterator[Any]:
    opened = list[Any]()

    def start(*script: Any, more: str = "") -> tuple[Server, Window]:
        server = serving(tmp_path / "home", script, http=more)
        opened.append(server)
        running = server.__enter__()
        seen = window(chrome, running.address)
        opened.append(seen)
        one = seen.__enter__()
        one.open("/")
        return running, one

    yield start
    for each in reversed(opened):
        each.__exit__(None, None, None)


def say(one: Window, text: str) -> None:
    one.page.get_by_label("Your message").fill(text)
    one.page.keyboard.press("Enter")


def test_a_first_message_that_fails_has_its_turn_and_the_next_goes_on_there(talk: Any) -> None:
    """The browser learned of a conversation with its answer only, and began another after a failure."""
    _, one = talk(Refusal(400, "no"), "The sea is calm.")
    say(one, "How is the sea?")
    one.page.get_by_role("alert").wait_for()
    one.page.locator("#stop").wait_for(state="hidden")
    place = one.page.url
    assert one.page.get_by_text("What did it see?").count() == 1

    say(one, "And now?")
    one.page.get_by_text("The sea is calm.").wait_for()

    assert "/talk/" in place
    assert one.page.url == place
    one.page.get_by_text("What did it see?").first.click()
    one.page.get_by_role("heading", name="Turn 1").wait_for()


def test_a_message_that_could_not_be_sent_is_back_in_its_place(talk: Any) -> None:
    server, one = talk("Hello.")
    server.stop()

    say(one, "A long message that nobody wants to type again.")
    one.page.get_by_role("alert").wait_for()

    assert "Your message was not sent" in one.page.get_by_role("alert").inner_text()
    assert one.page.get_by_label("Your message").input_value().startswith("A long message")


def test_a_file_is_taken_away_again_before_it_is_sent(talk: Any, tmp_path: Path) -> None:
    _, one = talk("Hello.")
    file = tmp_path / "mail.txt"
    file.write_text("private")
    one.page.locator("#attach").set_input_files(str(file))
    one.page.get_by_role("button", name="Remove").click()

    assert one.page.locator("#files").inner_text() == ""


def test_an_answer_to_a_question_that_has_ended_says_so(talk: Any, tmp_path: Path) -> None:
    calls = weft.Reply(tool_calls=(CALL,), stop_reason="tool_calls")
    _, one = talk(calls, "Done with it.")
    file = tmp_path / "mail.txt"
    file.write_text("Please note when the boat leaves.")
    one.page.locator("#attach").set_input_files(str(file))
    say(one, "What does it say?")
    one.page.get_by_role("button", name="Agree").wait_for()
    one.page.route("**/talk/answer", lambda route: route.fulfill(json={"taken": False}))

    one.page.get_by_role("button", name="Agree").click()

    one.page.get_by_text("no longer waiting").wait_for()
    assert one.page.get_by_text("You agreed.").count() == 0


def test_a_table_in_a_narrow_window_keeps_its_words_whole(chrome: Any, talk: Any) -> None:
    server, _ = talk("Hello.")
    body = {"text": "hi", "session": "talk"}
    httpx.post(f"{server.address}/api/turns", json=body).raise_for_status()
    with window(chrome, server.address, viewport={"width": 390, "height": 800}) as one:
        page = one.open("/memory")
        heights = page.locator("td:nth-child(1) a").evaluate_all("all => all.map(one => one.offsetHeight)")
        page = one.open("/people")
        assert "you 0 facts" in " ".join(page.locator("main").inner_text().split())

    assert max(heights) < 30


def test_a_block_that_changed_before_its_window_listened_shows_its_new_text(talk: Any) -> None:
    """The first event of the stream had no text, and the editor showed the word "undefined"."""
    server, one = talk("Hello.")
    body = {"label": "plan", "kind": "text"}
    httpx.post(f"{server.address}/api/blocks", json=body).raise_for_status()

    def change(route: Any) -> None:
        edit = {"text": "from elsewhere"}
        httpx.put(f"{server.address}/api/blocks/plan", json=edit).raise_for_status()
        route.continue_()

    one.page.route("**/memory/block/live*", change)
    page = one.open("/memory/block?label=plan")

    page.get_by_text("Somebody else changed this block").wait_for()
    assert page.get_by_label("Text").input_value().strip() == "from elsewhere"


def test_a_window_of_a_block_listens_only_while_it_is_seen_and_again_later(talk: Any) -> None:
    """A browser has six connections to a server: six windows of blocks took all, and every page hung."""
    server, one = talk("Hello.")
    httpx.post(f"{server.address}/api/blocks", json={"label": "plan", "kind": "text"}).raise_for_status()
    page = one.open("/memory/block?label=plan")
    hide = (
        "(is) => {{ Object.defineProperty(document, 'hidden', {{ value: {0}, configurable: true }});"
        "document.dispatchEvent(new Event('visibilitychange')) }}"
    )
    with page.expect_event("requestfailed"):
        page.evaluate(hide.format("true"))
    edit = {"text": "from elsewhere"}
    httpx.put(f"{server.address}/api/blocks/plan", json=edit).raise_for_status()
    page.evaluate(hide.format("false"))

    page.get_by_text("Somebody else changed this block").wait_for()
    assert page.get_by_label("Text").input_value().strip() == "from elsewhere"


def test_what_was_typed_into_a_form_that_is_refused_is_shown_with_the_way_back(talk: Any) -> None:
    """As after the server was started again: then no open page has a valid proof."""
    server, one = talk("Hello.")
    page = one.open("/memory/archive")
    page.get_by_label("New note").fill("Two pages of <b>thoughts</b>.")
    page.locator("[name=proof]").first.evaluate("one => { one.value = 'of yesterday' }")
    page.locator("form[method=post] [name=proof]").last.evaluate("one => { one.value = 'of yesterday' }")
    page.get_by_role("button", name="Keep").click()

    page.get_by_role("alert").wait_for()
    assert "load it again" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("What you wrote").input_value() == "Two pages of <b>thoughts</b>."
    page.get_by_role("link", name="Back to the page").click()
    page.get_by_role("heading", name="Archive").wait_for()
    assert page.url == f"{server.address}/memory/archive"


def test_a_form_with_something_missing_is_refused_in_a_sentence(talk: Any) -> None:
    server, one = talk("Hello.")
    proof = {"x-weft-proof": one.page.locator("meta[name=proof]").get_attribute("content") or ""}
    cookies = {each["name"]: each["value"] for each in one.page.context.cookies()}
    httpx.post(f"{server.address}/api/blocks", json={"label": "plan", "kind": "text"}).raise_for_status()
    forms = {
        "/memory/instructions": {"text": "  "},
        "/memory/archive": {"text": "  "},
        "/memory": {"label": "empty", "kind": "map", "type": "working"},
        "/memory/block/share": {"label": "plan", "with": "nobody", "permission": "ReadWrite"},
        "/memory/block/undo": {"label": "plan"},
        "/memory/block/redo": {"label": "plan"},
    }

    with httpx.Client(base_url=server.address, cookies=cookies, headers=proof) as browser:
        answers = {place: browser.post(place, data=form) for place, form in forms.items()}

    assert {place: answer.status_code for place, answer in answers.items()} == dict.fromkeys(forms, 400)
    assert "Nobody is called 'nobody'" in answers["/memory/block/share"].text
