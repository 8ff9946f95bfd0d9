"""`weft turns diff` names the right cause and the right byte; `weft turns why` says where a text was."""

import random
import re
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.context.diff import RequestDiff
from weft.providers.http import HttpProvider
from weft.testing import LoopbackVendor, Refusal
from weft.tools.base import Tool
from weft.turn.fold import FOLD_TASK
from weft.turn.inspect import Reason, TurnView, compare, view, view_before, why
from weft.types.message import ToolDefinition
from weft.types.reply import Event
from weft.types.request import Caller
from weft.wire import VENDORS
from weft.wire.vendors import model_info

from samples import NOW, write_workspace

OWNER = Caller(agent_id="weft", channel="terminal", sender_id="owner", conversation="chat")
PERSON = "terminal:owner"
RECIPE = Path(weft.__file__).parent / "recipes" / "weft.toml"


class Folding(weft.ScriptedProvider):
    """A model that answers with a few words, and with a summary where it is asked for one."""

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        self.requests.append(context)
        is_summary = FOLD_TASK in f"{context.system_prompt}{context.current_message}"
        yield weft.Done(weft.Reply(text="They spoke of the sea." if is_summary else "Yes."))


def tool(name: str) -> Tool:
    async def run(arguments: Any, caller: Caller) -> str:
        return "looked"

    definition = ToolDefinition(name=name, description=f"Do {name}.", parameters={"type": "object"})
    return Tool(definition=definition, run=run, source="the test", kind="read")


@dataclass
class World:
    """An assistant whose clock stands still, and all that can change around it."""

    app: weft.Assistant
    home: Path
    random: random.Random

    async def store(self) -> weft.Store:
        return await self.app.store.get()

    async def say(self, text: str) -> None:
        await self.app.ask(text, session="s", caller=OWNER)
        await self.app.folds.settle()

    def word(self) -> str:
        return "".join(self.random.choices("abcdefghijklmnop", k=8))

    async def newest(self) -> tuple[TurnView, TurnView]:
        """Return the newest turn and the one before it."""
        store = await self.store()
        session = (await store.sessions.list())[0]
        [info] = await store.turns.page(session.id, limit=1)
        before = await view_before(store, info)
        assert before is not None
        return before, await view(store, info)


async def set_clock(world: World) -> str:
    later = NOW + timedelta(minutes=world.random.randrange(1, 5_000))
    world.app.engine = replace(world.app.engine, builder=world.app.engine.builder.at(later))
    return "clock"


async def set_fact(world: World) -> str:
    await (await world.store()).facts.set(PERSON, world.word(), world.word())
    return "fact"


async def change_fact(world: World) -> str:
    await (await world.store()).facts.set(PERSON, "city", world.word())
    return "fact"


async def forget_fact(world: World) -> str:
    await (await world.store()).facts.delete(PERSON, "city")
    return "fact"


async def edit_block(world: World) -> str:
    await (await world.store()).memory.append_to_block("weft", "human", f"Likes {world.word()}.\n")
    return "block"


async def create_block(world: World) -> str:
    memory, label = (await world.store()).memory, world.word()
    await memory.create_block("weft", label, pinned=True)
    await memory.append_to_block("weft", label, f"About {label}.")
    return "block"


def write_skill(world: World, name: str) -> None:
    file = world.home / "workspace" / "skills" / name / "SKILL.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: Do {world.word()}.\n---\nDo it.\n")


async def add_skill(world: World) -> str:
    write_skill(world, world.word())
    return "skill file"


async def change_skill(world: World) -> str:
    write_skill(world, "packing")
    return "skill file"


async def change_soul(world: World) -> str:
    (world.home / "workspace" / "SOUL.md").write_text(f"You are {world.word()}.\n")
    return "instruction file"


async def add_tool(world: World) -> str:
    world.app.engine.tools.add(tool(world.word()))
    return "tool set"


async def change_model(world: World) -> str:
    info = replace(world.app.engine.provider.info, id=f"m-{world.word()}")
    world.app.engine = replace(world.app.engine, provider=Folding(info=info))
    return "model"


async def remove_skill(world: World) -> str:
    shutil.rmtree(world.home / "workspace" / "skills" / "packing")
    return "skill file"


async def fold(world: World) -> str:
    store = await world.store()
    session = (await store.sessions.list())[0]
    while await store.messages.fold(session.id) is None:
        await world.say("About the sea. " * 300)
    return "fold"


Change = Callable[[World], Awaitable[str]]
LIVE: list[Change] = [
    *(set_clock, set_fact, change_fact, forget_fact, edit_block, create_block),
    *(add_skill, change_skill, change_soul, add_tool, change_model),
]
CASES = [
    pytest.param(change, stability, seed, id=f"{change.__name__}-{stability}-{seed}")
    for stability, changes in (("epoch", [*LIVE, fold]), ("live", LIVE))
    for change in changes
    for seed in range(2)
]


