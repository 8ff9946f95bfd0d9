"""Rules about the order and number of tool calls within a turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from weft.errors import ConfigError, did_you_mean
from weft.types.codec import Json
from weft.types.escape import one_line

RuleKind = Literal["exit_loop", "continue_loop", "max_calls", "start_constraint", "requires_prior"]


@dataclass(frozen=True, slots=True)
class ToolRule(Json):
    """One rule about one tool. Made by the named constructors."""

    tool: str
    kind: RuleKind
    limit: int = 0
    prior: str = ""

    @classmethod
    def exit_loop(cls, tool: str) -> ToolRule:
        """Make a rule: calling the tool ends the turn."""
        return cls(tool, "exit_loop")

    @classmethod
    def continue_loop(cls, tool: str) -> ToolRule:
        """Make a rule: calling the tool never ends the turn."""
        return cls(tool, "continue_loop")

    @classmethod
    def max_calls(cls, tool: str, limit: int) -> ToolRule:
        """Make a rule: the tool may be called this often in a turn."""
        return cls(tool, "max_calls", limit=limit)

    @classmethod
    def start_constraint(cls, tool: str) -> ToolRule:
        """Make a rule: the tool must be called before any other."""
        return cls(tool, "start_constraint")

    @classmethod
    def requires_prior(cls, tool: str, prior: str) -> ToolRule:
        """Make a rule: the tool may be called only after another one."""
        return cls(tool, "requires_prior", prior=prior)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str) -> ToolRule:
        """Read a rule as people write it: `tool`, and the kind with its value, such as `max_calls = 3`.

        Raises:
            ConfigError: it names what is wrong and where.
        """
        kinds = [name for name in table if name != "tool"]
        tool = table.get("tool")
        if not isinstance(tool, str) or not tool.strip() or len(kinds) != 1:
            raise ConfigError(f"{where} needs a `tool` and one of {', '.join(get_args(RuleKind))}.")
        value = table[kinds[0]]
        kind = next((known for known in get_args(RuleKind) if known == kinds[0]), None)
        if kind is None:
            raise ConfigError(f"{where} is no rule: {did_you_mean(kinds[0], get_args(RuleKind))}")
        if kind == "max_calls":
            if not str(value).isdecimal():
                raise ConfigError(f"{where}: `max_calls` is {value!r}, and must be a number.")
            return cls.max_calls(tool, int(value))
        if kind == "requires_prior":
            if not isinstance(value, str) or not value.strip():
                raise ConfigError(f"{where}: `requires_prior` must name the other tool.")
            return cls.requires_prior(tool, value)
        if str(value).lower() != "true":
            raise ConfigError(f"{where}: `{kind}` is {value!r}: write true, or leave the rule out.")
        return cls(tool, kind)

    def sentence(self) -> str:
        """Return the rule in words, for the model."""
        tool, prior = one_line(self.tool), one_line(self.prior)
        return {
            "start_constraint": f"Call `{tool}` first before any other tools",
            "exit_loop": f"The conversation will end after calling `{tool}`",
            "continue_loop": f"The conversation will be continued after calling `{tool}`",
            "max_calls": f"Call `{tool}` at most {self.limit} times",
            "requires_prior": f"Call `{tool}` only after calling `{prior}`",
        }[self.kind]
