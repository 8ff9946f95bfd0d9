"""All dialects by the name of their provider: what `weft.wire` offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.errors import ConfigError, did_you_mean
from weft.types.context import Context
from weft.types.reply import Reply
from weft.wire import anthropic, gemini, ollama, openai, responses
from weft.wire.request import Request, request


@dataclass(frozen=True, slots=True)
class _Dialect:
    to_wire: Callable[[Request], dict[str, Any]]
    from_wire: Callable[[Mapping[str, Any]], Reply]
    violations: Callable[[Mapping[str, Any]], list[str]]


_DIALECTS = {
    "anthropic": _Dialect(anthropic.to_wire, anthropic.from_wire, anthropic.violations),
    "openai": _Dialect(openai.to_wire, openai.from_wire, openai.violations),
    "openai_responses": _Dialect(responses.to_wire, responses.from_wire, responses.violations),
    "openrouter": _Dialect(openai.to_wire, openai.from_wire, openai.violations),
    "ollama": _Dialect(ollama.to_wire, ollama.from_wire, ollama.violations),
    "gemini": _Dialect(gemini.to_wire, gemini.from_wire, gemini.violations),
}
PROVIDERS = tuple(_DIALECTS)


def to_wire(
    provider: str,
    context: Context,
    *,
    model: str | None = None,
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> dict[str, Any]:
    """The request that a provider gets for a context, whatever its history: always one that it accepts.

    Raises:
        EmptyMessage: there is nothing to answer.
        ConfigError: no provider has this name.
    """
    _dialect(provider)
    asked = request(provider, context, model=model, max_output_tokens=max_output_tokens, stream=stream)
    return written(asked)


def written(asked: Request) -> dict[str, Any]:
    """A request that was prepared already, in its provider's dialect."""
    return _dialect(asked.provider).to_wire(asked)


def from_wire(provider: str, answer: Mapping[str, Any]) -> Reply:
    """The reply in a provider's answer."""
    return _dialect(provider).from_wire(answer)


def violations(provider: str, payload: Mapping[str, Any]) -> list[str]:
    """What a provider would refuse in a request; nothing, if it is valid."""
    return _dialect(provider).violations(payload)


def _dialect(provider: str) -> _Dialect:
    if provider not in _DIALECTS:
        raise ConfigError(f"There is no provider {provider!r}: {did_you_mean(provider, _DIALECTS)}")
    return _DIALECTS[provider]
