"""What a context costs in the model's own tokens is never believed to be less than it is."""

import pytest

import weft
from scripts import SAMPLES
from weft.context.model_tokens import ModelCost
from weft.tokens import count
from weft.types.limits import ModelInfo
from weft.wire.vendors import VENDORS, find_model, model_info

NEW_CLAUDE = {"english": 1.48, "german": 2.22, "arabic": 2.22, "hindi": 2.25}
OLD_CLAUDE = {"english": 1.03, "german": 1.61, "arabic": 2.22, "hindi": 2.25}
MEASURED = {
    ("anthropic", "claude-opus-5"): NEW_CLAUDE,
    ("anthropic", "claude-sonnet-5"): NEW_CLAUDE,
    ("anthropic", "claude-opus-4-8"): NEW_CLAUDE,
    ("openrouter", "anthropic/claude-opus-4.8"): NEW_CLAUDE,
    ("anthropic", "claude-"): NEW_CLAUDE,
    ("anthropic", "claude-opus-4-6"): OLD_CLAUDE,
    ("anthropic", "claude-haiku-4-5"): OLD_CLAUDE,
    ("ollama", "qwen2.5:7b"): {"hindi": 3.14},
    ("openrouter", "qwen/qwen3-32b"): {"hindi": 3.14},
    ("ollama", "mistral:7b"): {"arabic": 2.97, "hindi": 3.56},
    ("ollama", "mistral-nemo"): {"emoji": 2.05},
    ("openrouter", "deepseek/deepseek-chat"): {"hindi": 1.88},
}
CASES = [
    (vendor, model, language, factor)
    for (vendor, model), factors in MEASURED.items()
    for language, factor in factors.items()
]
WORST = {
    language: max(factors.get(language, 0.0) for name, factors in MEASURED.items() if name[0] != "anthropic")
    for language in ("arabic", "hindi", "emoji")
}


def predicted(model: ModelInfo, *texts: str) -> float:
    cost = ModelCost(model)
    for text in texts:
        cost.add(text, count(text))
    return cost.tokens


@pytest.mark.parametrize(("vendor", "model", "language", "factor"), CASES)
def test_no_model_needs_more_than_is_believed_at_a_cold_start(
    vendor: str, model: str, language: str, factor: float
) -> None:
    text = SAMPLES[language]

    tokens = predicted(model_info(VENDORS[vendor], model), text)

    assert tokens >= count(text) * factor
    assert tokens <= count(text) * factor * 1.8, "and it is no wild guess"


@pytest.mark.parametrize("language", SAMPLES)
def test_a_model_that_nobody_knows_is_believed_to_need_many(language: str) -> None:
    text = SAMPLES[language]

    tokens = predicted(model_info(VENDORS["openai"], "nobody-knows"), text)

    assert tokens >= count(text) * max(1.2, WORST.get(language, 0))
    if language not in ("english", "german", "french"):
        assert tokens >= len(text.encode()) / 2.5 - 0.001


@pytest.mark.parametrize("language", SAMPLES)
def test_the_vocabulary_by_which_we_count_needs_what_we_count(language: str) -> None:
    text = SAMPLES[language]

    assert predicted(model_info(VENDORS["openai"], "gpt-5"), text) == pytest.approx(count(text))


def test_what_was_learned_of_a_script_replaces_the_guess() -> None:
    unknown = model_info(VENDORS["ollama"], "llama3.2")
    known = unknown.with_learned({"devanagari": 1.3, "plain": 0.9})
    text = SAMPLES["hindi"]

    assert predicted(known, text) == pytest.approx(count(text) * 1.3) != predicted(unknown, text)
    assert known.tokens_ratio == 0.9
    assert predicted(known, SAMPLES["arabic"]) == predicted(unknown, SAMPLES["arabic"])


