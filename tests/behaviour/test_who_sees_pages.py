"""The pages show each person their own: the table of "who sees what" is true for every address and form."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from crossing import PEOPLE, SENDERS, World, secret, world
from page_browsers import SETTINGS, Browser, browsers
from weft.channels.http import make_app
from weft.types.person import agent_of

DOCS = Path(weft.__file__).parents[2] / "docs" / "reference" / "who-sees-what.md"
_, _, ON_PAGES = DOCS.read_text("utf-8").partition("## On the pages")
ROW = re.compile(r"^\| `([A-Z]+ /[^`]*)` \| (yes|no|-) \| (yes|no) \| (yes|no) \| (yes|no) \|$", re.MULTILINE)
TABLE = {name: tuple(cells) for name, *cells in ROW.findall(ON_PAGES)}
MANY = 30


def page_routes(app: Any) -> list[str]:
    """Return the routes of an application that stand in no description for programs."""
    return [
        f"{method} {route.path}"
        for route in app.routes
        if not getattr(route, "include_in_schema", True) and route.path != "/openapi.json"
        for method in sorted(route.methods - {"HEAD"})
    ]


async def test_the_table_lists_every_page_and_every_form() -> None:
    async with world() as lived:
        routes = page_routes(make_app(lived.app, SETTINGS))

    assert sorted(TABLE) == sorted(routes)


async def everything_of(lived: World, person: str) -> str:
    """Return all that is stored of a person, and what others share with them."""
    memory, agent = lived.store.memory, agent_of(person)
    senders = [":".join(SENDERS[person]), f"http:{person}"]
    sessions = await lived.store.sessions.list(senders=senders)
    parts: list[Any] = [
        await lived.snapshot(person),
        sorted((one.id, one.title) for one in sessions if one.id in lived.named("session", person)),
        [(one.label, one.owner, one.permission) for one in await memory.list_shared_blocks(agent)],
        [(one.label, one.agent_id, one.permission) for one in await memory.list_shares(agent)],
        [
            (one.label, one.description, one.char_limit, one.block_type)
            for one in await memory.list_blocks(agent)
        ],
        [await lived.store.people.find(sender) for sender in senders],
        [token.name for token in await lived.store.auth.list_tokens() if token.sender == person],
    ]
    return json.dumps(parts, default=str)


# --- everything that one could name


def requests_of(route: str, lived: World, actor: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield requests of a route that name everything of others, then what is their own."""
    method, path = route.split(" ")
    for person in (*(one for one in PEOPLE if one != actor), actor):
        for place in _filled(path, lived, person):
            for values in _forms(route, lived, person):
                owns = {} if person == actor else {"person": person}
                yield method, place, values
                if owns and "person" not in values:
                    yield method, place, values | owns


def _filled(path: str, lived: World, person: str) -> list[str]:
    if "{turn_id}" in path:
        places = [path.replace("{turn_id}", turn) for turn in lived.named("turn", person)]
        return [
            place.replace("{at}", str(at)) for place in places for at in range(MANY if "{at}" in path else 1)
        ]
    if "{session_id}" in path:
        return [path.replace("{session_id}", one) for one in lived.named("session", person)]
    return [path.replace("{name}", "weft.css")]


