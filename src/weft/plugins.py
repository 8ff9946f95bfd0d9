"""Plugins: parts from other packages, found by their entry points.

A plugin is loaded only when the settings or a recipe name it, never because it is installed. Its entry point
is in the group `weft.KIND` and leads to a function that gets the table `[plugins.NAME]` of the settings.
The entry point of a source leads to the source itself: its options are in the recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from weft.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Kind = Literal["channels", "providers", "embedders", "sources", "tools"]


def plugin_names(kind: Kind) -> list[str]:
    """Return the names of the installed plugins of a kind. None of them is loaded."""
    return sorted({entry.name for entry in _entry_points(kind)})


def load_plugin(kind: Kind, name: str) -> Any:
    """Load the plugin of a kind by its name.

    Raises:
        ConfigError: no installed package has it, or it cannot be imported.
    """
    entry = next(iter(_entry_points(kind).select(name=name)), None)
    if entry is None:
        hint = did_you_mean(name, plugin_names(kind))
        raise ConfigError(f"No installed package has a plugin {name!r} for {kind}: {hint}")
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The plugin {name!r} ({entry.value}) cannot be imported ({error}): install its package anew."
        ) from error


def make_plugin(kind: Kind, name: str, settings: Mapping[str, Mapping[str, Any]]) -> Any:
    """Load a plugin, and make the part that it offers with its own table of the settings.

    Raises:
        ConfigError: there is no such plugin, or it refuses its settings.
    """
    make = load_plugin(kind, name)
    try:
        return make(dict(settings.get(name, {})))
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigError(f"The plugin {name!r} refuses `[plugins.{name}]`: {error}.") from error


def _entry_points(kind: Kind) -> EntryPoints:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 30 ms that most runs need not spend

    return entry_points(group=f"weft.{kind}")
