"""`weft turns` as a newcomer runs it, and the routes of turns for several people."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from crossing import PEOPLE, World, secret, world
from http_server import listening
from programs import Terminal, environ, run_weft
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.testing import LoopbackVendor
from weft.types.request import Caller

OWNER = Caller(agent_id="weft", channel="terminal", sender_id="owner", conversation="chat")
BAD = ["0", "99", "-1", "1.5", "99999999999", "1a1ede19ab6602c8952c3"]
COMMANDS = ["show", "diff", "replay", "why"]


@dataclass(frozen=True)
class Home:
    """A home with one conversation of four turns: plain, with a call, failed, plain."""

    path: Path
    ids: tuple[str, ...]
    session: str

    def run(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return run_weft(environ(self.path), "turns", *args)

    def json(self, *args: str) -> Any:
        done = self.run(*args, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    path = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_HOME", str(path))
        yield asyncio.run(talk(path))


async def talk(path: Path) -> Home:
    call = weft.ToolCall(id="c1", name="remember_fact", arguments={"key": "city", "value": "Lisbon"})
    script: list[str | weft.Reply | BaseException] = [
        "Hello, you.",
        weft.Reply(text="", tool_calls=(call,), stop_reason="tools"),
        "Noted.",
        weft.ProviderError("the network is down." + "\nIt said: no route to the host." * 9),
        "Again.",
    ]
    app = await weft.connect(provider=weft.ScriptedProvider(script))
    for text in ("Hello [bold]there[/bold].", "I live in Lisbon.", "This fails.", "And now?"):
        try:
            await app.ask(text, session="s", caller=OWNER)
        except weft.ProviderError:
            assert text == "This fails."
    store = await app.store.get()
    [session] = await store.sessions.list()
    ids = tuple(info.id for info in reversed(await store.turns.page(session.id)))
    await app.close()
    return Home(path, ids, session.id)


def assert_refused(done: "subprocess.CompletedProcess[str]") -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


# --- the command line


def test_the_list_has_every_turn_with_what_came_of_it(lived: Home) -> None:
    shown = lived.run("list")
    rows = lived.json("list")

    lines = shown.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert "Hello [bold]there[/bold]." in lines[0]
    assert "failed: the network is down." in lines[2]
    assert "\x1b" not in shown.stdout
    assert [row["id"] for row in rows] == [*lived.ids]
    assert [row["state"] for row in rows] == ["done", "done", "failed", "done"]


def listed(home: Home, width: int) -> list[str]:
    """List the turns at a terminal of this width; in a pipe if it is 0."""
    if not width:
        return home.run("list").stdout.splitlines()
    command = f"{sys.executable} -m weft turns list; echo END"
    terminal = Terminal(environ(home.path, COLUMNS=str(width)), program=("sh", "-c", command))
    try:
        return terminal.read_until("END").splitlines()
    finally:
        terminal.close()


@pytest.mark.parametrize("width", [60, 80, 100, 0])
def test_a_failed_turn_leaves_every_column_readable(width: int, lived: Home) -> None:
    head, *lines = (re.sub("\x1b\\[[0-9;]*m", "", line) for line in listed(lived, width))

    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert head.split()[:4] == ["n", "id", "when", "same"]
    assert head.split()[-2:] == ["what", "message"]
    assert max(map(len, lines)) <= (width or 160)
    failed = lines[2]
    assert "failed: " in failed
    assert failed[head.index("what") :].split("  ")[0].endswith("…")
    assert failed.rstrip().endswith("This fails.")
    assert lived.ids[2].startswith(failed.split()[1])


def test_the_id_of_a_list_and_every_unambiguous_beginning_names_a_turn(lived: Home) -> None:
    ids = [line.split()[1] for line in lived.run("list").stdout.splitlines()[1:]]
    shown = lived.run("show", ids[1])

    assert len(set(ids)) == 4
    assert lived.json("show", ids[1])["id"] == lived.ids[1]
    assert shown.stdout.startswith(f"turn 2 ({lived.ids[1]}) of session {lived.session}: done\n")
    assert lived.run("show", "2").stdout == shown.stdout
    assert lived.json("diff", ids[3], ids[1])["before"] == 2
    several, short = lived.run("show", lived.ids[1][:4]), lived.run("show", lived.ids[1][:3])
    assert_refused(several)
    assert all(name in several.stderr for name in ("Several turns begin with", *lived.ids))
    assert_refused(short)


def test_a_turn_of_another_session_than_the_named_one_is_refused(lived: Home) -> None:
    other = run_weft(environ(lived.path), "sessions", "new", "--conversation", "other").stdout.strip()
    try:
        for name in (lived.ids[1], lived.ids[1][:14]):
            refused = lived.run("show", name, "-s", other)
            assert_refused(refused)
            assert refused.stderr.startswith(
                f"weft: The turn {lived.ids[1]} is one of session {lived.session}"
            )
            assert lived.run("show", name, "-s", lived.session).returncode == 0
    finally:
        run_weft(environ(lived.path), "sessions", "delete", other, "--yes")


def test_a_turn_is_named_by_its_number_or_its_id(lived: Home) -> None:
    by_number, by_id = lived.json("show", "2", "--session", lived.session), lived.json("show", lived.ids[1])

    assert by_number == by_id
    assert by_number["number"] == 2
    assert {item["layer"] for item in by_number["receipt"]["items"]} >= {"tools", "history", "message"}


def test_show_prints_every_item_with_tokens_origin_and_why(lived: Home) -> None:
    done = lived.run("show", "4")

    assert (done.returncode, done.stderr) == (0, "")
    [fact] = [line for line in done.stdout.splitlines() if line.startswith("changes (facts)")]
    assert fact.split()[2:] == "city 6 user turn new since the epoch began".split()
    assert "bytes (99%), are those of the request before" in done.stdout


async def leave_out(home: Path, number: int) -> None:
    """Store a turn that left so many recalled lines out."""
    reason = "gave way to layers of more value"
    items = [
        weft.ReceiptItem(
            layer="recall", source="recall", title=f"line {n}.", tokens=20, kept=False, reason=reason
        )
        for n in range(number)
    ]
    shown = weft.ReceiptItem(layer="message", source="message", title="the message", tokens=9, kept=True)
    async with await weft.open(home / "weft.db") as store:
        session = await store.sessions.new("terminal", "chat", "owner", agent_id="weft")
        turn = await store.turns.begin(session.id, "What?")
        receipt = weft.Receipt(items=(shown, *items), limit=1000, recipe="weft")
        await store.turns.finish(turn, receipt, weft.Message(role="user", content="What?"))


def test_what_was_left_out_for_one_reason_is_a_few_lines_and_each_stands_once(tmp_path: Path) -> None:
    asyncio.run(leave_out(tmp_path, 76))
    short, every = (run_weft(environ(tmp_path), "turns", "show", "1", *more) for more in ((), ("--all",)))
    data = run_weft(environ(tmp_path), "turns", "show", "1", "--json")

    assert re.findall("line [0-9]+", short.stdout) == ["line 0", "line 1", "line 2"]
    assert re.search("and 73 more of recall +1,460 +gave way to layers", short.stdout)
    assert re.findall("line [0-9]+", every.stdout) == [f"line {n}" for n in range(76)]
    assert len(json.loads(data.stdout)["receipt"]["items"]) == 77


def test_the_request_of_a_turn_is_printed_as_it_was_sent(lived: Home) -> None:
    done = lived.run("show", "1", "--request")

    [payload] = json.loads(done.stdout)
    assert payload["messages"][-1]["content"].endswith("Hello [bold]there[/bold].")
    assert payload["tools"]


def test_the_requests_of_a_turn_are_one_json(lived: Home) -> None:
    assert len(lived.json("show", "2", "--request")) == 2


def test_a_turn_that_a_later_one_begins_with_is_named_so_the_other_way_round(lived: Home) -> None:
    size = lived.json("diff", "1", "2")["bytes"]

    assert lived.run("diff", "1", "2").stdout.startswith(f"Turn 2 begins with all {size:,} bytes of turn 1.")


def test_a_difference_has_its_cause_and_its_lines(lived: Home) -> None:
    done, data = lived.run("diff", "4"), lived.json("diff", "4")

    assert done.stdout.startswith("Turn 4 begins with all ")
    assert "Changed by: fact city." in done.stdout
    assert "+And now?" in done.stdout
    assert (data["before"], data["after"], data["grew"]) == (2, 4, True)
    assert data["causes"] == [{"kind": "fact", "name": "city"}]
    other = lived.json("diff", "4", "1")
    assert (other["before"], other["after"]) == (1, 4)


def test_a_replay_proves_the_bytes_of_every_request(lived: Home) -> None:
    done, data = lived.run("replay", "2"), lived.json("replay", "2")

    assert len(done.stdout.splitlines()) == 2
    assert all("the same that were sent" in line for line in done.stdout.splitlines())
    assert [(one["turn"], one["round"], one["equal"]) for one in data] == [(2, 1, True), (2, 2, True)]


def test_why_names_what_was_shown_and_says_when_there_is_nothing(lived: Home) -> None:
    done = lived.run("why", "4", "city")
    nothing = lived.run("why", "4", "no such words")

    assert done.stdout.startswith("shown: facts: city (")
    assert "[user]" in done.stdout.splitlines()[0]
    assert (nothing.returncode, nothing.stderr) == (0, "")
    assert nothing.stdout.startswith("Nothing in turn 4 has 'no such words' in it")
    assert lived.json("why", "4", "no such words") == []


def test_a_turn_that_failed_is_shown_and_has_nothing_to_replay(lived: Home) -> None:
    shown = lived.run("show", "3")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "failed" in shown.stdout
    assert "the network is down." in shown.stdout
    assert lived.json("show", "3")["receipt"] is None
    for args in (("replay", "3"), ("diff", "4", "3"), ("show", "3", "--request")):
        done = lived.run(*args)
        assert_refused(done)
        assert "No request of turn 3 was stored" in done.stderr


@pytest.mark.parametrize("bad", BAD)
def test_a_turn_that_is_not_there_is_a_wrong_name(bad: str, lived: Home) -> None:
    command = COMMANDS[BAD.index(bad) % len(COMMANDS)]

    assert_refused(lived.run(command, bad, *(["words"] if command == "why" else [])))


@pytest.mark.parametrize(
    "args",
    [
        ("list", "--session", "nope"),
        ("diff", "2", "nope"),
        ("diff", "1"),
        ("why", "1"),
        ("shwo", "1"),
    ],
)
def test_a_wrong_call_is_told_in_words(args: tuple[str, ...], lived: Home) -> None:
    assert_refused(lived.run(*args))


@pytest.mark.parametrize("args", [("list",), ("why", "1", "x", "--json")])
def test_before_the_first_conversation_it_says_how_to_begin_one(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_weft(environ(tmp_path), "turns", *args)

    assert_refused(done)
    assert done.stderr == "weft: There are no conversations yet: `weft chat` begins one.\n"


def test_a_session_without_an_answer_has_an_empty_list(tmp_path: Path) -> None:
    run_weft(environ(tmp_path), "sessions", "new")

    done = run_weft(environ(tmp_path), "turns", "list")
    data = run_weft(environ(tmp_path), "turns", "list", "--json")

    assert (done.returncode, done.stdout) == (0, "Nothing was answered in this session yet.\n")
    assert json.loads(data.stdout) == []


def test_a_reader_that_stops_early_is_no_error(lived: Home) -> None:
    command = f"{sys.executable} -m weft turns show 1 --request | head -1"
    done = run_weft(environ(lived.path), program=("sh", "-c", command))

    assert (done.stdout, done.stderr) == ("[\n", "")


def test_a_question_of_the_command_line_can_be_replayed_too(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["At sea.", "Still at sea."]) as server:
        environment = environ(tmp_path, **server.environ)
        run_weft(environment, "ask", "-p", "openai", "-m", "gpt-4o", "Where is the boat?")
        run_weft(environment, "ask", "-c", "-p", "openai", "-m", "gpt-4o", "And now?")
        shown = run_weft(environment, "turns", "show", "2", "--request")
        replay = run_weft(environment, "turns", "replay", "2", "--json")

        assert json.loads(shown.stdout) == [server.requests[1].payload]
        assert [one["equal"] for one in json.loads(replay.stdout)] == [True]


# --- over HTTP


@asynccontextmanager
async def served(people: World) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Serve over HTTP, with a client of each person that has their token."""
    tokens = {person: await people.store.auth.create_token(person, person) for person in PEOPLE}
    async with listening(make_app(people.app, HttpChannelSettings(requests_per_minute=0))) as url:
        clients = {
            person: httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"})
            for person, token in tokens.items()
        }
        try:
            yield clients
        finally:
            for client in clients.values():
                await client.aclose()


