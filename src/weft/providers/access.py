"""How a vendor is reached: its address, its key, and how patient we are. A key is never shown or stored."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from weft.errors import ConfigError, did_you_mean
from weft.plugins import plugin_names
from weft.wire.vendor import Vendor
from weft.wire.vendors import VENDORS

Keys = Mapping[str, str]
"""Where the key of each vendor is: itself, `file:PATH`, `command:WORDS` or `env:NAME`."""
_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How long to wait for a vendor, and how often to try again."""

    connect_seconds: float = 10.0
    silence_seconds: float = 120.0
    retries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """A provider of the owner's own: a server that speaks the protocol of one of ours at another address.

    `key` is the key itself, `file:PATH`, `command:WORDS` or `env:NAME`; many servers need none.
    """

    kind: str = "openai"
    url: str
    key: str = field(default="", repr=False)
    model: str = ""


def own_vendor(name: str, settings: ProviderSettings) -> Vendor:
    """Return the vendor of a provider of the owner's own."""
    url = settings.url.strip().rstrip("/")
    return replace(
        VENDORS[settings.kind],
        name=name,
        address=url if "//" in url else f"http://{url}",
        address_variable="",
        key_variable="",
        key_name=name,
        default_model=settings.model,
        tells_windows=True,
        takes_cache_key=False,
    )


def check_providers(providers: Mapping[str, ProviderSettings], reserved: Collection[str], where: str) -> None:
    """Check the names, kinds and addresses of the owner's providers.

    Raises:
        ConfigError: one of them is wrong.
    """
    for name, settings in providers.items():
        if name in reserved or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise ConfigError(f"{where} cannot have a provider named {name!r}: choose another name.")
        if settings.kind not in VENDORS:
            near = did_you_mean(settings.kind, VENDORS)
            raise ConfigError(f"{where}.{name}.kind cannot be {settings.kind!r}: {near}")
        if urlsplit(own_vendor(name, settings).address).scheme not in ("http", "https"):
            raise ConfigError(f"{where}.{name}.url must begin with http:// or https://.")


def check_key_names(keys: Keys, where: str) -> None:
    """Check that each key belongs to a vendor that needs one, or to an installed plugin.

    Raises:
        ConfigError: no vendor has this name.
    """
    known = {_setting(vendor) for vendor in VENDORS.values() if vendor.key_variable}
    if keys.keys() - known:
        known |= set(plugin_names("providers"))
    for name in keys:
        if name not in known:
            raise ConfigError(f"{where} has an unknown key {name!r}: {did_you_mean(name, known)}")


def address_of(vendor: Vendor, environ: Mapping[str, str]) -> str:
    """Return the environment's address of a vendor, or its own."""
    variable = vendor.address_variable
    address = environ.get(variable, "").strip().rstrip("/") if variable else ""
    return (address if "//" in address else f"http://{address}") if address else vendor.address


def key_place(vendor: Vendor, keys: Keys, environ: Mapping[str, str]) -> str:
    """Return the variable or the setting that has the key of a vendor, and nothing if none has."""
    if vendor.key_variable and environ.get(vendor.key_variable, "").strip():
        return vendor.key_variable
    return f"`keys.{_setting(vendor)}`" if vendor.key_variable and keys.get(_setting(vendor)) else ""


def key_of(vendor: Vendor, keys: Keys, environ: Mapping[str, str]) -> str:
    """Read the key of a vendor. At another address than the vendor's own none is needed.

    Raises:
        ConfigError: it has none, or it cannot be read.
    """
    if not vendor.key_variable and not keys.get(_setting(vendor)):
        return ""
    setting = f"keys.{_setting(vendor)}"
    key = environ.get(vendor.key_variable, "").strip() if vendor.key_variable else ""
    key = key or read_secret(keys.get(_setting(vendor), ""), setting, environ)
    if not key and address_of(vendor, environ) != vendor.address:
        return ""
    if not key:
        places = f"set {vendor.key_variable} in the environment, or `{setting}` in the config file"
        raise ConfigError(f"{vendor.name} needs a key: {places}.")
    if not (key.isascii() and key.isprintable()):
        # No header can hold it, and the error of a client would show it.
        raise ConfigError(f"The key of {vendor.name} holds a character that no key has: copy it anew.")
    return key


def _setting(vendor: Vendor) -> str:
    return vendor.key_name or vendor.name


def read_secret(value: str, setting: str, environ: Mapping[str, str]) -> str:
    """Read a secret from where a setting says it is.

    Raises:
        ConfigError: the file or the command of the setting fails, or gives nothing.
    """
    kind, colon, rest = value.partition(":")
    if not colon or kind not in ("file", "command", "env"):
        return value.strip()
    if kind == "env":
        return environ.get(rest.strip(), "").strip()
    secret = _read_file(rest.strip(), setting) if kind == "file" else _run_command(rest, setting)
    if not secret:
        raise ConfigError(f"`{setting}` leads to an empty key: check what it names.")
    return secret


def _read_file(name: str, setting: str) -> str:
    try:
        return Path(os.path.expanduser(name)).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"The file of `{setting}` cannot be read ({reason}): check its path.") from None


def _run_command(line: str, setting: str) -> str:
    """Return the first line that a command writes, such as a password manager's."""
    try:
        done = subprocess.run(  # noqa: S603 - the owner's own setting, run without a shell
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            env=os.environ,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        raise ConfigError(f"The command of `{setting}` failed: try it in a terminal.") from None
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()
