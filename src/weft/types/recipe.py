"""Recipes: how a context is put together, as data.

A recipe is an ordered list of layers with limits and fixed texts, written in TOML. The five that come
with Weft are in the folder `recipes`; anyone can write a sixth. `load` is the only function among the plain
values that opens a file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.errors import ConfigError, did_you_mean
from weft.types.codec import Json, from_dict, key, to_dict
from weft.types.context import ONE_SHOT_PROMPT, Context, Form
from weft.types.limits import ContextConfig, ModelContextLimits, RecursiveSummarization, Truncate
from weft.types.section import Keep, Place
from weft.types.session import SessionRule

SkillsMode = Literal["full", "readOnDemand", "summary", "triggered"]
Reload = Literal["startup", "per_turn", "ttl"]
Gate = Literal["always", "keywords", "never"]

FOLD_AT, FOLD_TO = 0.85, 0.25
"""When the history of an epoch is folded, and how far, as shares of its room."""
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PACKAGED = Path(__file__).parent.parent / "recipes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(Json):
    """One place in a recipe, filled by one source.

    `options` holds the keys that only this source knows, as they are written. A builder checks them.
    """

    REST: ClassVar = "options"

    source: str
    keep: Keep = Keep.PREFERRED
    title: str = ""
    tag: str = ""
    share: float = 0.0
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gives_way(self) -> bool:
        """Whether the layer may lose pieces when room is short."""
        return self.source == "history" or (self.source != "message" and self.keep != Keep.ALWAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRule(Json):
    """The rule for which part of the history is shown, and where it may be cut.

    In a recipe with epochs the history is folded when it passes the share `fold_at` of its room, and then
    down to the share `fold_to`.
    """

    max_messages: int | None = None
    max_tokens: int | None = None
    strategy: Literal["none", "drop_oldest", "truncate", "mask", "summarize"] = "drop_oldest"
    fold_at: float = FOLD_AT
    fold_to: float = FOLD_TO
    unit: Literal["message", "exchange"] = "exchange"
    keep_recent: int = 100
    chunk_size: int = 20
    summarization_model: str = ""
    roles: tuple[str, ...] = ("system", "user", "assistant", "tool")

    def overridden(self, config: ContextConfig) -> HistoryRule:
        """Return the rule with what the caller of a build sets over it."""
        cap = config.max_messages_cap
        rule = self if cap is None else replace(self, max_messages=cap)
        match config.compression_strategy:
            case None:
                return rule
            case Truncate(keep_recent=keep_recent):
                return replace(rule, strategy="truncate", keep_recent=keep_recent)
            case RecursiveSummarization(chunk_size=chunk_size, summarization_model=model):
                return replace(rule, strategy="summarize", chunk_size=chunk_size, summarization_model=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsRule(Json):
    """The rule for which of Weft's own tools are offered, and how many rounds of calls a turn has."""

    builtin: tuple[Literal["memory", "facts", "tasks", "results", "history"], ...] = ()
    max_rounds: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Json):
    """How one kind of assistant builds its context. `weft docs recipes` explains every key.

    `home` is the workspace of the system that it reproduces: it is used if there is one and none was named.
    `file` is where it was read from, for error messages.
    """

    name: str
    description: str = ""
    form: Form = "parts"
    one_shot_prompt: str = field(default=ONE_SHOT_PROMPT, metadata={"key": "one_shot"})
    unknown_role: Literal["user", "assistant", "reject", "keep"] = "user"
    tokens: Literal["chars/4", "chars/5", "exact"] = "exact"
    stability: Literal["live", "epoch"] = "live"
    overflow: Literal["send", "error"] = "error"
    reload: Reload = "per_turn"
    ask: Literal["layers", "one_shot"] = "layers"
    recall_gate: Gate = "always"
    ttl_seconds: float = 30.0
    join: str = "\n\n"
    workspace_path: str | None = None
    home: str | None = None
    give_way: tuple[str, ...] = ()
    limits: ModelContextLimits
    history: HistoryRule = HistoryRule()
    session: SessionRule = SessionRule()
    tools: ToolsRule = ToolsRule()
    layers: tuple[Layer, ...]
    file: str = field(default="", compare=False, repr=False, metadata={"private": True})

    def __post_init__(self) -> None:
        check(self)

    @property
    def where(self) -> str:
        """The recipe in the words of an error message: its file, or its name."""
        return self.file or f"recipe {self.name!r}"

    @staticmethod
    def load(source: str | Path) -> Recipe:
        """Load a recipe by its name, or from a TOML file. Sources check their options when one is used.

        Raises:
            ConfigError: no such recipe, or the file is not a valid one.
        """
        if str(source) in packaged():
            return _load_packaged(str(source))
        path = Path(source).expanduser()
        if path.suffix != ".toml" and not _is_file(path):
            raise ConfigError(f"There is no recipe {str(source)!r}: {did_you_mean(str(source), packaged())}")
        return parse(read_recipe_text(path), where=str(path))

    def one_shot(self, message: str) -> Context:
        """Return this recipe's short prompt with one message and nothing else."""
        return Context(system_prompt=self.one_shot_prompt, current_message=message)

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with other values, by the names people use for them.

        A value for a layer that the recipe does not have changes nothing.

        Raises:
            ConfigError: a name is unknown, or the value does not fit.
        """
        data: dict[str, Any] = to_dict(self)
        for name, value in changes.items():
            if name == "max_context_tokens" and isinstance(value, int):
                resized = self.limits.resized(value)
                data["limits"] |= {
                    "max_tokens": value,
                    "reserved_response_tokens": resized.reserved_response_tokens,
                }
            elif name in _PART_VALUES:
                part, option = _PART_VALUES[name]
                data.setdefault(part, {})[option] = value
            elif name in _LAYER_VALUES:
                source, option = _LAYER_VALUES[name]
                for layer in (x for x in data["layers"] if x["source"] == source):
                    layer[option] = value
            else:
                data[self._key(name)] = str(value) if isinstance(value, Path) else to_dict(value)
        return from_dict(Recipe, data, where=f"recipe {self.name!r}", error=ConfigError)

    def layer(self, source: str) -> Layer | None:
        """Return the first layer that this source fills."""
        return next((layer for layer in self.layers if layer.source == source), None)

    def option(self, source: str, name: str) -> Any:
        """Return an option of the first layer of a source; None without such a layer or option."""
        layer = self.layer(source)
        return layer.options.get(name) if layer is not None else None

    @property
    def history_at(self) -> int:
        """The position of the history among the layers."""
        return next(at for at, layer in enumerate(self.layers) if layer.source == "history")

    @property
    def places(self) -> tuple[Place, ...]:
        """The place of each layer: before the history with the instructions, after it with the message."""
        before = self.history_at + 1
        return (Place.SYSTEM,) * before + (Place.MESSAGE,) * (len(self.layers) - before)

    @property
    def tagged(self) -> bool:
        """Whether sections of this recipe have tags of ours."""
        return any(layer.tag or layer.source == "blocks" for layer in self.layers)

    def order_of_giving_way(self) -> tuple[int, ...]:
        """Return which layers lose their place first: `give_way`, history, `if_room`, then `preferred`."""
        backwards = [(at, self.layers[at]) for at in reversed(range(len(self.layers)))]
        soft = [(at, layer) for at, layer in backwards if layer.gives_way]
        order = [at for source in self.give_way for at, layer in soft if layer.source == source]
        order += [at for at, layer in soft if layer.source == "history"]
        order += [at for at, layer in soft if layer.keep == Keep.IF_ROOM]
        order += [at for at, layer in soft if layer.keep == Keep.PREFERRED]
        return tuple(dict.fromkeys(order))

    def _key(self, name: str) -> str:
        """Return the name in TOML of one of the recipe's own values."""
        own = {f.name: key(f) for f in fields(self) if f.name != "file"} | {"one_shot": "one_shot"}
        if name not in own:
            known = own | _PART_VALUES | _LAYER_VALUES
            raise ConfigError(f"A recipe has no value {name!r}: {did_you_mean(name, known)}")
        return own[name]


