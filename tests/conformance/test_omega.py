"""The recipe `omega` and the values under it: what its lines promise, one test for each."""

import ast
import asyncio
import dataclasses
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from flat_text import sections_of
from weft.testing import (
    InMemoryBlocks,
    InMemoryFacts,
    InMemoryMessages,
    InMemoryRecall,
    InMemoryStore,
    InMemorySummaries,
    InMemoryTasks,
)

OMEGA = (
    "You are OMEGA Ω, a personal AI assistant running on the user's own server. "
    "You are helpful, concise, and action-oriented."
)
WEFT = (
    "You are Weft, a personal AI assistant running on the user's own server. "
    "You are helpful, concise, and action-oriented."
)
NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)
PLAYWRIGHT = weft.McpServer(name="playwright", command="npx", args=("@playwright/mcp", "--headless"))

quick = settings(deadline=None, database=None, max_examples=150)

labels = st.sampled_from(["[System]", "[User]", "[Assistant]"])
breaks = st.sampled_from(["\n", "\r", "\n\n", "\r\n"])
no_breaks = st.sampled_from(["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
crumbs = st.sampled_from(["\\", "\\\\", " ", "x", "[user]", "[User", "]", "Ω"])
hostile = st.lists(labels | breaks | no_breaks | crumbs, max_size=12).map("".join)
texts = st.text(max_size=40) | hostile
messages = st.builds(
    weft.Message,
    role=st.sampled_from(["user", "assistant", "tool", "system"]) | st.text(max_size=8),
    content=texts,
)


def user(text: str) -> weft.Message:
    return weft.Message(role="user", content=text)


def assistant(text: str) -> weft.Message:
    return weft.Message(role="assistant", content=text)


def exchanges(count: int) -> list[weft.Message]:
    return [message for n in range(count) for message in (user(f"question {n}"), assistant(f"answer {n}"))]


# --- values and their JSON


def test_O1_an_entry_of_the_history_is_a_role_and_a_content() -> None:
    entry = weft.Message(role="assistant", content="Tokio is an async runtime...")

    assert json.loads(entry.to_json()) == {"role": "assistant", "content": "Tokio is an async runtime..."}
    assert weft.Message.from_json(entry.to_json()) == entry


@quick
@given(messages)
def test_O1_O14_every_entry_survives_json(entry: weft.Message) -> None:
    assert weft.Message.from_json(entry.to_json()) == entry


def test_O2_an_mcp_server_is_empty_unless_told() -> None:
    server = weft.McpServer()

    assert (server.name, server.command, tuple(server.args)) == ("", "", ())
    assert weft.McpServer.from_json("{}") == server


def test_O2_O52_an_mcp_server_survives_json() -> None:
    written = PLAYWRIGHT.to_json()

    assert json.loads(written) == {
        "name": "playwright",
        "command": "npx",
        "args": ["@playwright/mcp", "--headless"],
    }
    assert weft.McpServer.from_json(written) == PLAYWRIGHT


@quick
@given(st.builds(weft.McpServer, name=texts, command=texts, args=st.lists(texts, max_size=3).map(tuple)))
def test_O2_every_mcp_server_survives_json(server: weft.McpServer) -> None:
    assert weft.McpServer.from_json(server.to_json()) == server


def test_O5_a_context_has_five_parts() -> None:
    context = weft.Context(
        system_prompt="Be brief.",
        history=(user("hi"), assistant("hello")),
        current_message="bye",
        mcp_servers=(PLAYWRIGHT,),
        model="opus",
    )

    assert context.system_prompt == "Be brief."
    assert list(context.history) == [user("hi"), assistant("hello")]
    assert context.current_message == "bye"
    assert list(context.mcp_servers) == [PLAYWRIGHT]
    assert context.model == "opus"


def test_O5_a_context_cannot_be_changed_after_it_was_made() -> None:
    context = weft.Context.new("hi")

    with pytest.raises(dataclasses.FrozenInstanceError):
        context.current_message = "other"  # type: ignore[misc]


def test_O7_O52_a_context_without_the_mcp_key_loads_with_no_servers() -> None:
    context = weft.Context.from_json('{"system_prompt": "s", "history": [], "current_message": "m"}')

    assert list(context.mcp_servers) == []
    assert (context.system_prompt, list(context.history), context.current_message) == ("s", [], "m")


def test_O7_keys_of_a_later_version_are_ignored() -> None:
    context = weft.Context.from_json(
        '{"system_prompt": "s", "history": [{"role": "user", "content": "x", "mood": 1}],'
        ' "current_message": "m", "weather": {"sun": true}}'
    )

    assert list(context.history) == [user("x")]
    assert context.current_message == "m"


def test_O8_a_missing_model_is_none_and_none_is_not_written() -> None:
    context = weft.Context.from_json('{"system_prompt": "s", "history": [], "current_message": "m"}')

    assert context.model is None
    assert "model" not in json.loads(context.to_json())


def test_O8_a_model_that_is_set_is_written_and_read() -> None:
    context = weft.Context(current_message="m", model="claude-opus")

    assert json.loads(context.to_json())["model"] == "claude-opus"
    assert weft.Context.from_json(context.to_json()).model == "claude-opus"


def test_O8_mcp_servers_are_written_even_when_there_are_none() -> None:
    written = json.loads(weft.Context.new("hi").to_json())

    assert written["mcp_servers"] == []
    assert set(written) == {"system_prompt", "history", "current_message", "mcp_servers"}


def test_O13_an_api_message_is_a_role_and_a_content_and_can_be_written() -> None:
    context = weft.Context(history=(user("a"), assistant("b")), current_message="c")

    _, wire = context.to_api_messages()

    assert [json.loads(message.to_json()) for message in wire] == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]


@quick
@given(texts, st.lists(messages, max_size=5), texts, st.none() | st.text(min_size=1, max_size=8))
def test_O14_every_context_survives_json(
    system: str, history: list[weft.Message], message: str, model: str | None
) -> None:
    context = weft.Context(system_prompt=system, history=tuple(history), current_message=message, model=model)

    assert weft.Context.from_json(context.to_json()) == context


async def test_O14_a_built_context_survives_json_with_its_sections() -> None:
    context = await enriched().build("hi")

    again = weft.Context.from_json(context.to_json())

    assert again.sections == context.sections
    assert again.to_prompt_string() == context.to_prompt_string()
    assert again.to_json() == context.to_json()


def test_O14_O52_a_context_with_mcp_servers_survives_json() -> None:
    context = weft.Context(current_message="m", mcp_servers=(PLAYWRIGHT, weft.McpServer(name="b")))

    again = weft.Context.from_json(context.to_json())

    assert again == context
    assert list(again.mcp_servers) == [PLAYWRIGHT, weft.McpServer(name="b")]


# --- what is needed is a signal inside, and no more


def test_O10_everything_is_needed_unless_told() -> None:
    needs = weft.ContextNeeds()

    assert (needs.recall, needs.pending_tasks) == (True, True)
    assert {field.name for field in dataclasses.fields(weft.ContextNeeds)} == {"recall", "pending_tasks"}


def test_O10_needs_cannot_be_serialised() -> None:
    assert not hasattr(weft.ContextNeeds, "to_json")
    assert not hasattr(weft.ContextNeeds, "from_json")


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("pending_tasks", [True, False])
async def test_O10_a_context_shows_what_was_needed_and_never_the_needs(
    recall: bool, pending_tasks: bool
) -> None:
    provider = weft.ScriptedProvider(["ok"])
    context = (
        await enriched().with_needs(weft.ContextNeeds(recall=recall, pending_tasks=pending_tasks)).build("hi")
    )

    await provider.complete(context)

    assert ("## Related past context" in context.system_prompt) is recall
    assert ("## Pending tasks" in context.system_prompt) is pending_tasks
    [asked] = provider.requests
    for written in (context.to_json(), asked.to_json()):
        assert "pending_tasks" not in written
        assert not {"needs", "recall", "pending_tasks"} & set(json.loads(written))


async def test_O10_a_builder_without_needs_loads_everything() -> None:
    context = await enriched().build("hi")

    assert "## Related past context" in context.system_prompt
    assert "## Pending tasks" in context.system_prompt


# --- the one-shot context


def test_O15_a_new_context_has_the_default_prompt_and_the_message_only() -> None:
    context = weft.Context.new("What time is it?")

    assert context.system_prompt == WEFT
    assert list(context.history) == []
    assert context.current_message == "What time is it?"
    assert list(context.mcp_servers) == []
    assert context.model is None


def test_O15_O52_a_new_context_has_no_mcp_servers() -> None:
    assert list(weft.Context.new("hi").mcp_servers) == []


def test_O15_the_recipe_omega_makes_the_same_context_with_its_own_prompt() -> None:
    context = weft.Recipe.load("omega").one_shot("Explain Rust ownership")

    assert context.system_prompt == OMEGA
    assert list(context.history) == []
    assert context.current_message == "Explain Rust ownership"
    assert list(context.mcp_servers) == []
    assert context.model is None


def test_O16_the_default_prompt_is_exact() -> None:
    assert weft.Recipe.load("omega").one_shot("hi").system_prompt == (
        "You are OMEGA Ω, a personal AI assistant running on the user's own server. "
        "You are helpful, concise, and action-oriented."
    )


# --- the flat text


def test_O20_O21_O23_O24_the_flat_text_is_exact() -> None:
    context = weft.Context(
        system_prompt="You are OMEGA Ω.",
        history=(user("What's the weather like?"), assistant("I don't have real-time weather data.")),
        current_message="What about tomorrow?",
    )

    assert context.to_prompt_string() == (
        "[System]\nYou are OMEGA Ω.\n\n"
        "[User]\nWhat's the weather like?\n\n"
        "[Assistant]\nI don't have real-time weather data.\n\n"
        "[User]\nWhat about tomorrow?"
    )


def test_O20_an_empty_system_prompt_has_no_section() -> None:
    context = weft.Context(system_prompt="", history=(user("a"),), current_message="b")

    assert context.to_prompt_string() == "[User]\na\n\n[User]\nb"


def test_O20_an_empty_system_prompt_is_no_message_either() -> None:
    context = weft.Context(system_prompt="", current_message="b")

    assert [(m.role, m.content) for m in context.to_messages()] == [("user", "b")]


@pytest.mark.parametrize(
    "role", ["assistant", "User", "USER", " user", "users", "tool", "system", "model", ""]
)
def test_O22_any_role_but_user_is_shown_as_the_assistant(role: str) -> None:
    context = weft.Context(history=(weft.Message(role=role, content="x"),), current_message="y")

    assert context.to_prompt_string() == "[Assistant]\nx\n\n[User]\ny"


@quick
@given(messages)
def test_O22_only_the_exact_word_user_is_shown_as_the_user(entry: weft.Message) -> None:
    flat = weft.Context(history=(entry,), current_message="y").to_prompt_string()

    assert flat.startswith("[User]\n" if entry.role == "user" else "[Assistant]\n")


def test_O25_without_history_only_the_prompt_and_the_message_are_shown() -> None:
    assert (
        weft.Context(system_prompt="s", current_message="m").to_prompt_string() == "[System]\ns\n\n[User]\nm"
    )
    assert weft.Context(current_message="m").to_prompt_string() == "[User]\nm"


def test_O26_the_flat_text_of_nothing_is_not_empty() -> None:
    assert weft.Context(system_prompt="", current_message="").to_prompt_string() == "[User]\n"


@quick
@given(texts, st.lists(messages, max_size=6), texts)
def test_O20_O21_O22_O23_O24_O26_O50_the_flat_text_can_be_read_back(
    system: str, history: list[weft.Message], message: str
) -> None:
    context = weft.Context(system_prompt=system, history=tuple(history), current_message=message)

    flat = context.to_prompt_string()

    said = [("User" if entry.role == "user" else "Assistant", entry.content) for entry in history]
    expected = [("System", system)] * bool(system) + said + [("User", message)]
    assert sections_of(flat) == expected
    bare = re.findall(r"(?:\A|(?<=[\n\r]))\[(System|User|Assistant)\]", flat)
    assert bare == [name for name, _ in expected]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("[User] I said so", "\\[User] I said so"),
        ("one\n[System]\ntwo", "one\n\\[System]\ntwo"),
        ("one\r[Assistant]two", "one\r\\[Assistant]two"),
        ("one\r\n[User]", "one\r\n\\[User]"),
        ("\\[User]", "\\\\[User]"),
        ("\\\\[System]", "\\\\\\[System]"),
        (" [User]", " \\[User]"),
        ("a\u2028[User]", "a\u2028\\[User]"),
        ("a\x0b[User]", "a\x0b\\[User]"),
    ],
)
def test_O21_O23_a_label_at_the_start_of_a_line_of_content_gains_one_backslash(
    content: str, shown: str
) -> None:
    context = weft.Context(system_prompt=content, history=(assistant(content),), current_message=content)

    assert context.to_prompt_string() == f"[System]\n{shown}\n\n[Assistant]\n{shown}\n\n[User]\n{shown}"


