"""Memory is a person's own: the page "who sees what" is true for every tool, command and route."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

import weft
from crossing import PEOPLE, World, arguments_of, run, secret, world
from http_server import listening
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.mcp import make_server
from weft.compose import builtin_tools
from weft.config import load_config
from weft.gateway.commands import COMMANDS
from weft.types.request import Caller

PAGE = Path(weft.__file__).parents[2] / "docs" / "reference" / "who-sees-what.md"
ROW = re.compile(r"^\| `([^`]+)` \| (yes|no|-) \| (yes|no) \| (yes|no) \| (yes|no) \|$", re.MULTILINE)
BEFORE_PAGES, _, _ = PAGE.read_text("utf-8").partition("## On the pages")
TABLE = {name: tuple(cells) for name, *cells in ROW.findall(BEFORE_PAGES)}
TOOLS = [name for name in TABLE if "_" in name and "/" not in name]
ROUTES = [name for name in TABLE if " " in name]
OTHER = {"ada": "bob", "bob": "ada"}


async def changed(world: World, person: str, before: str) -> bool:
    return await world.snapshot(person) != before


class Watch:
    """Tells what of each person was reached: their secret was shown, or something of theirs changed."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __aenter__(self) -> "Watch":
        self._before = {person: await self._world.snapshot(person) for person in PEOPLE}
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be undone."""

    async def reached(self, outputs: list[str]) -> set[str]:
        return {
            person
            for person in PEOPLE
            if any(secret(person) in output for output in outputs)
            or await changed(self._world, person, self._before[person])
        }


def expected(name: str, actor: str) -> set[str]:
    """Return whose memory a person reaches, by the page."""
    own, other, owners, for_owner = TABLE[name]
    if actor == "owner":
        return ({"owner"} if own == "yes" else set()) | ({"ada", "bob"} if for_owner == "yes" else set())
    cells = ((actor, own), (OTHER[actor], other), ("owner", owners))
    return {person for person, cell in cells if cell == "yes"}


# --- tools


async def test_the_page_lists_every_tool_of_weft(tmp_path: Path) -> None:
    async with world() as lived:
        tools = builtin_tools(lived.store, lived.app.engine.builder.recipe, config=load_config())

    assert sorted(TOOLS) == sorted(tool.name for tool in tools)


@pytest.mark.parametrize("actor", PEOPLE)
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_reaches_what_the_page_says(tool: str, actor: str) -> None:
    async with world() as lived, Watch(lived) as watch:
        others = [person for person in PEOPLE if person != actor]
        calls = [*arguments_of(tool, lived, [actor]), *arguments_of(tool, lived, others)]
        results = await lived.call(actor, [(tool, arguments) for arguments in calls])

        # Words of one's own may name others; what counts is what comes back and what changes.
        assert await watch.reached(results) - {actor} == expected(tool, actor) - {actor}
        assert any(not result.startswith("error") for result in results)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_model_that_tries_everything_crosses_nothing(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two people and the owner, with a model that calls every tool with every argument it can think of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_HOME", str(tmp_path_factory.mktemp("home")))
        run(_try_everything(data))


async def _try_everything(data: st.DataObject) -> None:
    async with world() as lived:
        names = sorted(
            {name for listed in lived.ids.values() for name in listed}
            | {
                "notes",
                "human",
                "persona",
                "notes@owner",
                "diary-ada@ada",
                "diary-bob@bob",
                "*",
                "",
                "secret",
            }
            | {secret(person) for person in PEOPLE}
            | {"../weft", "weft", "weft/ada", "weft/bob", "%", "' or 1=1 --", "0", "-1"}
        )
        value = st.sampled_from(names) | st.integers(-2, 3) | st.booleans() | st.lists(st.sampled_from(names))
        for _ in range(data.draw(st.integers(1, 4))):
            actor = data.draw(st.sampled_from(PEOPLE))
            calls = []
            for tool in lived.app.engine.builtin_tools(lived.store, lived.app.engine.builder.recipe):
                properties = list(tool.definition.parameters["properties"])
                chosen = data.draw(st.lists(st.sampled_from(properties or ["x"]), unique=True))
                calls.append((tool.name, {name: data.draw(value) for name in chosen}))
            others = [person for person in PEOPLE if person != actor]
            before = {person: await lived.snapshot(person) for person in others}
            results = await lived.call(actor, calls)
            asked = str(calls)
            for person in others:
                assert await lived.snapshot(person) == before[person]
                told = [text for text in results if secret(person) in text and secret(person) not in asked]
                assert told == []


# --- commands


def test_the_page_lists_every_command() -> None:
    assert [name for name in TABLE if name.startswith("/") and " " not in name] == [
        f"/{name}" for name in COMMANDS
    ]


@pytest.mark.parametrize("actor", PEOPLE)
@pytest.mark.parametrize("command", [f"/{name}" for name in COMMANDS])
async def test_a_command_reaches_what_the_page_says(command: str, actor: str) -> None:
    async with world() as lived, Watch(lived) as watch:
        others = [person for person in PEOPLE if person != actor]
        own = [name for kind in ("label", "session", "task") for name in lived.named(kind, actor)]
        foreign = [name for key, names in lived.ids.items() for name in names if not key.endswith(actor)]
        words = ["", "full", "1", *own, "hobby", *foreign, *(f"diary-{p}@{p}" for p in others)]
        words += [f"remove {rule}" for rule in lived.named("rule", *others)]
        outputs = []
        for word in words:
            try:
                outputs.append((await lived.say(actor, f"{command} {word}".strip(), commands=True)).text)
            except weft.WeftError as error:
                outputs.append(str(error))

        if command == "/receipt":  # it names blocks and quotes nothing
            outputs = [
                text.replace(f"diary-{person}", secret(person)) for text in outputs for person in PEOPLE
            ]
        assert await watch.reached(outputs) == expected(command, actor)


# --- routes


@asynccontextmanager
async def served(lived: World) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Serve over HTTP, with a client of each person that has their token."""
    tokens = {person: await lived.store.auth.create_token(person, person) for person in PEOPLE}
    async with listening(make_app(lived.app, HttpChannelSettings(requests_per_minute=0))) as url:
        clients = {
            person: httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"})
            for person, token in tokens.items()
        }
        try:
            yield clients
        finally:
            for client in clients.values():
                await client.aclose()


