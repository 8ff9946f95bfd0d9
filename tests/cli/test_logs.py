"""What `weft serve` logs: whose line it is, and nothing of what was said."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.cli import logs as logs_module
from weft.cli.logs import log_to_stderr
from weft.config import LogSettings
from weft.gateway.background import learn_from
from weft.testing import LoopbackVendor, Refusal
from weft.types.envelope import Inbound
from weft.types.redacted import Content, Redacted
from weft.types.secret import without_secrets
from wired import Wire, gateway, said

from samples import write_workspace

WORD = "hunter2"
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwx0123"
PERSON = "98765431"

Start = Callable[..., StringIO]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    write_workspace(tmp_path / "workspace")


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Logging as `weft serve` has it, into a text; as it was before at the end."""
    names = ("", "weft", "weft.turn.decide", "weft.turn.run", "weft.workspace.skills")
    levels = {name: logging.getLogger(name).level for name in names}
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging, "raiseExceptions", True)

    def start(**settings: Any) -> StringIO:
        written = StringIO()
        log_to_stderr(LogSettings(**settings), written)
        return written

    yield start
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def lines(written: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def about(written: StringIO, event: str) -> list[dict[str, Any]]:
    return [line for line in lines(written) if line["event"] == event]


class Thief(weft.ScriptedProvider):
    """Calls tools with the word, and answers with it; at last it fails with it."""

    def __init__(self) -> None:
        calls = (
            weft.ToolCall(id="c1", name="echo", arguments={"text": f"{WORD} {KEY}"}),
            weft.ToolCall(id="c2", name="broken", arguments={"text": WORD}),
            weft.ToolCall(id="c3", name="memory_append", arguments={"label": "gone", "text": WORD}),
            weft.ToolCall(id="c4", name=f"{WORD}_tool", arguments={}),
        )
        usage = weft.Usage(input_tokens=90, output_tokens=5, cached_tokens=30, written_tokens=20)
        answers = (
            weft.Reply(tool_calls=calls, stop_reason="tools", usage=usage),
            weft.Reply(text=f"it is {WORD} {KEY}", usage=usage),
            weft.ProviderError(f"no model knows {WORD}."),
        )
        super().__init__(answers)


def echo(text: str) -> str:
    """Says it.

    Args:
        text: What.
    """
    return f"heard {text}"


def broken(text: str) -> str:
    """Fails.

    Args:
        text: What.
    """
    raise ValueError(f"no {text}")


def written_by(text: str, number: int = 1) -> Inbound:
    return said(text, number, sender=PERSON)


async def whole_life() -> None:
    """Messages with the word through the gateway, to a turn that acts, one that fails, and learning."""
    wire = Wire()
    async with gateway(Thief(), wire, allowed=(PERSON,)) as (made, app):
        app.engine.tools.add(echo)
        app.engine.tools.add(broken)
        store = await app.store.get()
        await store.memory.create_block("weft", "notes", pinned=True)
        await store.memory.append_to_block("weft", "notes", f"the word is {WORD}")
        await store.facts.set(f"telegram:{PERSON}", "password", WORD)
        await made.submit(written_by(f"remember {WORD}? my key is {KEY}"))
        await wire.wait(1)
        await made.submit(written_by(f"and {WORD} again", 2))
        await wire.wait(2)
        await made.submit(said(f"let {WORD} in", sender="1234567"))
        await wire.wait(3)
        [session] = [each for each in await store.sessions.list() if each.sender == PERSON]
        await learn_from(app.engine, session)
    assert WORD in wire.sent[0][1]


@pytest.mark.parametrize("form", ["text", "json"])
async def test_nobody_s_text_is_in_a_line_unless_it_is_asked_for(logs: Start, form: str) -> None:
    silent = logs(level="debug", format=form)
    await whole_life()
    told = silent.getvalue()

    assert len(told.splitlines()) > 10
    assert [line for line in told.splitlines() if WORD in line or KEY in line] == []
    assert [line for line in told.splitlines() if PERSON in line or "1234567" in line] == []


async def test_texts_are_there_if_they_are_asked_for_and_secrets_never(logs: Start) -> None:
    told = logs(format="json", content=True)
    await whole_life()

    assert WORD in about(told, "message received")[0]["text"]
    assert WORD in about(told, "turn ended")[0]["reply"]
    assert WORD in about(told, "turn ended")[1]["reason"]
    by_tool = {line["tool"]: line for line in about(told, "tool called")}
    assert WORD in by_tool["echo"]["arguments"]
    assert WORD in by_tool["echo"]["result"]
    assert WORD in about(told, "the tool broken failed")[0]["exception"]
    assert KEY not in told.getvalue()


async def test_a_turn_is_one_line_with_what_it_cost_and_so_is_each_call_and_message(logs: Start) -> None:
    told = logs(format="json")
    await whole_life()

    answered, failed = about(told, "turn ended")
    kept = (
        "outcome",
        "provider",
        "model",
        "rounds",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "written_tokens",
    )
    assert [answered[key] for key in kept] == ["answered", "scripted", "scripted", 2, 180, 10, 60, 40]
    assert [failed[key] for key in ("outcome", "rounds", "error")] == ["failed", 1, "ProviderError"]
    assert answered["ms"] >= 0
    calls = {line["tool"]: (line["failed"], line.get("error")) for line in about(told, "tool called")}
    assert calls == {
        "echo": (False, None),
        "broken": (True, "ValueError"),
        "memory_append": (False, None),
        "unknown": (True, "unknown_tool"),
    }
    received = [(line["channel"], line["kind"]) for line in about(told, "message received")]
    assert received == [("telegram", "text")] * 3
    [refused] = about(told, "message refused")
    assert refused["reason"] == "neither allowed nor paired"
    known = {"turn ended", "tool called", "message received", "message refused", "the tool broken failed"}
    assert {line["event"] for line in lines(told) if line["level"] == "info"} <= known
    [traceback] = [line["exception"] for line in about(told, "the tool broken failed")]
    assert re.search(r"test_logs.py\", line \d+, in broken", traceback)
    assert traceback.endswith("ValueError")


@pytest.mark.parametrize("content", [False, True])
async def test_what_files_hold_and_what_lost_its_place_is_told_only_if_asked_for(
    logs: Start, tmp_path: Path, content: bool
) -> None:
    files = {
        "workspace/skills/bad/SKILL.md": f"---\ndescription: *{WORD}\n---\nbody\n",
        "workspace/skills/worse/SKILL.md": "---\nname: worse\ndescription: Works.\n---\nbody\n",
        "workspace/skills/worse/tools.json": f'{{"tools": [{{"name": "{WORD}", "{WORD}": 1}}]}}',
        "config.toml": "[context]\nmax_tokens = 2300\nreserved_response_tokens = 200\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    told = logs(level="debug", format="json", content=content)
    app = await weft.connect(provider=weft.ScriptedProvider("fine"))
    store = await app.store.get()
    other = await store.sessions.find_or_create("app", "other", "owner")
    for n in range(5):
        text = f"{WORD} sails boat {n} " + "far away " * 200
        await store.messages.append(other.id, weft.Message(role="user", content=text))
    await app.ask("do you remember the boat?", session="s")
    await app.close()

    events = [line["event"] for line in lines(told)]
    shown = [event for event in events if WORD in event]
    assert any("has front matter that cannot be read" in event for event in events), events
    for words in ("left out", "is used without its tools"):
        assert any(words in event for event in events), events
        assert any(words in event for event in shown) == content
    assert (WORD in told.getvalue()) == content


async def test_lines_of_two_turns_at_the_same_time_have_the_ids_of_their_own(logs: Start) -> None:
    told = logs(level="debug", format="json")
    at_work = asyncio.Barrier(2)

    async def meet(who: str) -> str:
        """Meets the other one.

        Args:
            who: Who meets.
        """
        async with asyncio.timeout(30):
            await at_work.wait()
        logging.getLogger("weft.test").info("met", extra={"who": who})
        await asyncio.to_thread(logging.getLogger("weft.test").info, "met", extra={"who": who})
        return "met"

    class Meeting(weft.ScriptedProvider):
        async def stream(self, context: weft.Context):  # type: ignore[no-untyped-def]
            met = any(message.role == "tool" for message in context.to_messages())
            call = weft.ToolCall(id="c", name="meet", arguments={"who": context.current_message})
            yield weft.Done(weft.Reply(text="done") if met else weft.Reply(tool_calls=(call,)))

    wire = Wire()
    async with gateway(Meeting(), wire) as (made, app):
        app.engine.tools.add(meet)
        for sender in ("7", "8"):
            await made.submit(said(sender, sender=sender))
        await wire.wait(2)
        store = await app.store.get()
        sessions = {each.sender: each.id for each in await store.sessions.list()}
        turns = {who: (await store.turns.list(session))[0] for who, session in sessions.items()}

    met = about(told, "met")
    assert len(met) == 4
    assert all(line["session"] == sessions[line["who"]] for line in met)
    assert all(line["turn"] == turns[line["who"]] for line in met)
    for event in ("turn ended", "tool called"):
        assert {(line["session"], line["turn"]) for line in about(told, event)} == {
            (sessions[who], turns[who]) for who in "78"
        }
    assert all("turn" not in line for line in about(told, "message received"))


def test_a_line_for_people_has_its_keys_behind_it_and_cannot_pretend_to_be_two(logs: Start) -> None:
    told = logs()
    extra = {"tool": "a\x1b[2J\nb c", "ms": 5}
    logging.getLogger("weft.test").info("tool called", extra=extra)

    [line] = told.getvalue().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\S+Z \[info +\] tool called \[weft\.test\] ", line)
    assert line.endswith("ms=5")
    assert "\x1b" not in line


def test_what_errors_say_is_left_out_and_where_they_came_from_is_not(logs: Start) -> None:
    told = logs(format="json")
    try:
        try:
            raise KeyError(WORD)
        except KeyError as error:
            raise ExceptionGroup(WORD, [OSError(f"{WORD} cannot be read")]) from error
    except ExceptionGroup as error:
        logging.getLogger("weft.test").exception("it broke: %s", error)

    [line] = lines(told)
    assert line["event"] == "it broke: ExceptionGroup"
    frames, group, inner = line["exception"].partition("ExceptionGroup\n")
    assert "KeyError\nwhich led to\n" in frames
    assert (group, inner) == ("ExceptionGroup\n", "in it\nOSError")


def test_of_other_packages_only_their_own_words_are_told_and_only_warnings(logs: Start) -> None:
    told = logs(level="debug", format="json")
    other = logging.getLogger("asyncio")
    other.info("HTTP Request: %s", WORD)
    other.error("Task exception was never retrieved\nfuture: <Task %s>", WORD, extra={"task": WORD})
    other.warning("Executing %s took %.3f seconds", WORD, 0.5)
    other.warning("%d of %s", WORD, WORD)
    other.warning(ValueError(WORD))
    other.warning({"text": WORD})

    events = [line["event"] for line in lines(told)]
    assert events == [
        "Task exception was never retrieved",
        "Executing … took 0.500 seconds",
        "%d of %s",
        "…",
        "…",
    ]


async def test_a_refusal_of_the_model_is_told_with_status_and_code_and_no_word_of_the_message(
    logs: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = {"message": f"cannot read {WORD}", "type": "server_error", "code": None}
    named = Refusal(500, json.dumps({"error": error}).encode(), 0.01)
    told = logs(format="json")
    with LoopbackVendor(
        "openai", [named, Refusal(503, f"busy with {WORD}", 0.01), Refusal(400, WORD)]
    ) as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("WEFT_MODEL", "gpt-4o")
        app = await weft.connect(provider="openai")
        with pytest.raises(weft.ProviderError, match=WORD):
            await app.ask(f"what is {WORD}?", session="s")
        await app.close()

    retries = [line["event"].partition(": ")[2] for line in lines(told) if "Trying" in line["event"]]
    assert retries == [
        "openai is busy or failed (500): server_error.",
        "openai is busy or failed (503): Service Unavailable.",
    ]
    [ended] = about(told, "turn ended")
    assert ended["reason"] == "openai refused the request (400): Bad Request."
    assert WORD not in told.getvalue()


async def test_learning_that_is_put_off_says_why_and_until_when(logs: Start) -> None:
    told = logs(format="json")
    provider = weft.ScriptedProvider(["Hello.", ""])
    app = await weft.connect(provider=provider)
    await app.ask("hi", session="s")
    [session] = await (await app.store.get()).sessions.list()
    await learn_from(app.engine, session)
    await app.close()

    sentence = "The model answered nothing when it was asked for a summary."
    assert about(told, f"a conversation is learned from later, in 1 minute: {sentence}")


def test_an_error_of_a_private_type_goes_by_its_public_name(logs: Start) -> None:
    class _Hidden(weft.StoreError):
        pass

    told = logs(format="json")
    logging.getLogger("weft.test").warning("it failed: %s", _Hidden(WORD))

    assert [line["event"] for line in lines(told)] == ["it failed: StoreError"]


def test_what_only_some_may_read_is_marked_and_shown_where_it_is_asked_for(logs: Start) -> None:
    for content, shown in ((False, "left out …"), (True, "left out the title")):
        told = logs(format="json", content=content)
        extra = {"text": Content("what was said")}
        logging.getLogger("weft.test").warning("left out %s", Redacted("the title"), extra=extra)

        [line] = lines(told)
        assert line["event"] == shown
        assert ("text" in line) == content


def test_a_program_reads_what_it_asked_about_and_nothing_that_was_said() -> None:
    assert str(Redacted("the title")) == "the title"
    assert f"{Content('the message')} {Content('the message')!r} {Redacted('the title')!r}" == "… … …"


def test_a_line_that_cannot_be_made_is_not_printed_with_all_it_holds(
    logs: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    class Closed(StringIO):
        def write(self, text: str) -> int:
            raise OSError("closed")

    logs()
    handler = logging.root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(Closed())
    logging.getLogger("weft.test").warning("left out %s", Redacted(WORD))

    assert WORD not in capsys.readouterr().err


@pytest.mark.parametrize(("level", "told"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_only_what_is_at_least_as_grave_as_asked_for_is_told(logs: Start, level: str, told: int) -> None:
    written = logs(level=level)
    for each in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("weft.test").log(each, "something")

    assert len(written.getvalue().splitlines()) == told


def test_a_file_that_need_not_be_there_is_no_news_and_neither_is_each_context(logs: Start) -> None:
    def work() -> None:
        logging.getLogger("weft.workspace.files").warning("x is missing.", extra={"missing": True})
        logging.getLogger("weft.turn.decide").info("context built: %d of %d tokens", 5, 10)

    quiet = logs()
    work()
    assert quiet.getvalue() == ""
    detailed = logs(level="debug", format="json")
    work()
    assert [line["event"] for line in lines(detailed)] == ["x is missing.", "context built: 5 of 10 tokens"]


def test_a_long_value_is_cut_before_secrets_are_searched_for_in_it(
    logs: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(text: str) -> str:
        sizes.append(len(text))
        return without_secrets(text)

    monkeypatch.setattr(logs_module, "without_secrets", noted)
    written = logs(content=True, format="json")

    logging.getLogger("weft").warning("it failed: %s", "password=hunter22x " + "word " * 500_000)

    [line] = lines(written)
    assert line["event"].startswith("it failed: password=*** word word")
    assert line["event"].endswith("characters more)")
    assert max(sizes) < 21_000
