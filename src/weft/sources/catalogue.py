"""Every source by the name a recipe knows it by, and the layers of a recipe with their sources.

A layer's source is one of ours, one that the program brings, or a plugin of the group `weft.sources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, get_type_hints

from weft.errors import ConfigError, did_you_mean
from weft.plugins import load_plugin, plugin_names
from weft.sources import (
    activity,
    blocks,
    bootstrap,
    facts,
    instructions,
    memory_file,
    recall,
    skills,
    standing,
    summaries,
    tasks,
    tool_docs,
    tool_rules,
)
from weft.sources.base import BuildRequest, Options, SourceFunction
from weft.sources.foreign import ForeignSource, adapt
from weft.types.codec import from_dict, to_dict
from weft.types.recipe import Layer, Recipe
from weft.types.section import Offer

SOURCES: dict[str, SourceFunction] = {
    "activity": activity.offer,
    "blocks": blocks.offer,
    "bootstrap": bootstrap.offer,
    "facts": facts.offer,
    "instructions": instructions.offer,
    "memory_file": memory_file.offer,
    "recall": recall.offer,
    "skills": skills.offer,
    "standing": standing.offer,
    "summaries": summaries.offer,
    "tasks": tasks.offer,
    "tool_docs": tool_docs.offer,
    "tool_rules": tool_rules.offer,
}
_COMMON_KEYS = {"source", "keep", "share", "max_tokens", "title", "tag"}
_REFUSED_KEYS = {
    "blocks": {"title", "tag"},
    "instructions": {"title", "tag"},
    "history": _COMMON_KEYS - {"source", "share"},
    "message": _COMMON_KEYS - {"source"},
}
"""Common keys that would do nothing in the layers of a source. History and message are the engine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLayer:
    """A layer with its source and its checked options.

    A source that `waits` searches, or is a program's. `problem` says that no source of that name is known
    yet. A program may still bring it.
    """

    source: SourceFunction
    options: Any
    waits: bool = False
    problem: str = ""


def open_layers(recipe: Recipe, own: Mapping[str, ForeignSource]) -> tuple[OpenLayer, ...]:
    """Find the source of every layer and check the layer's keys; plugins are loaded here.

    Raises:
        ConfigError: a key or a value is wrong, or a plugin cannot be loaded.
    """
    return tuple(_open(layer, own, f"{recipe.where}.layers[{at}]") for at, layer in enumerate(recipe.layers))


def require_sources(layers: Iterable[OpenLayer]) -> None:
    """Check that every layer has its source. Raises ConfigError."""
    for layer in layers:
        if layer.problem:
            raise ConfigError(layer.problem)


def check_sources(recipe: Recipe) -> None:
    """Check all keys of a recipe's layers, and that their sources are installed. Raises ConfigError."""
    require_sources(open_layers(recipe, {}))


def known_keys(source: str, function: Any = None) -> set[str]:
    """Return the keys that a layer of this source may have."""
    options = _options_class(function or SOURCES.get(source, _no_offer))
    own = {field.name for field in fields(options)} if options else set()
    return _COMMON_KEYS - _REFUSED_KEYS.get(source, set()) | own


def _open(layer: Layer, own: Mapping[str, ForeignSource], where: str) -> OpenLayer:
    source = layer.source
    ours = _no_offer if source in ("history", "message") else SOURCES.get(source)
    if ours is not None:
        return OpenLayer(source=ours, options=_options(layer, ours, where), waits=ours is recall.offer)
    names = plugin_names("sources")
    if source not in own and source not in names:
        hint = did_you_mean(source, {*SOURCES, "history", "message", *own, *names})
        problem = (
            f"{where}.source cannot be {source!r}, which no installed package has in `weft.sources`: {hint}"
        )
        return OpenLayer(source=_no_offer, options=None, problem=problem)
    function = own[source] if source in own else load_plugin("sources", source)
    options = _options(layer, function, where)
    return OpenLayer(source=adapt(source, function), options=options, waits=True)


def _options(layer: Layer, function: Any, where: str) -> Any:
    """Return the options of a layer as its source wants them: checked, or as they are written."""
    options, known = _options_class(function), known_keys(layer.source, function)
    for name in to_dict(layer):
        if name not in known and (options or name in _COMMON_KEYS):
            hint = did_you_mean(name, known)
            raise ConfigError(f"{where} ({layer.source}) has an unknown key {name!r}: {hint}")
    if options is None:
        return layer.options
    try:
        return from_dict(options, layer.options, where=where, unknown="refuse", error=ConfigError)
    except ValueError as error:
        raise ConfigError(f"{where} ({layer.source}): {error}.") from error


@lru_cache(maxsize=64)
def _options_class(function: Any) -> Any:
    """Return the dataclass by which a source annotates its second parameter, if it does."""
    try:
        name = list(signature(function).parameters)[1]
        hint = get_type_hints(function).get(name)
    except (IndexError, NameError, TypeError, ValueError):
        return None
    return hint if is_dataclass(hint) else None


async def _no_offer(request: BuildRequest, options: Options) -> Offer:
    return Offer()
