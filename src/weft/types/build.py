"""What a context is built for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.types.limits import ContextConfig, ModelContextLimits, ModelInfo
from weft.types.message import ToolDefinition
from weft.types.recipe import HistoryRule, Recipe


@dataclass(frozen=True, kw_only=True)
class BuildSpec:
    """A message with its pictures, the recipe, the caller's limits, and the model with its tools."""

    message: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()
    recipe: Recipe
    config: ContextConfig = ContextConfig()
    model: ModelInfo | None = None
    tools: tuple[ToolDefinition, ...] = ()

    @cached_property
    def wanted_limits(self) -> ModelContextLimits:
        """The limits that were asked for, before the model's window lowers them."""
        return self.config.chosen_limits(self.recipe.limits, self.model)

    @cached_property
    def limits(self) -> ModelContextLimits:
        """The limits that bind."""
        return self.config.limits(self.recipe.limits, self.model)

    @cached_property
    def history_rule(self) -> HistoryRule:
        """The recipe's rule for the history, with what the caller sets over it."""
        return self.recipe.history.overridden(self.config)