async def paths(people: World, person: str) -> list[str]:
    """Return every route of the newest turn of a person, which has one before it."""
    await people.say(person, f"Once more: {secret(person)}.", f"old-{person}")
    [session] = people.ids[f"session {person}"]
    turn = (await people.store.turns.list(session))[0]
    return [
        *(f"/api/turns/{turn}{rest}" for rest in ("", "/requests", "/diff", "/replay")),
        f"/api/turns/{turn}/why?text={secret(person)}",
        f"/api/sessions/{session}/turns",
    ]


async def test_a_person_sees_their_own_turns_the_owner_all_and_nobody_else_any() -> None:
    async with world() as people, served(people) as clients:
        for person in PEOPLE:
            for path in await paths(people, person):
                answers = {who: await client.get(path) for who, client in clients.items()}
                for who, answer in answers.items():
                    may = who in (person, "owner")
                    assert answer.status_code == (200 if may else 404), (who, path)
                    assert may or secret(person) not in answer.text.replace(path, "")
                assert answers[person].json() == answers["owner"].json()


async def test_the_five_routes_say_what_the_commands_say() -> None:
    async with world() as people, served(people) as clients:
        receipt, requests, diff, replay, why, turns = [
            (await clients["ada"].get(path)).json() for path in await paths(people, "ada")
        ]

    assert receipt["recipe"] == "weft"
    assert secret("ada") in json.dumps(requests["requests"][0]["request"])
    assert diff["grew"] in (True, False)
    assert diff["bytes"] == requests["requests"][0]["bytes"]
    assert [one["equal"] for one in replay["replays"]] == [True]
    assert any(one["shown"] for one in why["reasons"])
    assert [one["number"] for one in turns["turns"]] == [2, 1]
    assert diff["after"] == turns["turns"][0]["id"]


async def test_a_turn_cannot_be_compared_with_one_of_another_person() -> None:
    async with world() as people, served(people) as clients:
        mine, theirs = (await paths(people, "ada"))[2], (await paths(people, "bob"))[2]
        other = theirs.removeprefix("/api/turns/").removesuffix("/diff")

        refused = await clients["ada"].get(f"{mine}?other={other}")
        allowed = await clients["owner"].get(f"{mine}?other={other}")
        unknown = [await clients["ada"].get(f"/api/turns/{name}/replay") for name in ("nope", "%00", "1")]

    assert (refused.status_code, allowed.status_code) == (404, 200)
    assert secret("bob") not in refused.text
    assert {answer.status_code for answer in unknown} == {404}