async def a_world(home: Path, stability: str, seed: int) -> World:
    """Talk a little, in a workspace that has everything."""
    write_workspace(home / "workspace")
    live = RECIPE.read_text("utf-8").replace('"epoch"', '"live"').replace('"summarize"', '"drop_oldest"')
    (home / "live.toml").write_text(live)
    recipe = home / "live.toml" if stability == "live" else "weft"
    (home / "config.toml").write_text(f'recipe = "{recipe}"\n')
    info = weft.ModelInfo(id="m", provider="scripted", max_tokens=8_000)
    app = await weft.connect(provider=Folding(info=info), tools=[tool("look")])
    app.engine = replace(app.engine, builder=app.engine.builder.at(NOW))
    world = World(app=app, home=home, random=random.Random(seed))
    await (await world.store()).facts.set(PERSON, "city", "Lisbon")
    for _ in range(world.random.randrange(1, 4)):
        await world.say(f"Hello {world.word()}.")
    return world


@pytest.mark.parametrize(("change", "stability", "seed"), CASES)
async def test_a_diff_names_what_changed_and_where(
    change: Change, stability: str, seed: int, home: Path
) -> None:
    world = await a_world(home, stability, seed)

    kind = await change(world)
    await world.say(f"And now {world.word()}?")

    before, after = await world.newest()
    difference = compare(before, after)
    kinds = [cause.kind for cause in difference.causes]
    assert kind in kinds
    if not difference.grew:
        assert kinds[0] == kind
    assert_first_byte(difference, before, after)
    await world.app.close()


def assert_first_byte(difference: RequestDiff, before: TurnView, after: TurnView) -> None:
    old = "".join(before.requests[-1].request.items).encode()
    new = "".join(after.first.request.items).encode()
    at = difference.shared_bytes
    assert (difference.bytes, difference.bytes_before) == (len(new), len(old))
    assert old[:at] == new[:at]
    assert difference.grew == (at == len(old))
    assert difference.grew or old[at] != new[at]


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ((set_clock, set_fact), "fact"),
        ((set_fact, edit_block), "block"),
        ((edit_block, change_soul), "instruction file"),
        ((change_soul, add_tool), "tool set"),
        ((add_tool, change_skill), "tool set"),
    ],
)
@pytest.mark.parametrize("stability", ["epoch", "live"])
async def test_of_two_changes_the_one_that_stands_first_is_named_first(
    changes: tuple[Change, ...], first: str, stability: str, home: Path
) -> None:
    world = await a_world(home, stability, 7)

    kinds = {await change(world) for change in changes}
    await world.say("And now?")

    before, after = await world.newest()
    difference = compare(before, after)
    assert kinds <= {cause.kind for cause in difference.causes}
    if not difference.grew:
        assert difference.causes[0].kind == first
    assert_first_byte(difference, before, after)
    await world.app.close()


@pytest.mark.parametrize("change", [forget_fact, remove_skill])
async def test_what_is_gone_from_the_beginning_is_named_before_the_clock_at_the_end(
    change: Change, home: Path
) -> None:
    world = await a_world(home, "live", 7)

    kind = await change(world)
    await set_clock(world)
    await world.say("And now?")

    difference = compare(*await world.newest())
    assert difference.part == "system"
    assert difference.causes[0].kind == kind
    await world.app.close()


async def test_a_diff_names_nothing_that_did_not_change(home: Path) -> None:
    world = await a_world(home, "epoch", 7)

    await change_soul(world)
    await world.say("And now?")

    difference = compare(*await world.newest())
    assert [cause.kind for cause in difference.causes] == ["instruction file"]
    await world.app.close()


async def test_two_turns_with_nothing_new_between_them_have_no_cause(home: Path) -> None:
    world = await a_world(home, "epoch", 7)

    await world.say("And now?")

    before, after = await world.newest()
    difference = compare(before, after)
    assert (difference.grew, difference.causes) == (True, ())
    assert_first_byte(difference, before, after)
    await world.app.close()


async def test_after_a_turn_that_failed_the_cause_is_named_too(home: Path) -> None:
    write_workspace(home / "workspace")
    (home / "config.toml").write_text("[requests]\nretries = 0\n")
    with LoopbackVendor("openai", ["Hello.", Refusal(400, "no good"), "Hello again."]) as server:
        vendor = VENDORS["openai"]
        provider = HttpProvider(vendor, info=model_info(vendor), url=server.url, key="k")
        app = await weft.connect(provider=provider)
        world = World(app=app, home=home, random=random.Random(7))
        await world.say("Hello.")
        with pytest.raises(weft.ProviderError):
            await world.say("This fails.")
        await set_fact(world)
        await world.say("And now?")

        difference = compare(*await world.newest())

        assert "fact" in [cause.kind for cause in difference.causes]
        await app.close()


# --- why


async def reasons(world: World, text: str) -> list[Reason]:
    _, turn = await world.newest()
    return await why(await world.store(), turn, text)


