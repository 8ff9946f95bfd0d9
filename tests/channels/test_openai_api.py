"""OpenAI's own client, against a real server: any app that speaks it gains memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

import weft
from http_server import Served, calling
from http_server import serving as served

HI = {"role": "user", "content": "hi"}
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    },
}
WEATHER_FLAT: Any = {"type": "function", **WEATHER["function"]}
CALL = weft.ToolCall(id="call_1", name="weather", arguments={"town": "Kiel"})


class Asking:
    """A server, and OpenAI's client for it, which checks every answer."""

    def __init__(self, server: Served, client: AsyncOpenAI) -> None:
        self.server, self.client, self.model = server, client, server.model

    async def say(self, *messages: Any, **more: Any) -> Any:
        return await self.client.chat.completions.create(model="weft", messages=list(messages), **more)

    async def respond(self, given: Any, **more: Any) -> Any:
        return await self.client.responses.create(model="weft", input=given, **more)


@asynccontextmanager
async def serving(*script: Any, **more: Any) -> AsyncIterator[Asking]:
    async with (
        served(script, **more) as server,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="any", max_retries=0, _strict_response_validation=True
        ) as client,
    ):
        yield Asking(server, client)


async def test_the_models_are_listed_and_one_can_be_looked_at() -> None:
    async with serving() as ask:
        assert [model.id async for model in await ask.client.models.list()] == ["weft", "scripted"]
        assert (await ask.client.models.retrieve("scripted")).id == "scripted"
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await ask.client.models.retrieve("gpt-9")


async def test_a_message_is_answered_with_what_it_cost() -> None:
    async with serving("Hello there.") as ask:
        answer = await ask.say({"role": "system", "content": "Be a pirate."}, HI)

        assert answer.choices[0].message.content == "Hello there."
        assert (answer.choices[0].finish_reason, answer.model) == ("stop", "weft")
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
        assert ask.model.requests[0].system_prompt.startswith("Be a pirate.")
        assert ask.model.requests[0].current_message == "hi"


async def test_what_was_read_from_a_cache_and_written_to_it_is_told() -> None:
    usage = weft.Usage(input_tokens=90, output_tokens=5, cached_tokens=30, written_tokens=20)
    reply = weft.Reply(text="Hello there.", usage=usage)
    async with serving(reply, reply) as ask:
        chat = await ask.say(HI)
        response = await ask.client.responses.create(model="weft", input="hi")

        assert response.usage is not None
        for details in (chat.usage.prompt_tokens_details, response.usage.input_tokens_details):
            assert (details.cached_tokens, details.cache_write_tokens) == (30, 20)


async def test_an_answer_is_streamed_word_by_word_with_its_cost_where_that_is_wanted() -> None:
    async with serving("one two three", "four five") as ask:
        plain = [chunk async for chunk in await ask.say(HI, stream=True)]
        costed = [c async for c in await ask.say(HI, stream=True, stream_options={"include_usage": True})]

        assert [c.choices[0].delta.content for c in plain] == ["", "one ", "two ", "three", None]
        assert plain[0].choices[0].delta.role == "assistant"
        assert plain[-1].choices[0].finish_reason == "stop"
        assert all(chunk.usage is None for chunk in plain)
        assert costed[-1].choices == []
        assert costed[-1].usage.prompt_tokens > 0


async def test_the_helper_of_the_client_collects_a_stream_with_text_and_a_call() -> None:
    async with serving(calling(CALL, text="Let me look.")) as ask:
        messages: Any = [HI]
        async with ask.client.chat.completions.stream(
            model="weft", messages=messages, tools=[WEATHER]
        ) as stream:
            async for _ in stream:
                pass
            found = await stream.get_final_completion()

        (choice,) = found.choices
        assert choice.message.content == "Let me look."
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls
        (call,) = choice.message.tool_calls
        assert (call.id, call.function.name, call.function.arguments) == (
            "call_1",
            "weather",
            '{"town": "Kiel"}',
        )