@pytest.mark.parametrize(
    "content",
    [
        "x [User]",
        "[user]",
        "[USER]",
        "[Users]",
        "[Tool]",
        "[User",
        "\\x",
    ],
)
def test_O21_O23_all_other_text_is_verbatim(content: str) -> None:
    context = weft.Context(history=(assistant(content),), current_message=content)

    assert context.to_prompt_string() == f"[Assistant]\n{content}\n\n[User]\n{content}"


def test_O21_labels_are_guarded_in_the_flat_text_only() -> None:
    context = weft.Context(system_prompt="[System]", history=(user("[User]"),), current_message="[User]")

    system, wire = context.to_api_messages()

    assert system == "[System]"
    assert [message.content for message in wire] == ["[User]", "[User]"]


# --- messages for an API


def test_O27_O28_the_system_prompt_stays_out_of_the_messages() -> None:
    context = weft.Context(system_prompt="s", history=(user("a"), assistant("b")), current_message="c")

    system, wire = context.to_api_messages()

    assert system == "s"
    assert [(m.role, m.content) for m in wire] == [("user", "a"), ("assistant", "b"), ("user", "c")]


def test_O29_O52_without_history_there_is_a_prompt_and_one_user_message() -> None:
    system, wire = weft.Recipe.load("omega").one_shot("hi").to_api_messages()

    assert system == OMEGA
    assert [(m.role, m.content) for m in wire] == [("user", "hi")]


