"""What is told of a turn as spans, by the real SDK of OpenTelemetry; and that nobody pays who has none."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

import weft
from weft.providers.base import collected
from weft.spans import NOTHING, begin
from weft.turn.classify import classify
from weft.turn.trace import ids
from wired import Echo


class Seen:
    """The spans that were recorded."""

    def __init__(self) -> None:
        self.kept = InMemorySpanExporter()

    def all(self) -> list[ReadableSpan]:
        return list(self.kept.get_finished_spans())

    def names(self) -> list[str]:
        return sorted(span.name for span in self.all())

    def one(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.all() if span.name == name]
        return found

    def parent(self, span: ReadableSpan) -> str:
        """The name of the span above, which has ended too."""
        above = span.parent.span_id if span.parent else 0
        return next((each.name for each in self.all() if each.context and each.context.span_id == above), "")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    found, provider = Seen(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found.kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield found
    provider.shutdown()


@pytest.fixture(autouse=True)
def nothing_is_complained_of(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record.getMessage() for record in caplog.records if record.name.startswith("opentelemetry")] == []


@pytest.fixture
async def app() -> AsyncIterator[weft.Assistant]:
    """An assistant that will call two tools, one of which fails, search, and answer."""
    calls = (
        weft.ToolCall(id="c1", name="tide", arguments={"place": "Faro"}),
        weft.ToolCall(id="c2", name="broken", arguments={"word": "hunter2"}),
        weft.ToolCall(id="c3", name="conversation_search", arguments={"query": "boat"}),
        weft.ToolCall(id="c4", name="hunter2", arguments={}),
    )
    usage = weft.Usage(input_tokens=100, output_tokens=7, cached_tokens=40, written_tokens=9)
    provider = weft.ScriptedProvider(
        [
            weft.Reply(tool_calls=calls, stop_reason="tools", usage=usage, model="scripted-2"),
            weft.Reply(text="hunter2 at six", usage=usage),
        ],
        info=weft.ModelInfo(id="scripted-1", provider="gemini"),
    )
    made = await weft.connect(provider=provider, tools=[tide, broken])
    try:
        yield made
    finally:
        await made.close()


def tide(place: str) -> str:
    """When the tide is high.

    Args:
        place: Where.
    """
    return f"hunter2 in {place} at six"


def broken(word: str) -> str:
    """Fails.

    Args:
        word: Any word.
    """
    raise ValueError(word)


async def test_a_turn_is_a_span_with_its_requests_calls_and_searches_below(
    app: weft.Assistant, seen: Seen
) -> None:
    store = await app.store.get()
    other = await store.sessions.find_or_create("app", "other", "owner")
    await store.messages.append(other.id, weft.Message(role="user", content="the boat is hunter2"))

    reply = await app.ask("do you remember the boat?", session="s")

    assert seen.names() == [
        "chat scripted-1",
        "chat scripted-1",
        "execute_tool broken",
        "execute_tool conversation_search",
        "execute_tool tide",
        "execute_tool unknown",
        "invoke_agent weft",
        "search_memory",
        "search_memory",
    ]
    turn = seen.one("invoke_agent weft")
    assert turn.parent is None
    assert {seen.parent(span) for span in seen.all() if span.name.startswith(("chat", "execute"))} == {
        "invoke_agent weft"
    }
    searches = [span for span in seen.all() if span.name == "search_memory"]
    above = ["execute_tool conversation_search", "invoke_agent weft"]
    assert sorted(map(seen.parent, searches)) == above
    assert dict(turn.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "weft",
        "gen_ai.conversation.id": (await store.sessions.list())[0].id,
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.usage.input_tokens": 200,
        "gen_ai.usage.output_tokens": 14,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.usage.cache_creation.input_tokens": 18,
        "weft.turn.id": reply.turn_id,
        "weft.turn.outcome": "answered",
    }


async def test_requests_calls_and_searches_have_the_names_of_the_conventions(
    app: weft.Assistant, seen: Seen
) -> None:
    await app.ask("do you remember the boat?", session="s")

    first, second = (span for span in seen.all() if span.name.startswith("chat"))
    session = first.attributes and first.attributes["gen_ai.conversation.id"]
    assert first.kind == SpanKind.CLIENT
    assert dict(first.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": session,
        "gen_ai.response.model": "scripted-2",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 9,
    }
    assert second.attributes is not None
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    call = seen.one("execute_tool tide")
    assert dict(call.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "tide",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
    }
    search = next(span for span in seen.all() if span.name == "search_memory")
    assert dict(search.attributes or {}) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.record.count": 0,
    }


async def test_a_call_that_fails_says_so_by_the_kind_of_its_error_and_nobody_s_text_is_in_a_span(
    app: weft.Assistant, seen: Seen
) -> None:
    await app.ask("hunter2, do you remember?", session="s")

    failed, unknown = seen.one("execute_tool broken"), seen.one("execute_tool unknown")
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "ValueError"
    assert unknown.attributes is not None
    assert unknown.attributes["error.type"] == "unknown_tool"
    assert seen.one("execute_tool tide").status.status_code == StatusCode.UNSET
    assert [span.name for span in seen.all() if "hunter2" in span.to_json()] == []
    assert all(span.events == () for span in seen.all())


async def test_a_turn_that_fails_is_an_error_and_so_is_its_request(seen: Seen) -> None:
    provider = weft.ScriptedProvider([weft.ProviderError("hunter2 is down.")])
    app = await weft.connect(provider=provider)

    with pytest.raises(weft.ProviderError):
        await app.ask("hi")

    for span in seen.all():
        assert span.status.status_code == StatusCode.ERROR
        assert span.attributes is not None
        assert span.attributes["error.type"] == "ProviderError"
    assert seen.names() == ["chat scripted", "invoke_agent weft"]
    await app.close()


async def test_a_turn_that_is_cancelled_ends_its_spans_wherever_it_is(
    app: weft.Assistant, seen: Seen
) -> None:
    started = asyncio.Event()

    async def wait() -> str:
        """Waits."""
        started.set()
        await asyncio.Event().wait()
        return ""

    app.engine.tools.add(wait)
    provider = weft.ScriptedProvider([weft.Reply(tool_calls=(weft.ToolCall(id="c", name="wait"),))])

    async def listen() -> None:
        async for _ in app.stream("hi", session="s", provider=provider):
            pass

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(30):
        await started.wait()
    listening.cancel()
    await asyncio.wait([listening])

    assert seen.names() == ["chat scripted", "execute_tool wait", "invoke_agent weft", "search_memory"]
    turn = seen.one("invoke_agent weft")
    assert turn.attributes is not None
    assert turn.attributes["weft.turn.outcome"] == "cancelled"
    assert turn.status.status_code == StatusCode.UNSET


async def test_a_request_that_is_cancelled_while_it_waits_ends_its_spans(
    app: weft.Assistant, seen: Seen
) -> None:
    provider = Echo()
    provider.gate.clear()
    listening = asyncio.ensure_future(collected(app.stream("hi", provider=provider)))
    async with asyncio.timeout(30):
        await provider.asked.wait()
    listening.cancel()
    await asyncio.wait([listening])

    assert seen.names() == ["chat scripted", "invoke_agent weft"]
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_stream_closed_in_another_task_leaves_no_current_span(
    app: weft.Assistant, seen: Seen
) -> None:
    events = app.stream("hi", session="s", provider=weft.ScriptedProvider("one two three"))
    assert isinstance(await anext(events), weft.TurnStarted)
    assert isinstance(await anext(events), weft.TextDelta)
    assert not trace.get_current_span().get_span_context().is_valid

    await asyncio.create_task(_close(events))

    assert seen.names() == ["chat scripted", "invoke_agent weft", "search_memory"]
    turn = seen.one("invoke_agent weft")
    assert turn.attributes is not None
    assert turn.attributes["weft.turn.outcome"] == "cancelled"


async def _close(events: AsyncIterator[object]) -> None:
    await events.aclose()  # type: ignore[attr-defined]


async def test_a_client_that_stops_listening_after_the_answer_does_not_cancel_the_turn(
    app: weft.Assistant, seen: Seen
) -> None:
    events = app.stream("hi", session="s", provider=weft.ScriptedProvider("one"))
    async for event in events:
        if isinstance(event, weft.Done):
            break
    await events.aclose()

    turn = seen.one("invoke_agent weft")
    assert turn.attributes is not None
    assert turn.attributes["weft.turn.outcome"] == "answered"


async def test_the_spans_of_a_program_are_above_and_those_of_a_provider_below(seen: Seen) -> None:
    class Instrumented(weft.ScriptedProvider):
        async def stream(self, context: weft.Context):  # type: ignore[no-untyped-def]
            begin("POST", {}).end()
            async for event in super().stream(context):
                yield event
            begin("GET", {}).end()

    app = await weft.connect(provider=Instrumented("one two"))
    with begin("the program", {}) as program, program.current():
        await app.ask("hi")
    await app.close()

    above = {span.name: seen.parent(span) for span in seen.all()}
    assert above == {
        "the program": "",
        "invoke_agent weft": "the program",
        "chat scripted": "invoke_agent weft",
        "POST": "chat scripted",
        "GET": "chat scripted",
    }


async def test_a_request_beside_a_turn_has_a_span_too(seen: Seen) -> None:
    await classify(weft.ScriptedProvider("DIRECT"), "hello", model="small")

    span = seen.one("chat small")
    assert span.attributes is not None
    assert span.attributes["gen_ai.response.finish_reasons"] == ("stop",)


async def test_a_span_that_is_not_sampled_has_no_spans_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = InMemorySpanExporter()
    never, always = (TracerProvider(sampler=each, shutdown_on_exit=False) for each in (ALWAYS_OFF, None))
    always.add_span_processor(SimpleSpanProcessor(seen))
    monkeypatch.setattr(trace, "get_tracer", never.get_tracer)
    turn = begin("turn", {})
    monkeypatch.setattr(trace, "get_tracer", always.get_tracer)

    with begin("chat", {}, parent=turn), turn.current():
        begin("search", {}).end()

    assert seen.get_finished_spans() == ()


async def test_two_turns_at_once_know_their_own_ids_and_forget_them_at_the_end(
    app: weft.Assistant, caplog: pytest.LogCaptureFixture
) -> None:
    found: dict[str, set[str]] = {}

    async def look(who: str) -> str:
        """Looks.

        Args:
            who: For whom.
        """
        await asyncio.sleep(0)
        found.setdefault(who, set()).update(await asyncio.create_task(_ids()))
        return await asyncio.to_thread(lambda: str(ids()))

    app.engine.tools.add(look)

    async def talk(who: str) -> weft.Reply:
        call = weft.ToolCall(id="c", name="look", arguments={"who": who})
        provider = weft.ScriptedProvider([weft.Reply(tool_calls=(call,)), "done"])
        events = app.stream("hi", session=who, provider=provider)
        [reply] = [event.reply async for event in events if isinstance(event, weft.Done)]
        assert ids() == {}
        return reply

    replies = await asyncio.gather(talk("a"), talk("b"))

    assert [replies[n].turn_id in found[who] for n, who in enumerate("ab")] == [True, True]
    assert found["a"].isdisjoint(found["b"])
    assert [len(each) for each in found.values()] == [2, 2]


async def _ids() -> list[str]:
    return list(ids().values())


def test_without_a_listener_there_is_no_span_and_only_a_few_functions_are_called() -> None:
    calls: list[str] = []
    assert begin("chat", {}) is NOTHING

    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        with begin("chat", {"gen_ai.operation.name": "chat"}) as span, span.current():
            span.set({"gen_ai.usage.input_tokens": 1})
    finally:
        sys.setprofile(None)

    assert calls[0] == "begin"
    assert len(calls) < 40, calls  # the API of OpenTelemetry without an SDK makes 26 of them


def test_the_api_is_not_even_loaded_for_a_program_that_does_not_use_it(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, weft\n"
        "async def main():\n"
        "    app = await weft.connect(provider=weft.ScriptedProvider('hello'))\n"
        "    print((await app.ask('hi', session='s')).text)\n"
        "    await app.close()\n"
        "asyncio.run(main())\n"
        "print([m for m in ('opentelemetry', 'structlog') if m in sys.modules])"
    )
    environ = {"WEFT_HOME": str(tmp_path), "PYTHONPATH": str(Path(weft.__file__).parents[1])}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines() == ["hello", "[]"]
    assert done.stderr == ""
