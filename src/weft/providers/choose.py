"""The choice of a provider where none is set.

The order: an explicit setting, a key that is set, an address that is set, a provider of the settings, a
running Ollama, the embedded model. `weft doctor` and every receipt give the reason.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from weft.errors import ConfigError, ProviderError, did_you_mean
from weft.plugins import plugin_names
from weft.providers.access import Keys, address_of, key_place
from weft.providers.local import LocalSettings, unavailable
from weft.wire.vendors import VENDORS

NAMES = ("local", "scripted", "claude_code", *VENDORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The provider that answers, and why."""

    provider: str
    why: str


def choose(
    explicit: str | None,
    keys: Keys,
    local: LocalSettings,
    environ: Mapping[str, str] = os.environ,
    *,
    own: Collection[str] = (),
) -> Choice:
    """Choose the first provider in the order above that can be reached; `own` are those of the settings.

    Raises:
        ConfigError: the explicit one does not exist.
        ProviderError: none can be reached.
    """
    if explicit:
        check_name(explicit, own)
        return Choice(provider=explicit, why="it was asked for")
    for vendor in VENDORS.values():
        if place := key_place(vendor, keys, environ):
            return Choice(provider=vendor.name, why=f"{place} is set")
    for vendor in VENDORS.values():
        if vendor.key_variable and environ.get(vendor.address_variable, "").strip():
            return Choice(provider=vendor.name, why=f"{vendor.address_variable} is set")
    for name in own:
        return Choice(provider=name, why=f"`providers.{name}` is set")
    if ollama_runs(environ):
        return Choice(provider="ollama", why="Ollama is running")
    if reason := unavailable(local):
        raise ProviderError(
            "No model can be reached. Set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY or "
            f"GEMINI_API_KEY), start Ollama, or use the embedded model: {reason}."
        )
    return Choice(provider="local", why="the embedded model needs no network and no account")


def check_name(name: str, own: Collection[str] = ()) -> None:
    """Check that a provider of ours, of the settings or of a plugin has a name.

    Raises:
        ConfigError: none has it.
    """
    if name not in (*NAMES, *own) and name not in (plugins := plugin_names("providers")):
        raise ConfigError(f"There is no provider {name!r}: {did_you_mean(name, (*NAMES, *own, *plugins))}")


def ollama_runs(environ: Mapping[str, str]) -> bool:
    """Check whether something listens at Ollama's address. A fifth of a second is enough on one machine."""
    try:
        url = urlsplit(address_of(VENDORS["ollama"], environ))
        with socket.create_connection((url.hostname or "127.0.0.1", url.port or 11434), timeout=0.2):
            return True
    except (OSError, ValueError):
        return False