def test_O29_O52_with_history_all_entries_come_before_the_message() -> None:
    history = exchanges(3)

    _, wire = weft.Context(history=tuple(history), current_message="now").to_api_messages()

    assert [(m.role, m.content) for m in wire] == [(m.role, m.content) for m in [*history, user("now")]]


@quick
@given(texts, st.lists(st.builds(user, texts) | st.builds(assistant, texts), max_size=6), texts)
def test_O27_O28_history_in_order_then_the_message_whatever_they_say(
    system: str, history: list[weft.Message], message: str
) -> None:
    context = weft.Context(system_prompt=system, history=tuple(history), current_message=message)

    prompt, wire = context.to_api_messages()

    assert prompt == system
    assert [(m.role, m.content) for m in wire] == [(m.role, m.content) for m in [*history, user(message)]]


# --- built with the recipe


def enriched(history: Sequence[weft.Message] = ()) -> weft.ContextBuilder:
    sender = "telegram:42"
    facts = [weft.Fact(key="timezone", value="America/New_York"), weft.Fact(key="name", value="Alice")]
    store = InMemoryStore(
        memory=InMemoryBlocks(),
        messages=InMemoryMessages(history),
        facts=InMemoryFacts({sender: facts}),
        summaries=InMemorySummaries({("telegram", "42"): [weft.Summary(text="Rust async patterns.")]}),
        tasks=InMemoryTasks({sender: [weft.Task(id="0123456789ab", text="call mother", due=NOW)]}),
        recall=InMemoryRecall({sender: [weft.Recalled(text="I like tea", speaker="User", timestamp=NOW)]}),
    )
    return (
        weft.ContextBuilder(recipe="omega")
        .with_store(store)
        .for_sender("telegram", "42")
        .with_session("s1")
        .at(NOW)
    )


