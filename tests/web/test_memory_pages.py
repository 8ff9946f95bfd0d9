"""Memory blocks, facts, instructions and the archive in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import weft
from browsing import Server, Window, follow, serving, window


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("memory") / "home") as running:
        yield running


@pytest.fixture
def one(chrome: Any, server: Server) -> Iterator[Window]:
    with window(chrome, server.address) as opened:
        yield opened
        assert opened.problems == []


def make(one: Window, label: str, kind: str, fields: str = "") -> Any:
    page = one.open("/memory")
    page.get_by_text("New block").click()
    page.get_by_label("Label", exact=True).fill(label)
    page.locator("select[name=kind]").select_option(kind)
    page.get_by_label("Fields or sections").fill(fields)
    follow(page.get_by_role("button", name="Make it"))
    page.get_by_role("heading", name=label, level=1).wait_for()
    return page


def read(one: Window) -> str:
    """Return the block as the model reads it."""
    return str(one.page.locator("section", has_text="As the model reads it").locator("pre").inner_text())


def test_a_text_is_written_undone_and_redone(one: Window, server: Server) -> None:
    page = make(one, "journal", "text")
    for text in ("first", "first\nsecond"):
        page.get_by_label("Text").fill(text)
        page.get_by_role("button", name="Save").first.click()
    assert read(one) == "first\nsecond"

    follow(page.get_by_role("button", name="Undo the newest change"))
    assert read(one) == "first"
    follow(page.get_by_role("button", name="Redo"))
    assert read(one) == "first\nsecond"

    assert server.weft("memory", "show", "journal").strip() == "first\nsecond"
    assert "owner (page)" in server.weft("memory", "history", "journal")


def test_each_kind_has_an_editor_of_its_own(one: Window) -> None:
    page = make(one, "profile", "map", "name, visits:counter, tags:list")
    page.get_by_label("name", exact=True).fill("Ada")
    follow(page.get_by_role("button", name="Set"))
    page.get_by_label("Add to visits").fill("3")
    page.get_by_role("button", name="Add", exact=True).first.click()
    page.get_by_label("Add to tags").fill("sailor")
    page.get_by_role("button", name="Add", exact=True).last.click()
    assert read(one) == "name: Ada\nvisits: 3\ntags:\n- sailor"

    page = make(one, "todo", "list")
    for item in ("buy tickets", "call mum"):
        page.get_by_label("New item").fill(item)
        follow(page.get_by_role("button", name="Add", exact=True))
    follow(page.get_by_role("button", name="Remove item 1"))
    assert read(one) == "1. call mum"

    page = make(one, "diary", "log")
    page.get_by_label("New entry").fill("Arrived in Porto")
    follow(page.get_by_role("button", name="Add", exact=True))
    assert "Arrived in Porto" in read(one)

    page = make(one, "plan", "composite", "goal, steps:list")
    page.get_by_label("goal", exact=True).last.fill("See the Douro")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_label("New item").fill("book a boat")
    follow(page.get_by_role("button", name="Add", exact=True))
    assert read(one) == "=== goal ===\n\nSee the Douro\n\n=== steps ===\n\n1. book a boat"


def test_two_windows_edit_one_block_and_both_edits_stay(chrome: Any, one: Window, server: Server) -> None:
    page = make(one, "shared text", "text")
    page.get_by_label("Text").fill("apples\nbread\ncheese\n")
    page.get_by_role("button", name="Save").first.click()
    with window(chrome, server.address) as other:
        other.open(page.url.removeprefix(server.address))
        page.get_by_label("Text").fill("apples and pears\nbread\ncheese\n")
        other.page.get_by_label("Text").fill("apples\nbread\ncheese and milk\n")

        page.get_by_role("button", name="Save").first.click()
        other.page.get_by_text("saving puts both together").wait_for()
        other.page.get_by_role("button", name="Save").first.click()
        page.get_by_text("this is the new text").wait_for()

        assert read(other).strip() == "apples and pears\nbread\ncheese and milk"
        assert page.get_by_label("Text").input_value() == "apples and pears\nbread\ncheese and milk\n"


def test_a_page_shows_at_once_what_another_program_writes(one: Window, server: Server) -> None:
    page = make(one, "watched", "text")

    server.weft("memory", "append", "watched", "Written in a terminal.")

    page.get_by_text("this is the new text").wait_for()
    assert page.get_by_label("Text").input_value() == "Written in a terminal."


def test_the_history_is_a_slider_with_what_changed_and_by_whom(one: Window, server: Server) -> None:
    page = make(one, "versions", "text")
    for text in ("one", "one\ntwo", "one\ntwo\nthree"):
        page.get_by_label("Text").fill(text)
        page.get_by_role("button", name="Save").first.click()

    page.get_by_label("Version", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("The whole block then").wait_for()

    assert page.locator(".diff .added").all_inner_texts() == ["+two\n"]
    assert "edit by owner (page)" in page.get_by_role("region", name="History").inner_text()
    page.get_by_text("The whole block then").click()
    assert page.locator("details[open] pre").inner_text() == "one\ntwo"


def test_settings_sharing_and_deleting(one: Window, server: Server) -> None:
    server.weft("people", "link", "telegram:42", "Eve")
    page = make(one, "changing", "text")
    page.get_by_text("Settings", exact=True).click()
    page.locator("form[action='/memory/block/settings']").get_by_label("Label").fill("changed")
    page.get_by_label("The assistant may").select_option("ReadOnly")
    page.get_by_label("Show it in every turn").uncheck()
    page.get_by_label("Characters at most").fill("99")
    follow(page.locator("form[action='/memory/block/settings'] button"))
    page.get_by_role("heading", name="changed", level=1).wait_for()
    listed = server.weft("memory", "list", "--json")
    assert '"label": "changed", "type": "working", "permission": "ReadOnly", "pinned": false' in listed
    assert "of 99 characters" in page.locator("main").inner_text()

    page.get_by_text("Sharing").click()
    page.get_by_label("Share with").fill("Eve")
    follow(page.get_by_role("button", name="Share", exact=True))
    page.get_by_text("Sharing (1)").click()
    assert "Eve" in page.locator("main").inner_text()
    follow(page.get_by_role("button", name="End"))

    page.on("dialog", lambda dialog: dialog.accept())
    follow(page.get_by_role("button", name="Delete with its history"))
    page.get_by_role("heading", name="Memory").wait_for()
    assert "changed" not in server.weft("memory", "list", "--json")


def test_a_wrong_edit_is_told_in_a_sentence(one: Window) -> None:
    page = make(one, "small", "text")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Characters at most").fill("5")
    follow(page.locator("form[action='/memory/block/settings'] button"))

    page.get_by_label("Text").fill("much too long for it")
    page.get_by_role("button", name="Save").first.click()

    assert "limit" in page.get_by_role("alert").inner_text()
    one.problems.clear()  # the browser itself notes the status of a refusal


def test_facts_are_remembered_with_their_history_and_forgotten(one: Window, server: Server) -> None:
    page = one.open("/memory/facts")
    for city in ("Lisbon", "Porto"):
        page.get_by_label("Name").fill("city")
        page.get_by_label("Value").fill(city)
        follow(page.get_by_role("button", name="Remember"))
    follow(page.get_by_role("link", name="history"))
    assert "Lisbon" in page.locator("main").inner_text()
    follow(page.get_by_role("button", name="Forget city"))
    assert "Nothing is known yet." in page.locator("main").inner_text()


def test_a_fact_names_the_message_that_it_came_from(chrome: Any, tmp_path: Path) -> None:
    fact = weft.ToolCall(id="c1", name="remember_fact", arguments={"key": "city", "value": "Lisbon"})
    script = [weft.Reply(tool_calls=(fact,), stop_reason="tool_calls"), "Noted."]
    with serving(tmp_path / "home", script) as server:
        import httpx

        httpx.post(f"{server.address}/api/turns", json={"text": "I live in Lisbon now"}).raise_for_status()
        with window(chrome, server.address) as one:
            page = one.open("/memory/facts")
            follow(page.get_by_role("link", name="I live in Lisbon now"))
            page.get_by_role("heading", name="What the model saw").wait_for()


def test_standing_instructions_are_added_and_removed(one: Window, server: Server) -> None:
    page = one.open("/memory/facts")
    page.get_by_label("Always").fill("always answer in Spanish")
    follow(page.locator("form[action='/memory/instructions'] button"))
    assert "always answer in Spanish" in server.weft("instructions", "list")

    follow(page.get_by_role("button", name="Remove"))
    page.get_by_text("There are none").wait_for()


def test_notes_of_the_archive_are_kept_found_and_deleted(one: Window) -> None:
    page = one.open("/memory/archive")
    for text in ("The warranty of the boat ends in 2030.", "Ada is allergic to nuts."):
        page.get_by_label("New note").fill(text)
        follow(page.get_by_role("button", name="Keep"))
    page.get_by_label("Search notes").fill("warranty")
    follow(page.get_by_role("button", name="Search"))
    assert page.locator(".rows li").count() == 1
    follow(page.get_by_role("button", name="Delete"))
    expect(page.locator(".rows li .plain")).to_have_text(["Ada is allergic to nuts."])