_PART_VALUES = {
    "max_context_tokens": ("limits", "max_tokens"),
    "memory_tokens": ("limits", "memory_tokens"),
    "history_tokens": ("limits", "history_tokens"),
    "reserved_response_tokens": ("limits", "reserved_response_tokens"),
    "max_history_messages": ("history", "max_messages"),
}
_LAYER_VALUES = {
    "skills_mode": ("skills", "mode"),
    "max_memory_entries": ("memory_file", "max_entries"),
}
"""Where `Recipe.replace` finds values inside a part or a layer, by the names people use for them."""


def packaged() -> tuple[str, ...]:
    """Return the names of the recipes that come with Weft."""
    return tuple(sorted(path.stem for path in _PACKAGED.glob("*.toml")))


def packaged_text(name: str) -> str:
    """Return the TOML of a packaged recipe."""
    return read_recipe_text(_PACKAGED / f"{name}.toml")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_recipe_text(path: Path) -> str:
    """Read the text of a recipe's file. Raises ConfigError."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no recipe file {str(path)!r}: check its path.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"The recipe {path} is not UTF-8: save it as UTF-8 text.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"The recipe {str(path)!r} cannot be read: {reason}.") from error


@cache
def _load_packaged(name: str) -> Recipe:
    return parse(packaged_text(name), where=f"recipe {name!r}")


def parse(text: str, *, where: str) -> Recipe:
    """Parse a recipe from TOML text.

    Raises:
        ConfigError: it names the key and what would be right.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.") from error
    recipe = from_dict(Recipe, data, where=where, unknown="refuse", error=ConfigError)
    return replace(recipe, file=where)


