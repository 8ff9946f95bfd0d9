"""The pages of turns and of conversations over time, in a real browser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from browsing import Server, Window, follow, serving, window

TURNS = 8


@pytest.fixture(scope="module")
def lived(tmp_path_factory: Any) -> Iterator[Server]:
    """A server with a conversation in which a fact and a block changed."""
    home = tmp_path_factory.mktemp("turns") / "home"
    script = [f"Answer {at}." for at in range(TURNS)]
    with serving(home, script) as server:
        import httpx

        for at in range(TURNS):
            if at == 3:
                server.weft("memory", "append", "notes", "The boat leaves at nine.")
            body = {"text": f"Question {at} about the sea", "session": "sea"}
            httpx.post(f"{server.address}/api/turns", json=body).raise_for_status()
        yield server


@pytest.fixture
def one(chrome: Any, lived: Server) -> Iterator[Window]:
    with window(chrome, lived.address) as opened:
        yield opened
        assert opened.problems == []


def turn_ids(server: Server) -> list[str]:
    session = json.loads(server.weft("sessions", "list", "--json"))[0]["id"]
    return [turn["id"] for turn in json.loads(server.weft("turns", "list", "-s", session, "--json"))]


def test_every_item_that_was_shown_unfolds_to_its_exact_text(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[3]}")

    items = page.locator("details.item")
    for at in range(items.count()):
        items.nth(at).locator("summary").click()
        items.nth(at).locator("pre.text, p.dim:has-text('whole request')").first.wait_for()

    texts = page.locator("details.item pre.text").all_inner_texts()
    assert any("The boat leaves at nine." in text for text in texts)
    assert any('"name": "memory_append"' in text for text in texts)
    assert any("Question 3 about the sea" in text for text in texts)
    without = page.locator("details.item:has(p:has-text('whole request')) .title").all_inner_texts()
    assert set(without) <= {"heading", "marks between the parts"}


def test_the_numbers_are_those_of_the_receipt(one: Window, lived: Server) -> None:
    turn = turn_ids(lived)[-1]
    receipt = weft.Receipt.from_json(
        json.dumps(json.loads(lived.weft("turns", "show", turn, "--json"))["receipt"])
    )

    page = one.open(f"/turns/{turn}")

    head = page.locator("section", has_text="What the model saw").inner_text()
    assert f"{receipt.total_tokens:,} of {receipt.limit:,} tokens" in head
    shown = sum(int(text.replace(",", "")) for text in page.locator(".item summary .n").all_inner_texts())
    assert shown == sum(item.tokens for item in receipt.items)
    assert page.locator(".context-bar .boundary").count() == 2  # in the whole, and in the used part
    assert page.locator(".context-bar .reserve").count() == 1
    assert "✓ turn" in head  # the replay
    assert "from its cache" in head


def test_a_deep_link_opens_its_item(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[3]}#item-2")

    page.locator("#item-2[open] pre.text").wait_for()
    assert page.locator("details.item[open]").count() == 1


def test_the_difference_names_the_cause(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[3]}")

    follow(page.get_by_role("link", name="What changed"))

    assert "begins with all" in page.locator("main").inner_text()
    assert "block notes" in page.locator(".badge").all_inner_texts()
    assert "The boat leaves at nine." in page.locator(".diff .added").all_inner_texts().__str__()
    page.get_by_label("Compare with turn").fill("1")
    follow(page.get_by_role("button", name="Compare"))
    assert page.get_by_role("heading", level=1).inner_text() == "From turn 1 to turn 4"


def test_the_request_is_shown_as_it_was_sent(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[0]}/request")

    sent = json.loads(page.locator("pre.raw").inner_text())

    assert sent == lived.model.requests[0].payload


def test_why_says_whether_the_model_saw_something(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[-1]}")

    page.get_by_label("A word, a fact, a message").fill("boat leaves")
    follow(page.get_by_role("button", name="Look"))

    assert "✓ shown" in page.locator("main").inner_text()


def test_a_conversation_over_time_is_a_picture_and_a_table(one: Window, lived: Server) -> None:
    page = one.open("/sessions")
    follow(page.get_by_role("link", name="Question 0 about the sea"))

    assert page.locator("svg .turn").count() == page.locator("tbody tr").count() == TURNS
    numbers = page.locator("tbody tr td:nth-child(4)").all_inner_texts()
    assert re.fullmatch(r"[\d,]+", numbers[0])
    assert f"{numbers[0]} tokens" in page.locator("svg .turn title").last.text_content()
    follow(page.locator("svg .turn").last)
    assert page.get_by_role("heading", level=1).inner_text().startswith(f"Turn {TURNS}")


def test_the_keyboard_goes_from_turn_to_turn(one: Window, lived: Server) -> None:
    page = one.open(f"/turns/{turn_ids(lived)[1]}")

    page.get_by_role("link", name="Turn 3 →").focus()
    page.keyboard.press("Enter")

    page.get_by_role("heading", name="Turn 3").wait_for()
