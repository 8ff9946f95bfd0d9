"""`weft turns why` answers for everything that is remembered: shown, or not, and for what reason."""

from pathlib import Path

import pytest

import weft
from weft.providers.base import collected
from weft.turn.inspect import Reason, view, why
from weft.types.request import OWNER, TurnRequest

AGENT = "weft"


class World:
    """An assistant over a store, and what it says of its newest turn."""

    def __init__(self, app: weft.Assistant, store: weft.Store) -> None:
        self.app, self.store = app, store

    async def say(self, text: str) -> None:
        request = TurnRequest(text=text, caller=OWNER, session="chat")
        await collected(self.app.handle(request))

    async def why(self, text: str, *, newest: int = 1) -> list[Reason]:
        [session, *_] = await self.store.sessions.list()
        infos = await self.store.turns.page(session.id, limit=newest)
        return await why(self.store, await view(self.store, infos[newest - 1]), text)


@pytest.fixture
async def world(home: Path) -> World:
    (home / "workspace").mkdir()
    (home / "workspace" / "SOUL.md").write_text("You are calm.", "utf-8")
    app = await weft.connect(provider=weft.ScriptedProvider(["Noted."] * 20))
    return World(app, await app.store.get())


@pytest.mark.parametrize(
    ("type_", "pinned", "reason"),
    [
        (weft.BlockType.ARCHIVAL, True, "an archival block is never shown: the model can search it"),
        (weft.BlockType.WORKING, False, "it is not pinned, and this turn did not name it"),
        (weft.BlockType.LOG, True, "a log is shown only in a turn that names it"),
    ],
)
async def test_a_block_that_is_not_shown_says_why(
    world: World, type_: weft.BlockType, pinned: bool, reason: str
) -> None:
    await world.store.memory.create_block(AGENT, "plans", block_type=type_, pinned=pinned)
    await world.store.memory.append_to_block(AGENT, "plans", "We buy a submarine.")
    await world.say("Hello.")

    [one] = await world.why("submarine")
    await world.app.close()

    assert (one.shown, one.where, one.reason) == (False, "blocks: plans", reason)
    assert one.tokens > 3


async def test_a_note_of_the_archive_says_that_it_is_never_shown(world: World) -> None:
    await world.store.memory.insert_archival(AGENT, "The marmalade is from Seville.")
    await world.say("Hello.")

    [one] = await world.why("marmalade")
    await world.app.close()

    assert not one.shown
    assert one.where == "archive: The marmalade is from Seville."
    assert "search" in one.reason


async def test_a_line_of_another_conversation_says_why_it_was_not_recalled(world: World) -> None:
    old = await world.store.sessions.new("terminal", "old", "owner", agent_id=AGENT)
    said = "The zeppelin flew over the lake in the heavy rain."
    await world.store.messages.append(old.id, weft.Message(role="user", content=said))
    await world.say("Hello.")

    [one] = await world.why("zeppelin")
    await world.app.close()

    assert not one.shown
    assert one.where.startswith(f"conversation {old.id[:8]}: ")
    assert one.reason == "it was not recalled: the message has none of its telling words"


async def test_what_was_written_after_the_turn_says_so(world: World) -> None:
    await world.say("Hello.")
    await world.store.memory.insert_archival(AGENT, "The marmalade is from Seville.")
    await world.store.facts.set("terminal:owner", "flower", "an orchid from Madeira")

    for text in ("marmalade", "orchid"):
        [one] = await world.why(text)
        assert one.reason.startswith("it is newer than this turn: it was written on ")
    await world.app.close()


async def test_a_message_in_view_is_one_answer_also_behind_a_changed_file(world: World, home: Path) -> None:
    await world.say("The alpha words of today.")
    await world.say("And beta.")
    (home / "workspace" / "SOUL.md").write_text("You are very calm.", "utf-8")
    await world.say("And gamma.")

    [one] = await world.why("alpha words")
    [own] = await world.why("and gamma")
    await world.app.close()

    assert (one.shown, one.where) == (True, "message 1 (user)")
    assert (own.shown, own.where, own.reason) == (True, "message 5 (user)", "the message of this turn")


async def test_a_line_that_was_recalled_earlier_has_its_price_and_its_message(world: World) -> None:
    old = await world.store.sessions.new("terminal", "old", "owner", agent_id=AGENT)
    said = "The zebra quokka boat is called Marlin, and it lies in the old harbor behind the mill."
    await world.store.messages.append(old.id, weft.Message(role="user", content=said))
    await world.say("What did we say about the zebra quokka boat?")
    await world.say("Thanks.")

    for newest, place in ((1, "message 1, which is in view"), (2, "the message of this turn")):
        [one] = await world.why("it lies in the old harbor", newest=newest)
        assert (one.shown, one.reason) == (True, f"attached to {place}")
        assert one.tokens > 12
    await world.app.close()


async def test_the_text_of_a_turn_that_failed_is_found(world: World) -> None:
    world.app.engine.provider._script = iter([weft.ProviderError("The line is down.")])  # type: ignore[attr-defined]
    with pytest.raises(weft.ProviderError):
        await world.say("Where is the walrus?")

    hits = await world.why("walrus")
    await world.app.close()

    assert len(hits) == 1


async def test_a_block_that_lost_its_place_is_found_by_its_content(home: Path) -> None:
    limits = weft.ModelContextLimits(max_tokens=9_000, memory_tokens=300, reserved_response_tokens=1_000)
    config = weft.ContextConfig(default_limits=limits)
    app = await weft.connect(provider=weft.ScriptedProvider(["Noted."]), context=config)
    world = World(app, await app.store.get())
    await world.store.memory.create_block(AGENT, "cellar", pinned=True)
    await world.store.memory.append_to_block(AGENT, "cellar", "Jam. " * 300 + "One submarine.")
    await world.say("Hello.")

    [one] = await world.why("one submarine")
    await app.close()

    assert (one.shown, one.where) == (False, "blocks: cellar")
    assert "over the 300 tokens for memory blocks" in one.reason
    assert one.tokens > 300
