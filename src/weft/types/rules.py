"""Rules about the order and number of tool calls within a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
