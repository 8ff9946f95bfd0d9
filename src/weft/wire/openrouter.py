"""OpenRouter, which speaks OpenAI's Chat Completions for models of many vendors."""

from dataclasses import replace

from weft.wire.openai import OPENAI

OPENROUTER = replace(
    OPENAI,
    name="openrouter",
    address="https://openrouter.ai/api/v1",
    address_variable="OPENROUTER_BASE_URL",
    key_variable="OPENROUTER_API_KEY",
    default_model="anthropic/claude-sonnet-5",
    tells_windows=True,
    takes_cache_key=False,
    rule=replace(OPENAI.rule, declared_calls=True),  # it may pass a request on to Anthropic
)
