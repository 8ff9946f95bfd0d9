"""Cache marks: where they stand, how many there are, and that they change nothing else in a request."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft.types.section import Place, Stability
from weft.wire import PROVIDERS, to_wire, violations
from weft.wire.clean import compact
from weft.wire.marks import LOOK_BACK, MOST_MARKS, Block, places
from wire_marks import items_of, marked, marks_of, without_marks
from wire_rounds import Request, conversations

USER, CALL = Block(is_assistant=False, takes_mark=True), Block(is_assistant=True, takes_mark=True)
THINKING, BARRED = Block(is_assistant=True, takes_mark=False), Block(is_assistant=False, takes_mark=False)
LOOK = weft.ToolDefinition(name="look", description="Look.", parameters={"type": "object"})
STYLES = {
    "anthropic": "claude-opus-5",
    "openai": "gpt-5.6",
    "openrouter": "anthropic/claude-sonnet-5",
}


def test_a_short_conversation_is_marked_at_its_four_borders() -> None:
    assert places(3, 1, [USER, CALL, USER]) == [0, 2, 3, 5]


def test_what_is_not_there_is_not_marked() -> None:
    assert places(0, 0, []) == []
    assert places(2, 0, []) == [1]
    assert places(0, 0, [USER]) == [0]
    assert places(1, 1, [USER]) == [0, 1], "all of the system text is stable"
    assert places(0, 0, [CALL, USER]) == [1], "the answer that begins is no end of a request"


def test_a_block_that_takes_no_mark_has_none() -> None:
    assert places(1, 0, [USER, BARRED, THINKING, USER, BARRED]) == [0, 1, 4]
    assert places(0, 0, [BARRED, THINKING, BARRED]) == []


def test_a_round_of_twenty_blocks_needs_no_further_mark() -> None:
    round_ = [USER, *[CALL] * 10, *[USER] * 10]

    assert places(2, 1, round_) == [0, 1, 2, 22]


def test_in_a_long_round_a_mark_replaces_that_of_the_stable_part() -> None:
    round_ = [USER, *[CALL] * 11, *[USER] * 11]

    assert places(2, 1, round_) == [1, 2, 9, 24]


def test_in_a_longer_one_the_mark_of_the_request_before_gives_way_too() -> None:
    round_ = [USER, *[CALL] * 20, *[USER] * 20]

    marks = places(2, 1, round_)

    assert marks == [1, 12, 27, 42]
    assert marks[1] - 2 <= LOOK_BACK, "the end of the request before is still found"


def test_a_request_before_that_no_further_mark_reaches_keeps_its_own() -> None:
    round_ = [USER, *[CALL] * 40, *[USER] * 40]

    assert places(2, 1, round_) == [1, 2, 67, 82]


def test_calls_that_take_no_mark_are_passed_over() -> None:
    few = [USER, *[THINKING] * 15, *[USER] * 15]
    many = [USER, *[THINKING] * 30, *[USER] * 30]

    assert places(1, 0, few) == [0, 1, 17, 31]
    assert places(1, 0, many) == [0, 1, 46, 61], "what lies too far back keeps its own mark"


@settings(max_examples=300, deadline=None)
@given(
    system=st.integers(0, 4),
    stable=st.integers(0, 4),
    blocks=st.lists(st.sampled_from([USER, CALL, THINKING, BARRED]), max_size=120).map(lambda b: [*b, USER]),
)
def test_marks_are_few_in_order_and_on_blocks_that_take_them(
    system: int, stable: int, blocks: list[Block]
) -> None:
    marks = places(system, stable, blocks)

    assert len(marks) <= MOST_MARKS
    assert marks == sorted(set(marks))
    assert all(at < system or blocks[at - system].takes_mark for at in marks)
    assert marks[-1] == system + len(blocks) - 1, "the end of all is always marked"
    assert not system or system - 1 in marks, "and so is the end of the system text"


def _context(calls: int = 2) -> weft.Context:
    made = tuple(weft.ToolCall(id=f"c{at}", name="look", arguments={"at": at}) for at in range(calls))
    sections = [
        weft.Section(
            layer="base", source="base", title=name, text=name, tokens=2, stability=kind, place=Place.SYSTEM
        )
        for name, kind in (("Be calm.", Stability.STATIC), ("You are at sea.", Stability.SESSION))
    ]
    return weft.Context(
        system_prompt="Be calm.\n\nYou are at sea.",
        sections=tuple(sections),
        history=(weft.Message(role="user", content="Hello"), weft.Message(role="assistant", content="Hi")),
        current_message="Look around.",
        steps=(
            weft.Message(role="assistant", content="", tool_calls=made),
            *(
                weft.Message(role="tool", content=f"r{at}", tool_call_id=f"c{at}", tool_name="look")
                for at in range(calls)
            ),
        ),
        tools=(LOOK,),
    )


@pytest.mark.parametrize(("provider", "model"), STYLES.items())
def test_every_format_marks_the_same_places(provider: str, model: str) -> None:
    payload = to_wire(provider, _context(), model=model)

    assert marked(payload) == ["Be calm.", "\n\nYou are at sea.", "Look around.", "r1"]
    assert violations(provider, payload) == []


@pytest.mark.parametrize(("provider", "model"), STYLES.items())
def test_eleven_parallel_calls_have_a_mark_between(provider: str, model: str) -> None:
    payload = to_wire(provider, _context(calls=11), model=model)

    texts = marked(payload)
    assert texts[0] == "\n\nYou are at sea.", "the mark of the stable part gave way"
    assert (texts[1], texts[-1], len(texts)) == ("Look around.", "r10", 4)


def test_each_vendor_has_its_own_kind_of_mark() -> None:
    kinds = {name: marks_of(to_wire(name, _context(), model=model)) for name, model in STYLES.items()}

    control = {"cache_control": {"type": "ephemeral"}}
    assert kinds["anthropic"] == kinds["openrouter"] == [control] * 4
    assert kinds["openai"] == [{"prompt_cache_breakpoint": {"mode": "explicit"}}] * 4


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-5"),
        ("openai", "gpt-4o"),
        ("openrouter", "google/gemini-3-flash"),
        ("openai_responses", "gpt-5.6"),
        ("gemini", "gemini-3-flash"),
        ("ollama", "llama3.2"),
        ("anthropic", "someone-elses-model"),
    ],
)
def test_a_cache_that_finds_beginnings_itself_gets_no_marks(provider: str, model: str) -> None:
    payload = to_wire(provider, _context(), model=model)

    assert marks_of(payload) == []
    if provider in ("openai", "openrouter"):
        assert all(isinstance(m["content"], str | None) for m in payload["messages"]), "and plain texts"


def test_a_later_model_of_openai_is_marked_too() -> None:
    for model in ("gpt-5.7-mini", "gpt-6", "openai/gpt-5.6"):
        assert len(marks_of(to_wire("openai", _context(), model=model))) == 4


@pytest.mark.parametrize(("provider", "model"), STYLES.items())
def test_a_message_with_a_picture_is_marked_where_the_vendor_takes_it(provider: str, model: str) -> None:
    picture = {"type": "image", "media_type": "image/png", "data": "aGk="}
    context = weft.Context(current_message="What is it?", parts=(picture,))

    payload = to_wire(provider, context, model=model)

    [mark] = marks_of(payload)
    assert violations(provider, payload) == []
    content = payload["messages"][-1]["content"]
    assert mark.items() <= content[1 if provider == "anthropic" else 0].items()


@pytest.mark.parametrize("provider", ["openai", "openrouter"])
def test_too_many_marks_or_one_in_the_wrong_place_are_found_out(provider: str) -> None:
    payload = to_wire(provider, _context(calls=3), model=STYLES[provider])
    [spare] = [
        m["content"][0] for m in payload["messages"] if m["content"] and m["content"][0]["text"] == "r0"
    ]
    spare |= marks_of(payload)[0]
    assert "OA7: more than four cache marks" in violations(provider, payload)

    payload = to_wire(provider, weft.Context(current_message="x"), model=STYLES[provider])
    picture = {"type": "image_url", "image_url": {"url": "data:"}, "cache_control": {"type": "ephemeral"}}
    payload["messages"][-1]["content"].append(picture)
    assert violations(provider, payload) == ["OA7: a cache mark on a part that is no text"]

    payload["messages"][-1]["content"][-1] = {"type": "text", "text": " "}
    assert violations(provider, payload) == ["OA4: a part with a blank text"]


MODELS = (None, *STYLES.values(), "gpt-4o", "unknown")


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=60, deadline=None)
@given(requests=conversations(), model=st.sampled_from(MODELS))
def test_a_request_begins_with_the_one_before(
    provider: str, requests: list[Request], model: str | None
) -> None:
    before: list[str] = []
    for request in requests:
        context = weft.Context(
            system_prompt="Be calm.",
            history=request.history,
            current_message=request.message,
            parts=request.parts,
            steps=request.steps,
            tools=(LOOK,),
        )

        payload = to_wire(provider, context, model=model)

        assert violations(provider, payload) == []
        items = [compact(item) for item in items_of(provider, payload)]
        assert items[: len(before)] == before
        before = items


def test_marks_apart_the_items_are_the_same_however_often_they_moved() -> None:
    payload = to_wire("openai", _context(), model="gpt-5.6")

    assert marks_of(without_marks(payload)) == []
    assert compact(without_marks(payload)) != compact(payload)


KEY = weft.Context(current_message="x", cache_key="session-1")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_openai_gets_the_key_of_a_session(provider: str) -> None:
    payload = to_wire(provider, KEY)

    has_key = provider in ("openai", "openai_responses")
    assert ("session-1" in compact(payload)) is has_key
    assert payload.get("prompt_cache_key") == ("session-1" if has_key else None)
    assert "prompt_cache_key" not in to_wire(provider, weft.Context(current_message="x"))


def test_the_key_of_a_session_is_no_part_of_a_context() -> None:
    assert weft.Context(current_message="x") == KEY
    assert "session-1" not in KEY.to_json()
    assert "session-1" not in repr(KEY)
