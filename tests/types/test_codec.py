"""Values to JSON and back: what is written, what is read, and what is said about what cannot be."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft.types.codec import Json, from_dict, to_dict
from weft.types.recipe import HistoryRule, Layer
from weft.types.section import Keep, Origin, Place, Section, Stability

TEXT = st.text(max_size=30)
WORDS = st.tuples(TEXT, TEXT) | st.just(())
MAYBE_TEXT = st.none() | TEXT
COUNT = st.integers(0, 10**9)
MAYBE_COUNT = st.none() | COUNT
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TABLE = st.dictionaries(TEXT, PLAIN, max_size=3)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIME = st.datetimes(timezones=st.none() | st.just(UTC) | OFFSETS)

CALLS = st.builds(weft.ToolCall, id=TEXT, name=TEXT, arguments=TABLE)
MESSAGES = st.builds(
    weft.Message,
    role=TEXT,
    content=TEXT,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    tool_call_id=MAYBE_TEXT,
    tool_name=MAYBE_TEXT,
    timestamp=st.none() | TIME,
    origin=TEXT,
    parts=st.lists(TABLE, max_size=2).map(tuple),
    provider_data=TABLE,
)
TOOLS = st.builds(weft.ToolDefinition, name=TEXT, description=MAYBE_TEXT, parameters=TABLE)
SERVERS = st.builds(weft.McpServer, name=TEXT, command=TEXT, args=WORDS)
SECTIONS = st.builds(
    Section,
    layer=TEXT,
    source=TEXT,
    title=TEXT,
    text=TEXT,
    tokens=COUNT,
    keep=st.sampled_from(Keep),
    stability=st.sampled_from(Stability),
    origin=st.sampled_from(Origin),
    why=TEXT,
    place=st.sampled_from(Place),
)
ITEMS = st.builds(
    weft.ReceiptItem,
    layer=TEXT,
    source=TEXT,
    title=TEXT,
    tokens=COUNT,
    kept=st.booleans(),
    reason=TEXT,
    origin=TEXT,
    zone=TEXT,
    span=st.just(()) | st.tuples(COUNT, COUNT),
)
USAGES = st.builds(
    weft.Usage, input_tokens=COUNT, output_tokens=COUNT, cached_tokens=COUNT, written_tokens=COUNT
)
RECEIPTS = st.builds(
    weft.Receipt,
    items=st.lists(ITEMS, max_size=3).map(tuple),
    limit=COUNT,
    recipe=TEXT,
    counter=TEXT,
    warnings=WORDS,
    provider=TEXT,
    model=TEXT,
    provider_reason=TEXT,
    usage=st.none() | USAGES,
)
CONTEXTS = st.builds(
    weft.Context,
    system_prompt=TEXT,
    history=st.lists(MESSAGES, max_size=2).map(tuple),
    current_message=TEXT,
    mcp_servers=st.lists(SERVERS, max_size=2).map(tuple),
    model=MAYBE_TEXT,
    sections=st.lists(SECTIONS, max_size=2).map(tuple),
    tools=st.lists(TOOLS, max_size=2).map(tuple),
    form=st.sampled_from(("single", "parts", "messages")),
    tagged=st.booleans(),
)
REPLIES = st.builds(
    weft.Reply,
    text=TEXT,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    stop_reason=TEXT,
    usage=st.none() | USAGES,
    model=TEXT,
    provider_data=TABLE,
)
RULES = st.one_of(
    TEXT.map(weft.ToolRule.exit_loop),
    TEXT.map(weft.ToolRule.continue_loop),
    TEXT.map(weft.ToolRule.start_constraint),
    st.builds(weft.ToolRule.max_calls, TEXT, COUNT),
    st.builds(weft.ToolRule.requires_prior, TEXT, TEXT),
)
LIMITS = st.builds(
    weft.ModelContextLimits,
    max_tokens=COUNT,
    memory_tokens=MAYBE_COUNT,
    history_tokens=MAYBE_COUNT,
    reserved_response_tokens=COUNT,
)
LAYERS = st.builds(
    Layer,
    source=st.sampled_from(("instructions", "blocks", "facts", "skills", "recall")),
    keep=st.sampled_from((Keep.PREFERRED, Keep.IF_ROOM)),
    title=TEXT,
    tag=st.sampled_from(("", "now", "a-b_2")),
    share=st.floats(0.0, 0.3),
    max_tokens=MAYBE_COUNT,
    options=st.fixed_dictionaries(
        {},
        optional={
            "reload": st.sampled_from(("startup", "per_turn", "ttl")),
            "files": st.lists(TEXT, max_size=2),
            "missing": st.dictionaries(TEXT, TEXT, max_size=2),
            "max_entries": COUNT,
            "include_schemas": st.booleans(),
        },
    ),
)
RECIPES = st.builds(
    weft.Recipe,
    name=TEXT.map(lambda name: f"x{name}"),
    description=TEXT,
    form=st.sampled_from(("single", "parts", "messages")),
    one_shot_prompt=TEXT,
    unknown_role=st.sampled_from(("user", "assistant", "reject", "keep")),
    tokens=st.sampled_from(("chars/4", "chars/5", "exact")),
    ttl_seconds=st.floats(0.0, 1e9),
    join=TEXT,
    workspace_path=MAYBE_TEXT,
    limits=st.builds(weft.ModelContextLimits, max_tokens=st.integers(1, 10**9), memory_tokens=MAYBE_COUNT),
    history=st.builds(HistoryRule, max_messages=MAYBE_COUNT, keep_recent=COUNT, roles=WORDS),
    layers=st.lists(LAYERS, max_size=3).map(
        lambda layers: (*layers, Layer(source="history"), Layer(source="message"))
    ),
)
SMALL = st.one_of(
    st.builds(weft.ModelInfo, id=TEXT, provider=TEXT, max_tokens=MAYBE_COUNT),
    st.builds(weft.Truncate, keep_recent=COUNT),
    st.builds(weft.RecursiveSummarization, chunk_size=COUNT, summarization_model=TEXT),
)
VALUES: st.SearchStrategy[Json] = st.one_of(
    CALLS, MESSAGES, TOOLS, SERVERS, SECTIONS, ITEMS, USAGES, RECEIPTS, CONTEXTS, REPLIES, RULES, LIMITS
)


@settings(max_examples=400, deadline=None)
@given(VALUES | LAYERS | RECIPES | SMALL)
def test_every_value_survives_json(value: Json) -> None:
    written = value.to_json()

    loaded = type(value).from_json(written)

    assert loaded == value
    assert loaded.to_json() == written


@settings(deadline=None)
@given(VALUES)
def test_what_is_written_is_json_that_any_utf8_file_can_hold(value: Json) -> None:
    written = value.to_json()

    assert json.loads(written.encode("utf-8")) == to_dict(value)


@settings(deadline=None)
@given(RECEIPTS)
def test_a_receipt_survives_json_together_with_its_context(receipt: weft.Receipt) -> None:
    context = weft.Context(current_message="hi", receipt=receipt)

    loaded = weft.Context.from_json(context.to_json(receipt=True))

    assert loaded.receipt == receipt
    assert weft.Context.from_json(context.to_json()).receipt is None


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800", "\ud800 and \udbff"])
def test_a_lone_surrogate_survives_json_and_the_text_is_still_utf8(text: str) -> None:
    message = weft.Message(role="user", content=text)

    written = message.to_json()

    assert weft.Message.from_json(written) == message
    assert written.encode("utf-8").decode("utf-8") == written


def test_letters_of_any_script_are_written_as_they_are() -> None:
    assert "Ω お 🐙" in weft.Message(role="user", content="Ω お 🐙").to_json()


def test_fields_that_hold_their_default_are_not_written() -> None:
    assert json.loads(weft.Message(role="user", content="hi").to_json()) == {"role": "user", "content": "hi"}


def test_an_empty_context_still_writes_what_other_programs_look_for() -> None:
    written = json.loads(weft.Context(current_message="hi").to_json())

    assert written == {"system_prompt": "", "history": [], "current_message": "hi", "mcp_servers": []}


def test_what_follows_from_a_receipts_items_is_written_for_readers_and_ignored_on_load() -> None:
    item = weft.ReceiptItem(layer="message", source="message", tokens=7, kept=True)
    receipt = weft.Receipt(items=(item,), limit=5)

    written = json.loads(receipt.to_json())
    forged = weft.Receipt.from_json(json.dumps(written | {"total_tokens": 0, "over_limit": False}))

    assert (written["total_tokens"], written["by_layer"], written["over_limit"]) == (7, {"message": 7}, True)
    assert (forged.total_tokens, forged.over_limit) == (7, True)


def test_lists_given_in_place_of_tuples_make_the_same_message() -> None:
    call = weft.ToolCall(id="1", name="look_up")

    given_lists: Any = {"tool_calls": [call], "parts": [{"type": "image"}]}

    assert weft.Message(role="user", content="hi", **given_lists) == weft.Message(
        role="user", content="hi", tool_calls=(call,), parts=({"type": "image"},)
    )


def test_unknown_keys_from_another_program_are_ignored() -> None:
    loaded = weft.ToolCall.from_json('{"id": "1", "name": "look_up", "colour": "blue"}')

    assert loaded == weft.ToolCall(id="1", name="look_up")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "This is not JSON"),
        ("", "This is not JSON"),
        ("[]", "Message must be a table of named values, not a list."),
        ("null", "Message must be a table of named values, not nothing."),
        ('"hi"', "Message must be a table of named values, not text."),
        ('{"role": "user"}', "Message lacks the key 'content': add it."),
        ('{"role": 5, "content": ""}', "Message.role must be text, not a whole number."),
        ('{"role": null, "content": ""}', "Message.role must be text, not nothing."),
        (
            '{"role": "user", "content": "", "tool_calls": {}}',
            "Message.tool_calls must be a list, not a table.",
        ),
        (
            '{"role": "user", "content": "", "tool_calls": [{"id": "1", "name": true}]}',
            "Message.tool_calls[0].name must be text, not true or false.",
        ),
        (
            '{"role": "user", "content": "", "provider_data": 1.5}',
            "Message.provider_data must be a table of named values, not a number.",
        ),
        ('{"role": "user", "content": "", "timestamp": "noon"}', "Message.timestamp must be a date and time"),
        ('{"role": "user", "content": "", "timestamp": 5}', "Message.timestamp must be a date and time"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_and_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(weft.ContextError) as caught:
        weft.Message.from_json(text)

    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(".")


def test_json_that_is_nested_beyond_reason_is_refused_as_any_other_wrong_text() -> None:
    with pytest.raises(weft.ContextError):
        weft.Message.from_json("[" * 200_000)


def test_a_whole_number_is_not_true_or_false_and_true_is_not_a_number() -> None:
    with pytest.raises(
        weft.ContextError, match=r"Usage.input_tokens must be a whole number, not true or false"
    ):
        weft.Usage.from_json('{"input_tokens": true, "output_tokens": 1}')
    with pytest.raises(
        weft.ContextError, match=r"ReceiptItem.kept must be true or false, not a whole number"
    ):
        weft.ReceiptItem.from_json('{"layer": "l", "source": "s", "tokens": 1, "kept": 1}')


def test_an_unknown_choice_names_the_nearest_known_one() -> None:
    with pytest.raises(weft.ContextError, match=r"Section.keep cannot be 'alway': did you mean 'always'\?"):
        Section.from_json('{"layer": "l", "source": "s", "text": "t", "keep": "alway"}')


@pytest.mark.parametrize("choice", [[], {}, 5])
def test_a_choice_of_another_type_is_refused_by_its_place(choice: object) -> None:
    with pytest.raises(weft.ContextError, match=r"Section.keep cannot be .*known are|did you mean"):
        from_dict(Section, {"layer": "l", "source": "s", "text": "t", "keep": choice}, where="Section")


# --- strict loading, for what people write


@dataclass(frozen=True, slots=True, kw_only=True)
class Boat(Json):
    """A value of this file's own: every kind of field, one under another name, one private."""

    name: str
    length: float = 0.0
    berths: int | None = None
    flag_of: str = field(default="", metadata={"key": "flag"})
    kind: Literal["sail", "motor"] = "sail"
    crew: tuple[str, ...] = ()
    built: datetime | None = None
    hidden: str = field(default="", metadata={"private": True})