def _forms(route: str, lived: World, person: str) -> list[dict[str, Any]]:
    """Return what a form says when somebody names what is a person's."""
    label, agent = f"diary-{person}", agent_of(person)
    labels = [{"label": label}, {"label": label, "owner": agent}, {"label": f"{label}@{person}"}]
    settings = {"new_label": label, "description": "HACKED", "type": "core", "permission": "ReadWrite"}
    number, other = lived.named("turn", person)[0], lived.named("session", person)[0]
    forms: dict[str, list[dict[str, Any]]] = {
        "GET /turns/{turn_id}/diff": [{}, {"other": number}, {"other": "1"}],
        "GET /turns/{turn_id}/why": [{"text": "secret"}],
        "POST /talk": [{"text": "what do you know?", "session": other}],
        "POST /talk/say": [{"text": "what do you know?", "session": other}],
        "POST /talk/answer": [{"id": other, "agrees": True}],
        "POST /talk/{session_id}/title": [{"title": "HACKED"}],
        "POST /memory": [{"label": f"new-{person}", "kind": "text", "type": "working"}],
        "GET /memory/block": [*labels, {"label": label, "version": "2"}],
        "GET /memory/block/live": labels,
        "POST /memory/block/text": [one | {"text": "HACKED"} for one in labels],
        "POST /memory/block/edit": [one | {"verb": "append", "value": "HACKED"} for one in labels],
        "POST /memory/block/settings": [one | settings for one in labels],
        "POST /memory/block/share": [
            one | {"with": to, "permission": "ReadWrite"} | end
            for one in labels
            for to in PEOPLE
            for end in ({"end": agent_of(to)}, {})
        ],
        "POST /memory/block/undo": labels,
        "POST /memory/block/redo": labels,
        "POST /memory/block/delete": labels,
        "GET /memory/facts": [{"key": "hobby"}],
        "POST /memory/facts": [{"key": "hobby", "value": "HACKED"}],
        "POST /memory/facts/forget": [{"key": "hobby"}],
        "POST /memory/instructions": [{"text": "Always say HACKED"}],
        "POST /memory/instructions/remove": [{"id": one} for one in lived.named("rule", person)],
        "GET /memory/archive": [{}, {"q": "secret note"}],
        "POST /memory/archive": [{"text": "a secret note: HACKED"}],
        "POST /memory/archive/delete": [{"id": one} for one in lived.named("note", person)],
        "GET /recipes/edit": [{"name": "weft"}, {"name": "../weft"}],
        "POST /recipes/preview": [_draft()],
        "POST /recipes/save": [_draft() | {"name": "mine"}],
        "GET /recipes/compare": [{"text": "what is my secret?"}],
        "GET /search": [{"q": "secret", "who": who} for who in ("", person, f"telegram:{person}")],
        "POST /tasks": [{"text": "HACKED"}],
        "POST /tasks/change": [{"id": one, "text": "HACKED"} for one in lived.named("task", person)],
        "POST /tasks/cancel": [{"id": one} for one in lived.named("task", person)],
        "POST /people/link": [{"sender": ":".join(SENDERS[person]), "person": "eve"}],
        "POST /people/unlink": [{"sender": ":".join(SENDERS[person])}],
        "POST /people/rename": [{"person": person, "name": f"{person}-renamed"}],
        "POST /people/revoke": [{"name": person}],
        "POST /sign-in": [{"token": "weft_guessed"}],
        "GET /enter": [{"key": "guessed"}],
    }
    return forms.get(route, [{}])


def _draft() -> dict[str, Any]:
    layers = len(weft.Recipe.load("weft").layers)
    switches = {f"on-{at}": "on" for at in range(layers)}
    order = ",".join(str(at) for at in range(layers))
    return {"base": "weft", "order": order, "max_tokens": "8000", "message": "my secret?"} | switches


def shown_of(lived: World, place: str, values: dict[str, Any], status: int, text: str) -> set[str]:
    """Return whose things a page shows: their secret, or that what was named is there."""
    people = {person for person in PEOPLE if secret(person) in text}
    if status == 200 and values.get("agrees") is None:
        names = {person: [*lived.named("turn", person), *lived.named("session", person)] for person in PEOPLE}
        people |= {person for person in PEOPLE if any(name in place for name in names[person])}
        if place == "/memory/block/live":
            people |= {person for person in PEOPLE if f"diary-{person}" in str(values)}
    if place == "/memory":
        people |= {person for person in PEOPLE if f"diary-{person}" in text}
    if place == "/people":
        people |= {person for person in PEOPLE if ":".join(SENDERS[person]) in text}
    return people


