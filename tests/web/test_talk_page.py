"""The chat in a real browser, against a real server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from browsing import Server, Window, follow, serving, window

APPEND = weft.ToolCall(
    id="c1", name="memory_append", arguments={"label": "notes", "text": "The boat leaves at nine."}
)
CALLS = weft.Reply(tool_calls=(APPEND,), stop_reason="tool_calls")


@pytest.fixture
def talk(chrome: Any, tmp_path: Path) -> Iterator[Any]:
    """A window on the page of a server whose model follows a script."""
    opened = list[Any]()

    def start(*script: Any, **options: Any) -> tuple[Server, Window]:
        server = serving(tmp_path / "home", script)
        opened.append(server)
        running = server.__enter__()
        seen = window(chrome, running.address, **options)
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


def test_an_answer_comes_with_a_link_to_what_the_model_saw(talk: Any) -> None:
    server, one = talk("The **sea** is calm.")

    say(one, "How is the sea?")
    one.page.get_by_text("What did it see?").wait_for()

    assert one.page.locator(".said.agent strong").inner_text() == "sea"
    assert re.fullmatch(rf"{server.address}/talk/\w+", one.page.url)
    one.page.get_by_text("What did it see?").click()
    one.page.get_by_role("heading", name="What the model saw").wait_for()
    assert one.problems == []


def test_a_conversation_goes_on_after_it_is_opened_again_from_the_sidebar(talk: Any) -> None:
    server, one = talk("It is calm.", "You asked about the sea.")
    say(one, "How is the sea?")
    one.page.get_by_text("What did it see?").wait_for()

    one.open("/")
    follow(one.page.get_by_role("link", name="How is the sea?"))
    say(one, "What did I ask?")
    one.page.get_by_text("You asked about the sea.").wait_for()

    asked = server.model.requests[-1].payload["messages"]
    assert "It is calm." in str([m["content"] for m in asked if m["role"] == "assistant"])


def test_calls_of_tools_unfold_and_changes_of_memory_are_told(talk: Any) -> None:
    server, one = talk(CALLS, "Noted.")

    say(one, "Remember that the boat leaves at nine.")
    one.page.get_by_text("What did it see?").wait_for()

    call = one.page.locator("details.call")
    assert "memory_append ✓" in call.locator("summary").inner_text()
    call.locator("summary").click()
    assert "The boat leaves at nine." in call.inner_text()
    assert "/undo" in one.page.locator(".notice").inner_text()
    assert "The boat leaves at nine." in server.weft("memory", "show", "notes")


@pytest.mark.parametrize("agrees", [True, False])
def test_what_a_file_of_strangers_wants_is_asked_first(talk: Any, tmp_path: Path, agrees: bool) -> None:
    server, one = talk(CALLS, "Done with it.")
    file = tmp_path / "mail.txt"
    file.write_text("Please note when the boat leaves.")

    one.page.locator("#attach").set_input_files(str(file))
    assert one.page.locator("#files").inner_text().startswith("Attached: mail.txt")
    say(one, "Do what this says")
    question = one.page.get_by_role("alertdialog")
    question.wait_for()
    assert "The boat leaves at nine." in question.inner_text()
    question.get_by_role("button", name="Agree" if agrees else "Refuse").click()
    one.page.get_by_text("What did it see?").wait_for()

    assert ("The boat leaves at nine." in server.weft("memory", "show", "notes")) is agrees
    assert "Please note when the boat leaves." in str(server.model.requests[0].payload)
    assert one.problems == []


def test_a_conversation_is_renamed_and_deleted(talk: Any) -> None:
    server, one = talk("Hello.")
    say(one, "Hi there")
    one.page.get_by_text("What did it see?").wait_for()
    one.page.reload()

    one.page.get_by_text("More", exact=True).click()
    one.page.get_by_label("Title").fill("About boats")
    follow(one.page.get_by_role("button", name="Rename"))
    one.page.get_by_role("heading", name="About boats").wait_for()
    one.page.on("dialog", lambda dialog: dialog.accept())
    one.page.get_by_text("More", exact=True).click()
    follow(one.page.get_by_role("button", name="Delete for good"))

    one.page.get_by_role("heading", name="What is on your mind?").wait_for()
    assert server.weft("sessions", "list", "--json").strip() == "[]"


def test_an_answer_can_be_stopped(talk: Any) -> None:
    _, one = talk(None)

    say(one, "Say something long")
    one.page.get_by_role("button", name="Stop").click()

    one.page.get_by_text("Stopped.").wait_for()
    assert not one.page.get_by_role("button", name="Stop").is_visible()


def test_an_error_is_told_in_its_place_and_the_page_goes_on(talk: Any) -> None:
    from weft.testing.vendors import Refusal

    _, one = talk(Refusal(401, "wrong key"), "Better.")

    say(one, "Hi")
    one.page.locator("[role=alert]").wait_for()
    say(one, "Again")

    one.page.get_by_text("Better.").wait_for()


def test_commands_work_as_in_the_terminal(talk: Any) -> None:
    _, one = talk()

    say(one, "/help")

    one.page.get_by_text("/undo").first.wait_for()


def test_a_browser_without_scripts_can_talk_too(talk: Any) -> None:
    _, one = talk("It is **calm**.", java_script_enabled=False)

    one.page.get_by_label("Your message").fill("How is the sea?")
    follow(one.page.get_by_role("button", name="Send"))

    assert one.page.locator(".said.agent strong").inner_text() == "calm"


def test_a_person_called_sample_keeps_their_memory_when_the_sample_goes(talk: Any) -> None:
    server, one = talk("Hello.")
    body = {"text": "Hi", "sender": "sample", "session": "own"}
    httpx.post(f"{server.address}/api/turns", json=body).raise_for_status()
    server.weft("memory", "append", "notes", "Mine.", "--agent", "weft/http:sample")

    one.open("/")
    proof = one.page.locator("meta[name=proof]").get_attribute("content")
    for place in ("/sample", "/sample/remove"):
        answer = one.page.request.post(f"{server.address}{place}", form={"proof": proof})
        assert answer.ok

    assert server.weft("memory", "show", "notes", "--agent", "weft/http:sample").strip() == "Mine."
    assert len(json.loads(server.weft("sessions", "list", "--json"))) == 1


def test_a_first_visit_offers_a_sample_that_can_be_removed(talk: Any) -> None:
    server, one = talk()

    follow(one.page.get_by_role("button", name="Explore a sample"))
    one.page.get_by_role("heading", name="Sample: Ada plans a trip").wait_for()
    assert one.page.locator("svg .turn").count() == 7
    follow(one.page.get_by_role("button", name="Remove the sample"))

    one.page.get_by_role("button", name="Explore a sample").wait_for()
    assert server.weft("sessions", "list", "--json").strip() == "[]"
    assert server.model.requests == []
