"""Building a context: every step, what the builders share, and what they never share."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import reduce
from pathlib import Path

import pytest

import weft
from weft.testing import InMemoryBlocks, InMemoryMessages, InMemoryStore
from weft.types.session import Tail

from samples import NOW, assistant, result, user, whole_store, write_workspace

Builder = weft.ContextBuilder
IRIS = Builder().at(NOW).for_agent("iris").for_sender("telegram", "42")


def receipt(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


def layers(context: weft.Context) -> set[str]:
    return {section.layer for section in context.sections}


# --- steps


def _with_messages(builder: Builder) -> Builder:
    return builder.with_messages([user("before")])


def _with_registry(builder: Builder) -> Builder:
    return builder.with_tools(weft.ToolRegistry())


STEPS: list[Callable[[Builder], Builder]] = [
    lambda b: b.with_skill_dirs(["/nowhere"]),
    lambda b: b.with_store(whole_store()),
    lambda b: b.for_agent("iris"),
    lambda b: b.for_sender("telegram", "42"),
    lambda b: b.with_session("s"),
    _with_messages,
    lambda b: b.with_tools([weft.ToolDefinition(name="look_up")]),
    _with_registry,
    lambda b: b.with_base_instructions("Be brief."),
    lambda b: b.with_tool_rules([weft.ToolRule.exit_loop("look_up")]),
    lambda b: b.with_model_info(weft.ModelInfo(id="m", max_tokens=9000)),
    lambda b: b.with_activity([weft.ActivityEntry(at=NOW, text="woke up")]),
    lambda b: b.with_batch_blocks(["b3"]),
    lambda b: b.with_needs(weft.ContextNeeds(recall=False)),
    lambda b: b.at(NOW + timedelta(days=1)),
]


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_gives_a_new_builder_and_leaves_the_old_one_as_it_was(
    step: Callable[[Builder], Builder],
) -> None:
    base = Builder().at(NOW)
    before = await base.build("hi")

    stepped = step(base)

    assert stepped is not base
    assert await base.build("hi") == before
    assert receipt(await base.build("hi")) == receipt(before)


async def test_a_workspace_step_leaves_the_old_builder_without_one(tmp_path: Path) -> None:
    base = Builder().at(NOW)

    stepped = base.with_workspace(write_workspace(tmp_path))

    assert "Iris" in (await stepped.build("hi")).system_prompt
    assert "Iris" not in (await base.build("hi")).system_prompt


async def test_the_order_of_workspace_and_skill_folders_does_not_matter(tmp_path: Path) -> None:
    write_workspace(tmp_path / "workspace")
    skill = tmp_path / "own" / "rope" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: rope\ndescription: Tie a knot.\n---\nTie.", "utf-8")
    base = Builder().at(NOW)

    one = base.with_workspace(tmp_path / "workspace").with_skill_dirs([tmp_path / "own"])
    other = base.with_skill_dirs([tmp_path / "own"]).with_workspace(tmp_path / "workspace")

    assert await one.build("hi") == await other.build("hi")
    assert "rope" in (await other.build("hi")).system_prompt


async def test_the_order_of_steps_does_not_matter() -> None:
    steps = [step for step in STEPS if step not in (_with_messages, _with_registry)]  # others replace them

    forward = reduce(lambda builder, step: step(builder), steps, Builder().at(NOW))
    backward = reduce(lambda builder, step: step(builder), reversed(steps), Builder())

    one, other = await forward.at(NOW).build("hi"), await backward.at(NOW).build("hi")
    assert one == other
    assert receipt(one) == receipt(other)
    assert layers(one) >= {"blocks", "facts", "summaries", "tasks"}


async def test_sessions_built_at_the_same_time_from_one_builder_never_mix(tmp_path: Path) -> None:
    log = InMemoryMessages()
    sessions = [f"s{n}" for n in range(12)]
    for session in sessions:
        await log.append(session, user(f"said in {session}"), assistant("noted"))
    base = Builder(recipe="weft").at(NOW).with_workspace(write_workspace(tmp_path)).with_messages(log)

    built = await asyncio.gather(
        *(
            base.with_session(session)
            .with_base_instructions(f"You serve {session}.")
            .build(f"asked in {session}")
            for session in sessions
        )
    )

    for session, context in zip(sessions, built, strict=True):
        everything = context.to_prompt_string()
        assert [m.content for m in context.history] == [f"said in {session}", "noted"]
        assert (context.current_message, f"You serve {session}." in everything) == (
            f"asked in {session}",
            True,
        )
        assert not any(f"in {other}\n" in everything + "\n" for other in sessions if other != session)


async def test_builders_from_one_base_share_what_was_read_from_disk(tmp_path: Path) -> None:
    recipe = weft.Recipe.load("weft").replace(reload="startup")
    base = Builder(recipe=recipe).at(NOW).with_workspace(write_workspace(tmp_path))
    await base.with_session("one").build("hi")
    (tmp_path / "SOUL.md").write_text("You are Otto.", "utf-8")

    cached = await base.with_session("two").build("hi")
    base.reload()
    reloaded = await base.with_session("three").build("hi")

    assert "Iris" in cached.system_prompt
    assert "Otto" in reloaded.system_prompt


async def test_tools_added_to_a_registry_later_are_offered() -> None:
    registry = weft.ToolRegistry()
    builder = Builder().with_tools(registry)
    registry.add(weft.ToolDefinition(name="look_up"))

    assert [tool.name for tool in (await builder.build("hi")).tools] == ["look_up"]


async def test_a_recipe_may_bring_its_workspace(tmp_path: Path) -> None:
    recipe = weft.Recipe.load("miniclaw")
    workspace = write_workspace(tmp_path / "workspace")

    context = await Builder(recipe=recipe.replace(workspace_path=workspace)).build("hi")

    assert "You are Iris" in context.to_prompt_string()
    with pytest.raises(weft.WorkspaceError):
        Builder(recipe=recipe.replace(workspace_path=tmp_path / "missing"))


def test_an_unknown_recipe_is_refused_when_the_builder_is_made() -> None:
    with pytest.raises(weft.ConfigError, match="did you mean 'omega'"):
        Builder(recipe="omga")


# --- the clock


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 11, 15, 20, 30), "2026-11-15 20:30 (Sunday) UTC+00:00"),
        (datetime(2026, 11, 15, 20, 30, tzinfo=UTC), "2026-11-15 20:30 (Sunday) UTC+00:00"),
        (
            datetime(2026, 11, 15, 20, 30, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
            "2026-11-15 20:30 (Sunday) UTC-03:30",
        ),
    ],
)
async def test_a_fixed_clock_is_shown_and_without_an_offset_it_is_utc(moment: datetime, shown: str) -> None:
    context = await Builder().at(moment).build("hi")

    assert f"Current date and time: {shown}\n" in context.turn_text


async def test_without_a_fixed_clock_every_build_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter(range(15, 30))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Clock":
            return cls(2026, 11, next(days), 20, 30, tzinfo=UTC)

    monkeypatch.setattr("weft.sources.base.datetime", Clock)
    builder = Builder()

    first, second = [(await builder.build("hi")).turn_text for _ in range(2)]

    assert "Current date and time: 2026-11-15 " in first
    assert "Current date and time: 2026-11-15 " not in second
    assert "Current date and time: 2026-11-" in second


# --- what is asked for


@dataclass
class Asked:
    """Recall and tasks that note whether they were called at all."""

    calls: list[str] = field(default_factory=list)

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
        self.calls.append(f"recall {query} {sender} {session_id} {limit}")
        return [weft.Recalled(text="The boat is called Marlin.", speaker="User")]

    async def list(self, sender: str) -> Sequence[weft.Task]:
        self.calls.append(f"tasks {sender}")
        return [weft.Task(id="12345678", text="Buy batteries")]


@dataclass(frozen=True)
class AskedStore:
    """A whole store whose recall and tasks note their calls."""

    rest: InMemoryStore
    asked: Asked

    @property
    def recall(self) -> Asked:
        return self.asked

    @property
    def tasks(self) -> Asked:
        return self.asked

    messages = property(lambda self: self.rest.messages)
    facts = property(lambda self: self.rest.facts)
    instructions = property(lambda self: self.rest.instructions)
    summaries = property(lambda self: self.rest.summaries)
    memory = property(lambda self: self.rest.memory)
    epochs = None


RECALLED, TASKED = "recall hi telegram:42 s 100", "tasks telegram:42"


@pytest.mark.parametrize(
    ("needs", "calls", "shown"),
    [
        (None, {RECALLED, TASKED}, {"recall", "tasks"}),
        (weft.ContextNeeds(), {RECALLED, TASKED}, {"recall", "tasks"}),
        (weft.ContextNeeds(recall=False), {TASKED}, {"tasks"}),
        (weft.ContextNeeds(pending_tasks=False), {RECALLED}, {"recall"}),
        (weft.ContextNeeds(recall=False, pending_tasks=False), set(), set()),
    ],
)
async def test_a_layer_that_is_not_needed_is_not_read_from_the_store(
    needs: weft.ContextNeeds | None, calls: set[str], shown: set[str]
) -> None:
    asked = Asked()
    builder = IRIS.with_store(AskedStore(whole_store(), asked)).with_session("s")

    context = await (builder.with_needs(needs) if needs else builder).build("hi")

    assert set(asked.calls) == calls
    assert layers(context) & {"recall", "tasks"} == shown


async def test_without_a_sender_nothing_about_people_is_read() -> None:
    asked = Asked()

    context = await Builder().at(NOW).with_store(AskedStore(whole_store(), asked)).build("hi")

    assert asked.calls == []
    assert not layers(context) & {"recall", "tasks", "facts", "summaries"}


async def test_a_store_fills_every_layer_that_lasts() -> None:
    context = await IRIS.with_store(whole_store([user("before"), assistant("noted")])).build("hi")

    assert layers(context) >= {"blocks", "facts", "summaries", "recall", "tasks"}
    assert [m.content for m in context.history] == ["before", "noted"]
    text = context.to_prompt_string()
    for shown in (
        "I keep things short.",
        "city: Lisbon",
        "asked about tides",
        "called Marlin",
        "Buy batteries",
    ):
        assert shown in text


async def test_blocks_given_to_the_builder_are_shown_without_a_store() -> None:
    blocks = InMemoryBlocks(
        {"iris": [weft.RenderedBlock(id="1", label="a", content="mine", block_type=weft.BlockType.CORE)]}
    )

    context = await Builder(blocks, recipe="pattern").for_agent("iris").build("hi")

    assert "mine" in context.system_prompt


# --- errors


class BrokenLog(InMemoryMessages):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def tail(self, *args: object, **more: object) -> Tail:
        raise self._error


async def test_a_failure_to_read_is_a_context_error_that_begins_with_io_error() -> None:
    log = BrokenLog(OSError(5, "Input/output error"))

    with pytest.raises(weft.ContextError, match=r"^IO error: .*Input/output error") as caught:
        await Builder().with_messages(log).build("hi")

    assert isinstance(caught.value.__cause__, OSError)


async def test_an_error_of_ours_comes_through_as_it_is() -> None:
    with pytest.raises(weft.StoreError, match="locked"):
        await Builder().with_messages(BrokenLog(weft.StoreError("locked"))).build("hi")


@pytest.mark.parametrize("message", ["", " ", "\n\t"])
async def test_an_empty_message_is_refused_before_anything_is_read(message: str) -> None:
    with pytest.raises(weft.EmptyMessage):
        await Builder().with_messages(BrokenLog(OSError())).build(message)


@pytest.mark.parametrize("recipe", ["chai", "miniclaw", "omega", "pattern", "weft"])
@pytest.mark.parametrize("message", ["a\0b", "lone \ud800", "<|im_start|>", "x" * 3000])
async def test_any_text_can_be_built_into_a_context(recipe: str, message: str) -> None:
    context = await Builder(recipe=recipe).build(message)

    assert context.current_message == message
    assert weft.Context.from_json(context.to_json()) == context


# --- limits and notes


async def test_a_small_model_lowers_the_limit_and_the_receipt_says_what_that_cost() -> None:
    built = receipt(await Builder().with_model_info(weft.ModelInfo(id="m", max_tokens=2000)).build("hi"))

    assert built.limit == 1500
    assert built.warnings == ("The model reads 2000 tokens, so 500 are kept for its answer instead of 4000.",)


async def test_a_model_that_changes_nothing_is_not_mentioned() -> None:
    for model in (weft.ModelInfo(id="m"), weft.ModelInfo(id="m", max_tokens=900_000)):
        assert receipt(await Builder().with_model_info(model).build("hi")).warnings == ()


async def test_an_override_that_is_met_in_full_is_no_reason_for_a_note() -> None:
    override = weft.ModelContextLimits(max_tokens=2000, reserved_response_tokens=100)
    config = weft.ContextConfig(model_overrides={"m": override})

    built = receipt(
        await Builder(config=config).with_model_info(weft.ModelInfo(id="m", max_tokens=2000)).build("hi")
    )

    assert built.limit == 1900
    assert built.warnings == ()


async def test_messages_whose_role_had_to_change_are_counted_in_a_note() -> None:
    history = [user("hi"), weft.Message(role="narrator", content="It was night.")]

    context = await Builder(recipe="omega").with_messages(history).build("so?")

    [note] = receipt(context).warnings
    assert "1 " in note
    assert context.history[1].role == "assistant"


async def test_the_receipt_counts_what_is_sent_where_calls_become_plain_text() -> None:
    history = [user("q" * 40), assistant("a" * 40, "one", "two"), result("one"), result("two")]

    context = await Builder(recipe="omega").with_messages(history).build("so what?")

    assert receipt(context).total_tokens == sum(len(m.content) // 4 for m in context.to_messages())


async def test_the_newest_exchange_is_shown_even_if_it_alone_has_more_messages_than_the_cap() -> None:
    exchange = [
        user("q"),
        assistant("", "a", "b", "c"),
        result("a"),
        result("b"),
        result("c"),
        assistant("so"),
    ]
    config = weft.ContextConfig(max_messages_cap=2)

    context = await Builder(config=config, recipe="pattern").with_messages(exchange).build("hi")

    assert [m.content for m in context.history] == [m.content for m in exchange]


@pytest.mark.parametrize(("cap", "shown"), [(None, 6), (4, 4), (2, 2)])
async def test_a_cap_on_messages_takes_the_place_of_the_recipes(cap: int | None, shown: int) -> None:
    history = [user("a"), assistant("b")] * 3
    config = weft.ContextConfig(max_messages_cap=cap)

    context = await Builder(config=config, recipe="omega").with_messages(history).build("hi")

    assert len(context.history) == shown


async def test_a_strategy_takes_the_place_of_the_recipes() -> None:
    history = [user("a"), assistant("b")] * 3
    config = weft.ContextConfig(max_messages_cap=4, compression_strategy=weft.Truncate(keep_recent=2))

    context = await Builder(config=config, recipe="omega").with_messages(history).build("hi")

    assert len(context.history) == 2


async def test_a_history_that_is_never_cut_is_loaded_whole() -> None:
    recipe = weft.Recipe.load("chai").replace(max_context_tokens=50)
    history = [user("u" * 400)] * 20

    context = await Builder(recipe=recipe).with_messages(history).build("hi")

    assert len(context.history) == 20
    assert receipt(context).over_limit


async def test_the_size_of_what_was_built_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="weft")

    context = await Builder(recipe="omega").build("hi")

    built = receipt(context)
    assert f"context built: {built.total_tokens} of {built.limit} tokens" in caplog.text


async def test_a_context_with_another_clock_differs_only_where_the_clock_is_shown() -> None:
    one, two = await IRIS.build("hi"), await IRIS.at(NOW + timedelta(days=1)).build("hi")

    assert one.system_prompt == two.system_prompt
    assert replace(one, sections=()) == replace(two, sections=())
    assert one.turn_text != two.turn_text
