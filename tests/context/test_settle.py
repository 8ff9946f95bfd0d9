"""What the provider says of a request comes back into the receipt."""

from dataclasses import replace

import weft
from weft.context.receipt import settle
from weft.types.receipt import Expectation

RECEIPT = weft.Receipt(provider="anthropic", model="m", limit=9000)


def reply(tokens: int) -> weft.Reply:
    return weft.Reply(usage=weft.Usage(input_tokens=tokens, output_tokens=5, cached_tokens=1))


def test_a_model_that_counts_more_is_believed_by_half_at_once() -> None:
    assert settle(RECEIPT, [reply(1500)], first_tokens=1000, ratio=1.2).ratio == 1.35


def test_a_server_that_counts_wrongly_cannot_move_the_ratio_by_a_factor() -> None:
    low = high = replace(RECEIPT, counter="exact", ratio=1.0)
    for _ in range(100):
        low = settle(low, [reply(650)], first_tokens=1000, ratio=low.ratio or 1)
        high = settle(high, [reply(9000)], first_tokens=1000, ratio=high.ratio or 1)

    assert (low.ratio, high.ratio) == (0.8, 2.0)


def test_a_model_that_counts_less_is_believed_slowly() -> None:
    assert settle(RECEIPT, [reply(1000)], first_tokens=1000, ratio=1.5).ratio == 1.45


def test_a_request_too_short_to_tell_teaches_nothing() -> None:
    assert settle(RECEIPT, [reply(500)], first_tokens=100, ratio=1.2).ratio is None


def test_a_program_that_adds_a_prompt_of_its_own_teaches_nothing() -> None:
    assert settle(RECEIPT, [reply(20_000)], first_tokens=300, ratio=1.2).ratio is None
    claude = replace(RECEIPT, provider="claude_code")
    assert settle(claude, [reply(20_000)], first_tokens=5000, ratio=1.2).ratio is None


def test_a_provider_that_says_nothing_teaches_nothing() -> None:
    settled = settle(RECEIPT, [weft.Reply(text="Hello.")], first_tokens=1000, ratio=1.2)

    assert (settled.usage, settled.ratio) == (None, None)


def test_a_request_that_ollama_cut_is_an_error_of_the_receipt() -> None:
    settled = settle(replace(RECEIPT, provider="ollama"), [reply(2048)], first_tokens=9000, ratio=1.3)

    [error] = settled.errors
    assert error.startswith("Ollama read 2048 tokens of a request of about 9000: it cut the rest away")
    assert settled.ratio is None, "what was cut teaches nothing about counts"


def test_a_model_that_counts_more_gets_less_of_ours() -> None:
    limits = weft.ModelContextLimits(max_tokens=64_000, reserved_response_tokens=1000)
    config = weft.ContextConfig()

    plain = config.limits(limits, weft.ModelInfo(id="m", max_tokens=10_000))
    careful = config.limits(limits, weft.ModelInfo(id="m", max_tokens=10_000, tokens_ratio=2.0))

    assert (plain.max_tokens, careful.max_tokens) == (10_000, 5000)


def expecting(script: str, ratio: float, script_ratio: float = 0.0, window: int = 0) -> weft.Receipt:
    expected = Expectation(ratio=ratio, script=script, script_ratio=script_ratio or ratio, sent_window=window)
    return replace(RECEIPT, counter="exact", expected=expected, window=window)


def test_a_report_teaches_something_about_the_script_of_the_request() -> None:
    settled = settle(expecting("devanagari", 2.0), [reply(3000)], first_tokens=1000, ratio=1.2)

    assert (settled.ratio, settled.script) == (2.5, "devanagari")


def test_a_mixture_of_scripts_teaches_nothing() -> None:
    assert settle(expecting("", 1.9), [reply(3000)], first_tokens=1000, ratio=1.2).ratio is None


def test_the_part_of_another_script_moves_nothing_if_all_was_as_expected() -> None:
    """Eight tenths at 2.25 and two at 1.6 are 2.12: the number for the main script stays 2.25."""
    settled = settle(expecting("arabic", 2.12, 2.25), [reply(2120)], first_tokens=1000, ratio=1.2)

    assert settled.ratio == 2.25


def test_a_script_that_a_vocabulary_hardly_knows_may_cost_more_than_english() -> None:
    receipt = expecting("devanagari", 3.6)
    assert settle(receipt, [reply(3800)], first_tokens=1000, ratio=1.2).ratio == 3.7
    for _ in range(30):
        learned = settle(receipt, [reply(11_000)], first_tokens=1000, ratio=1.2).ratio
        receipt = expecting("devanagari", learned or 0)
    assert learned == 5.0


def test_a_server_that_counts_as_much_as_its_window_has_cut_whatever_we_counted() -> None:
    """Hindi of 2,000 of our tokens were 6,280 of the model's, in a window of 4,096."""
    receipt = expecting("devanagari", 2.0, window=4096)
    for counted, is_cut in ((4095, True), (4056, True), (5000, True), (4050, False)):
        settled = settle(replace(receipt, provider="ollama"), [reply(counted)], first_tokens=2000, ratio=2.0)
        assert bool(settled.errors) is is_cut, counted
        assert (settled.ratio is None) is is_cut, "what was cut teaches nothing about counts"
    [error] = settle(replace(receipt, provider="box"), [reply(4095)], first_tokens=9, ratio=1).errors
    assert error.startswith("box read 4095 tokens, and its window has 4096: it cut away")


def test_a_later_request_of_a_turn_may_be_cut_too() -> None:
    receipt = replace(expecting("plain", 1.0, window=4096), provider="ollama")

    settled = settle(receipt, [reply(2000), reply(4096)], first_tokens=2000, ratio=1.0)

    assert len(settled.errors) == 1


def test_a_provider_that_is_told_no_window_does_not_cut_in_silence() -> None:
    receipt = replace(expecting("plain", 1.0), window=4096)

    assert settle(receipt, [reply(4096)], first_tokens=4000, ratio=1.0).errors == ()