async def told(home: Path) -> World:
    """Talk with a memory that has a block, a fact, a skill, and a line of another session to recall."""
    world = await a_world(home, "epoch", 5)
    store = await world.store()
    await store.memory.append_to_block("weft", "human", "Ada likes green tea.\n")
    old = await store.sessions.new("terminal", "old", "owner", agent_id="weft")
    boat = weft.Message(role="user", content="The zebra quokka boat is called Marlin.")
    await store.messages.append(old.id, boat, weft.Message(role="assistant", content="Noted."))
    await world.say("An early message.")
    await world.say("what did we say before about the zebra quokka boat?")
    return world


async def test_what_was_shown_is_named_with_its_layer_tokens_and_origin(home: Path) -> None:
    world = await told(home)

    for text, where, origin in (
        ("human", "blocks: human", "agent"),
        ("city", "facts: city", "user"),
        ("packing", "skills: packing", "operator"),
        ("zebra quokka boat is", "recall: DAY User: The zebra quokka boat is called Marlin.", "user"),
        ("SOUL.md", "instructions: SOUL.md + AGENTS.md + USER.md", "operator"),
    ):
        first, *_ = await reasons(world, text)
        named = re.sub(r"\d{4}-\d\d-\d\d", "DAY", first.where)
        assert (first.shown, named, first.origin) == (True, where, origin)
        assert first.tokens > 0
        assert first.reason
    await world.app.close()


async def test_words_of_a_memory_are_found_in_their_layer(home: Path) -> None:
    world = await told(home)

    for text, layer in (
        *(("green tea", "blocks"), ("Lisbon", "facts"), ("Write a packing list", "skills")),
        *(("calm assistant", "instructions"), ("peanuts", "memory_file")),
    ):
        hits = [one for one in await reasons(world, text) if one.where.startswith(layer)]
        assert [(one.shown, one.tokens > 0, bool(one.origin)) for one in hits] == [(True, True, True)]
    await world.app.close()


async def test_a_message_in_view_is_shown_and_one_that_was_folded_is_in_the_summary(home: Path) -> None:
    world = await told(home)

    in_view = (await reasons(world, "early message"))[0]
    await fold(world)
    await world.say("And now?")
    [folded] = await reasons(world, "early message")

    assert (in_view.shown, in_view.origin) == (True, "user")
    assert (folded.shown, folded.reason) == (False, "folded into the summary; the log keeps them")
    assert in_view.where == folded.where
    await world.app.close()


async def test_a_message_has_its_price(home: Path) -> None:
    world = await told(home)

    assert (await reasons(world, "early message"))[0].tokens > 0
    await world.app.close()


async def test_a_message_that_was_cut_is_left_out_for_want_of_room(home: Path) -> None:
    world = await a_world(home, "live", 5)
    await world.say("An early message.")
    for _ in range(8):
        await world.say("About the sea. " * 300)

    [cut] = await reasons(world, "early message")

    assert not cut.shown
    assert cut.reason
    await world.app.close()


async def test_a_fact_without_room_says_what_it_lost_its_place_to_and_its_price(home: Path) -> None:
    world = await a_world(home, "epoch", 5)
    store = await world.store()
    for number in range(80):
        await store.facts.set(PERSON, f"zfact{number:02}", f"value {number:02} {'long ' * 36}")
    info = weft.ModelInfo(id="other", provider="scripted", max_tokens=6_000)
    world.app.engine = replace(world.app.engine, provider=Folding(info=info))
    for _ in range(2):
        await world.say("And now?")

        [lost] = await reasons(world, "zfact79")

        assert (lost.shown, lost.where, lost.origin) == (False, "facts: zfact79", "user")
        assert lost.tokens > 30
        assert "budget" in lost.reason
    await world.app.close()


async def test_a_fact_without_room_is_found_by_its_value(home: Path) -> None:
    world = await a_world(home, "epoch", 5)
    store = await world.store()
    for number in range(80):
        await store.facts.set(PERSON, f"zfact{number:02}", f"value {number:02} {'long ' * 36}")
    await world.say("And now?")

    assert await reasons(world, "value 79")
    await world.app.close()


async def test_the_message_of_the_turn_itself_is_found(home: Path) -> None:
    world = await a_world(home, "epoch", 5)
    await world.say("Where is the Größe of it?")

    assert any(one.shown for one in await reasons(world, "größe of it"))
    await world.app.close()


@pytest.mark.parametrize("text", ['say "hello" to', "one line\nand another"])
async def test_a_text_with_quotes_or_line_ends_is_found(text: str, home: Path) -> None:
    world = await a_world(home, "epoch", 5)
    await world.say(f"Please {text} them.")

    assert any(one.shown for one in await reasons(world, text))
    await world.app.close()


async def test_a_text_that_is_nowhere_has_no_reason(home: Path) -> None:
    world = await told(home)

    assert await reasons(world, "nowhere at all") == []
    await world.app.close()