async def test_the_page_lists_every_route() -> None:
    async with world() as lived:
        app = make_app(lived.app, HttpChannelSettings())
        made = [
            f"{method} {route.path.replace(':path', '')}"  # type: ignore[attr-defined]
            for route in app.routes
            if getattr(route, "include_in_schema", False)
            for method in sorted(getattr(route, "methods", set()) - {"HEAD"})
        ]

    assert sorted(ROUTES) == sorted(route for route in made if route != "GET /openapi.json")


BODIES = {
    "PUT": {"text": "HACKED"},
    "PATCH": {"description": "HACKED", "pinned": False},
    "POST": {"verb": "append", "value": "HACKED"},
}


def _requests(route: str, lived: World, actor: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield requests of a route with everything that one could name. The owner names nobody else."""
    for sender in ("",) if actor == "owner" else ("", *(person for person in PEOPLE if person != actor)):
        for path, more in _paths(route, lived, sender):
            yield route.partition(" ")[0], path, more


def _paths(route: str, lived: World, sender: str) -> Iterator[tuple[str, dict[str, Any]]]:
    method, path = route.split(" ")
    query = {"sender": sender} if sender else {}
    if path.startswith("/v1/"):
        said = {"role": "user", "content": "what do you know?"}
        body = {"messages": [said]} if "chat" in path else {"input": "what do you know?"}
        yield path.replace("{model}", "weft"), {"json": body | ({"user": sender} if sender else {})}
    elif path in ("/api/turns", "/api/context"):
        for session in (*lived.named("session"), "own"):
            yield path, {"json": {"text": "what do you know?", "session": session, **query}}
    elif "{turn_id}" in path:
        for turn in lived.named("turn"):
            named = {"other": turn} if path.endswith("diff") else {"text": "secret"}
            yield path.replace("{turn_id}", turn), {"params": {**query, **named}}
    elif "{session_id}" in path:
        yield from ((path.replace("{session_id}", one), {"params": query}) for one in lived.named("session"))
    elif "{label}" in path:
        more = {"params": query} | ({"json": BODIES[method]} if method in BODIES else {})
        labels = [*lived.named("label"), *(f"diary-{person}@{person}" for person in PEOPLE)]
        yield from ((path.replace("{label}", label), more) for label in labels)
    elif route == "POST /api/blocks":
        yield path, {"params": query, "json": {"label": f"new {sender}"}}
    else:
        words = {"q": "secret"} if path == "/api/search" else {}
        yield path, {"params": {**query, **words}}


@pytest.mark.parametrize("actor", PEOPLE)
@pytest.mark.parametrize("route", ROUTES)
async def test_a_route_reaches_what_the_page_says(route: str, actor: str) -> None:
    async with world() as lived, served(lived) as clients, Watch(lived) as watch:
        outputs = []
        for method, path, more in _requests(route, lived, actor):
            lived.model.requests.clear()
            answer = await clients[actor].request(method, path, **more)
            outputs.append(answer.text)
            outputs += [request.to_prompt_string() for request in lived.model.requests]
            if answer.is_success:  # a receipt may quote nothing
                place = path.split("/")[3] if path.count("/") >= 3 else ""
                names = {
                    person: [*lived.named("turn", person), *lived.named("session", person)]
                    for person in PEOPLE
                }
                outputs += [secret(person) for person in PEOPLE if place in names[person]]

        assert await watch.reached(outputs) == expected(route, actor)


async def test_without_a_token_a_request_is_refused_once_there_is_one() -> None:
    async with world() as lived, served(lived) as clients:
        del clients["ada"].headers["authorization"]
        refused = await clients["ada"].get("/api/sessions")
        wrong = await clients["ada"].get("/api/sessions", headers={"authorization": "Bearer weft_x"})
        health = await clients["ada"].get("/api/health")
        foreign = await clients["bob"].get("/api/blocks", params={"sender": "ada"})
        await lived.store.auth.revoke_token("bob")
        revoked = await clients["bob"].get("/api/blocks")

    assert (refused.status_code, wrong.status_code, health.status_code) == (401, 401, 200)
    assert foreign.status_code == 403
    assert foreign.json()["error"]["message"] == "This token speaks for 'bob' only: leave `sender` out."
    assert revoked.status_code == 401


# --- MCP


@pytest.mark.parametrize("actor", PEOPLE)
async def test_an_mcp_server_reaches_its_own_person_and_nobody_else(actor: str) -> None:
    """Only the owner can go on in a session of somebody else, by its id."""
    async with world() as lived, Watch(lived) as watch:
        caller = lived.caller(actor).known_as(actor)
        kinds = lived.ids.items()
        names = [
            name for kind, listed in kinds if actor != "owner" or "session" not in kind for name in listed
        ]
        outputs = []
        async with Client(make_server(lived.app, lived.store, caller)) as client:
            for tool in (await client.list_tools()).tools:
                properties = list(tool.input_schema["properties"])
                for name in (*names, "notes", "secret"):
                    given: dict[str, Any] = {
                        key: 1 if key in ("limit", "index") else name for key in properties
                    }
                    given |= {"verb": "append"} if "verb" in given else {}
                    given |= {"kind": "text", "fields": []} if "kind" in given else {}
                    result = await client.call_tool(tool.name, given)
                    said = "".join(getattr(part, "text", "") for part in result.content)
                    outputs.append(said)

        assert await watch.reached(outputs) == {actor}


# --- sharing


async def test_a_block_is_shared_with_a_person_by_name_and_both_models_write_it() -> None:
    async with world() as lived:
        await lived.store.memory.share_block(
            "weft", "notes", "weft/ada", weft.Permission.READ_WRITE, is_system=True
        )
        [result] = await lived.call("ada", [("memory_append", {"label": "notes@owner", "text": "from Ada"})])
        shown = lived.model.requests[-1].to_prompt_string()
        assert result.startswith("done")
        assert '[block notes@owner permission="ReadWrite" shared_from="owner"]' in shown
        assert '<block:notes permission="ReadWrite">' in shown, "her own notes keep their name"

        await lived.say("owner", "hello")
        assert "from Ada" in lived.model.requests[-1].to_prompt_string()
        history = await lived.store.memory.block_history("weft", "notes")
        assert history[-1].author == "weft/ada"

        await lived.store.memory.unshare_block("weft", "notes", "weft/ada")
        [result] = await lived.call("ada", [("memory_append", {"label": "notes@owner", "text": "again"})])
        assert "from Ada\nagain" not in (await lived.store.memory.get_rendered_content("weft", "notes") or "")


async def test_files_about_the_owner_are_shown_to_the_owner_alone(home: Path) -> None:
    folder = home / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "SOUL.md").write_text("I am Weft.")
    (folder / "USER.md").write_text("The owner's birthday is in May.")
    (folder / "memory" / "MEMORY.md").write_text("- The owner hid a key under the mat.\n")
    async with world() as lived:
        shown = {}
        for person in PEOPLE:
            await lived.say(person, "where is the key of the mat?")
            shown[person] = lived.model.requests[-1].to_prompt_string()

    assert all("I am Weft." in text for text in shown.values())
    assert ["birthday" in shown[person] for person in PEOPLE] == [False, False, True]
    assert ["under the mat" in shown[person] for person in PEOPLE] == [False, False, True]


async def test_a_foreign_session_id_leads_nowhere() -> None:
    async with world() as lived:
        [foreign] = lived.named("session", "bob")
        reply = await lived.say("ada", "what was said here?", foreign)

        assert reply.session_id != foreign
        assert secret("bob") not in lived.model.requests[-1].to_prompt_string()


@pytest.mark.parametrize("first", ["ada", "owner"])
async def test_the_persona_is_the_assistants_own_whoever_writes_first(first: str) -> None:
    app = await weft.connect(provider=weft.ScriptedProvider(["hi"] * 9))
    store = await app.store.get()
    callers = {
        "ada": Caller(channel="telegram", sender_id="1"),
        "owner": Caller(channel="terminal", sender_id="owner"),
    }
    for person in (first, *({"ada", "owner"} - {first})):
        await app.ask("hello", session=person, caller=callers[person])
    await store.memory.append_to_block("weft", "persona", "I speak like a sailor.")

    shown = {person: await app.context("hello", person, caller=caller) for person, caller in callers.items()}
    agent = "weft/telegram:1"
    with pytest.raises(weft.PermissionDenied):
        await store.memory.append_to_block(agent, "persona", "I obey Ada.")

    assert all("I speak like a sailor." in context.to_prompt_string() for context in shown.values())
    assert '<block:persona permission="ReadOnly" shared_from="owner">' in shown["ada"].system_prompt
    await app.close()


async def test_files_and_the_reload_of_everything_are_the_owners(home: Path) -> None:
    (home / "config.toml").write_text(f'[tools]\nenabled = ["files"]\n[tools.files]\nfolders = ["{home}"]\n')
    async with world() as lived:
        offered = {}
        for person in PEOPLE:
            await lived.say(person, "hello")
            offered[person] = "read_file" in {tool.name for tool in lived.model.requests[-1].tools}
        with pytest.raises(weft.PermissionDenied, match="Only the owner"):
            await lived.say("ada", "/reload", commands=True)
        assert (await lived.say("owner", "/reload", commands=True)).text.startswith("Instructions")

    assert offered == {"ada": False, "bob": False, "owner": True}


async def test_over_http_a_share_keeps_its_permission_for_the_owner_too() -> None:
    async with world() as lived, served(lived) as clients:
        memory = lived.store.memory
        await memory.share_block("weft/bob", "diary-bob", "weft", weft.Permission.READ_ONLY, is_system=True)

        answer = await clients["owner"].put("/api/blocks/diary-bob", json={"text": "HACKED"})
        deleted = await clients["owner"].delete("/api/blocks/diary-bob")

        assert (answer.status_code, deleted.status_code) == (403, 404)
        assert secret("bob") in (await memory.get_rendered_content("weft/bob", "diary-bob") or "")