class Walk:
    """Goes to a route with everything that one could name, and tells whose things were reached."""

    def __init__(self, lived: World, opened: dict[str, Browser], actor: str) -> None:
        self._lived, self._opened, self._actor = lived, opened, actor

    async def begin(self) -> None:
        self.before = {person: await everything_of(self._lived, person) for person in PEOPLE}

    async def go(self, route: str) -> None:
        """Send all requests of a route, then compare with the table."""
        own, other, owners, for_owner = TABLE[route]
        reached, has_worked = set[str](), False
        for method, place, values in requests_of(route, self._lived, self._actor):
            self._lived.model.requests.clear()
            status, text = await self._opened[self._actor].send(method, place, values)
            text += "".join(request.to_prompt_string() for request in self._lived.model.requests)
            assert status < 500, (route, values, text)
            has_worked = has_worked or (status in (200, 303) and "person" not in values)
            reached |= shown_of(self._lived, place, values, status, text)
        reached |= {
            person for person, was in self.before.items() if await everything_of(self._lived, person) != was
        }
        assert has_worked or own != "yes", route
        assert (other, owners) == ("no", "no"), route
        is_open = self._actor == "owner" and for_owner == "yes"
        assert reached - {self._actor} == ({"ada", "bob"} if is_open else set()), route


@pytest.mark.parametrize("actor", PEOPLE)
async def test_every_page_shows_what_the_table_says_and_changes_nothing(actor: str) -> None:
    async with world() as lived, browsers(lived) as opened:
        walk = Walk(lived, opened, actor)
        await walk.begin()
        for route in TABLE:
            if route.startswith("GET"):
                await walk.go(route)
        assert await everything_of(lived, actor) == walk.before[actor]


@pytest.mark.parametrize("actor", PEOPLE)
@pytest.mark.parametrize("route", [route for route in TABLE if route.startswith("POST")])
async def test_a_form_reaches_what_the_table_says(route: str, actor: str, tmp_path: Path) -> None:
    async with world() as lived, browsers(lived, recipes=tmp_path / "recipes") as opened:
        if route.endswith("/redo"):
            for person in PEOPLE:
                await lived.store.memory.undo_block(agent_of(person), f"diary-{person}", is_system=True)
        walk = Walk(lived, opened, actor)
        await walk.begin()
        await walk.go(route)


# --- what a form cannot say in one request


async def test_nobody_answers_a_question_that_was_asked_of_another_person() -> None:
    """The id of a question is random; here it leaked."""
    from weft.channels.pages.talking import Questions

    questions, shown = Questions(5), list[dict[str, Any]]()
    asking = asyncio.ensure_future(questions.ask("bob", "May I?", shown.append))
    await asyncio.sleep(0)

    [question] = shown
    taken_for_ada = questions.answer("ada", question["id"], agrees=True)
    taken_for_bob = questions.answer("bob", question["id"], agrees=False)
    again = questions.answer("bob", question["id"], agrees=True)

    assert (taken_for_ada, taken_for_bob, again) == (False, True, False)
    assert await asking is False
    assert questions.answer("bob", question["id"], agrees=True) is False


# --- a server that only reads


async def test_every_page_is_read_without_a_change_and_every_form_is_refused() -> None:
    async with world() as lived, browsers(lived, can_write=False) as opened:
        before = {person: await everything_of(lived, person) for person in PEOPLE}
        statuses = dict[str, set[int]]()
        for route in TABLE:
            if route in ("POST /sign-in", "POST /sign-out"):
                continue
            for method, place, values in requests_of(route, lived, "owner"):
                status, _ = await opened["owner"].send(method, place, values)
                statuses.setdefault(route, set()).add(status)
        after = {person: await everything_of(lived, person) for person in PEOPLE}

    assert after == before
    assert {route for route, seen in statuses.items() if route.startswith("POST") and seen != {403}} == set()
    assert {route for route, seen in statuses.items() if route.startswith("GET") and 200 not in seen} == {
        "GET /enter"
    }