async def test_a_tool_of_the_app_is_called_at_the_app_and_its_result_leads_to_the_answer() -> None:
    async with serving(calling(CALL), "It rains in Kiel.") as ask:
        first = await ask.say(HI, tools=[WEATHER])
        message = first.choices[0].message
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
        second = await ask.say(HI, message.to_dict(), result, tools=[WEATHER])

        assert first.choices[0].finish_reason == "tool_calls"
        assert second.choices[0].message.content == "It rains in Kiel."
        assert "weather" in [tool.name for tool in ask.model.requests[0].tools]
        assert [(m.role, m.content) for m in ask.model.requests[1].steps] == [
            ("assistant", ""),
            ("tool", "rain"),
        ]
        assert await ask.server.log() == [
            [("user", "hi"), ("assistant", ""), ("tool", "rain"), ("assistant", "It rains in Kiel.")]
        ]


async def test_the_app_sees_only_its_own_calls_and_ours_are_run_meanwhile() -> None:
    ours = weft.ToolCall(id="call_0", name="archival_search", arguments={"query": "Kiel"})
    async with serving(calling(ours, CALL), "Rain, as in March.") as ask:
        first = await ask.say(HI, tools=[WEATHER])
        message = first.choices[0].message
        result = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
        await ask.say(HI, message.to_dict(), result, tools=[WEATHER])

        assert [call.id for call in message.tool_calls] == ["call_1"]
        steps = ask.model.requests[1].steps
        assert [call.id for call in steps[0].tool_calls] == ["call_0", "call_1"]
        assert [step.tool_call_id for step in steps[1:]] == ["call_0", "call_1"]
        (log,) = await ask.server.log()
        assert [role for role, _ in log] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_a_tool_of_the_app_stands_in_for_one_of_ours_of_the_same_name() -> None:
    tool = {"type": "function", "function": {"name": "archival_search", "parameters": {}}}
    call = weft.ToolCall(id="c", name="archival_search", arguments={})
    async with serving(calling(call)) as ask:
        answer = await ask.say(HI, tools=[tool])

        assert answer.choices[0].message.tool_calls[0].function.name == "archival_search"
        names = [tool.name for tool in ask.model.requests[0].tools]
        assert names.count("archival_search") == 1


async def test_with_the_tool_choice_none_no_tool_of_the_app_is_offered() -> None:
    async with serving("ok") as ask:
        await ask.say(HI, tools=[WEATHER], tool_choice="none")

        names = [tool.name for tool in ask.model.requests[0].tools]
        assert "weather" not in names
        assert "archival_search" in names, "our own tools are"


async def test_a_growing_conversation_is_one_session_and_nothing_in_it_is_stored_twice() -> None:
    async with serving("r1", "r2", "r3") as ask:
        said: list[Any] = [{"role": "system", "content": "Be brief."}]
        for text in ("again", "again", "and now"):
            said.append({"role": "user", "content": text})
            answer = await ask.say(*said)
            said.append({"role": "assistant", "content": answer.choices[0].message.content})

        assert [m.content for m in ask.model.requests[2].history] == ["again", "r1", "again", "r2"]
        assert await ask.server.log() == [
            [
                ("user", "again"),
                ("assistant", "r1"),
                ("user", "again"),
                ("assistant", "r2"),
                ("user", "and now"),
                ("assistant", "r3"),
            ]
        ]


async def test_a_repeated_question_is_stored_once_with_both_answers() -> None:
    async with serving("r1", "r2", "r3") as ask:
        await ask.say(HI)
        await ask.say(HI)
        await ask.say(HI, {"role": "assistant", "content": "r2"}, {"role": "user", "content": "more"})

        assert await ask.server.log() == [
            [("user", "hi"), ("assistant", "r1"), ("assistant", "r2"), ("user", "more"), ("assistant", "r3")]
        ]


async def test_an_earlier_history_of_the_app_is_shown_and_not_stored() -> None:
    async with serving("yes") as ask:
        old = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older"}]
        await ask.say(*old, HI)

        assert [m.content for m in ask.model.requests[0].history] == ["old", "older"]
        assert await ask.server.log() == [[("user", "hi"), ("assistant", "yes")]]