def load_boat(data: Any) -> Boat:
    return from_dict(Boat, data, where="boat", unknown="refuse", error=weft.ConfigError)


def test_a_strict_load_takes_every_known_key() -> None:
    boat = load_boat(
        {"name": "Marlin", "length": 9, "berths": 4, "flag": "PT", "kind": "motor", "crew": ["Ada"]}
    )

    assert boat == Boat(name="Marlin", length=9.0, berths=4, flag_of="PT", kind="motor", crew=("Ada",))
    assert isinstance(boat.length, float)


def test_a_strict_load_refuses_an_unknown_key_and_names_the_nearest() -> None:
    with pytest.raises(
        weft.ConfigError, match=r"^boat has an unknown key 'lenght': did you mean 'length'\?$"
    ):
        load_boat({"name": "Marlin", "lenght": 9})


def test_a_strict_load_lists_the_known_keys_where_none_is_near() -> None:
    with pytest.raises(
        weft.ConfigError, match=r"unknown key 'zzz': known are berths, built, crew, flag, kind, "
    ):
        load_boat({"name": "Marlin", "zzz": 9})


def test_a_field_is_known_only_by_the_name_it_has_outside() -> None:
    with pytest.raises(weft.ConfigError, match=r"unknown key 'flag_of': did you mean 'flag'\?"):
        load_boat({"name": "Marlin", "flag_of": "PT"})
    assert json.loads(Boat(name="Marlin", flag_of="PT").to_json()) == {"name": "Marlin", "flag": "PT"}


