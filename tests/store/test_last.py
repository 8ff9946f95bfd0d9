"""What every store promises, shown with the one there is: in memory and in a file."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import weft
from weft.recall.conversation_recall import ConversationRecall
from weft.store.base import Scope
from weft.store.blocks import Change, Moment
from weft.store.sqlite.backend import SqliteBackend
from weft.store.sqlite.search import query_terms
from weft.testing import InMemoryMessages
from weft.tokens import COUNTERS
from weft.types.memory import BlockInfo, RenderedBlock
from weft.types.search import SearchContentType
from weft.types.session import SessionRule

from samples import assistant, result, user

ALL = tuple(SearchContentType)
TEXT = st.text(max_size=40)


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "weft.db")
    opened = SqliteBackend(path)
    yield opened
    await opened.close()


async def test_a_conversation_has_one_session_until_a_new_one_is_asked_for(store: SqliteBackend) -> None:
    first = await store.sessions.find_or_create("telegram", "c1", "42")
    again = await store.sessions.find_or_create("telegram", "c1", "42")
    other = await store.sessions.find_or_create("telegram", "c2", "42")
    fresh = await store.sessions.new("telegram", "c1", "42")

    assert first.id == again.id
    assert len({first.id, other.id, fresh.id}) == 3
    assert (await store.sessions.find_or_create("telegram", "c1", "42")).id == fresh.id
    assert (await store.sessions.get(first.id)).closed_at is not None
    assert await store.messages.all(fresh.id) == []


async def test_a_closed_session_is_not_found_again(store: SqliteBackend) -> None:
    session = await store.sessions.find_or_create("a", "b", "c")

    await store.sessions.close(session.id)

    assert (await store.sessions.find_or_create("a", "b", "c")).id != session.id
    with pytest.raises(weft.StoreError, match="no session 'gone'"):
        await store.sessions.close("gone")


async def test_a_rule_says_what_counts_and_how_long_a_session_waits(store: SqliteBackend) -> None:
    by_sender = SessionRule(ignore="conversation")
    impatient = SessionRule(idle_minutes=0)

    one = await store.sessions.find_or_create("a", "c1", "s", rule=by_sender)
    two = await store.sessions.find_or_create("a", "c2", "s", rule=by_sender)
    waited = await store.sessions.find_or_create("a", "c9", "t", rule=impatient)

    assert one.id == two.id
    assert (await store.sessions.find_or_create("a", "c9", "t", rule=impatient)).id != waited.id


async def test_ids_can_be_made_of_the_channel_and_the_chat_and_stay_unique(store: SqliteBackend) -> None:
    rule = SessionRule(id="{channel}_{conversation}")

    first = await store.sessions.new("telegram", "77", "s", rule=rule)
    second = await store.sessions.new("telegram", "77", "s", rule=rule)

    odd = await store.sessions.new("telegram", "{sender}", "s", rule=rule)

    assert (first.id, second.id) == ("telegram_77", "telegram_77_2")
    assert odd.id == "telegram_{sender}"


async def test_messages_come_back_as_they_were_written(store: SqliteBackend) -> None:
    session = await store.sessions.find_or_create("a", "b", "c")
    said = [
        user("Where?"),
        assistant("", "call-1"),
        result("call-1", "there"),
        weft.Message(
            role="narrator",
            content="\0 Ω 好",
            timestamp=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
            origin="web",
            parts=({"type": "image", "data": "x"},),
            provider_data={"signature": "s"},
        ),
    ]

    await store.messages.append(session.id, *said)

    assert await store.messages.all(session.id) == said
    assert await store.messages.newest(session.id, 2) == said[-2:]
    assert await store.messages.newest(session.id, 0) == []


async def test_messages_of_an_unknown_session_are_refused_and_none_is_kept(store: SqliteBackend) -> None:
    with pytest.raises(weft.StoreError, match="no session 'gone'"):
        await store.messages.append("gone", user("x"))

    assert await store.messages.all("gone") == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(("user", "assistant", "tool")), TEXT), max_size=30),
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 30),
)
async def test_the_tail_is_that_of_a_plain_list_under_every_counter(
    said: list[tuple[str, str]], max_tokens: int | None, max_messages: int | None
) -> None:
    store = SqliteBackend(":memory:")
    session = await store.sessions.new("a", "b", "c")
    messages = [weft.Message(role=role, content=text) for role, text in said]
    await store.messages.append(session.id, *messages)

    for counter in COUNTERS.values():
        found = await store.messages.tail(
            session.id, counter, max_tokens=max_tokens, max_messages=max_messages
        )
        plain = await InMemoryMessages(messages).tail("", counter, max_tokens=None, max_messages=None)

        shown = len(found.entries)
        assert list(found.entries) == list(plain.entries)[len(messages) - shown :]
        assert found.messages_before == len(messages) - shown
        assert found.tokens_before == sum(e.tokens for e in list(plain.entries)[: len(messages) - shown])
        assert shown == len(messages) or (
            (max_tokens is not None and sum(e.tokens for e in found.entries) > max_tokens)
            or (max_messages is not None and shown > max_messages)
        )
    await store.close()


async def test_pictures_and_tags_cost_the_same_in_a_file_as_in_a_list() -> None:
    store = SqliteBackend(":memory:")
    session = await store.sessions.new("a", "b", "c")
    seen = weft.Message(role="user", content="look", parts=({"type": "image", "data": "aa"},))
    messages = [seen, weft.Message(role="assistant", content="<block:x> " * 30), user("well?")]
    await store.messages.append(session.id, *messages)

    for counter in COUNTERS.values():
        for most in (None, 0, 1):
            found = await store.messages.tail(session.id, counter, max_tokens=None, max_messages=most)
            plain = await InMemoryMessages(messages).tail("", counter, max_tokens=None, max_messages=most)
            assert found == plain
    await store.close()


async def test_a_fact_keeps_its_earlier_values_with_their_dates(store: SqliteBackend) -> None:
    await store.facts.set("telegram:42", "city", "Rome")
    await store.facts.set("telegram:42", "city", "Lisbon")
    await store.facts.set("telegram:42", "city", "Lisbon")
    await store.facts.set("telegram:42", "name", "Ada")

    assert [(f.key, f.value) for f in await store.facts.list("telegram:42")] == [
        ("city", "Lisbon"),
        ("name", "Ada"),
    ]
    rome, lisbon = await store.facts.history("telegram:42", "city")
    assert (rome.value, lisbon.value) == ("Rome", "Lisbon")
    assert rome.ended_at == lisbon.created_at
    assert lisbon.ended_at is None


async def test_a_deleted_fact_is_gone_and_another_person_never_had_it(store: SqliteBackend) -> None:
    await store.facts.set("telegram:42", "city", "Rome")

    assert await store.facts.list("telegram:43") == []
    assert await store.facts.delete("telegram:43", "city") is False
    assert await store.facts.delete("telegram:42", "city") is True
    assert await store.facts.list("telegram:42") == []
    with pytest.raises(weft.StoreError, match="Nothing is known"):
        await store.facts.get("telegram:42", "city")


async def test_linked_senders_are_one_person(store: SqliteBackend) -> None:
    await store.facts.set("telegram:42", "city", "Rome")

    await store.people.link("web:1", "telegram:42")
    await store.facts.set("web:1", "name", "Ada")

    await store.people.link("mail:2", "web:1")

    for sender in ("telegram:42", "web:1", "mail:2"):
        facts = {fact.key: fact.value for fact in await store.facts.list(sender)}
        assert facts == {"city": "Rome", "name": "Ada"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "x"),
        ("x", " "),
        ("k" * 51, "v"),
        ("k", "v" * 201),
        ("age", "42"),
        ("price", "$12.50"),
        ("| a", "b |"),
    ],
)
async def test_a_fact_that_says_nothing_is_refused(store: SqliteBackend, key: str, value: str) -> None:
    with pytest.raises(weft.StoreError):
        await store.facts.set("telegram:42", key, value)

    assert await store.facts.list("telegram:42") == []


async def test_a_model_cannot_write_reserved_keys(store: SqliteBackend) -> None:
    await store.facts.set("telegram:42", "role", "owner")

    with pytest.raises(weft.StoreError, match="reserved"):
        await store.facts.set("telegram:42", "role", "admin", by_model=True)

    assert await store.facts.get("telegram:42", "role") == "owner"


async def test_summaries_come_newest_first_and_only_the_senders_own(store: SqliteBackend) -> None:
    for number in range(5):
        await store.summaries.add("telegram", "42", f"talk {number}")
    await store.summaries.add("telegram", "43", "another's")

    recent = await store.summaries.recent("telegram", "42")

    assert [summary.text for summary in recent] == ["talk 4", "talk 3", "talk 2"]


async def test_tasks_are_listed_by_due_time_and_cancelled_by_the_start_of_their_id(
    store: SqliteBackend,
) -> None:
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    late = await store.tasks.add("s", "late", noon + timedelta(hours=5))
    soon = await store.tasks.add("s", "soon", noon)
    again = await store.tasks.add("s", "Soon", noon + timedelta(minutes=20))

    assert again == soon
    assert [task.text for task in await store.tasks.list("s")] == ["soon", "late"]
    with pytest.raises(weft.StoreError, match="No task"):
        await store.tasks.cancel("another", late)
    shared = next(late[:length] for length in range(len(late)) if late[length] != soon[length])
    for vague, count in ((shared, "2 tasks"), ("", "2 tasks"), ("?", "No task")):
        with pytest.raises(weft.StoreError, match=f"{count} of yours begins with"):
            await store.tasks.cancel("s", vague)
    assert await store.tasks.cancel("s", late[: len(shared) + 1]) == late
    assert [task.id for task in await store.tasks.list("s")] == [soon]


async def test_the_archive_keeps_notes_with_their_metadata(store: SqliteBackend) -> None:
    kept = await store.archive.insert("iris", "The boat is called Marlin.", {"source": "log"})

    entry = (await store.archive.list([kept]))[kept]

    assert (entry.content, entry.metadata) == ("The boat is called Marlin.", {"source": "log"})
    assert await store.archive.delete(kept) is True
    assert await store.archive.delete(kept) is False
    assert await store.search.candidates("Marlin", Scope(owner="iris"), sources=ALL, limit=5) == []


async def _found(store: SqliteBackend, query: str, owner: str = "iris") -> list[str]:
    found = await store.search.candidates(query, Scope(owner=owner), sources=ALL, limit=10)
    return [candidate.content for candidate in found]


async def test_search_finds_other_forms_of_a_word_and_the_best_first(store: SqliteBackend) -> None:
    await store.archive.insert("iris", "The dogs were running in the park")
    await store.archive.insert("iris", "A dog runs, a dog barks, a dog sleeps: dog days")
    await store.archive.insert("iris", "Nothing about animals")

    assert (await _found(store, "does the dog run?"))[0].startswith("A dog runs")
    assert len(await _found(store, "dog")) == 2
    assert await _found(store, "what is the") == ["The dogs were running in the park"]
    assert await _found(store, "anim*") == ["Nothing about animals"]


async def test_search_works_in_scripts_without_spaces(store: SqliteBackend) -> None:
    await store.archive.insert("iris", "我喜欢喝绿茶")
    await store.archive.insert("iris", "東京タワーは高い")

    assert await _found(store, "绿茶") == ["我喜欢喝绿茶"]
    assert await _found(store, "茶") == ["我喜欢喝绿茶"]
    assert await _found(store, "東京") == ["東京タワーは高い"]
    assert await _found(store, "大阪") == []


async def test_a_search_finds_only_messages_of_its_owner(store: SqliteBackend) -> None:
    mine = await store.sessions.find_or_create("telegram", "c1", "42", agent_id="iris")
    theirs = await store.sessions.find_or_create("telegram", "c2", "43", agent_id="rose")
    await store.messages.append(mine.id, user("the key is under the blue stone"))
    await store.messages.append(theirs.id, user("the key is under the red stone"))

    assert await _found(store, "key stone", owner="iris") == ["the key is under the blue stone"]
    assert await _found(store, "key stone", owner="telegram:43") == ["the key is under the red stone"]
    assert await _found(store, "key stone", owner="") == []
    everyone = await store.search.candidates("key stone", Scope(everyone=True), sources=ALL, limit=10)
    assert len(everyone) == 2


async def test_recall_brings_lines_of_other_conversations_of_the_same_sender(store: SqliteBackend) -> None:
    past = await store.sessions.find_or_create("telegram", "c1", "42")
    now = await store.sessions.find_or_create("telegram", "c2", "42")
    await store.messages.append(past.id, user("The dive boat is called Marlin."), assistant("Noted."))
    await store.messages.append(now.id, user("What was the boat called?"))
    theirs = await store.sessions.find_or_create("telegram", "c3", "43")
    await store.messages.append(theirs.id, user("My boat is called Tuna."))

    recall = ConversationRecall(store.lines)
    found = await recall.recall("boat name", sender="telegram:42", session_id=now.id, limit=5)

    assert [(line.speaker, line.text) for line in found] == [
        ("User", "The dive boat is called Marlin."),
        ("Assistant", "Noted."),
    ]
    assert found[0].relevance > 2 * found[1].relevance, "the answer only stands beside the words"
    assert {(line.session_id, line.place) for line in found} == {(past.id, 1), (past.id, 2)}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.text('"*()^:-+ANDORNEAR{}', max_size=30))
async def test_no_query_is_ever_taken_as_syntax(query: str) -> None:
    store = SqliteBackend(":memory:")
    await store.archive.insert("iris", "some text")

    found = await store.search.candidates(query, Scope(owner="iris"), sources=ALL, limit=3)

    assert len(found) <= 1
    assert '""' not in " ".join(query_terms(query).values())
    await store.close()


async def test_a_receipt_can_be_read_again(store: SqliteBackend) -> None:
    session = await store.sessions.find_or_create("a", "b", "c")
    context = await weft.ContextBuilder().build("Hi")
    assert context.receipt is not None

    turn = await store.turns.begin(session.id, "Hi")
    await store.turns.finish(turn, context.receipt)

    assert await store.turns.get(turn) == context.receipt
    assert await store.turns.list(session.id) == [turn]
    with pytest.raises(weft.StoreError, match="no turn"):
        await store.turns.get("gone")


async def test_a_builder_takes_its_history_from_the_file(store: SqliteBackend) -> None:
    session = await store.sessions.find_or_create("a", "b", "c")
    await store.messages.append(session.id, user("one"), assistant("two"))

    context = (
        await weft.ContextBuilder().with_messages(store.messages).with_session(session.id).build("three")
    )

    assert [m.content for m in context.history] == ["one", "two"]


def _change(blob: bytes) -> Change:
    return Change(blob=blob, before=b"", after=blob, author="iris")


async def _kept(store: SqliteBackend, info: BlockInfo, text: str) -> str:
    """A block with a text to be shown."""
    block = await store.blocks.create(info, _change(b"1"))
    kept = await _info(store, block)
    await store.blocks.save_rendered(kept, text, kept.version)
    return block


async def _info(store: SqliteBackend, block: str) -> BlockInfo:
    return next(info for info in await store.blocks.list_all() if info.id == block)


async def test_a_blocks_changes_are_kept_in_order(store: SqliteBackend) -> None:
    info = BlockInfo(id="", agent_id="iris", label="notes", schema={"kind": "text"})
    block = await store.blocks.create(info, _change(b"1"))
    seen: list[bytes] = []

    def merge(moment: Moment) -> Change:
        seen.extend(update.blob for update in moment.others)
        return _change(b"2")

    version = await store.blocks.merge(block, 0, merge)

    chain = await store.blocks.get_chain(block)
    assert seen == [b"1"]
    assert [update.blob for update in chain.updates] == [b"1", b"2"]
    assert chain.newest == version == (await _info(store, block)).version
    assert [entry.kind for entry in await store.blocks.history(block)] == ["edit", "edit"]
    assert await store.blocks.merge(block, version, lambda _: _change(b"3")) == version + 1
    assert [update.blob for update in await store.blocks.list_since(block, version)] == [b"3"]


async def test_the_text_of_a_block_is_stale_after_each_change_until_it_is_rendered(
    store: SqliteBackend,
) -> None:
    block = await store.blocks.create(BlockInfo(id="", agent_id="iris", label="notes"), _change(b"1"))
    first = (await _info(store, block)).version

    assert [info.label for info in await store.blocks.list_stale("iris")] == ["notes"]
    await store.blocks.save_rendered(await _info(store, block), "one", first)
    assert await store.blocks.list_stale("iris") == []
    second = await store.blocks.merge(block, first, lambda _: _change(b"2"))
    assert [info.version for info in await store.blocks.list_stale(None)] == [second]
    assert await store.blocks.list_stale("rose") == []
    await store.blocks.save_rendered(await _info(store, block), "one two", second)
    await store.blocks.save_rendered(await _info(store, block), "late", first)

    assert [shown.content for shown in await _shown(store, "iris")] == ["one two"]
    assert await _found(store, "two") == ["one two"]
    assert await _found(store, "late") == []


async def test_a_snapshot_stands_for_the_changes_before_it(store: SqliteBackend) -> None:
    info = BlockInfo(id="", agent_id="iris", label="notes")
    block = await store.blocks.create(info, _change(b"1"))
    first = (await _info(store, block)).version
    await store.blocks.save_snapshot(await _info(store, block), first, b"all")
    await store.blocks.merge(block, first, lambda moment: _change(b"2"))

    chain = await store.blocks.get_chain(block)

    assert (chain.snapshot, chain.seq) == (b"all", first)
    assert [update.blob for update in chain.updates] == [b"2"]
    assert len(await store.blocks.history(block)) == 2


async def test_a_merge_that_has_nothing_to_record_writes_nothing(store: SqliteBackend) -> None:
    block = await store.blocks.create(BlockInfo(id="", agent_id="iris", label="notes"), _change(b"1"))
    before = (await _info(store, block)).version

    assert await store.blocks.merge(block, 0, lambda moment: None) == before
    assert (await _info(store, block)).version == before


async def test_a_label_is_taken_once_for_each_agent(store: SqliteBackend) -> None:
    label = "a/b 'c' \"d\" 🐠"
    await _kept(store, BlockInfo(id="", agent_id="iris", label=label), "x")
    await _kept(store, BlockInfo(id="", agent_id="rose", label=label), "y")

    with pytest.raises(weft.StoreError, match="already"):
        await store.blocks.create(BlockInfo(id="", agent_id="iris", label=label), _change(b"1"))

    assert [shown.content for shown in await _shown(store, "iris")] == ["x"]


async def _shown(store: SqliteBackend, agent: str) -> list[RenderedBlock]:
    blocks, _ = await store.blocks.rendered_blocks(agent)
    return blocks


async def test_a_shared_block_is_read_and_found_by_the_other_agent_and_no_third(store: SqliteBackend) -> None:
    block = await _kept(store, BlockInfo(id="", agent_id="iris", label="team"), "tanks")
    await store.blocks.share(block, "rose", weft.Permission.APPEND)

    (shown,) = await _shown(store, "rose")

    assert (shown.label, shown.shared_from, shown.permission) == ("team", "iris", weft.Permission.APPEND)
    assert await _found(store, "tanks", owner="rose") == ["tanks"]
    assert await _found(store, "tanks", owner="lily") == []
    assert [(one.owner, one.label) for one in await store.blocks.list_shared("rose")] == [("iris", "team")]
    assert await store.blocks.unshare(block, "rose") is True
    assert await _shown(store, "rose") == []
    assert await _found(store, "tanks", owner="rose") == []


async def test_a_deleted_block_is_gone_with_its_changes(store: SqliteBackend) -> None:
    block = await _kept(store, BlockInfo(id="", agent_id="iris", label="notes"), "one")

    await store.blocks.delete(block)

    assert await store.blocks.find("iris", "notes") is None
    assert await _found(store, "one") == []
    assert await store.blocks.history(block) == []
    assert not (await store.blocks.get_chain(block)).updates
    with pytest.raises(weft.StoreError, match="deleted meanwhile"):
        await store.blocks.merge(block, 0, lambda moment: _change(b"2"))
