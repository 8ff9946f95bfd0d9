"""miniclaw's lines of the specification: seven layers, their texts and order, the history, the builder."""

import json
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import weft
from weft.testing import InMemoryMessages

NOON = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)
TOOLS_MD = "grep(pattern: string)\n  finds lines\n  example: grep('todo')"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_skill(workspace: Path, name: str, description: str, body: str = "body") -> Path:
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"
    return write(workspace / "skills" / name / "SKILL.md", text)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A workspace in which every layer has something to say."""
    write(tmp_path / "SOUL.md", "I am Claw, dry and kind.\n")
    write(tmp_path / "AGENTS.md", "Ask before you delete.\n")
    write(tmp_path / "TOOLS.md", TOOLS_MD + "\n")
    write(tmp_path / "memory" / "MEMORY.md", "# Memory\n\n- The cat is called Mia.\n")
    write_skill(tmp_path, "notes", "Write notes.", "The whole manual.")
    return tmp_path


def builder(workspace: Path, **changes: object) -> weft.ContextBuilder:
    recipe = weft.Recipe.load("miniclaw").replace(**changes)
    return weft.ContextBuilder(recipe=recipe).with_workspace(workspace).at(NOON)


async def built(workspace: Path, text: str = "hello", **changes: object) -> list[weft.Message]:
    return list((await builder(workspace, **changes).build(text)).to_messages())


def starting(messages: Sequence[weft.Message], title: str) -> list[str]:
    """The system messages that open with this title."""
    return [m.content for m in messages if m.role == "system" and m.content.startswith(title)]


def roles(messages: Sequence[weft.Message]) -> list[str]:
    return [message.role for message in messages]


def contents(messages: Sequence[weft.Message]) -> list[str]:
    return [message.content for message in messages]


def talk(count: int) -> list[weft.Message]:
    both = ("user", "assistant")
    return [weft.Message(role=both[n % 2], content=f"message {n}") for n in range(count)]


def call_with_results(*ids: str) -> list[weft.Message]:
    """An assistant message that calls one tool per id, and the results."""
    calls = tuple(weft.ToolCall(id=at, name="grep", arguments={"pattern": at}) for at in ids)
    results = [
        weft.Message(role="tool", content=f"result {at}", tool_call_id=at, tool_name="grep") for at in ids
    ]
    return [weft.Message(role="assistant", content="looking", tool_calls=calls), *results]


# --- the seven layers


async def test_M1_M2_the_seven_layers_stand_in_order_each_system_layer_a_message_of_its_own(
    full: Path,
) -> None:
    context = await builder(full).with_messages(talk(2)).build("hello")

    messages = context.to_messages()
    assert roles(messages) == ["system"] * 5 + ["user", "assistant", "user"]
    assert messages[0].content.startswith("I am Claw")
    assert messages[1].content.startswith("Current date and time:")
    assert messages[2].content.startswith("Relevant memories:")
    assert messages[3].content.startswith("Available skills:")
    assert messages[4].content.startswith("Available tools:")
    assert contents(messages[5:]) == ["message 0", "message 1", "hello"]


async def test_M1_M38_the_order_of_layers_does_not_depend_on_which_are_there(tmp_path: Path) -> None:
    write(tmp_path / "TOOLS.md", "tools")
    write(tmp_path / "memory" / "MEMORY.md", "- one")

    messages = await built(tmp_path)

    firsts = [message.content.splitlines()[0] for message in messages]
    assert firsts == [
        "You are miniclaw, a helpful AI assistant.",
        "Current date and time: 2026-11-15 20:30 (Sunday) UTC+00:00",
        "Relevant memories:",
        "Available tools:",
        "hello",
    ]


async def test_M3_the_system_message_is_soul_a_blank_line_and_agents(tmp_path: Path) -> None:
    write(tmp_path / "SOUL.md", "\n  I am Claw.\n\nDry and kind. \n\n")
    write(tmp_path / "AGENTS.md", "\n\nAsk before you delete.\n")

    messages = await built(tmp_path)

    assert messages[0] == weft.Message(
        role="system",
        content="I am Claw.\n\nDry and kind.\n\nAsk before you delete.",
        origin=messages[0].origin,
    )


@pytest.mark.parametrize(
    ("soul", "agents", "system"),
    [
        (None, None, "You are miniclaw, a helpful AI assistant."),
        ("I am Claw.", None, "I am Claw.\n\nBe helpful, accurate and concise."),
        (None, "Ask first.", "You are miniclaw, a helpful AI assistant.\n\nAsk first."),
    ],
    ids=["both missing", "agents missing", "soul missing"],
)
async def test_M4_a_missing_file_is_replaced_by_a_short_default(
    tmp_path: Path, soul: str | None, agents: str | None, system: str
) -> None:
    if soul is not None:
        write(tmp_path / "SOUL.md", soul)
    if agents is not None:
        write(tmp_path / "AGENTS.md", agents)

    assert (await built(tmp_path))[0].content == system


async def test_M5_the_bootstrap_gives_time_version_tools_workspace_capabilities_and_environment(
    full: Path,
) -> None:
    tools = [weft.ToolDefinition(name=name) for name in ("grep", "find", "read")]

    context = await builder(full).with_tools(tools).for_sender("terminal", "me").build("hello")

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert context.to_messages()[1].content == (
        "Current date and time: 2026-11-15 20:30 (Sunday) UTC+00:00\n"
        f"Agent version: weft {weft.__version__}\n"
        "Available tools: 3\n"
        f"Workspace: {full}\n"
        "Capabilities: memory, skills\n"
        f"Environment: {platform.system()}, Python {python}, terminal"
    )


async def test_M5_the_bootstrap_names_the_offset_of_the_clock(full: Path) -> None:
    at = datetime(2026, 3, 1, 7, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))

    context = await builder(full).at(at).build("hello")

    first = context.to_messages()[1].content.splitlines()[0]
    assert first == "Current date and time: 2026-03-01 07:05 (Sunday) UTC-03:30"


# --- memory


async def test_M6_memories_follow_their_title(full: Path) -> None:
    messages = await built(full)

    assert messages[2].content == "Relevant memories:\n- The cat is called Mia."


@pytest.mark.parametrize("memory", [None, "", "# Memory\n\n"], ids=["missing", "empty", "only a header"])
async def test_M6_without_memories_the_layer_is_skipped(tmp_path: Path, memory: str | None) -> None:
    if memory is not None:
        write(tmp_path / "memory" / "MEMORY.md", memory)

    messages = await built(tmp_path)

    assert starting(messages, "Relevant memories:") == []
    assert roles(messages)[-1] == "user"


async def test_M7_memories_are_ranked_by_relevance_to_the_message(tmp_path: Path) -> None:
    lines = ["- The cat is called Mia.", "- Works in Berlin.", "- Likes green tea.", "- Owns a bicycle."]
    write(tmp_path / "memory" / "MEMORY.md", "# Memory\n\n" + "\n".join(lines) + "\n")

    cat = starting(await built(tmp_path, "What is my cat called?"), "Relevant memories:")[0]
    city = starting(await built(tmp_path, "Do I live in Berlin?", max_memory_entries=1), "Relevant")[0]

    assert cat.splitlines()[1] == "- The cat is called Mia."
    assert city == "Relevant memories:\n- Works in Berlin."


async def test_M7_memories_of_equal_relevance_go_newest_first(tmp_path: Path) -> None:
    write(tmp_path / "memory" / "MEMORY.md", "- oldest\n- middle\n- newest\n")

    messages = await built(tmp_path, "hello", max_memory_entries=2)

    assert starting(messages, "Relevant memories:") == ["Relevant memories:\n- newest\n- middle"]


async def test_M7_M37_M38_twenty_memories_are_shown_unless_told_otherwise(tmp_path: Path) -> None:
    write(tmp_path / "memory" / "MEMORY.md", "# Memory\n" + "".join(f"- fact {n}\n" for n in range(35)))

    by_default = starting(await built(tmp_path), "Relevant memories:")[0].splitlines()[1:]
    fewer = starting(await built(tmp_path, max_memory_entries=3), "Relevant memories:")[0].splitlines()[1:]
    more = starting(await built(tmp_path, max_memory_entries=100), "Relevant memories:")[0].splitlines()[1:]

    assert by_default == [f"- fact {n}" for n in range(34, 14, -1)]
    assert fewer == ["- fact 34", "- fact 33", "- fact 32"]
    assert len(more) == 35


async def test_M37_the_receipt_says_how_many_memories_the_limit_left_out(tmp_path: Path) -> None:
    write(tmp_path / "memory" / "MEMORY.md", "".join(f"- fact {n}\n" for n in range(25)))

    context = await builder(tmp_path).build("hello")

    assert context.receipt is not None
    left_out = [item for item in context.receipt.items if item.layer == "memory_file" and not item.kept]
    assert len(left_out) == 1
    assert "5" in left_out[0].title
    assert "20" in left_out[0].reason


# --- skills


async def test_M8_skills_are_listed_by_name_and_description_without_their_bodies(tmp_path: Path) -> None:
    write_skill(tmp_path, "search", "Search the web.", "The whole manual of search.")
    write_skill(tmp_path, "notes", "Write notes.", "The whole manual of notes.")

    messages = await built(tmp_path)

    assert starting(messages, "Available skills:") == [
        "Available skills:\n- notes: Write notes.\n- search: Search the web."
    ]


async def test_M8_a_skill_without_a_description_shows_its_first_line_of_text(tmp_path: Path) -> None:
    write(tmp_path / "skills" / "bare" / "SKILL.md", "\nTurns words into music.\n\nMore.\n")
    write(tmp_path / "skills" / "named" / "SKILL.md", "---\nname: named\n---\n\nTurns music into words.\n")

    messages = await built(tmp_path)

    assert starting(messages, "Available skills:") == [
        "Available skills:\n- bare: Turns words into music.\n- named: Turns music into words."
    ]


async def test_M8_dashes_are_never_shown_as_a_description(tmp_path: Path) -> None:
    write(tmp_path / "skills" / "open" / "SKILL.md", "---\nno closing mark\n")
    write(tmp_path / "skills" / "rule" / "SKILL.md", "---\n---\n\n---\nAfter the rule.\n")

    listed = starting(await built(tmp_path), "Available skills:")[0]

    assert "---" not in listed
    assert "- open: no closing mark" in listed.splitlines()


@pytest.mark.parametrize("with_folder", [False, True], ids=["no folder", "an empty folder"])
async def test_M8_without_skills_the_layer_is_skipped(tmp_path: Path, with_folder: bool) -> None:
    if with_folder:
        (tmp_path / "skills" / "nothing-inside").mkdir(parents=True)

    assert starting(await built(tmp_path), "Available skills:") == []


async def test_M8_an_invalid_skill_warns_and_the_others_are_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = write(tmp_path / "skills" / "bad" / "SKILL.md", "---\ndescription: [unclosed\n---\nbody\n")
    write_skill(tmp_path, "good", "Works.")

    messages = await built(tmp_path)

    assert starting(messages, "Available skills:") == ["Available skills:\n- good: Works."]
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any(str(bad) in sentence for sentence in warned)


async def test_M8_M38_two_hundred_skills_are_all_listed_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = [f"skill-{n:03}" for n in range(200)]
    for name in reversed(names):
        write_skill(tmp_path, name, "Does it.")

    messages = await built(tmp_path)

    listed = starting(messages, "Available skills:")[0].splitlines()[1:]
    assert listed == [f"- {name}: Does it." for name in names]


# --- tool documentation


async def test_M9_M10_tools_md_follows_its_title_word_for_word(full: Path) -> None:
    messages = await built(full)

    assert messages[4].content == (
        "Available tools:\ngrep(pattern: string)\n  finds lines\n  example: grep('todo')"
    )


async def test_M9_M10_without_tools_md_every_offered_tool_is_explained_with_an_example(
    tmp_path: Path,
) -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "max_lines": {"type": "integer"}},
        "required": ["pattern"],
    }
    tools = [
        weft.ToolDefinition(name="grep", description="Find lines.", parameters=schema),
        weft.ToolDefinition(name="clock", description="Tell the time."),
    ]

    context = await builder(tmp_path).with_tools(tools).build("hello")

    docs = starting(context.to_messages(), "Available tools:\n")[0]
    for word in (
        "grep",
        "Find lines.",
        "pattern",
        "string",
        "max_lines",
        "integer",
        "clock",
        "Tell the time.",
    ):
        assert word in docs
    assert docs.lower().count("example") == len(tools)


async def test_M9_without_tools_md_and_without_tools_the_layer_still_speaks(tmp_path: Path) -> None:
    docs = starting(await built(tmp_path), "Available tools:\n")

    assert len(docs) == 1
    assert docs[0].removeprefix("Available tools:\n").strip() != ""


# --- history


async def test_M11_M38_of_sixty_messages_the_newest_fifty_are_kept_in_order(tmp_path: Path) -> None:
    context = await builder(tmp_path).with_messages(talk(60)).build("hello")

    assert contents(context.history) == [f"message {n}" for n in range(10, 60)]
    assert roles(context.history) == ["user", "assistant"] * 25


async def test_M11_an_empty_history_is_fine(full: Path) -> None:
    context = await builder(full).with_messages([]).build("hello")

    assert list(context.history) == []
    assert roles(context.to_messages()) == ["system"] * 5 + ["user"]


async def test_M11_the_call_and_all_its_parallel_results_are_in_the_context(full: Path) -> None:
    exchange = [
        weft.Message(role="user", content="look"),
        *call_with_results("one", "two", "three"),
        weft.Message(role="assistant", content="found"),
    ]

    context = await builder(full).with_messages(exchange).build("thanks")

    sent = context.to_messages()[5:-1]
    assert roles(sent) == ["user", "assistant", "tool", "tool", "tool", "assistant"]
    assert sent[1].tool_calls == exchange[1].tool_calls
    assert [m.tool_call_id for m in sent[2:5]] == ["one", "two", "three"]
    assert contents(sent[2:5]) == ["result one", "result two", "result three"]


async def test_M11_the_window_never_begins_between_a_call_and_its_results(full: Path) -> None:
    history = [*talk(5), *call_with_results("one", "two"), *talk(48)]

    context = await builder(full).with_messages(history).build("hello")

    assert "tool" not in roles(context.history)
    assert contents(context.history) == contents(talk(48))


async def test_M11_the_window_holds_a_call_with_its_results_when_they_fit(full: Path) -> None:
    group = call_with_results("one", "two")
    history = [*talk(5), *group, *talk(47)]

    context = await builder(full).with_messages(history).build("hello")

    assert len(context.history) == 50
    assert list(context.history[:3]) == group


async def test_M11_a_damaged_session_loses_none_of_its_sound_messages(full: Path) -> None:
    dangling = weft.ToolCall(id="never answered", name="grep")
    damaged = [
        weft.Message(role="tool", content="answer to nothing", tool_call_id="gone"),
        weft.Message(role="user", content="first"),
        weft.Message(role="assistant", content="trying", tool_calls=(dangling,)),
        weft.Message(role="user", content=""),
        weft.Message(role="assistant", content="second"),
    ]

    context = await builder(full).with_messages(damaged).build("hello")

    sent = contents(context.to_messages())
    assert [text for text in sent if text in ("first", "trying", "second", "hello")] == [
        "first",
        "trying",
        "second",
        "hello",
    ]


async def test_M12_a_message_of_unknown_role_is_the_users(full: Path) -> None:
    odd = [weft.Message(role=role, content=f"from {role}") for role in ("moderator", "User", "function")]

    context = await builder(full).with_messages(odd).build("hello")

    sent = context.to_messages()[5:]
    assert contents(sent) == ["from moderator", "from User", "from function", "hello"]
    assert roles(sent) == ["user"] * 4


async def test_M13_the_message_is_last_from_the_user_and_appears_once(full: Path) -> None:
    context = await builder(full).with_messages(talk(4)).build("  What now?  ")

    messages = context.to_messages()
    assert (messages[-1].role, messages[-1].content) == ("user", "  What now?  ")
    assert contents(messages).count("  What now?  ") == 1
    assert context.current_message == "  What now?  "


async def test_M31_the_four_roles_are_kept_as_they_are(full: Path) -> None:
    history = [
        weft.Message(role="system", content="a note"),
        weft.Message(role="user", content="look"),
        *call_with_results("one"),
        weft.Message(role="assistant", content="found"),
    ]

    context = await builder(full).with_messages(history).build("hello")

    assert roles(context.to_messages()[5:]) == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_M33_a_context_has_two_messages_at_least_the_first_system_the_last_user(
    tmp_path: Path,
) -> None:
    messages = await built(tmp_path, "Hello")

    assert len(messages) >= 2
    assert messages[0].role == "system"
    assert messages[-1].role == "user"


def test_M34_a_message_is_a_role_and_a_content() -> None:
    message = weft.Message(role="assistant", content="Hello.")

    assert json.loads(message.to_json()) == {"role": "assistant", "content": "Hello."}
    assert weft.Message.from_json('{"role": "assistant", "content": "Hello."}') == message


# --- the builder


def test_M26_the_workspace_is_checked_when_it_is_given(tmp_path: Path) -> None:
    a_file = write(tmp_path / "file", "")
    missing = tmp_path / "missing"

    with pytest.raises(weft.WorkspaceError, match="missing"):
        weft.ContextBuilder(recipe="miniclaw").with_workspace(missing)
    with pytest.raises(weft.WorkspaceError, match="file"):
        weft.ContextBuilder(recipe="miniclaw").with_workspace(a_file)


async def test_M26_each_step_gives_a_new_builder_and_leaves_the_old_one_alone(full: Path) -> None:
    plain = builder(full)
    with_history = plain.with_messages(talk(2))
    with_tools = with_history.with_tools([weft.ToolDefinition(name="grep")])

    assert len((await plain.build("x")).history) == 0
    assert len((await with_history.build("x")).tools) == 0
    assert len((await with_tools.build("x")).history) == 2
    assert len((await with_tools.build("x")).tools) == 1


async def test_M26_a_session_and_a_message_give_the_list_of_messages(full: Path) -> None:
    log = InMemoryMessages()
    await log.append("telegram_1", *talk(2))
    await log.append("telegram_2", weft.Message(role="user", content="of another chat"))

    context = await builder(full).with_messages(log).with_session("telegram_1").build("hello")

    assert contents(context.to_messages()[5:]) == ["message 0", "message 1", "hello"]


async def test_M26_a_config_given_to_the_builder_sets_the_limits(full: Path) -> None:
    config = weft.ContextConfig(
        default_limits=weft.ModelContextLimits(
            max_tokens=123, memory_tokens=50, history_tokens=50, reserved_response_tokens=0
        )
    )

    context = await weft.ContextBuilder(config=config, recipe="miniclaw").with_workspace(full).build("hello")

    assert context.receipt is not None
    assert context.receipt.limit == 123


async def test_M27_the_four_settings_of_the_recipe_have_their_effect(full: Path) -> None:
    write(full / "memory" / "MEMORY.md", "- one\n- two\n- three\n")
    recipe = weft.Recipe.load("miniclaw").replace(
        workspace_path=str(full), max_context_tokens=900, max_history_messages=3, max_memory_entries=1
    )

    context = await weft.ContextBuilder(recipe=recipe).with_messages(talk(10)).build("hello")

    assert context.receipt is not None
    assert context.receipt.limit == 900
    assert contents(context.history) == ["message 7", "message 8", "message 9"]
    assert starting(context.to_messages(), "Relevant memories:") == ["Relevant memories:\n- three"]
    assert context.to_messages()[0].content == "I am Claw, dry and kind.\n\nAsk before you delete."


async def test_M27_a_workspace_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    recipe = weft.Recipe.load("miniclaw").replace(workspace_path=str(tmp_path / "missing"))

    with pytest.raises(weft.WorkspaceError, match="missing"):
        await weft.ContextBuilder(recipe=recipe).build("hello")


def test_M27_a_setting_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(weft.ConfigError, match="max_contxt_tokens"):
        weft.Recipe.load("miniclaw").replace(max_contxt_tokens=900)
