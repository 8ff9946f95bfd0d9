"""Which provider answers when nobody said so.

In this order: an explicit setting, a key that is set, a running Ollama, the embedded model. The reasons are
kept: `weft doctor` and every receipt tell them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from weft.errors import ConfigError, ProviderError, did_you_mean
from weft.providers.vendors import VENDORS, address


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The provider that answers, and why."""

    provider: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the choice depends on: who there is, whose key is set and where, two questions to the machine."""

    names: Collection[str]
    keys: Mapping[str, str]
    ollama_runs: Callable[[], bool]
    embedded_lacks: Callable[[], str | None]


def choose(explicit: str | None, around: Surroundings) -> Choice:
    """The first provider in the order above that can be reached.

    Raises:
        ConfigError: the explicit one does not exist.
        ProviderError: none can be reached.
    """
    if explicit:
        if explicit not in around.names:
            raise ConfigError(f"There is no provider {explicit!r}: {did_you_mean(explicit, around.names)}")
        return Choice(provider=explicit, why="it was asked for")
    if around.keys:
        vendor, where = next(iter(around.keys.items()))
        return Choice(provider=vendor, why=f"{where} is set")
    if around.ollama_runs():
        return Choice(provider="ollama", why="Ollama is running")
    lacks = around.embedded_lacks()
    if lacks is None:
        return Choice(provider="local", why="the embedded model needs no network and no account")
    raise ProviderError(f"No model can be reached, and {lacks}.")


def ollama_runs(environ: Mapping[str, str]) -> bool:
    """Whether something listens where Ollama would. A fifth of a second is enough on one machine."""
    try:
        place = urlsplit(address(VENDORS["ollama"], environ))
        where = (place.hostname or "127.0.0.1", place.port or 11434)
        with socket.create_connection(where, timeout=0.2):
            return True
    except (OSError, ValueError):
        return False
