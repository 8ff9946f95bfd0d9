"""Which provider answers when nobody said so.

In this order: an explicit setting, an API key in the environment, a running Ollama, the embedded model.
The reasons are kept: `weft doctor` and every receipt tell them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from weft.errors import ConfigError, ProviderError, did_you_mean

KEYS = {
    "ANTHROPIC_API_KEY": "anthropic",
    "OPENAI_API_KEY": "openai",
    "OPENROUTER_API_KEY": "openrouter",
    "GEMINI_API_KEY": "gemini",
}
VENDORS = frozenset({*KEYS.values(), "ollama", "claude_code"})
_OLLAMA = "127.0.0.1:11434"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The provider that answers, why, and who was passed over."""

    provider: str
    why: str
    passed_over: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why this one, and why not those before it."""
        return "; ".join((self.why, *self.passed_over))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the choice depends on: what is built in, the environment, and two questions to the machine."""

    built_in: Collection[str]
    environ: Mapping[str, str]
    ollama_runs: Callable[[], bool]
    embedded_lacks: Callable[[], str | None]


def choose(explicit: str | None, around: Surroundings) -> Choice:
    """The first provider in the order above that can be reached.

    Raises:
        ConfigError: the explicit one does not exist, or not in this version.
        ProviderError: none can be reached.
    """
    if explicit:
        return _explicit(explicit, around.built_in)
    passed_over: list[str] = []
    for variable, vendor in KEYS.items():
        if not around.environ.get(variable):
            continue
        if vendor in around.built_in:
            return Choice(provider=vendor, why=f"{variable} is set", passed_over=tuple(passed_over))
        passed_over.append(f"{variable} is set, but this version cannot talk to {vendor} yet")
    if around.ollama_runs():
        if "ollama" in around.built_in:
            return Choice(provider="ollama", why="Ollama is running", passed_over=tuple(passed_over))
        passed_over.append("Ollama is running, but this version cannot talk to it yet")
    lacks = around.embedded_lacks()
    if lacks is None:
        why = "the embedded model needs no network and no account"
        return Choice(provider="local", why=why, passed_over=tuple(passed_over))
    raise ProviderError(f"No model can be reached, and {lacks}.")


def _explicit(name: str, built_in: Collection[str]) -> Choice:
    if name in built_in:
        return Choice(provider=name, why="it was asked for")
    if name in VENDORS:
        raise ConfigError(f"This version cannot talk to {name!r} yet: use {' or '.join(sorted(built_in))}.")
    meant = did_you_mean(name, {*built_in, *VENDORS})
    if not meant.startswith("did"):
        meant = did_you_mean(name, built_in)
    raise ConfigError(f"There is no provider {name!r}: {meant}")


def ollama_runs(environ: Mapping[str, str]) -> bool:
    """Whether something listens where Ollama would. A fifth of a second is enough on one machine."""
    address = environ.get("OLLAMA_HOST") or _OLLAMA
    try:
        place = urlsplit(address if "//" in address else f"//{address}")
        where = (place.hostname or "127.0.0.1", place.port or 11434)
        with socket.create_connection(where, timeout=0.2):
            return True
    except (OSError, ValueError):
        return False
