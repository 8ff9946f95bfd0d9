"""What holds for every page: hostile text stays text, and everybody can use it, in whatever window."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

import weft
from browsing import Server, Window, serving, window

HOSTILE = (
    "\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{7*7}}\u202e"
)
CALL = weft.ToolCall(id="c1", name="memory_append", arguments={"label": "notes", "text": HOSTILE})
SCRIPT = [
    weft.Reply(text=HOSTILE, tool_calls=(CALL,), stop_reason="tool_calls"),
    f"{HOSTILE}\n\n[a link](javascript:alert(1)) ![a picture](http://127.0.0.1:1/x.png) <b>bold</b>",
    HOSTILE,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Server]:
    """A server with hostile text in every place that can hold some."""
    import httpx

    home = tmp_path_factory.mktemp("hostile") / "home"
    skill = home / "workspace/skills/evil"
    skill.mkdir(parents=True)
    front = {"name": "evil", "description": HOSTILE, "trigger": HOSTILE}
    (skill / "SKILL.md").write_text(f"---\n{json.dumps(front)}\n---\n{HOSTILE}\n")
    (home / "workspace/SOUL.md").write_text(HOSTILE)
    with serving(home, SCRIPT) as running:
        for text in (f"Hello {HOSTILE}", "And again"):
            body = {"text": text, "session": "talk"}
            httpx.post(f"{running.address}/api/turns", json=body).raise_for_status()
        session = json.loads(running.weft("sessions", "list", "--json"))[0]["id"]
        running.weft("sessions", "rename", session, HOSTILE)
        running.weft("memory", "append", "notes", HOSTILE)
        running.weft("memory", "archive", HOSTILE)
        running.weft("tasks", "add", HOSTILE)
        running.weft("instructions", "add", f"always say {HOSTILE}")
        running.weft("people", "link", f"telegram:{HOSTILE}", "<b>Eve")
        block = {"label": HOSTILE[:80], "kind": "list", "description": HOSTILE}
        httpx.post(f"{running.address}/api/blocks", json=block).raise_for_status()
        edit = {"verb": "push", "value": {"what": HOSTILE}}
        httpx.post(f"{running.address}/api/blocks/{quote(HOSTILE[:80], safe='')}/edits", json=edit)
        yield running


@pytest.fixture(scope="module")
def places(server: Server) -> list[str]:
    session = json.loads(server.weft("sessions", "list", "--json"))[0]["id"]
    turns = [turn["id"] for turn in json.loads(server.weft("turns", "list", "-s", session, "--json"))]
    return [
        "/",
        f"/talk/{session}",
        "/sessions",
        f"/sessions/{session}",
        f"/turns/{turns[0]}",
        f"/turns/{turns[0]}/items/0",
        f"/turns/{turns[0]}/request",
        f"/turns/{turns[1]}/diff",
        f"/turns/{turns[1]}/why?text={quote(HOSTILE)}",
        "/memory",
        "/memory/block?label=notes",
        "/memory/block?label=notes&version=3",
        f"/memory/block?label={quote(HOSTILE[:80])}",
        "/memory/facts",
        "/memory/archive",
        f"/memory/archive?q={quote(HOSTILE)}",
        "/recipes",
        "/recipes/edit?name=weft",
        f"/recipes/compare?text={quote(HOSTILE)}",
        f"/search?q={quote(HOSTILE)}",
        "/search?q=hello",
        "/tasks",
        "/people",
        "/skills",
        "/health",
        "/sign-in",
        f"/memory/block?label=nobody{quote(HOSTILE)}",
        f"/nowhere/{quote(HOSTILE)}",
    ]


@pytest.fixture
def one(chrome: Any, server: Server) -> Iterator[Window]:
    with window(chrome, server.address) as opened:
        yield opened


def test_hostile_text_stays_text_in_every_slot(one: Window, places: list[str]) -> None:
    seen = 0
    for place in places:
        page = one.open(place)
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true }")
        assert page.title().endswith("Weft"), place
        assert page.locator("img, iframe, object, embed, main script, [onerror], [onclick]").count() == 0, (
            place
        )
        assert page.locator("[href^='javascript:' i], [src^='javascript:' i]").count() == 0, place
        assert "49" not in page.locator("main").inner_text().split("{{7*7}}")[0][-4:], place
        assert "\u202e" not in page.content(), place
        seen += "<script>" in page.locator("main").inner_text()
    assert seen > len(places) / 2, "the hostile text must be visible, or this tests nothing"


def test_no_page_complains_or_asks_another_server(one: Window, server: Server, places: list[str]) -> None:
    for place in places[:-2]:  # the last two are errors on purpose
        one.open(place)

    assert one.problems == []
    assert {urlsplit(url).netloc for url in one.asked if not url.startswith("data:")} == {
        urlsplit(server.address).netloc
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault_for_screen_readers(
    chrome: Any, server: Server, places: list[str], scheme: str
) -> None:
    axe = Path(AXE_FILE_PATH).read_text("utf-8")
    faults = []
    with window(chrome, server.address, bypass_csp=True, color_scheme=scheme) as one:
        for place in places:
            page = one.open(place)
            for details in page.locator("details").all()[:12]:
                details.evaluate("one => { one.open = true }")
            page.evaluate(axe)
            found = page.evaluate("async () => (await axe.run(document)).violations")
            faults += [
                f"{place[:60]}: {fault['id']} ({fault['impact']}) {fault['nodes'][0]['html'][:120]}"
                for fault in found
                if fault["impact"] in ("serious", "critical")
            ]

    assert faults == []


def test_every_page_fits_a_narrow_window(chrome: Any, server: Server, places: list[str]) -> None:
    too_wide = []
    with window(chrome, server.address, viewport={"width": 390, "height": 800}) as one:
        for place in places:
            page = one.open(place)
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > 390:
                too_wide.append((place[:60], width))

    assert too_wide == []


def test_pages_are_dark_in_the_dark(chrome: Any, server: Server) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        with window(chrome, server.address, color_scheme=scheme) as one:
            page = one.open("/memory")
            color = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            shades[scheme] = sum(int(part) for part in color[4:-1].split(","))

    assert shades["light"] > 600
    assert shades["dark"] < 120


def test_the_keyboard_reaches_the_content_and_everything_in_it(one: Window, places: list[str]) -> None:
    page = one.open("/memory")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"

    for place in ("/memory/facts", "/recipes/edit?name=weft", places[4]):
        page = one.open(place)
        unreachable = page.evaluate(
            "() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]"
            ".filter(one => one.offsetParent && !one.disabled && one.tabIndex < 0).length"
        )
        assert unreachable == 0


def test_every_page_has_a_title_a_heading_and_a_policy(
    one: Window, server: Server, places: list[str]
) -> None:
    for place in places:
        answer = one.page.goto(f"{server.address}{place}")
        policy = answer.headers["content-security-policy"]

        assert one.page.title().endswith("Weft"), place
        assert one.page.locator("h1").count() == 1, place
        assert "script-src 'self';" in policy, place
        assert "unsafe" not in policy, place
        assert answer.headers["x-content-type-options"] == "nosniff", place