def test_an_estimate_by_characters_is_not_believed_for_other_scripts() -> None:
    text, model = SAMPLES["chinese"], model_info(VENDORS["openai"], "gpt-5")
    cost = ModelCost(model, is_exact=False)
    cost.add(text, len(text) // 4)

    assert cost.tokens == pytest.approx(count(text))
    assert cost.ratio > 3


def test_plain_messages_of_a_german_conversation_are_german() -> None:
    model = model_info(VENDORS["anthropic"], "claude-opus-5")
    short = "Ja, mach das bitte morgen."
    alone, among = ModelCost(model), ModelCost(model)
    alone.add_messages([(short, 10)])
    among.add_messages([(short, 10), (SAMPLES["german"], 61)])

    assert alone.ratio == pytest.approx(1.6)
    assert among.ratio == pytest.approx(2.3)
    assert among.expectation().script == "latin"


def test_a_mixture_has_no_script_of_its_own() -> None:
    model = model_info(VENDORS["anthropic"], "claude-opus-5")
    cost = ModelCost(model)
    cost.add(SAMPLES["english"], 70)
    cost.add(SAMPLES["hindi"], 30)
    assert cost.expectation().script == ""

    cost.add(SAMPLES["english"], 100)
    expected = cost.expectation()
    assert (expected.script, expected.script_ratio) == ("plain", 1.6)
    assert 1.6 < expected.ratio < 2.35


def history(language: str, exchanges: int = 40) -> list[weft.Message]:
    roles = ("user", "assistant") * exchanges
    return [weft.Message(role=role, content=f"{at}. {SAMPLES[language]}") for at, role in enumerate(roles)]


async def built(language: str, message: str, model: ModelInfo, recipe: str = "weft") -> weft.Context:
    builder = weft.ContextBuilder(recipe=recipe).with_base_instructions("Be calm.").with_model_info(model)
    return await builder.with_messages(history(language)).build(message)


def needed(context: weft.Context, model: ModelInfo) -> float:
    """What a model needs for the texts of a context."""
    messages = [message.content for message in context.to_messages()]
    return predicted(model, *messages)


@pytest.mark.parametrize("recipe", ["weft", "pattern"])
@pytest.mark.parametrize("language", ["english", "german", "hindi", "chinese"])
async def test_what_is_shown_fits_into_the_window_in_the_models_own_tokens(
    language: str, recipe: str
) -> None:
    model = model_info(VENDORS["anthropic"], "claude-opus-5", window=6000)

    context = await built(language, SAMPLES[language], model, recipe)

    assert context.receipt is not None
    assert 0.5 * context.receipt.limit < context.receipt.total_tokens <= context.receipt.limit
    assert needed(context, model) <= 6000


async def test_a_script_that_costs_more_leaves_less_room_and_the_receipt_says_so() -> None:
    model = model_info(VENDORS["anthropic"], "claude-opus-5", window=6000)

    english = (await built("english", "hi", model)).receipt
    hindi = (await built("hindi", SAMPLES["hindi"], model)).receipt

    assert english is not None
    assert hindi is not None
    assert hindi.limit < english.limit * 0.8
    assert (english.script, hindi.script) == ("plain", "devanagari")
    assert any("One of ours is about 2.29" in warning for warning in hindi.warnings)
    assert any("One of ours is about 1.60" in warning for warning in english.warnings)


async def test_a_little_of_another_script_changes_nothing_where_there_is_room() -> None:
    model = model_info(VENDORS["anthropic"], "claude-opus-5")

    receipt = (await built("hindi", "hi", model)).receipt

    assert receipt is not None
    assert not any("One of ours" in warning for warning in receipt.warnings), "the recipe's limit binds"
    assert not receipt.dropped or all(item.layer != "history" for item in receipt.dropped)


async def test_a_build_without_a_model_expects_nothing() -> None:
    context = await weft.ContextBuilder().with_base_instructions("Be calm.").build(SAMPLES["hindi"])

    assert context.receipt is not None
    assert context.receipt.expected is None


async def test_a_message_that_is_too_long_in_the_models_tokens_is_refused_and_not_cut_by_the_server() -> None:
    model = model_info(VENDORS["ollama"], "qwen3", window=4000)
    text = SAMPLES["hindi"] * 20  # 1,300 of our tokens, 4,200 of theirs

    with pytest.raises(weft.BudgetExceeded, match="a model that reads more"):
        await weft.ContextBuilder().with_base_instructions("x").with_model_info(model).build(text)


def test_a_row_of_a_plugin_is_careful_by_itself() -> None:
    assert find_model("nobody-knows").ratios["devanagari"] >= 3.56
    assert find_model("nobody-knows").bytes_per_token == 2.5