def test_a_private_field_is_neither_read_nor_written() -> None:
    with pytest.raises(weft.ConfigError, match="unknown key 'hidden'"):
        load_boat({"name": "Marlin", "hidden": "told"})
    assert "hidden" not in Boat(name="Marlin", hidden="told").to_json()


def test_a_date_that_toml_has_read_already_is_taken_as_it_is() -> None:
    launched = datetime(2026, 11, 15, tzinfo=UTC)

    assert load_boat({"name": "Marlin", "built": launched}).built == launched


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_too_large_for_its_field_is_refused_by_its_place(sign: int) -> None:
    with pytest.raises(weft.ConfigError, match=r"boat\.length"):
        load_boat({"name": "Marlin", "length": sign * 10**400})


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (weft.ToolRule.exit_loop, "exit_loop"),
        (weft.ToolRule.continue_loop, "continue_loop"),
        (weft.ToolRule.start_constraint, "start_constraint"),
    ],
)
def test_a_rule_is_written_with_its_kind(make: Callable[[str], weft.ToolRule], kind: str) -> None:
    assert json.loads(make("look_up").to_json()) == {"tool": "look_up", "kind": kind}


def test_a_rule_of_unknown_kind_is_refused() -> None:
    with pytest.raises(
        weft.ContextError, match=r"ToolRule.kind cannot be 'exit': did you mean 'exit_loop'\?"
    ):
        weft.ToolRule.from_json('{"tool": "look_up", "kind": "exit"}')
