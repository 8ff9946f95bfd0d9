"""The recipe `pattern`: what its lines promise of the builder, its limits and its rules for tools."""

import asyncio
import dataclasses
import inspect
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.testing import InMemoryBlocks

NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)
RULES_HEADER = "# Tool Execution Rules"

quick = settings(deadline=None, database=None, max_examples=80)


def block(
    label: str,
    content: str,
    kind: weft.BlockType = weft.BlockType.CORE,
    *,
    pinned: bool = False,
    description: str = "",
) -> weft.RenderedBlock:
    return weft.RenderedBlock(
        id=f"id-{label}",
        label=label,
        content=content,
        block_type=kind,
        pinned=pinned,
        description=description,
    )


def working(label: str, content: str) -> weft.RenderedBlock:
    return block(label, content, weft.BlockType.WORKING, pinned=True)


def builder(*blocks: weft.RenderedBlock, config: weft.ContextConfig | None = None) -> weft.ContextBuilder:
    return (
        weft.ContextBuilder(memory=InMemoryBlocks({"entropy": blocks}), config=config, recipe="pattern")
        .for_agent("entropy")
        .with_base_instructions("You are Entropy, a task breakdown specialist.")
        .at(NOW)
    )


def limits(
    max_tokens: int = 200_000, memory: int = 12_000, history: int = 80_000, reserved: int = 0
) -> weft.ModelContextLimits:
    return weft.ModelContextLimits(
        max_tokens=max_tokens,
        memory_tokens=memory,
        history_tokens=history,
        reserved_response_tokens=reserved,
    )