async def test_other_instructions_or_another_beginning_are_another_session() -> None:
    async with serving("1", "2", "3") as ask:
        await ask.say(HI)
        await ask.say({"role": "developer", "content": "Be brief."}, HI)
        await ask.say({"role": "user", "content": "hello"})

        assert len(await ask.server.log()) == 3


async def test_an_app_gains_the_memory_of_its_user_and_of_nobody_else() -> None:
    async with serving("a", "b", "c") as ask:
        store = await ask.server.store()
        await store.facts.set("http:ada", "boat", "Marlin")
        await store.facts.set("http:ben", "boat", "Orca")
        await ask.say({"role": "user", "content": "The harbour code is 4711."}, user="ada")
        await ask.say({"role": "user", "content": "What is the harbour code?"}, user="ben")
        await ask.say({"role": "user", "content": "What is the harbour code?"}, user="ada")

        ada, ben, again = (request.to_json() for request in ask.model.requests)
        assert "Marlin" in ada
        assert "Orca" not in ada
        assert "Orca" in ben
        assert "Marlin" not in ben
        assert "4711" not in ben
        assert "4711" in again, "recalled from the other conversation of the same user"


async def test_a_session_of_somebody_else_cannot_be_entered() -> None:
    async with serving(calling(CALL), "no", "a", "b") as ask:
        await ask.say(HI, user="ada", tools=[WEATHER])
        store = await ask.server.store()
        (session,) = await store.sessions.list()
        step = {"role": "tool", "tool_call_id": "call_1", "content": "mine"}
        called = {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather"}}],
        }
        await ask.say(HI, called, step, user="ben", metadata={"session": session.id})

        assert [(m.role, m.content) for m in await store.messages.all(session.id)] == [
            ("user", "hi"),
            ("assistant", ""),
        ]
        assert dict(ask.model.requests[1].steps[0].tool_calls[0].arguments) == {}, "not what Ada's log has"


