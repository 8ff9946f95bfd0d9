"""Epochs from outside: the prompt goes on as it began, and what is forgotten leaves it at once."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from epoch_chaos import (
    DUE,
    ME,
    Chaos,
    Gated,
    Model,
    call_of,
    check_begins,
    check_prefixes,
    check_receipt,
    counted_tokens,
    good_summary,
    look_up,
    receipt_of,
    small,
    whole_text,
)
from weft.config import load_config
from weft.types.request import OWNER

CONVERSATIONS = [(0, None), (1, None), (3, 6_000), (4, 6_000), (5, 6_000), (6, 4_500), (7, 4_500)]
SECRET = "orchid-7731"  # noqa: S105 - the name of a flower
Act = Callable[[weft.Store], Awaitable[Any]]


@pytest.fixture(scope="module", params=CONVERSATIONS, ids=lambda pair: f"seed {pair[0]}, window {pair[1]}")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    """Play a random conversation once for all checks."""
    seed, window = request.param
    rng, home = random.Random(seed), tmp_path_factory.mktemp("chaos")
    model = Model(info=small(window) if window else None, ratio=rng.choice((1.0, 1.0, 1.25)))
    chaos = Chaos(rng, home, model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_HOME", str(home))
        asyncio.run(chaos.play(24))
    return chaos


def test_every_request_of_an_epoch_begins_with_the_one_before_for_every_vendor(played: Chaos) -> None:
    between, within = check_prefixes(played.turns)

    assert between >= 2
    assert within >= 5


def test_an_epoch_begins_for_a_reason_that_the_receipt_names_and_for_no_other(played: Chaos) -> None:
    number, forgot, is_cut = 0, False, False
    for at, turn in enumerate(played.turns):
        forgot = forgot or at in played.forgot
        for request in turn.requests[:1]:
            receipt = receipt_of(request)
            kind = receipt.epoch_why.partition(":")[0]
            assert bool(kind) == (receipt.epoch != number) or is_cut, (number, receipt.epoch, kind)
            assert receipt.epoch in (number, number + 1)
            assert kind in {"", "fold", "full", *(["start"] if number < 2 else [])} or forgot, kind
            assert kind or not forgot
        if turn.is_logged and turn.requests:
            is_cut = turn.requests[-1].step is None  # a tool round had no room: the epoch was not stored
            number, forgot = receipt_of(turn.requests[0]).epoch, False


def test_a_receipt_accounts_for_every_token_and_all_that_it_lists_is_in_the_request(played: Chaos) -> None:
    for request in (request for turn in played.turns for request in turn.requests):
        check_receipt(request)
        receipt = receipt_of(request)
        assert receipt.total_tokens == pytest.approx(counted_tokens(request), rel=0.01, abs=12)


async def app_of(model: Model, **more: Any) -> weft.Assistant:
    return await weft.connect(provider=model, **more)


async def test_failed_turns_of_tools_and_restarts_leave_the_prefix_as_it_was() -> None:
    model = Model()
    app = await app_of(model, tools=[look_up])
    await app.ask("Hello.", session="chat")
    script: list[Any] = [call_of(1, "pier 2"), weft.ProviderError("The line is down."), "Here again."]
    model.answer = lambda _: script.pop(0)
    with pytest.raises(weft.ProviderError):
        await app.ask("Where is the boat?", session="chat")
    await app.close()
    app = await app_of(model, tools=[look_up])
    await app.ask("And now?", session="chat")
    await app.close()

    check_begins(model.requests[-1], model.requests[0])
    assert receipt_of(model.requests[-1]).epoch == 1


async def _delete_fact(store: weft.Store) -> None:
    await store.facts.delete(ME, "flower")


async def _delete_block(store: weft.Store) -> None:
    await store.memory.delete_block("weft", "garden", is_system=True)


async def _undo_block(store: weft.Store) -> None:
    assert await store.memory.undo_block("weft", "garden")


async def _purge(store: weft.Store) -> None:
    assert await store.purge(SECRET)


async def _unshare(store: weft.Store) -> None:
    assert await store.memory.unshare_block("archive", "shared", "weft")


async def _set_permission(store: weft.Store) -> None:
    await store.memory.set_block_permission("weft", "garden", weft.Permission.READ_ONLY, is_system=True)


async def _plant(store: weft.Store, act: Act) -> None:
    """Put the secret where the act takes it out again."""
    if act is _delete_fact:
        await store.facts.set(ME, "flower", SECRET)
    if act is _unshare:
        await store.memory.create_block("archive", "shared", pinned=True, permission=weft.Permission.ADMIN)
        await store.memory.update_block_text("archive", "shared", f"The flower is {SECRET}.")
        await store.memory.share_block("archive", "shared", "weft", weft.Permission.READ_ONLY, is_system=True)
    if act in (_delete_block, _undo_block, _set_permission, _purge):
        await store.memory.create_block("weft", "garden", pinned=True)
        await store.memory.update_block_text("weft", "garden", "Roses.\nTulips.")
        await store.memory.append_to_block("weft", "garden", f"\nThe flower is {SECRET}.")


ACTS = [_delete_fact, _delete_block, _undo_block, _purge, _unshare, _set_permission]


@pytest.mark.parametrize("place", ["frozen", "attached"])
@pytest.mark.parametrize("act", ACTS)
async def test_what_is_forgotten_leaves_the_next_request_which_begins_an_epoch(act: Act, place: str) -> None:
    model = Model()
    app = await app_of(model)
    store = await app.store.get()
    if place == "attached":
        await app.ask("Hello.", session="chat")
    await _plant(store, act)
    for text in ("How are you?", "And tomorrow?"):
        await app.ask(text, session="chat")
    seen = model.requests[-1]
    await act(store)
    await app.ask("What now?", session="chat")
    await app.ask("Thanks.", session="chat")
    await app.close()

    assert SECRET in whole_text(seen)
    assert (SECRET in seen.system_prompt) == (place == "frozen")
    after, later = model.requests[-2:]
    assert receipt_of(after).epoch == receipt_of(seen).epoch + 1
    assert receipt_of(after).epoch_why
    assert receipt_of(later).epoch == receipt_of(after).epoch
    if act is not _set_permission:
        assert SECRET not in whole_text(after)
        assert SECRET not in whole_text(later)


async def test_what_another_program_forgets_leaves_the_next_request_too(home: Path) -> None:
    model = Model()
    app = await app_of(model)
    await (await app.store.get()).facts.set(ME, "flower", SECRET)
    await app.ask("Hello.", session="chat")
    [path] = home.rglob("weft.db")  # noqa: ASYNC240 - a folder of this test
    async with await weft.open(path) as other:
        await other.facts.delete(ME, "flower")
    await app.ask("What now?", session="chat")
    await app.close()

    assert SECRET in whole_text(model.requests[0])
    assert SECRET not in whole_text(model.requests[1])
    assert receipt_of(model.requests[1]).epoch == 2


async def test_a_line_recalled_from_a_conversation_leaves_when_that_is_deleted() -> None:
    model = Model()
    app = await app_of(model)
    store = await app.store.get()
    old = await app.ask(f"My garden flower is {SECRET} and it grows near the wall.", session="old")
    await app.ask("Hello.", session="chat")
    await app.ask("Which garden flower grows near the wall?", session="chat")
    assert SECRET in whole_text(model.requests[-1])
    await store.sessions.delete(old.session_id)
    await app.ask("What now?", session="chat")
    await app.close()

    assert SECRET not in whole_text(model.requests[-1])
    assert receipt_of(model.requests[-1]).epoch == 2


async def remembering(window: int, folder: Path) -> tuple[weft.Assistant, Model]:
    """Open an assistant that was told of sixty walks in earlier conversations."""
    model = Model(info=small(window))
    app = await app_of(model, database=folder / f"{window}.db")
    store = await app.store.get()
    places = "the harbor, the market, the old mill, the station and the hill behind the church"
    for number in range(60):
        session = await store.sessions.new("app", f"day {number}", "owner", agent_id="weft")
        said = f"On walk {number} with the orchid society we passed {places}, in that order {number}."
        await store.messages.append(session.id, weft.Message(role="user", content=said))
    return app, model


def recalled(context: weft.Context) -> int:
    return sum(item.tokens for item in receipt_of(context).kept if item.source == "recall")


@pytest.mark.parametrize(("window", "least", "most"), [(12_000, 300, 600), (64_000, 1_300, 1_500)])
async def test_a_question_after_a_quiet_turn_recalls_a_part_of_the_room_up_to_what_the_recipe_allows(
    window: int, least: int, most: int, tmp_path: Path
) -> None:
    app, _ = await remembering(window, tmp_path)
    await app.ask("Good morning!", session="chat")
    context = await app.context("Where did we walk with the orchid society?", session="chat")
    await app.close()

    assert least <= recalled(context) <= most


async def test_question_after_question_fills_a_small_window_slowly(tmp_path: Path) -> None:
    app, model = await remembering(12_000, tmp_path)
    for number in range(12):
        await app.ask(f"Where did we walk with the orchid society on walk {number}?", session="chat")
    await app.close()

    shares = [recalled(request) / 12_000 for request in model.requests]
    assert sum(shares) <= 0.05 + 12 * 0.01
    assert max(shares[4:]) <= 0.02
    assert min(shares) > 0


async def test_who_is_no_longer_linked_to_a_person_sees_nothing_of_theirs_at_once() -> None:
    model = Model()
    app = await app_of(model)
    store = await app.store.get()
    friend = replace(OWNER, channel="telegram", sender_id="7")
    await store.facts.set(ME, "flower", SECRET)
    await store.people.link("telegram:7", "owner")
    await app.ask("Hello.", session="phone", caller=friend)
    await store.people.unlink("telegram:7")
    await app.ask("Hello again.", session="phone", caller=friend)
    await app.close()

    assert SECRET in whole_text(model.requests[0])
    assert SECRET not in whole_text(model.requests[1])


async def test_a_purge_while_a_turn_runs_reaches_the_next_request_and_the_stored_ones() -> None:
    model = Gated(at_folds=False)
    app = await app_of(model)
    store = await app.store.get()
    await store.facts.set(ME, "flower", SECRET)
    turn = asyncio.create_task(app.ask("Hello.", session="chat"))
    await asyncio.wait_for(model.reached.wait(), 30)
    await store.purge(SECRET)
    model.gate.set()
    reply = await turn
    await app.ask("What now?", session="chat")
    turns = await store.turns.list(reply.session_id)
    stored = [str(request) for turn_id in turns for request in await store.turns.requests(turn_id)]
    await app.close()

    assert SECRET in whole_text(model.requests[0])
    assert SECRET not in whole_text(model.requests[1])
    assert len(stored) == 2
    assert not [text for text in stored if SECRET in text]


async def test_a_cold_cache_begins_an_epoch_and_a_warm_one_does_not(
    sql: Callable[..., list[tuple[Any, ...]]],
) -> None:
    model = Model(info=replace(small(60_000), cache_seconds=300))
    app = await app_of(model)
    await app.store.get()
    for seconds in (0, 200, 400, 0):
        sql("update epochs set asked_at = asked_at - ?", seconds)
        await app.ask(f"Hello after {seconds}.", session="chat")
    await app.close()

    reasons = [receipt_of(request).epoch_why.partition(":")[0] for request in model.requests]
    assert reasons == ["start", "", "cold", ""]


async def test_purge_reaches_messages_results_summaries_attachments_and_stored_requests() -> None:
    model = Model(info=small(6_000), summarize=lambda context: f"{SECRET} " + good_summary(context))
    app = await app_of(model, tools=[look_up])
    store = await app.store.get()
    script: list[Any] = [call_of(1, f"{SECRET} 3"), f"It is {SECRET}."]
    model.answer = lambda _: script.pop(0) if script else "Noted. " * 60
    await store.facts.set(ME, "flower", SECRET)
    reply = await app.ask(f"Look up {SECRET}.", session="chat")
    for number in range(9):
        await app.ask(f"{number} " + "The sea was calm. " * 50, session="chat")
        await app.folds.settle()
    assert SECRET in whole_text(model.requests[-1])
    assert any(SECRET in fold.text for fold in await store.messages.list_folds(reply.session_id))

    await store.purge(SECRET)
    await app.ask("What is the flower?", session="chat")

    assert SECRET not in whole_text(model.requests[-1])
    assert receipt_of(model.requests[-1]).epoch_why
    turns = await store.turns.list(reply.session_id)
    stored = [item for turn in turns for one in await store.turns.requests(turn) for item in [str(one)]]
    assert stored
    assert not [text for text in stored if SECRET in text]
    assert not [fold for fold in await store.messages.list_folds(reply.session_id) if SECRET in fold.text]
    await app.close()


async def test_what_is_forgotten_while_a_turn_runs_is_not_in_the_next_request() -> None:
    app: weft.Assistant

    async def forget() -> str:
        """Forget the flower."""
        await (await app.store.get()).facts.delete(ME, "flower")
        return "done"

    model = Model()
    app = await app_of(model, tools=[forget])
    await (await app.store.get()).facts.set(ME, "flower", SECRET)
    call = weft.ToolCall(id="c1", name="forget", arguments={})
    script: list[Any] = [weft.Reply(text="", tool_calls=(call,), stop_reason="tools"), "Forgotten.", "Yes."]
    model.answer = lambda _: script.pop(0)
    await app.ask("Forget it.", session="chat")
    await app.ask("Did you?", session="chat")
    await app.close()

    assert SECRET in whole_text(model.requests[0])
    assert SECRET not in whole_text(model.requests[-1])
    assert receipt_of(model.requests[-1]).epoch == 2


def _rows(sql: Callable[..., list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    names = [name for (name,) in sql("select name from sqlite_master where type = 'table' order by name")]
    skipped = ("stat", "_fts", "_vec", "presence", "process", "lease")
    plain = [name for name in names if not any(part in name for part in skipped)]
    return {name: sql(f'select * from "{name}"') for name in plain}  # noqa: S608 - names of our own tables


@pytest.mark.parametrize("change", ["nothing", "a file", "a fact", "something forgotten"])
async def test_looking_starts_no_epoch_and_stores_nothing(
    home: Path, sql: Callable[..., list[tuple[Any, ...]]], change: str
) -> None:
    _write_soul(home, "You are Iris.")
    model = Model()
    app = await app_of(model)
    store = await app.store.get()
    await store.facts.set(ME, "flower", SECRET)
    await app.ask("Hello.", session="chat")
    if change == "a file":
        _write_soul(home, "You are Rose.")
    if change == "a fact":
        await store.facts.set(ME, "city", "Lisbon")
    if change == "something forgotten":
        await store.facts.delete(ME, "flower")
    before = _rows(sql)
    looks = [await app.context("x " * number, session="chat") for number in (1, 9)]

    assert _rows(sql) == before
    begins = change in ("a file", "something forgotten")
    assert [bool(receipt_of(look).epoch_why) for look in looks] == [begins, begins]
    assert len(model.requests) == 1
    await app.ask("Go on.", session="chat")
    assert bool(receipt_of(model.requests[-1]).epoch_why) == begins
    if not begins:
        check_begins(model.requests[-1], model.requests[0])
    await app.close()


def _write_soul(home: Path, text: str) -> None:
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "SOUL.md").write_text(text, "utf-8")


def tide(day: str) -> str:
    """Say when the tide is high."""
    return f"{day}: 07:30"


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [("file", "files", "instructions"), ("model", "model", "model-b"), ("tool", "tools", "tide")],
)
async def test_a_changed_file_model_or_tool_begins_an_epoch_whose_reason_names_it(
    home: Path, change: str, kind: str, name: str
) -> None:
    _write_soul(home, "You are Iris.")
    first = Model()
    app = await app_of(first, tools=[look_up])
    await app.ask("Hello.", session="chat")
    await app.close()
    if change == "file":
        _write_soul(home, "You are Rose.")
    second = Model(info=small(30_000, "model-b") if change == "model" else None)
    app = await app_of(second, tools=[look_up, *([tide] if change == "tool" else [])])
    await app.ask("Who are you?", session="chat")
    await app.ask("Sure?", session="chat")
    await app.close()

    request, following = second.requests
    assert receipt_of(request).epoch == 2
    assert receipt_of(request).epoch_why.startswith(f"{kind}: ")
    assert name in receipt_of(request).epoch_why
    if change == "file":
        assert "You are Rose." in request.system_prompt
        assert "You are Iris." not in whole_text(request)
    assert receipt_of(following).epoch_why == ""
    check_begins(following, request)


@pytest.mark.parametrize("seed", range(3))
async def test_a_changed_fact_or_block_is_attached_as_a_difference_once_and_begins_no_epoch(
    seed: int,
) -> None:
    rng, model = random.Random(seed), Model()
    app = await app_of(model)
    store = await app.store.get()
    await store.memory.create_block("weft", "garden", pinned=True)
    lines = [f"Bed {number} has {rng.randrange(10**9)} plants." for number in range(60)]
    await store.memory.update_block_text("weft", "garden", "\n".join(lines))
    for number in range(30):
        await store.facts.set(ME, f"fact{number}", f"value {rng.randrange(10**9)}")
    await app.ask("Hello.", session="chat")
    news: list[str] = []
    for number in range(8):
        value = f"{rng.randrange(10**9)}-{number}"
        if rng.random() < 0.5:
            at = rng.randrange(60)
            assert await store.memory.replace_in_block("weft", "garden", lines[at], f"Bed {at}: {value}")
            lines[at] = f"Bed {at}: {value}"
        else:
            await store.facts.set(ME, f"fact{rng.randrange(30)}", value)
        news.append(value)
        await app.ask(f"Next, please ({number}).", session="chat")
        receipt = receipt_of(model.requests[-1])
        assert (receipt.epoch, receipt.epoch_why) == (1, "")
        assert 0 < receipt.by_layer["changes"] < 60, receipt.by_layer
        text = whole_text(model.requests[-1])
        assert [text.count(each) for each in news[-1:]] == [1]
        assert max(text.count(each) for each in news) <= 2, "a replaced line is said once more, as removed"
        assert text.count(rng.choice(lines)) == 1
    await app.close()
    assert not [value for value in news if value in model.requests[-1].system_prompt]


async def test_what_did_not_change_is_attached_once_and_what_is_done_is_said_in_one_line() -> None:
    model = Model()
    app = await app_of(model)
    store = await app.store.get()
    task = await store.tasks.add(ME, "Buy batteries", DUE)
    for number in range(3):
        await app.ask(f"What is pending ({number})?", session="chat")
    await store.tasks.cancel(ME, getattr(task, "id", str(task))[:8])
    await app.ask("And now?", session="chat")
    await app.close()

    assert [whole_text(request).count("Buy batteries [") for request in model.requests] == [1, 1, 1, 1]
    assert "No longer pending: " in whole_text(model.requests[-1])
    check_prefixes_of(model)


def check_prefixes_of(model: Model) -> None:
    for before, after in pairwise(model.requests):
        check_begins(after, before)


@pytest.mark.parametrize("recipe", ["omega", "pattern", "chai", "miniclaw"])
async def test_the_recipes_of_the_seeds_have_no_epochs_and_attach_nothing(recipe: str) -> None:
    model = Model()
    app = await weft.connect(replace(load_config(), recipe=recipe), provider=model)
    store = await app.store.get()
    for number in range(4):
        await store.facts.set(ME, "city", f"Lisbon {number}")
        reply = await app.ask(f"Where do I live ({number})?", session="chat")
        await app.folds.settle()
    epochs = await store.epochs.list(reply.session_id)
    await app.close()

    assert epochs == []
    assert reply.folds == ()
    for request in model.requests:
        receipt = receipt_of(request)
        assert request.step is None
        assert (receipt.epoch, receipt.epoch_why, receipt.fold_at, receipt.fold_to) == (0, "", 0, 0)
        assert not any(message.attached for message in request.history)
    assert model.folds == []


RECIPE = """
name = "mine"
stability = "{stability}"
[limits]
max_tokens = 8000
[history]
{history}
[[layers]]
source = "history"
[[layers]]
source = "message"
"""


@pytest.mark.parametrize(
    ("stability", "history", "remedy"),
    [
        ("epoch", 'strategy = "drop_oldest"', "set `history.strategy` to 'summarize'"),
        ("epoch", 'strategy = "none"', "set `history.strategy` to 'summarize'"),
        ("epoch", "", "set `history.strategy` to 'summarize'"),
        ("epoch", 'strategy = "summarize"\nunit = "message"', "`unit` to 'exchange'"),
        ("epoch", 'strategy = "summarize"\nfold_at = 0.5\nfold_to = 0.4', "`fold_to` at most half of it"),
        ("epoch", 'strategy = "summarize"\nfold_at = 1.5', "`fold_at` must be at most 1"),
        ("epoch", 'strategy = "summarize"\nfold_at = nan', "`fold_at` must be at most 1"),
        ("live", "fold_at = 0.5", "leave them out"),
        ("live", "fold_to = 0.1", "leave them out"),
        ("live", 'strategy = "mask"', "leave them out"),
    ],
)
async def test_a_recipe_whose_keys_would_do_nothing_is_refused_with_the_remedy(
    tmp_path: Path, stability: str, history: str, remedy: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE.format(stability=stability, history=history), "utf-8")

    with pytest.raises(weft.ConfigError) as refused:
        weft.Recipe.load(str(path))

    assert remedy in str(refused.value)
    assert str(refused.value).count("\n") == 0


async def test_another_session_of_the_same_person_has_epochs_of_its_own() -> None:
    model = Model()
    app = await app_of(model)
    for session in ("one", "two", "one", "two"):
        await app.ask(f"Hello from {session}.", session=session)
    await app.close()

    assert [receipt_of(request).epoch for request in model.requests] == [1, 1, 1, 1]
    check_begins(model.requests[2], model.requests[0])
    check_begins(model.requests[3], model.requests[1])


async def test_the_summary_stays_while_its_epoch_lasts_however_long_the_message_is() -> None:
    model = Model(info=small(6_000))
    app = await app_of(model)
    while not model.requests or not receipt_of(model.requests[-1]).epoch_why.startswith("fold"):
        await app.ask("The sea was calm and the wind came from the north. " * 12, session="chat")
        await app.folds.settle()
    last = model.requests[-1]
    room = receipt_of(last).limit - receipt_of(last).total_tokens
    looks = [await app.context("word " * size, session="chat") for size in range(room // 2, room, 25)]
    await app.close()

    going_on = [look for look in looks if receipt_of(look).epoch == receipt_of(last).epoch]
    assert going_on
    assert "[Summary of messages" in whole_text(last)
    assert [look for look in going_on if "[Summary of messages" not in whole_text(look)] == []