def receipt(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


def exchanges(count: int, *, chars: int = 40) -> list[weft.Message]:
    """So many messages, half of them the user's, each of exactly so many characters."""
    return [
        weft.Message(role="assistant" if n % 2 else "user", content=f"message {n} ".ljust(chars, "."))
        for n in range(count)
    ]


async def rules_shown(*rules: weft.ToolRule) -> str:
    context = await builder().with_tool_rules(rules).build("hi")
    _, _, text = context.system_prompt.partition(RULES_HEADER)
    return RULES_HEADER + text if text else ""


# --- the builder


async def test_P1_memory_and_config_are_enough() -> None:
    memory = InMemoryBlocks({"entropy": [block("persona", "I am Entropy.")]})

    context = (
        await weft.ContextBuilder(memory, weft.ContextConfig(), "pattern").for_agent("entropy").build("hi")
    )

    assert "<block:persona " in context.system_prompt
    assert list(context.history) == []
    assert list(context.tools) == []
    assert RULES_HEADER not in context.system_prompt
    assert context.current_message == "hi"


async def test_P1_who_the_agent_is_is_optional_too() -> None:
    memory = InMemoryBlocks({"entropy": [block("persona", "I am Entropy.")]})

    context = await weft.ContextBuilder(memory, weft.ContextConfig(), recipe="pattern").build("hi")

    assert "<block:" not in context.system_prompt
    assert context.system_prompt


async def test_P2_the_steps_can_be_chained_and_building_is_async() -> None:
    tool = weft.ToolDefinition(name="search", description="Find things.", parameters={"type": "object"})
    chain = (
        weft.ContextBuilder(
            memory=InMemoryBlocks({"entropy": [block("notes", "Buy tea.", weft.BlockType.WORKING)]}),
            config=weft.ContextConfig(),
            recipe="pattern",
        )
        .for_agent("entropy")
        .with_messages(exchanges(2))
        .with_tools([tool])
        .with_base_instructions("You are Entropy, a task breakdown specialist.")
        .with_tool_rules([weft.ToolRule.continue_loop("search")])
        .with_model_info(weft.ModelInfo(id="small", provider="somebody", max_tokens=100_000))
        .with_batch_blocks(["id-notes"])
    )

    assert inspect.iscoroutinefunction(chain.build)
    context = await chain.build("hi")

    assert isinstance(context, weft.Context)
    assert context.system_prompt == (
        "You are Entropy, a task breakdown specialist.\n\n"
        '<block:notes permission="ReadWrite">\nBuy tea.\n</block:notes>\n\n'
        "# Tool Execution Rules\n\n- The conversation will be continued after calling `search`"
    )
    assert [m.content for m in context.history] == [m.content for m in exchanges(2)]
    assert list(context.tools) == [tool]
    assert receipt(context).limit <= 100_000


async def test_P2_a_step_leaves_the_builder_it_came_from_as_it_was() -> None:
    first = builder()
    before = await first.build("hi")

    changed = (
        first.with_base_instructions("Other.")
        .with_messages(exchanges(2))
        .with_tool_rules([weft.ToolRule.exit_loop("stop")])
        .with_tools([weft.ToolDefinition(name="stop")])
    )

    assert (await changed.build("hi")).system_prompt.startswith("Other.\n\n")
    assert await first.build("hi") == before


async def test_P2_an_agent_sees_its_own_blocks_only() -> None:
    memory = InMemoryBlocks({"entropy": [block("mine", "a")], "flux": [block("theirs", "b")]})
    base = weft.ContextBuilder(memory=memory, recipe="pattern")

    shown = (await base.for_agent("entropy").build("hi")).system_prompt

    assert "<block:mine " in shown
    assert "theirs" not in shown


@pytest.mark.parametrize("role", ["narrator", "User", "developer", ""])
async def test_P2_an_unknown_role_in_the_messages_is_rejected(role: str) -> None:
    odd = [*exchanges(2), weft.Message(role=role, content="x")]

    with pytest.raises(weft.ContextError) as caught:
        await builder().with_messages(odd).build("hi")

    assert repr(role) in str(caught.value)


async def test_P2_the_four_known_roles_are_taken() -> None:
    call = weft.ToolCall(id="c1", name="search", arguments={"q": "tea"})
    known = [
        weft.Message(role="system", content="s"),
        weft.Message(role="user", content="u"),
        weft.Message(role="assistant", content="", tool_calls=(call,)),
        weft.Message(role="tool", content="t", tool_call_id="c1", tool_name="search"),
        weft.Message(role="assistant", content="a"),
    ]

    context = await builder().with_messages(known).build("hi")

    assert [m.role for m in context.history] == ["system", "user", "assistant", "tool", "assistant"]


# --- what it cost


async def test_P7_the_receipt_counts_what_is_sent() -> None:
    context = await builder(block("persona", "I am Entropy.")).with_messages(exchanges(6)).build("hello you")

    counted = receipt(context)
    assert counted.total_tokens == sum(len(message.content) // 4 for message in context.to_messages())
    assert counted.total_tokens == sum(item.tokens for item in counted.items if item.kept)
    assert counted.total_tokens == sum(counted.by_layer.values())
    assert counted.by_layer["history"] == 6 * 10
    assert not counted.over_limit


@quick
@given(
    st.lists(st.text(min_size=1, max_size=30), max_size=4),
    st.lists(st.text(max_size=30), max_size=6),
    st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
)
def test_P7_the_receipt_counts_every_context_as_characters_by_four(
    blocks: list[str], history: list[str], message: str
) -> None:
    log = [
        weft.Message(role="assistant" if n % 2 else "user", content=text) for n, text in enumerate(history)
    ]
    made = builder(*(block(f"b{n}", text) for n, text in enumerate(blocks))).with_messages(log)

    context = asyncio.run(made.build(message))

    counted = receipt(context)
    assert counted.total_tokens == sum(len(sent.content) // 4 for sent in context.to_messages())
    assert sum(counted.by_layer.values()) == counted.total_tokens


async def test_P7_the_receipt_lists_each_block_with_its_place() -> None:
    context = await builder(block("persona", "I am."), working("notes", "Buy tea.")).build("hi")

    shown = [item.title for item in receipt(context).items if item.source == "blocks" and item.kept]
    assert shown == ["persona", "notes"]
    assert all(item.reason for item in receipt(context).items)


# --- configuration


def test_P32_a_config_has_seven_settings_and_leaves_all_to_the_recipe() -> None:
    config = weft.ContextConfig()

    names = {field.name for field in dataclasses.fields(config)}
    assert names >= {
        "default_limits",
        "model_overrides",
        "include_descriptions",
        "include_schemas",
        "activity_entries_limit",
        "compression_strategy",
        "max_messages_cap",
    }
    assert {getattr(config, name) for name in names - {"model_overrides"}} == {None}
    assert dict(config.model_overrides) == {}


def test_P33_limits_have_four_figures() -> None:
    four = weft.ModelContextLimits(
        max_tokens=4, memory_tokens=3, history_tokens=2, reserved_response_tokens=1
    )

    assert (four.max_tokens, four.memory_tokens, four.history_tokens, four.reserved_response_tokens) == (
        4,
        3,
        2,
        1,
    )


def test_P33_the_figures_of_the_recipe_are_these() -> None:
    assert weft.Recipe.load("pattern").limits == weft.ModelContextLimits(
        max_tokens=200_000, memory_tokens=12_000, history_tokens=80_000, reserved_response_tokens=8_000
    )


async def test_P33_by_default_a_message_has_200000_less_8000_tokens() -> None:
    context = await builder().build("x" * 4 * 191_900)
    assert receipt(context).total_tokens > 191_900

    with pytest.raises(weft.BudgetExceeded):
        await builder().build("x" * 4 * 192_001)


async def test_P33_by_default_core_blocks_have_12000_tokens() -> None:
    context = await builder(block("big", "x" * 4 * 11_900)).build("hi")
    assert "<block:big " in context.system_prompt

    with pytest.raises(weft.BudgetExceeded):
        await builder(block("big", "x" * 4 * 12_001)).build("hi")


async def test_P33_by_default_history_has_80000_tokens() -> None:
    whole = await builder().with_messages(exchanges(80, chars=4_000)).build("hi")
    assert len(whole.history) == 80

    cut = await builder().with_messages(exchanges(82, chars=4_000)).build("hi")
    assert len(cut.history) < 80


async def test_P32_by_default_500_messages_are_left_alone_and_more_are_cut_to_100() -> None:
    whole = await builder().with_messages(exchanges(500)).build("hi")
    assert len(whole.history) == 500

    cut = await builder().with_messages(exchanges(502)).build("hi")
    assert [m.content for m in cut.history] == [m.content for m in exchanges(502)[-100:]]


async def test_P32_the_cap_on_messages_is_a_hard_limit() -> None:
    config = weft.ContextConfig(max_messages_cap=10, compression_strategy=weft.Truncate(keep_recent=300))

    at_the_cap = await builder(config=config).with_messages(exchanges(10)).build("hi")
    above = await builder(config=config).with_messages(exchanges(12)).build("hi")

    assert len(at_the_cap.history) == 10
    assert [m.content for m in above.history] == [m.content for m in exchanges(12)[-10:]]


async def test_P32_the_strategy_says_how_much_is_kept_once_the_cap_is_passed() -> None:
    config = weft.ContextConfig(max_messages_cap=10, compression_strategy=weft.Truncate(keep_recent=4))

    left_alone = await builder(config=config).with_messages(exchanges(10)).build("hi")
    cut = await builder(config=config).with_messages(exchanges(12)).build("hi")

    assert len(left_alone.history) == 10
    assert [m.content for m in cut.history] == [m.content for m in exchanges(12)[-4:]]


async def test_P7_P32_a_dropped_stretch_of_history_is_one_item_with_a_range() -> None:
    config = weft.ContextConfig(max_messages_cap=10, compression_strategy=weft.Truncate(keep_recent=4))

    context = await builder(config=config).with_messages(exchanges(12)).build("hi")

    [dropped] = [item for item in receipt(context).items if not item.kept]
    first, last = dropped.span
    assert dropped.layer == "history"
    assert last - first + 1 == 8
    assert dropped.tokens == 8 * 10
    assert dropped.reason


async def test_P32_summaries_without_a_model_are_an_error_of_configuration() -> None:
    strategy = weft.RecursiveSummarization(chunk_size=4, summarization_model="small")
    config = weft.ContextConfig(max_messages_cap=10, compression_strategy=strategy)

    with pytest.raises(weft.ConfigError):
        await builder(config=config).with_messages(exchanges(12)).build("hi")


async def test_P33_history_over_its_tokens_is_cut_to_two_thirds_of_them() -> None:
    config = weft.ContextConfig(default_limits=limits(history=120))

    at_the_limit = await builder(config=config).with_messages(exchanges(12)).build("hi")
    above = await builder(config=config).with_messages(exchanges(14)).build("hi")

    assert len(at_the_limit.history) == 12
    assert [m.content for m in above.history] == [m.content for m in exchanges(14)[-8:]]


async def test_P33_at_least_one_exchange_is_kept_however_large() -> None:
    config = weft.ContextConfig(default_limits=limits(history=5))

    context = await builder(config=config).with_messages(exchanges(6)).build("hi")

    assert [m.content for m in context.history] == [m.content for m in exchanges(6)[-2:]]


async def test_P33_room_for_the_answer_is_kept_free() -> None:
    message = "x" * 4 * 900
    roomy = builder(config=weft.ContextConfig(default_limits=limits(1_000, reserved=50)))
    tight = builder(config=weft.ContextConfig(default_limits=limits(1_000, reserved=200)))

    assert (await roomy.build(message)).current_message == message
    with pytest.raises(weft.BudgetExceeded) as caught:
        await tight.build(message)

    assert isinstance(caught.value, weft.ContextError)


async def test_P33_core_blocks_over_the_memory_tokens_are_an_error_that_names_the_largest() -> None:
    config = weft.ContextConfig(default_limits=limits(memory=100))
    blocks = [block("persona", "p" * 200), block("human", "h" * 280), block("rules", "r" * 40)]

    with pytest.raises(weft.BudgetExceeded) as caught:
        await builder(*blocks, config=config).build("hi")

    assert "human" in str(caught.value)
    assert "persona" not in str(caught.value)
    assert isinstance(caught.value, weft.ContextError)


async def test_P33_core_blocks_may_fill_the_memory_tokens_to_the_last() -> None:
    shown = f'<block:persona permission="ReadWrite">\n{"p" * 400}\n</block:persona>'
    exact = weft.ContextConfig(default_limits=limits(memory=len(shown) // 4))
    short = weft.ContextConfig(default_limits=limits(memory=len(shown) // 4 - 1))

    assert shown in (await builder(block("persona", "p" * 400), config=exact).build("hi")).system_prompt
    with pytest.raises(weft.BudgetExceeded, match="persona"):
        await builder(block("persona", "p" * 400), config=short).build("hi")


async def test_P7_P33_working_blocks_over_the_memory_tokens_are_dropped_and_listed() -> None:
    config = weft.ContextConfig(default_limits=limits(memory=150))
    blocks = [block("persona", "p" * 200), working("notes", "n" * 100), working("journal", "j" * 800)]

    context = await builder(*blocks, config=config).build("hi")

    assert "<block:persona " in context.system_prompt
    assert "<block:notes " in context.system_prompt
    assert "journal" not in context.system_prompt
    [dropped] = [item for item in receipt(context).items if not item.kept]
    assert (dropped.source, dropped.title) == ("blocks", "journal")
    assert dropped.reason
    assert receipt(context).total_tokens < 200


# --- which limits hold


@pytest.mark.parametrize(
    ("config", "model", "expected"),
    [
        (weft.ContextConfig(default_limits=limits(1_000)), None, 1_000),
        (weft.ContextConfig(default_limits=limits(500_000)), None, 500_000),
        (weft.ContextConfig(model_overrides={"m": limits(777)}), weft.ModelInfo(id="m"), 777),
        (
            weft.ContextConfig(default_limits=limits(1_000), model_overrides={"m": limits(2_000)}),
            weft.ModelInfo(id="m"),
            2_000,
        ),
        (
            weft.ContextConfig(default_limits=limits(1_000), model_overrides={"m": limits(2_000)}),
            weft.ModelInfo(id="other"),
            1_000,
        ),
        (weft.ContextConfig(default_limits=limits(1_000)), weft.ModelInfo(id="m", max_tokens=600), 600),
        (weft.ContextConfig(default_limits=limits(1_000)), weft.ModelInfo(id="m", max_tokens=9_000), 1_000),
        (
            weft.ContextConfig(model_overrides={"m": limits(777)}),
            weft.ModelInfo(id="m", max_tokens=600),
            600,
        ),
        (
            weft.ContextConfig(model_overrides={"m": limits(777)}),
            weft.ModelInfo(id="m", max_tokens=9_000),
            777,
        ),
    ],
)
async def test_P32_P33_explicit_limits_win_then_the_models_own_and_a_window_only_lowers(
    config: weft.ContextConfig, model: weft.ModelInfo | None, expected: int
) -> None:
    base = builder(config=config)

    context = await (base if model is None else base.with_model_info(model)).build("hi")

    assert receipt(context).limit == expected


async def test_P32_P33_without_a_config_the_limits_are_those_of_the_recipe() -> None:
    plain = receipt(await builder().build("hi")).limit
    other = weft.ContextConfig(model_overrides={"m": limits(777)})

    assert plain in (192_000, 200_000)
    assert receipt(await builder(config=weft.ContextConfig()).build("hi")).limit == plain
    unknown = builder(config=other).with_model_info(weft.ModelInfo(id="unknown"))
    assert receipt(await unknown.build("hi")).limit == plain
    large = builder().with_model_info(weft.ModelInfo(id="large", max_tokens=1_000_000))
    assert receipt(await large.build("hi")).limit == plain
    small = builder().with_model_info(weft.ModelInfo(id="small", max_tokens=50_000))
    assert receipt(await small.build("hi")).limit <= 50_000


async def test_P32_P33_an_override_brings_its_own_memory_tokens() -> None:
    config = weft.ContextConfig(model_overrides={"small": limits(10_000, memory=50)})
    base = builder(block("persona", "p" * 400), config=config)

    assert "<block:persona " in (await base.build("hi")).system_prompt
    with pytest.raises(weft.BudgetExceeded, match="persona"):
        await base.with_model_info(weft.ModelInfo(id="small")).build("hi")


# --- rules for tools

EXIT = weft.ToolRule.exit_loop("send_message")
CONTINUE = weft.ToolRule.continue_loop("search")
AT_MOST = weft.ToolRule.max_calls("api_request", 3)
START = weft.ToolRule.start_constraint("context")
AFTER = weft.ToolRule.requires_prior("publish", "review")

TEXTS = {
    START: "- Call `context` first before any other tools",
    EXIT: "- The conversation will end after calling `send_message`",
    CONTINUE: "- The conversation will be continued after calling `search`",
    AT_MOST: "- Call `api_request` at most 3 times",
    AFTER: "- Call `publish` only after calling `review`",
}


def test_P38_there_are_five_kinds_of_rules_and_equal_ones_are_equal() -> None:
    assert len({EXIT, CONTINUE, AT_MOST, START, AFTER}) == 5
    assert weft.ToolRule.exit_loop("send_message") == EXIT
    assert weft.ToolRule.max_calls("api_request", 4) != AT_MOST
    assert weft.ToolRule.requires_prior("publish", "draft") != AFTER


@pytest.mark.parametrize("rule", TEXTS)
async def test_P38_P39_P40_each_rule_is_one_bullet_below_the_header(rule: weft.ToolRule) -> None:
    assert await rules_shown(rule) == f"# Tool Execution Rules\n\n{TEXTS[rule]}"


async def test_P39_P40_P41_the_rules_read_as_in_the_example() -> None:
    assert await rules_shown(EXIT, CONTINUE, AT_MOST, START) == (
        "# Tool Execution Rules\n"
        "\n"
        "- Call `context` first before any other tools\n"
        "- The conversation will end after calling `send_message`\n"
        "- The conversation will be continued after calling `search`\n"
        "- Call `api_request` at most 3 times"
    )


async def test_P39_without_rules_there_is_no_header() -> None:
    assert RULES_HEADER not in (await builder().build("hi")).system_prompt
    assert RULES_HEADER not in (await builder().with_tool_rules([]).build("hi")).system_prompt


@quick
@given(st.permutations([*TEXTS, weft.ToolRule.start_constraint("login")]))
def test_P41_start_constraints_come_first_and_the_rest_as_given(rules: Iterable[weft.ToolRule]) -> None:
    given_order = list(rules)
    starts = [rule for rule in given_order if rule.tool in ("context", "login")]
    expected = starts + [rule for rule in given_order if rule not in starts]
    login = "- Call `login` first before any other tools"

    shown = asyncio.run(rules_shown(*given_order))

    assert shown.splitlines()[2:] == [TEXTS.get(rule, login) for rule in expected]


async def test_P42_a_limit_of_calls_says_its_number() -> None:
    assert (await rules_shown(weft.ToolRule.max_calls("fetch", 12))).endswith(
        "- Call `fetch` at most 12 times"
    )


async def test_P42_a_tool_that_needs_another_first_says_which() -> None:
    shown = await rules_shown(weft.ToolRule.requires_prior("x", "y"))

    assert shown.endswith("- Call `x` only after calling `y`")
