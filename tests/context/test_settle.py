"""What the provider says of a request comes back into the receipt."""

from dataclasses import replace

import weft
from weft.context.receipt import settle

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
