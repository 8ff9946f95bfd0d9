"""The registry of vendors, and what is looked up there by a vendor's name or a model's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.errors import ConfigError, did_you_mean
from weft.types.limits import ASSUMPTION, FROM_SETTINGS, FROM_TABLE, ModelInfo
from weft.types.message import Message
from weft.types.reply import Reply
from weft.wire.anthropic import ANTHROPIC
from weft.wire.gemini import GEMINI
from weft.wire.ollama import OLLAMA
from weft.wire.openai import OPENAI
from weft.wire.openrouter import OPENROUTER
from weft.wire.repair import repair_messages
from weft.wire.responses import RESPONSES
from weft.wire.vendor import Model, Vendor

VENDORS: Mapping[str, Vendor] = {
    vendor.name: vendor for vendor in (ANTHROPIC, OPENAI, RESPONSES, OPENROUTER, OLLAMA, GEMINI)
}
PROVIDERS = tuple(VENDORS)
ASSUMED_WINDOW = 32_768


def find_vendor(provider: str | Vendor) -> Vendor:
    """Return the vendor of a name. A vendor stands for itself.

    Raises:
        ConfigError: no vendor has this name.
    """
    if isinstance(provider, Vendor):
        return provider
    if provider not in VENDORS:
        raise ConfigError(f"There is no provider {provider!r}: {did_you_mean(provider, VENDORS)}")
    return VENDORS[provider]


def find_model(model: str, vendor: Vendor | None = None) -> Model:
    """Return the family of a model.

    A vendor's name before a slash does not count, and a version may be written with a dot or a dash.
    """
    id_ = model.rpartition("/")[2].replace(".", "-")
    rows = [row for each in (vendor, *VENDORS.values()) if each for row in each.models]
    unknown = (vendor or OPENAI).unknown
    return next((row for row in rows if id_.startswith(row.start.replace(".", "-"))), unknown)


def model_info(vendor: Vendor, model: str | None = None, *, window: int | None = None) -> ModelInfo:
    """Describe a model of a vendor; without an id, its default model. A set window wins over the table."""
    id_ = model or vendor.default_model
    row = find_model(id_, vendor)
    info = ModelInfo(
        id=id_,
        provider=vendor.name,
        max_tokens=window or row.window or ASSUMED_WINDOW,
        window_from=FROM_SETTINGS if window else FROM_TABLE,
        takes_window=bool(vendor.show_path),
        **known_of(row),
    )
    return info if window or row.window else assumed(info)


def known_of(row: Model) -> dict[str, Any]:
    """Return what a row says of a model's tokens and of its cache, by the names of `ModelInfo`."""
    return {
        "tokens_ratio": row.ratio,
        "ratios": row.ratios,
        "bytes_per_token": row.bytes_per_token,
        "cache_seconds": row.cache_seconds,
        "cache_read": row.cache_read,
        "cache_write": row.cache_write,
        "cache_min": row.cache_min,
    }


def assumed(info: ModelInfo) -> ModelInfo:
    """Return a model whose window nobody has named, with a note that says so."""
    note = (
        f"The window of {info.id!r} is not known: {info.max_tokens:,} tokens are assumed. "
        f'Set `window` below `[models."{info.id}"]` in the config file, or give --window.'
    )
    return replace(info, window_from=ASSUMPTION, note=note)


def from_wire(provider: str | Vendor, answer: Mapping[str, Any]) -> Reply:
    """Read the reply in a vendor's answer."""
    return find_vendor(provider).from_wire(answer)


def violations(provider: str | Vendor, payload: Mapping[str, Any]) -> list[str]:
    """List what a vendor would refuse in a request. A valid request has no violations."""
    return find_vendor(provider).violations(payload)


def repair(provider: str | Vendor, messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """Return the messages as a vendor accepts them, and a sentence for each repair."""
    return repair_messages(find_vendor(provider).rule, messages)
