"""Prices of cached tokens that the settings name: they reach every model, and a receipt guesses none."""

from dataclasses import replace
from pathlib import Path

import pytest

import weft
from programs import environ, run_weft
from weft.config import load_config
from weft.providers.base import Provider
from weft.testing import LoopbackVendor
from weft.turn.classify import RouteSettings
from weft.types.codec import from_dict, to_dict

USAGE = weft.Usage(input_tokens=10_000, output_tokens=0, cached_tokens=6_000)
ANSWER = weft.Reply(text="Hello.", usage=USAGE, model="x")
UNKNOWN = (
    "6,000 of 10,000 tokens came from the cache; the price of cached tokens is not known: "
    'set `cache_read` below `[models."x"]`'
)


async def receipt_of(config: weft.Config, provider: Provider | None = None) -> weft.Receipt:
    app = await weft.connect(config, provider=provider)
    reply = await app.ask("Hi.", session="s")
    await app.close()
    assert reply.receipt is not None
    return reply.receipt


def settings(home: Path, text: str) -> weft.Config:
    file = home / "config.toml"
    file.write_text(text, "utf-8")
    return load_config(file)


def own_server(vendor: LoopbackVendor, prices: str, *, name: str = "x") -> str:
    return (
        f'provider = "fake"\nmodel = "x"\n[providers.fake]\nkind = "openai"\nurl = "{vendor.url}/v1"\n'
        f'[models."{name}"]\ninput_price = 10.0\noutput_price = 10.0\n{prices}\n'
    )


@pytest.mark.parametrize("name", ["x", "fake:x"])
async def test_a_server_of_ones_own_costs_less_for_what_came_from_its_cache(home: Path, name: str) -> None:
    with LoopbackVendor("openai", [ANSWER]) as vendor:
        text = own_server(vendor, "cache_read = 0.1\ncache_write = 2", name=name)
        receipt = await receipt_of(settings(home, text))

    assert (receipt.cost_tokens, receipt.cost) == (4_600, 0.046)
    assert receipt.remarks[-1].endswith(
        "the input cost as much as 4,600 new tokens, and 0.0460 in money with the answer"
    )


async def test_what_is_not_known_of_a_cache_is_not_shown_as_a_price(home: Path) -> None:
    with LoopbackVendor("openai", [ANSWER, ANSWER]) as vendor:
        receipt = await receipt_of(settings(home, own_server(vendor, "")))
        asked = run_weft(environ(home), "ask", "--receipt", "Hi.")

    assert (receipt.cost_tokens, receipt.cost) == (None, None)
    assert receipt.remarks[-1] == UNKNOWN
    assert UNKNOWN in " ".join(asked.stderr.split())
    assert from_dict(weft.Receipt, to_dict(receipt), where="receipt") == receipt


async def test_without_cached_tokens_an_unknown_price_of_the_cache_does_not_matter(home: Path) -> None:
    answer = replace(ANSWER, usage=replace(USAGE, cached_tokens=0))
    with LoopbackVendor("openai", [answer]) as vendor:
        receipt = await receipt_of(settings(home, own_server(vendor, "")))

    assert (receipt.cost_tokens, receipt.cost) == (10_000, 0.1)


async def test_the_settings_override_the_table_for_a_known_vendor(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackVendor("openai", [ANSWER]) as vendor:
        for name, value in vendor.environ.items():
            monkeypatch.setenv(name, value)
        text = 'provider = "openai"\nmodel = "gpt-4o"\n[models."gpt-4o"]\ncache_read = 0\n'
        receipt = await receipt_of(settings(home, text))

    assert receipt.cost_tokens == 4_000


async def test_a_model_that_a_message_is_routed_to_has_its_own_price(home: Path) -> None:
    config = settings(home, '[models."tiny"]\ncache_read = 0.5\n')
    config = replace(config, route=RouteSettings(enabled=True, classifier_model="c", direct_model="tiny"))

    receipt = await receipt_of(config, weft.ScriptedProvider(["DIRECT", ANSWER]))

    assert receipt.cost_tokens == 7_000


@pytest.mark.parametrize("line", ["cache_read = -0.1", "cache_write = 10.5", "cache_read = nan"])
def test_a_price_that_cannot_be_meant_is_refused(home: Path, line: str) -> None:
    with pytest.raises(weft.ConfigError, match=r"`models.x.cache_\w+` is \S+: it must be between 0 and 10"):
        settings(home, f'[models."x"]\n{line}\n')
