"""Sessions and what a person's context is made of: who speaks where, what was said, what is known."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import weft
from weft.testing import InMemoryBlocks, InMemoryRecall, InMemoryStore, InMemoryTasks

from samples import assistant, result, user

NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)
OMEGA = weft.SessionRule(ignore="conversation", idle_minutes=30)
CHAI = weft.SessionRule(ignore="sender")
MINICLAW = weft.SessionRule(id="{channel}_{conversation}")


def omega(store: weft.Store, session_id: str = "", sender_id: str = "42") -> weft.ContextBuilder:
    made = (
        weft.ContextBuilder(recipe="omega")
        .with_store(store)
        .for_sender("telegram", sender_id)
        .with_base_instructions("BASE")
    )
    return made.with_session(session_id) if session_id else made


def chai(store: weft.Store, session_id: str, workspace: Path) -> weft.ContextBuilder:
    workspace.mkdir(exist_ok=True)
    (workspace / "AGENTS.md").write_text("Answer in one sentence.\n", "utf-8")
    return (
        weft.ContextBuilder(recipe="chai")
        .with_workspace(workspace)
        .with_store(store)
        .with_session(session_id)
    )


def spoken(messages: Sequence[weft.Message]) -> list[str]:
    return [message.content for message in messages]


# --- what is asked for, and what is not even looked up


@dataclass(frozen=True)
class CountedRecall(InMemoryRecall):
    asked: list[str] = field(default_factory=list)

    async def recall(
        self,
        query: str,
        *,
        sender: str,
        session_id: str,
        limit: int,
        view_from: int = 0,
        now: datetime | None = None,
    ) -> Sequence[weft.Recalled]:
        self.asked.append(query)
        return [weft.Recalled(text="The boat is called Marlin.", speaker="User", timestamp=NOW)]


@dataclass(frozen=True)
class CountedTasks(InMemoryTasks):
    asked: list[str] = field(default_factory=list)

    async def list(self, sender: str) -> Sequence[weft.Task]:
        self.asked.append(sender)
        return [weft.Task(id="a1b2c3d4e5", text="Buy batteries", due=NOW)]


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("tasks", [True, False])
async def test_O11_what_is_not_needed_is_neither_looked_up_nor_shown(recall: bool, tasks: bool) -> None:
    remembered, pending = CountedRecall({}), CountedTasks({})
    needs = weft.ContextNeeds(recall=recall, pending_tasks=tasks)

    context = await (
        weft.ContextBuilder(recipe="omega")
        .with_store(InMemoryStore(memory=InMemoryBlocks({}), recall=remembered, tasks=pending))
        .for_sender("telegram", "42")
        .with_needs(needs)
        .build("Which boat?")
    )

    assert bool(remembered.asked) is recall
    assert bool(pending.asked) is tasks
    assert ("## Related past context" in context.system_prompt) is recall
    assert ("## Pending tasks" in context.system_prompt) is tasks


async def test_O11_the_blocks_of_a_real_store_are_there_or_absent(store: weft.Store) -> None:
    past = await store.sessions.new("telegram", "c1", "42")
    await store.messages.append(past.id, user("The dive boat is called Marlin."))
    now = await store.sessions.new("telegram", "c2", "42")
    made = await store.tasks.add("telegram:42", "Buy batteries", NOW + timedelta(days=1))
    quiet = weft.ContextNeeds(recall=False, pending_tasks=False)

    with_all = await omega(store, now.id).at(NOW).build("What is the boat called?")
    with_none = await omega(store, now.id).at(NOW).with_needs(quiet).build("What is the boat called?")

    assert "## Related past context" in with_all.system_prompt
    assert "User: The dive boat is called Marlin." in with_all.system_prompt
    assert f"- [{made[:8]}] Buy batteries" in with_all.system_prompt
    assert with_none.system_prompt == "BASE"


async def test_O11_one_flag_leaves_the_other_alone(store: weft.Store) -> None:
    await store.tasks.add("telegram:42", "Buy batteries", NOW + timedelta(days=1))
    needs = weft.ContextNeeds(recall=False)

    context = await omega(store).with_needs(needs).build("What is the boat called?")

    assert "Buy batteries" in context.system_prompt


# --- who speaks where


async def test_O35_a_sender_has_one_conversation_on_a_channel(store: weft.Store) -> None:
    first = await store.sessions.find_or_create("telegram", "c1", "42", rule=OMEGA)
    again = await store.sessions.find_or_create("telegram", "c2", "42", rule=OMEGA)
    other_sender = await store.sessions.find_or_create("telegram", "c1", "43", rule=OMEGA)
    other_channel = await store.sessions.find_or_create("whatsapp", "c1", "42", rule=OMEGA)

    assert first.id == again.id
    assert len({first.id, other_sender.id, other_channel.id}) == 3


async def test_O35_a_conversation_that_was_closed_is_not_found_again(store: weft.Store) -> None:
    first = await store.sessions.find_or_create("telegram", "c1", "42", rule=OMEGA)
    await store.sessions.close(first.id)

    second = await store.sessions.find_or_create("telegram", "c1", "42", rule=OMEGA)

    assert second.id != first.id
    assert {session.id for session in await store.sessions.list()} == {first.id, second.id}


async def test_O35_a_conversation_idle_for_too_long_is_over(store: weft.Store) -> None:
    impatient = weft.SessionRule(ignore="conversation", idle_minutes=0)

    first = await store.sessions.find_or_create("telegram", "c1", "42", rule=impatient)
    second = await store.sessions.find_or_create("telegram", "c1", "42", rule=impatient)

    assert second.id != first.id


async def test_O35_messages_that_come_at_once_find_one_conversation(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        found = await asyncio.gather(
            *(
                store.sessions.find_or_create("telegram", f"c{number}", "42", rule=OMEGA)
                for number in range(10)
                for store in (one, two)
            )
        )

        assert len({session.id for session in found}) == 1
        assert len(await one.sessions.list()) == 1


async def test_O35_names_that_run_together_are_still_different_senders(store: weft.Store) -> None:
    one = await store.sessions.find_or_create("a", "b:c", "d")
    two = await store.sessions.find_or_create("a:b", "c", "d")
    three = await store.sessions.find_or_create("a", "b", "c:d")

    assert len({one.id, two.id, three.id}) == 3


async def test_O36_the_newest_fifty_messages_of_that_conversation_in_order(store: weft.Store) -> None:
    mine = await store.sessions.find_or_create("telegram", "c1", "42", rule=OMEGA)
    theirs = await store.sessions.find_or_create("telegram", "c1", "43", rule=OMEGA)
    for number in range(60):
        await store.messages.append(mine.id, (user if number % 2 == 0 else assistant)(f"mine {number}"))
        await store.messages.append(theirs.id, user(f"theirs {number}"))

    context = await omega(store, mine.id).build("now")

    assert spoken(context.history) == [f"mine {number}" for number in range(10, 60)]


@pytest.mark.parametrize(
    ("wanted", "found"), [(0, []), (2, ["b", "c"]), (3, ["a", "b", "c"]), (9, ["a", "b", "c"])]
)
async def test_O36_the_newest_come_oldest_first(store: weft.Store, wanted: int, found: list[str]) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42")
    await store.messages.append(session.id, user("a"), assistant("b"))
    await store.messages.append(session.id, user("c"))

    assert spoken(await store.messages.newest(session.id, wanted)) == found


async def test_O36_messages_of_the_same_time_keep_the_order_in_which_they_came(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42")
    same = [weft.Message(role="user", content=f"{number}", timestamp=NOW) for number in range(30)]
    await store.messages.append(session.id, *same)

    assert await store.messages.newest(session.id, 30) == same


# --- what is known of a person


async def test_O37_facts_follow_the_sender_across_conversations(store: weft.Store) -> None:
    await store.facts.set("telegram:42", "name", "Ada")
    await store.facts.set("telegram:42", "city", "Lisbon")
    await store.facts.set("telegram:43", "name", "Bob")

    for conversation in ("c1", "c2"):
        session = await store.sessions.new("telegram", conversation, "42")
        prompt = (await omega(store, session.id).build("hi")).system_prompt
        assert "- city: Lisbon\n- name: Ada" in prompt
        assert "Bob" not in prompt


async def test_O37_a_fact_that_changed_is_shown_as_it_is_now(store: weft.Store) -> None:
    await store.facts.set("telegram:42", "city", "Rome")
    await store.facts.set("telegram:42", "city", "Lisbon")

    prompt = (await omega(store).build("hi")).system_prompt

    assert "- city: Lisbon" in prompt
    assert "Rome" not in prompt


async def test_O37_a_person_on_another_channel_is_another_until_linked(store: weft.Store) -> None:
    await store.facts.set("whatsapp:42", "name", "Ada")
    assert (await omega(store).build("hi")).system_prompt == "BASE"

    await store.people.link("telegram:42", "whatsapp:42")

    assert "- name: Ada" in (await omega(store).build("hi")).system_prompt


async def test_O38_the_three_newest_summaries_of_that_sender_on_that_channel(store: weft.Store) -> None:
    for number in range(5):
        await store.summaries.add("telegram", "42", f"talk {number}")
    await store.summaries.add("telegram", "43", "of another sender")
    await store.summaries.add("whatsapp", "42", "of another channel")

    recent = await store.summaries.recent("telegram", "42")
    prompt = (await omega(store).build("hi")).system_prompt

    assert [summary.text for summary in recent] == ["talk 4", "talk 3", "talk 2"]
    assert [line for line in prompt.split("\n") if line.startswith("- ")] == [
        "- talk 4",
        "- talk 3",
        "- talk 2",
    ]
    assert [s.text for s in await store.summaries.recent("telegram", "42", limit=1)] == ["talk 4"]


async def test_O39_O40_facts_and_summaries_are_woven_into_the_callers_prompt(store: weft.Store) -> None:
    await store.facts.set("telegram:42", "name", "Ada")
    await store.facts.set("telegram:42", "city", "Lisbon")
    await store.summaries.add("telegram", "42", "Ada asked about tides.")

    context = await omega(store).build("hi")

    assert context.system_prompt == (
        "BASE\n\n"
        "## Known facts about this user\n"
        "- city: Lisbon\n"
        "- name: Ada\n\n"
        "## Recent conversation summaries\n"
        "- Ada asked about tides."
    )
    assert context.current_message == "hi"


async def test_O39_each_caller_may_set_its_own_prompt(store: weft.Store) -> None:
    await store.facts.set("telegram:42", "name", "Ada")

    for base in ("You are a pirate.", "Two lines.\n\nOf base."):
        context = await omega(store).with_base_instructions(base).build("hi")
        assert context.system_prompt.startswith(f"{base}\n\n## Known facts about this user\n- name: Ada")


async def test_O40_a_heading_without_lines_is_left_out(store: weft.Store) -> None:
    assert (await omega(store).build("hi")).system_prompt == "BASE"

    await store.summaries.add("telegram", "42", "Ada asked about tides.")

    assert (await omega(store).build("hi")).system_prompt == (
        "BASE\n\n## Recent conversation summaries\n- Ada asked about tides."
    )


# --- sessions of many messages


async def test_C1_a_session_has_an_id_a_history_and_a_binding_and_lasts(tmp_path: Path) -> None:
    said = [user("Where?"), assistant("", "call-1"), result("call-1"), assistant("There.")]
    async with await weft.open(tmp_path / "weft.db") as store:
        session = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
        await store.messages.append(session.id, *said)

    async with await weft.open(tmp_path / "weft.db") as store:
        again = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
        assert again.id == session.id
        assert (again.channel, again.conversation) == ("telegram", "c1")
        assert await store.messages.all(again.id) == said


async def test_C1_a_session_belongs_to_its_channel_and_conversation_whoever_speaks(store: weft.Store) -> None:
    one = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
    two = await store.sessions.find_or_create("telegram", "c1", "43", rule=CHAI)
    other = await store.sessions.find_or_create("telegram", "c2", "42", rule=CHAI)

    assert one.id == two.id
    assert other.id != one.id


async def test_C2_after_a_new_session_the_next_message_starts_with_an_empty_history(
    store: weft.Store, tmp_path: Path
) -> None:
    old = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
    await store.messages.append(old.id, user("Where?"), assistant("There."))

    fresh = await store.sessions.new("telegram", "c1", "42", rule=CHAI)
    bound = await store.sessions.find_or_create("telegram", "c1", "43", rule=CHAI)
    context = await chai(store, bound.id, tmp_path / "space").build("hi")

    assert bound.id == fresh.id != old.id
    assert list(context.history) == []
    assert spoken(await store.messages.all(old.id)) == ["Where?", "There."]


async def test_C3_a_turn_is_one_message_one_reply_and_the_tools_between(
    store: weft.Store, tmp_path: Path
) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
    turn = [user("Where?"), assistant("", "call-1"), result("call-1"), assistant("There.")]
    await store.messages.append(session.id, *turn)

    context = await chai(store, session.id, tmp_path / "space").build("And when?")

    assert list(context.history) == turn
    assert spoken(await store.messages.all(session.id)) == spoken(turn)


async def test_C1_C3_each_message_has_one_reply_and_both_are_history_of_that_session_only() -> None:
    provider = weft.ScriptedProvider(["There.", "At noon.", "Hello."])
    app = await weft.connect(provider=provider)

    replies = [
        await app.ask("Where?", session="one"),
        await app.ask("When?", session="one"),
        await app.ask("Hi", session="two"),
    ]
    await app.close()

    assert [reply.text for reply in replies] == ["There.", "At noon.", "Hello."]
    assert [spoken(request.history) for request in provider.requests] == [[], ["Where?", "There."], []]


async def test_C3_a_turn_that_cannot_be_stored_whole_is_not_stored_at_all(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)

    with pytest.raises(weft.StoreError):
        await store.messages.append("no such session", user("Where?"), assistant("There."))

    assert await store.messages.all(session.id) == []


async def test_C17_a_message_has_a_role_content_and_perhaps_tool_calls_and_a_tool_name(
    store: weft.Store,
) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42")
    call = weft.ToolCall(id="call-1", name="look_up", arguments={"q": "tide", "n": [1, None, True]})
    said = [
        weft.Message(role="system", content="Be brief."),
        weft.Message(role="user", content="Where? Ω 好 \0"),
        weft.Message(role="assistant", content="", tool_calls=(call,)),
        weft.Message(role="tool", content="found", tool_call_id="call-1", tool_name="look_up"),
        weft.Message(role="assistant", content="There.", timestamp=NOW),
    ]

    await store.messages.append(session.id, *said)

    assert await store.messages.all(session.id) == said


async def test_C18_the_system_message_is_first_and_never_stored(store: weft.Store, tmp_path: Path) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
    await store.messages.append(session.id, user("Where?"), assistant("There."))

    context = await chai(store, session.id, tmp_path / "space").build("And when?")

    sent = context.to_messages()
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[0].content == context.system_prompt
    assert "Answer in one sentence." in sent[0].content
    assert [message.role for message in await store.messages.all(session.id)] == ["user", "assistant"]


async def test_C19_all_messages_of_the_session_are_sent(store: weft.Store, tmp_path: Path) -> None:
    session = await store.sessions.find_or_create("telegram", "c1", "42", rule=CHAI)
    said = [(user if number % 2 == 0 else assistant)(f"{number} " + "x" * 400) for number in range(1200)]
    await store.messages.append(session.id, *said)

    context = await chai(store, session.id, tmp_path / "space").build("now")

    assert list(context.history) == said
    assert len(context.to_messages()) == 1202


# --- ids


async def test_M30_the_id_is_made_of_the_channel_and_the_chat(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("telegram", "77", "42", rule=MINICLAW)

    assert session.id == "telegram_77"
    assert (await store.sessions.find_or_create("telegram", "77", "42", rule=MINICLAW)).id == "telegram_77"


async def test_M30_two_chats_whose_names_run_together_do_not_share_a_session(store: weft.Store) -> None:
    one = await store.sessions.find_or_create("a", "b_c", "42", rule=MINICLAW)
    two = await store.sessions.find_or_create("a_b", "c", "42", rule=MINICLAW)
    await store.messages.append(one.id, user("only for one"))

    assert one.id != two.id
    assert await store.messages.all(two.id) == []
    assert (await store.sessions.find_or_create("a_b", "c", "42", rule=MINICLAW)).id == two.id


async def test_M30_fifty_messages_are_in_view_and_the_log_keeps_all(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("telegram", "77", "42", rule=MINICLAW)
    said = [(user if number % 2 == 0 else assistant)(f"{number}") for number in range(70)]
    await store.messages.append(session.id, *said)

    context = (
        await weft.ContextBuilder(recipe="miniclaw").with_store(store).with_session(session.id).build("now")
    )

    assert spoken(context.history) == [f"{number}" for number in range(20, 70)]
    assert await store.messages.all(session.id) == said
