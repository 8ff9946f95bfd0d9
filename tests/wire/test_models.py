"""The table of models: what it says of caches, and for which ids."""

import pytest

import weft
from weft.providers.access import ProviderSettings, own_vendor
from weft.wire import to_wire
from weft.wire.vendors import VENDORS, find_model, model_info


@pytest.mark.parametrize(
    ("vendor", "model", "seconds", "read", "write", "shortest"),
    [
        ("anthropic", "claude-opus-5", 300, 0.1, 1.25, 512),
        ("anthropic", "claude-opus-4-8-20260501", 300, 0.1, 1.25, 1024),
        ("anthropic", "claude-haiku-4-5", 300, 0.1, 1.25, 4096),
        ("openrouter", "anthropic/claude-opus-4.7", 300, 0.1, 1.25, 2048),
        ("openai", "gpt-5.6", 1800, 0.1, 1.25, 1024),
        ("openai_responses", "gpt-5", 600, 0.1, 1.0, 1024),
        ("openai", "gpt-4o-mini", 600, 0.5, 1.0, 1024),
        ("gemini", "gemini-3-flash", 3600, 0.1, 1.0, 4096),
        ("gemini", "gemini-2.5-pro", 3600, 0.1, 1.0, 2048),
        ("ollama", "llama3.2", 300, 0.1, 1.0, 0),
        ("openai", "nobody-knows", 0, None, 1.0, 0),
    ],
)
def test_a_model_says_what_its_cache_costs_and_how_long_it_lives(
    vendor: str, model: str, seconds: int, read: float | None, write: float, shortest: int
) -> None:
    info = model_info(VENDORS[vendor], model)

    assert (info.cache_seconds, info.cache_read, info.cache_write) == (seconds, read, write)
    assert info.cache_min == shortest


def test_a_model_without_a_known_window_is_assumed_to_have_one() -> None:
    unknown = model_info(VENDORS["openai"], "nobody-knows")
    known = model_info(VENDORS["openai"], "nobody-knows", window=9000)

    assert (unknown.max_tokens, unknown.is_assumed) == (32_768, True)
    assert (known.max_tokens, known.is_assumed) == (9000, False)


def test_a_version_may_be_written_with_a_dot_or_a_dash() -> None:
    assert find_model("claude-opus-4.8") is find_model("claude-opus-4-8")
    assert find_model("gpt-4-1-mini") is find_model("gpt-4.1")


def test_a_server_of_the_owners_gets_no_key_of_a_session() -> None:
    own = own_vendor("box", ProviderSettings(url="http://127.0.0.1:1", model="m"))

    payload = to_wire(own, weft.Context(current_message="x", cache_key="k"))

    assert "prompt_cache_key" not in payload
