"""A recipe as a form shows it, and the recipe that a form describes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from weft.errors import ConfigError
from weft.sources.catalogue import check_sources
from weft.types.codec import to_dict
from weft.types.recipe import Recipe, parse
from weft.types.section import Keep

_LIMITS = ("max_tokens", "memory_tokens", "history_tokens", "reserved_response_tokens")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_ENGINE_LAYERS = ("history", "message")
"""Layers that every recipe has: they are moved, and never switched off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """A layer as the form shows it. `at` is its place in the recipe that the draft began with."""

    at: int
    source: str
    title: str
    keep: Keep
    share: float
    max_tokens: int | None
    is_fixed: bool


def rows_of(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of a recipe in their order."""
    return [
        LayerRow(
            at=at,
            source=layer.source,
            title=layer.title or layer.tag or str(layer.options.get("kind", "")),
            keep=layer.keep,
            share=layer.share,
            max_tokens=layer.max_tokens,
            is_fixed=layer.source in _ENGINE_LAYERS,
        )
        for at, layer in enumerate(recipe.layers)
    ]


def draft_text(base: Recipe, form: Mapping[str, str], *, name: str) -> str:
    """Write the recipe that a form describes as TOML.

    Raises:
        ConfigError: a value is no number, or the recipe is not valid.
    """
    data: dict[str, Any] = to_dict(base) | {"name": name}
    data.pop("home", None)  # the folder of another system stays that system's
    for limit in _LIMITS:
        number = _whole(form.get(limit, ""), limit)
        if number is None:
            data["limits"].pop(limit, None)
        else:
            data["limits"][limit] = number
    layers = []
    for at in _order(form.get("order", ""), len(base.layers)):
        source = base.layers[at].source
        if source in _ENGINE_LAYERS or form.get(f"on-{at}") == "on":
            layers.append(_layer(data["layers"][at], form, at))
    data["layers"] = layers
    text = tomlkit.dumps(data)
    check_sources(parse(text, where=f"recipe {name!r}"))
    return text


def check_name(name: str, taken: Sequence[str]) -> str:
    """Return a name for a recipe that a person saves.

    Raises:
        ConfigError: it is no name for a file, or one of Weft's own recipes has it.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError("A recipe's name has letters, digits, - and _: choose another one.")
    if name in taken:
        raise ConfigError(f"{name!r} comes with Weft and stays as it is: choose another name.")
    return name


def _layer(data: Mapping[str, Any], form: Mapping[str, str], at: int) -> dict[str, Any]:
    layer = dict(data)
    if layer["source"] == "message":
        return layer  # it has nothing to limit
    share = form.get(f"share-{at}", "").strip()
    if keep := form.get(f"keep-{at}", ""):
        layer["keep"] = keep
    layer.pop("max_tokens", None)
    if (most := _whole(form.get(f"max-{at}", ""), f"{layer['source']}: tokens")) is not None:
        layer["max_tokens"] = most
    try:
        number = float(share or 0)
    except ValueError:
        raise ConfigError(f"{layer['source']}: the share {share!r} is no number from 0 to 1.") from None
    layer.pop("share", None)
    return layer | ({"share": number} if number else {})


def _order(text: str, count: int) -> list[int]:
    """Return the places of layers in the order that a form has."""
    try:
        order = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        order = []
    if sorted(order) != list(range(count)):
        raise ConfigError("The order of the layers is not complete: load the page again.")
    return order


def _whole(text: str, what: str) -> int | None:
    text = text.strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"{what}: {text!r} is no whole number.")
    return int(text)
