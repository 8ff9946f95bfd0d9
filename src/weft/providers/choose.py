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
from weft.providers.vendors import VENDORS, address

KEYS = {vendor.key: name for name, vendor in VENDORS.items() if vendor.key and name != "openai_responses"}
"""The variable of each key, and who is asked if it is set: of OpenAI's two dialects the common one."""
NAMES = frozenset({*VENDORS, "claude_code"})


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
    if name in NAMES:
        raise ConfigError(f"This version cannot talk to {name!r} yet: use {' or '.join(sorted(built_in))}.")
    meant = did_you_mean(name, {*built_in, *NAMES})
    if not meant.startswith("did"):
        meant = did_you_mean(name, built_in)
    raise ConfigError(f"There is no provider {name!r}: {meant}")


def ollama_runs(environ: Mapping[str, str]) -> bool:
    """Whether something listens where Ollama would. A fifth of a second is enough on one machine."""
    try:
        place = urlsplit(address(VENDORS["ollama"], environ))
        where = (place.hostname or "127.0.0.1", place.port or 11434)
        with socket.create_connection(where, timeout=0.2):
            return True
    except (OSError, ValueError):
        return False
