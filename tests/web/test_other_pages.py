"""Recipes, search, tasks, people, skills and health in a real browser."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from browsing import Server, Window, follow, serving, window


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("others") / "home"
    for name, front in (("boats", "name: boats\ndescription: All about boats."), ("broken", "name: [")):
        (home / "workspace/skills" / name).mkdir(parents=True)
        (home / "workspace/skills" / name / "SKILL.md").write_text(f"---\n{front}\n---\nRow.\n")
    with serving(home, [f"Answer {at}: pack a jacket." for at in range(4)]) as running:
        for text in ("What should I pack for the boat to Porto?", "How is the weather there?"):
            body = {"text": text, "session": "trip"}
            httpx.post(f"{running.address}/api/turns", json=body).raise_for_status()
        running.weft("memory", "append", "notes", "The boat leaves at nine.")
        bob = {"text": "Hello, I am Bob", "sender": "bob"}
        httpx.post(f"{running.address}/api/turns", json=bob).raise_for_status()
        yield running


@pytest.fixture
def one(chrome: Any, server: Server) -> Iterator[Window]:
    with window(chrome, server.address) as opened:
        yield opened
        assert opened.problems == []


def tokens(page: Any) -> int:
    return int(page.locator("#built strong").first.inner_text().replace(",", ""))


def test_a_recipe_is_changed_by_keys_previewed_and_saved(one: Window, server: Server) -> None:
    page = one.open("/recipes")
    follow(page.get_by_role("link", name="weft", exact=True))
    page.get_by_role("button", name="Look").click()
    page.locator("#built").wait_for()
    before = tokens(page)

    page.locator("li", has_text="core").get_by_label("on").uncheck()
    expect(page.locator("#built strong").first).not_to_have_text(f"{before:,}")
    assert tokens(page) < before
    page.get_by_role("button", name="Move facts up").focus()
    page.keyboard.press("Enter")
    sources = page.locator("#layers strong").all_inner_texts()
    assert sources.index("facts") < sources.index("standing")

    page.get_by_label("Name").fill("mine")
    follow(page.get_by_role("button", name="Save as TOML"))
    page.get_by_role("heading", name="mine").wait_for()
    file = server.home / "recipes" / "mine.toml"
    assert server.weft("recipes", "validate", str(file)).startswith(
        "valid mine: instructions > blocks > facts"
    )
    assert file.stat().st_mode & 0o077 == 0


def test_a_layer_is_dragged(one: Window) -> None:
    page = one.open("/recipes/edit?name=weft")

    page.locator("li", has_text="tasks").first.drag_to(page.locator("li", has_text="memory_file").first)

    sources = page.locator("#layers strong").all_inner_texts()
    assert sources.index("tasks") <= sources.index("memory_file")


def test_a_wrong_limit_is_told_before_anything_is_saved(one: Window) -> None:
    page = one.open("/recipes/edit?name=weft")
    page.get_by_label("reserved for the answer").fill("999999")
    page.get_by_role("button", name="Look").click()

    assert "must leave room" in page.locator("#preview .alert").inner_text()
    one.problems.clear()


def test_the_preview_has_the_request_for_each_provider(one: Window) -> None:
    page = one.open("/recipes/edit?name=weft")
    page.get_by_role("button", name="Look").click()
    page.locator("#built").wait_for()

    summaries = page.locator("#built details summary").all_inner_texts()

    assert [f"The request for {name}" in summaries for name in ("anthropic", "openai", "gemini", "ollama")]
    page.get_by_text("The request for anthropic").click()
    assert '"max_tokens"' in page.locator("#built details[open] pre").inner_text()


def test_two_recipes_stand_side_by_side(one: Window) -> None:
    page = one.open("/recipes")
    page.locator("select[name=b]").select_option("miniclaw")
    follow(page.get_by_role("button", name="Compare"))

    assert page.get_by_role("heading", level=1).inner_text() == "weft and miniclaw"
    assert page.locator("thead th").all_inner_texts() == ["Layer", "weft", "miniclaw"]
    assert page.locator(".columns section").count() == 2


def test_hits_have_reasons_marks_and_the_conversation_around(one: Window) -> None:
    page = one.open("/search")
    page.get_by_label("Words").fill("boat")
    follow(page.get_by_role("button", name="Search"))

    hits = page.locator("ol.rows > li")
    assert {"boat"} == {text.lower() for text in page.locator("mark").all_inner_texts()}
    assert all("why: " in text for text in hits.all_inner_texts())
    assert "Answer 0" in hits.filter(has_text="pack for the").inner_text()

    follow(page.get_by_role("link", name="message 1", exact=False).first)
    said = page.locator(":target + article .words").inner_text()
    assert said == "What should I pack for the boat to Porto?"
    page.go_back()

    page.get_by_label("messages").uncheck()
    follow(page.get_by_role("button", name="Search"))
    assert "block notes" in hits.first.inner_text()
    follow(page.get_by_role("link", name="block notes"))
    page.get_by_role("heading", name="notes", level=1).wait_for()


def test_a_search_with_a_date_that_is_none_says_so(one: Window) -> None:
    page = one.open("/search?q=boat&since=someday")

    assert "someday" in page.get_by_role("alert").inner_text()
    one.problems.clear()


def test_tasks_are_added_changed_and_cancelled(one: Window, server: Server) -> None:
    page = one.open("/tasks")
    page.get_by_label("What").fill("Buy tickets")
    page.get_by_label("When").fill("2030-05-01T09:00")
    follow(page.get_by_role("button", name="Add"))
    assert "Buy tickets" in server.weft("tasks", "list")
    page.get_by_text("Change").click()
    page.locator("details[open]").get_by_label("What").fill("Buy two tickets")
    follow(page.locator("details[open]").get_by_role("button", name="Save"))
    assert "Buy two tickets" in page.locator("main").inner_text()
    follow(page.get_by_role("button", name="Cancel Buy two tickets"))
    assert "Nothing is pending." in page.locator("main").inner_text()


def test_people_are_linked_and_each_has_their_own_memory(one: Window, server: Server) -> None:
    page = one.open("/people")
    assert "http:bob" in page.locator("main").inner_text()
    bob = page.locator(".rows > li", has_text="http:bob").first
    follow(bob.get_by_role("link", name="memory"))
    assert page.get_by_role("heading", level=1).inner_text() == "Memory of http:bob"
    assert "The boat leaves" not in page.locator("main").inner_text()

    page = one.open("/people")
    page.get_by_label("Sender, as CHANNEL:ID").fill("http:bob")
    page.get_by_label("is", exact=True).fill("Bob")
    follow(page.get_by_role("button", name="Link", exact=True))
    assert re.match(r"Bob ?\d", page.locator(".rows > li", has_text="http:bob").first.inner_text())
    follow(page.locator(".rows > li", has_text="http:bob").get_by_role("button", name="Unlink"))
    assert "http:bob" in page.locator(".rows strong").all_inner_texts()


def test_skills_are_validated(one: Window) -> None:
    text = one.open("/skills").locator("main").inner_text()

    assert "boats ✓ can be used" in text
    assert "All about boats." in text
    assert "broken ✗" in text


def test_health_shows_the_checks_of_the_doctor(one: Window) -> None:
    page = one.open("/health")

    page.get_by_text("✓ ok").first.wait_for()

    text = page.locator("main").inner_text()
    assert "weft.db is whole" in text
    assert "none yet: weft backup PATH" in text
