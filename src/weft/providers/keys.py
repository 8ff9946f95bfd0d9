"""Keys of vendors: from the environment, or from where the settings say. They are never shown or stored."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import ConfigError
from weft.providers.vendors import Vendor

_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """Where the key of each vendor is: itself, `file:PATH`, `command:WORDS` or `env:NAME`."""

    anthropic: str = field(default="", repr=False)
    openai: str = field(default="", repr=False)
    openrouter: str = field(default="", repr=False)
    gemini: str = field(default="", repr=False)

    def of(self, vendor: str) -> str:
        return str(getattr(self, vendor.removesuffix("_responses"), ""))


def where(vendor: Vendor, keys: KeySettings, environ: Mapping[str, str]) -> str:
    """What says the key of a vendor: a variable, or a setting. Nothing, if there is none."""
    if not vendor.key:
        return ""
    if environ.get(vendor.key, "").strip():
        return vendor.key
    return f"`keys.{vendor.name.removesuffix('_responses')}`" if keys.of(vendor.name) else ""


def key_of(vendor: Vendor, keys: KeySettings, environ: Mapping[str, str]) -> str:
    """The key of a vendor.

    Raises:
        ConfigError: it has none, or it cannot be read.
    """
    if not vendor.key:
        return ""
    setting = f"keys.{vendor.name.removesuffix('_responses')}"
    found = environ.get(vendor.key, "").strip() or read_secret(keys.of(vendor.name), setting, environ)
    if not found:
        places = f"set {vendor.key} in the environment, or `{setting}` in the config file"
        raise ConfigError(f"{vendor.name} needs a key: {places}.")
    if not (found.isascii() and found.isprintable()):
        # No header can hold it; whoever sends one would say so with the key in the error.
        raise ConfigError(f"The key of {vendor.name} holds a character that no key has: copy it anew.")
    return found


def read_secret(value: str, setting: str, environ: Mapping[str, str]) -> str:
    kind, colon, rest = value.partition(":")
    if not colon or kind not in ("file", "command", "env"):
        return value.strip()
    if kind == "env":
        return environ.get(rest.strip(), "").strip()
    found = _file(rest.strip(), setting) if kind == "file" else _command(rest, setting)
    if not found:
        raise ConfigError(f"`{setting}` leads to an empty key: check what it names.")
    return found


def _file(name: str, setting: str) -> str:
    try:
        return Path(os.path.expanduser(name)).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"The file of `{setting}` cannot be read ({reason}): check its path.") from None


def _command(line: str, setting: str) -> str:
    """The first line that a command writes, such as a password manager's."""
    try:
        done = subprocess.run(  # noqa: S603 - the owner's own setting, run without a shell
            shlex.split(line), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        raise ConfigError(f"The command of `{setting}` failed: try it in a terminal.") from None
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()