async def test_O5_facts_and_summaries_are_woven_into_the_prompt() -> None:
    context = await enriched(exchanges(1)).build("Can you show me a spawn example?")

    assert context.system_prompt.startswith(
        f"{OMEGA}\n\n"
        "## Known facts about this user\n- name: Alice\n- timezone: America/New_York\n\n"
        "## Recent conversation summaries\n- Rust async patterns.\n\n"
        "## Related past context\n- ["
    )
    assert "\n\n## Pending tasks\n- [01234567] call mother [" in context.system_prompt
    assert context.current_message == "Can you show me a spawn example?"


async def test_O6_O48_history_is_oldest_first() -> None:
    context = await enriched(exchanges(3)).build("now")

    assert [m.content for m in context.history] == [m.content for m in exchanges(3)]


async def test_O6_O48_a_long_history_is_its_newest_fifty_messages_oldest_first() -> None:
    context = await enriched(exchanges(40)).build("now")

    assert [m.content for m in context.history] == [m.content for m in exchanges(40)[-50:]]


async def test_O6_O48_history_is_that_of_the_session() -> None:
    log = InMemoryMessages()
    await log.append("s1", user("first"), assistant("second"))
    await log.append("s2", user("elsewhere"), assistant("elsewhere too"))
    await log.append("s1", user("third"), assistant("fourth"))
    store = InMemoryStore(memory=InMemoryBlocks(), messages=log)
    builder = weft.ContextBuilder(recipe="omega").with_store(store).for_sender("telegram", "42")

    context = await builder.with_session("s1").build("now")

    assert [m.content for m in context.history] == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize("message", ["", " ", "\n\t \n"])