def check(recipe: Recipe) -> None:
    """Check that the parts of a recipe agree with each other.

    Raises:
        ConfigError: a layer is missing, or numbers cannot be met.
    """
    where = f"recipe {recipe.name!r}"
    if not recipe.name.strip():
        raise ConfigError("A recipe must have a name: receipts call it by that.")
    sources = [layer.source for layer in recipe.layers]
    if sources.count("history") != 1 or sources.count("message") != 1 or sources[-1] != "message":
        raise ConfigError(f"{where} must have one 'history' layer, and one 'message' layer as its last.")
    soft = {layer.source for layer in recipe.layers if layer.gives_way}
    for source in recipe.give_way:
        if source not in soft:
            raise ConfigError(f"{where} names {source!r} in `give_way`: {did_you_mean(source, soft)}")
    _check_stability(recipe, where)
    for layer in recipe.layers:
        if layer.tag and not _TAG.fullmatch(layer.tag):
            raise ConfigError(f"{where} has the tag {layer.tag!r}: a tag has letters, digits, - and _ only.")
        if layer.keep == Keep.ALWAYS and layer.max_tokens is not None:
            raise ConfigError(f"{where} keeps {layer.source!r} always, so `max_tokens` cannot limit it.")
    _check_numbers(recipe, where)
    recipe.limits.check()


def _check_stability(recipe: Recipe, where: str) -> None:
    """Refuse keys of the history that would do nothing in a recipe of this stability."""
    rule = recipe.history
    if recipe.stability == "live":
        if (rule.fold_at, rule.fold_to) != (FOLD_AT, FOLD_TO) or rule.strategy == "mask":
            raise ConfigError(
                f"{where} has `fold_at`, `fold_to` or the strategy 'mask', which only do something with "
                '`stability = "epoch"`: leave them out, or set that.'
            )
        return
    if rule.strategy in ("none", "drop_oldest") or rule.unit != "exchange":
        raise ConfigError(
            f'{where} has `stability = "epoch"`, which does nothing for a history that is cut anew in every '
            "turn: set `history.strategy` to 'summarize', 'truncate' or 'mask', and `unit` to 'exchange'."
        )
    if not 0 < rule.fold_to <= rule.fold_at / 2 <= 0.5:
        raise ConfigError(
            f"{where} has fold_at = {rule.fold_at:g} and fold_to = {rule.fold_to:g}: `fold_at` must be at "
            "most 1, and `fold_to` at most half of it."
        )


def _check_numbers(recipe: Recipe, where: str) -> None:
    shares = sum(layer.share for layer in recipe.layers)
    if not (shares <= 1.0 and all(layer.share >= 0.0 for layer in recipe.layers)):
        raise ConfigError(f"{where} has shares that add up to {shares:g}: they must lie between 0 and 1.")
    history = recipe.history
    counts: list[float | None] = [history.max_messages, history.max_tokens, history.keep_recent]
    counts.append(history.chunk_size - 1)
    counts += [recipe.session.idle_minutes, recipe.tools.max_rounds]
    counts += [layer.max_tokens for layer in recipe.layers]
    if any(number is not None and number < 0 for number in counts) or not 0 <= recipe.ttl_seconds < inf:
        raise ConfigError(f"{where} has a limit below zero: use zero for none, or leave it out.")