async def test_a_part_that_is_no_text_is_named_in_its_place() -> None:
    async with serving("nice") as ask:
        parts = [
            {"type": "text", "text": "Look:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]
        await ask.say({"role": "user", "content": parts})

        assert ask.model.requests[0].current_message == "Look:\n[image_url was left out]"


@pytest.mark.parametrize(
    ("messages", "more", "error", "told"),
    [
        ([HI], {"model": "gpt-9"}, openai.NotFoundError, "no such model"),
        ([{"role": "user", "content": " "}], {}, openai.BadRequestError, "message is empty"),
        ([{"role": "assistant", "content": "x"}], {}, openai.BadRequestError, "message is empty"),
        ([], {}, openai.BadRequestError, "messages"),
        ([{"role": "wizard", "content": "x"}], {}, openai.BadRequestError, "messages.0.role"),
        ([HI], {"n": 2}, openai.BadRequestError, "n: Input should be 1"),
        ([{"role": "user", "content": "x " * 90_000}], {}, openai.BadRequestError, "tokens"),
    ],
)
async def test_a_wrong_request_is_refused_with_a_sentence(
    messages: Any, more: Any, error: type[openai.APIStatusError], told: str
) -> None:
    async with serving("never") as ask:
        for stream in (False, True):
            with pytest.raises(error, match=told) as found:
                await ask.client.chat.completions.create(
                    **{"model": "weft", "messages": messages, "stream": stream, **more}
                )
            assert isinstance(found.value.body, dict)
            assert set(found.value.body) == {"message", "type", "param", "code"}
        assert ask.model.requests == []


async def test_a_model_that_fails_is_a_bad_gateway_and_leaves_nothing_in_the_log() -> None:
    async with serving(weft.ProviderError("Nobody is there."), weft.ProviderError("Nor now.")) as ask:
        with pytest.raises(openai.InternalServerError, match="Nobody is there") as found:
            await ask.say(HI)
        assert found.value.status_code == 502
        with pytest.raises(openai.InternalServerError, match="Nor now"):
            await ask.say(HI, stream=True)

        assert await ask.server.log() == [[]]


class BreaksOff(weft.ScriptedProvider):
    """Fails in the middle of an answer."""

    def __init__(self, error: Exception) -> None:
        super().__init__(["one two"] * 2)
        self.error = error

    async def stream(self, context: Any) -> Any:
        async for event in super().stream(context):
            yield event
            raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [(weft.ProviderError("The line is dead."), "The line is dead."), (ValueError("secret"), "broke off")],
)
async def test_a_failure_in_the_middle_of_a_stream_is_an_event_of_the_stream(
    error: Exception, told: str
) -> None:
    async with serving(model=BreaksOff(error)) as ask:
        with pytest.raises(openai.APIError, match=told) as found:
            async for _ in await ask.say(HI, stream=True):
                pass
        assert "secret" not in str(found.value)
        events = [event async for event in await ask.respond("hi", stream=True)]
        assert events[-1].type == "error"
        assert told in events[-1].message


async def test_a_bug_is_a_server_error_without_its_text_or_traceback() -> None:
    async with serving(ValueError("secret")) as ask:
        with pytest.raises(openai.InternalServerError) as found:
            await ask.say(HI)

        assert found.value.status_code == 500
        assert "secret" not in found.value.response.text
        assert "Traceback" not in found.value.response.text


# --- Responses


async def test_responses_answers_a_text_and_a_list_of_items() -> None:
    async with serving("Hello.", "Bye.") as ask:
        first = await ask.respond("hi", instructions="Be a pirate.")
        items = [HI, {"role": "assistant", "content": first.output_text}, {"role": "user", "content": "bye"}]
        second = await ask.respond(items, instructions="Be a pirate.")

        assert (first.output_text, first.status) == ("Hello.", "completed")
        assert first.usage.input_tokens > 0
        assert second.output_text == "Bye."
        assert ask.model.requests[0].system_prompt.startswith("Be a pirate.")
        assert [m.content for m in ask.model.requests[1].history] == ["hi", "Hello."]
        assert len(await ask.server.log()) == 1


async def test_responses_streams_the_events_in_the_order_that_the_client_wants() -> None:
    async with serving("one two", "three") as ask:
        events = [event async for event in await ask.respond("hi", stream=True)]
        async with ask.client.responses.stream(model="weft", input="and?") as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()

        assert [event.type.removeprefix("response.") for event in events] == [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
        assert [event.sequence_number for event in events] == list(range(10))
        assert events[-1].response.output_text == "one two"
        assert final.output_text == "three"


async def test_responses_calls_the_tools_of_the_app() -> None:
    async with serving(calling(CALL, text="Let me look."), "Rain.") as ask:
        first = await ask.respond("hi", tools=[WEATHER_FLAT])
        text, call = first.output
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
        second = await ask.respond([HI, text.to_dict(), call.to_dict(), result], tools=[WEATHER_FLAT])

        assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"town": "Kiel"}')
        assert second.output_text == "Rain."
        assert [role for role, _ in (await ask.server.log())[0]] == ["user", "assistant", "tool", "assistant"]


async def test_responses_streams_a_call() -> None:
    async with serving(calling(CALL)) as ask:
        async with ask.client.responses.stream(model="weft", input="hi", tools=[WEATHER_FLAT]) as stream:
            kinds = [event.type.removeprefix("response.") async for event in stream]
            final = await stream.get_final_response()

        assert kinds == [
            "created",
            "in_progress",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
        assert [item.type for item in final.output] == ["function_call"]


async def test_an_answer_cannot_be_referred_to_by_its_id() -> None:
    async with serving() as ask:
        with pytest.raises(openai.BadRequestError, match="send the items"):
            await ask.respond("hi", previous_response_id="resp_1")


async def test_an_app_is_told_what_was_remembered_in_each_form_of_the_answer() -> None:
    note = weft.ToolCall(id="call_1", name="memory_append", arguments={"label": "notes", "text": "Tea."})
    script = [weft.Reply(tool_calls=(note,), stop_reason="tools"), "Noted."] * 3
    async with serving(*script) as asking:
        whole = await asking.say(HI, user="ana")
        chunks = [chunk async for chunk in await asking.say(HI, stream=True, user="ana")]
        response = await asking.respond("hi", user="ana")

    told = [each.model_extra["weft"] for each in (whole, *chunks, response) if "weft" in each.model_extra]
    assert told == [{"notice": "Remembered in notes: Tea. (/undo takes it back)"}] * 3