async def test_O47_an_empty_message_is_refused_when_the_context_is_built(message: str) -> None:
    with pytest.raises(weft.EmptyMessage) as caught:
        await enriched().build(message)

    assert isinstance(caught.value, weft.ContextError)


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "ollama", "openai", "openrouter"])
def test_O47_no_request_is_written_for_an_empty_message(provider: str) -> None:
    with pytest.raises(weft.EmptyMessage):
        weft.wire.to_wire(provider, weft.Context(current_message=" \n"))
    assert weft.wire.to_wire(provider, weft.Context(current_message="hi"))


async def test_O47_an_empty_message_reaches_no_provider() -> None:
    provider = weft.ScriptedProvider(["never said"])

    with pytest.raises(weft.EmptyMessage):
        await provider.complete(weft.Context(current_message=""))


async def test_O49_an_unknown_role_becomes_the_assistant() -> None:
    odd = [user("a"), assistant("b"), weft.Message(role="narrator", content="c"), user("d")]

    context = await enriched(odd).build("now")

    assert [(m.role, m.content) for m in context.history] == [
        ("user", "a"),
        ("assistant", "b"),
        ("assistant", "c"),
        ("user", "d"),
    ]


@quick
@given(st.lists(messages, max_size=8))
def test_O49_every_role_in_a_built_history_is_user_or_assistant(history: list[weft.Message]) -> None:
    context = asyncio.run(enriched(history).build("now"))

    assert {m.role for m in context.history} <= {"user", "assistant"}
    assert [m.content for m in context.history if m.role == "user"] == [
        m.content for m in history if m.role == "user"
    ]


@quick
@given(st.lists(messages, max_size=5), texts.filter(lambda text: bool(text.strip())))
def test_O23_O28_O50_the_message_is_last_in_every_form(history: list[weft.Message], message: str) -> None:
    context = asyncio.run(enriched(history).build(message))

    assert context.current_message == message
    assert sections_of(context.to_prompt_string())[-1] == ("User", message)
    for wire in (context.to_api_messages()[1], context.to_messages()):
        assert (wire[-1].role, wire[-1].content) == ("user", message)


# --- the leaf


def imported_parts_of_weft(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "weft":
            found |= {f"weft.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level <= 1:
            found.add(f"weft.types.{node.module or ''}" if node.level else node.module or "")
        elif isinstance(node, ast.ImportFrom):
            found.add("weft." + (node.module or "a relative import upwards"))
    return {name for name in found if name.split(".")[0] == "weft"}


def test_O51_the_context_module_is_a_leaf() -> None:
    modules = sorted((Path(weft.__file__).parent / "types").glob("*.py"))
    assert "context.py" in [path.name for path in modules]

    strangers = {
        (path.name, name)
        for path in modules
        for name in imported_parts_of_weft(path)
        if not re.match(r"weft\.(types|errors)(\.|$)", name)
    }

    assert strangers == set()
