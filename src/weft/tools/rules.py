"""Rules about tool calls, enforced in the course of one turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from weft.types.rules import ToolRule


class RuleWatch:
    """Knows which calls were made in a turn, and what the rules say to the next one.

    What must come first or before is done once it succeeded; what is limited is counted with every call that
    was let through, whether it succeeded or not.
    """

    def __init__(self, rules: Iterable[ToolRule] = ()) -> None:
        self._rules = tuple(rules)
        self._made = Counter[str]()
        self._done = set[str]()

    def unmet(self, offered: Collection[str]) -> list[str]:
        """Warn of rules that cannot be followed, because the tool they want first is not offered."""
        wanted = [(rule, rule.tool) for rule in self._rules if rule.kind == "start_constraint"]
        wanted += [(rule, rule.prior) for rule in self._rules if rule.kind == "requires_prior"]
        return [
            f"The rule {rule.sentence()!r} cannot be followed: there is no tool {tool!r}."
            for rule, tool in wanted
            if tool not in offered
        ]

    def waits(self, tool: str) -> bool:
        """Return whether a call must wait for the results of the calls before it."""
        return any(
            rule.kind == "start_constraint" or (rule.kind == "requires_prior" and rule.tool == tool)
            for rule in self._rules
        )

    def refusal(self, tool: str) -> str | None:
        """Return why a call is not allowed now, in words for the model; None if it is."""
        broken = next((rule for rule in self._rules if self._breaks(tool, rule)), None)
        return None if broken is None else f"refused by a rule: {broken.sentence()}."

    def called(self, tool: str) -> None:
        self._made[tool] += 1

    def succeeded(self, tool: str) -> None:
        self._done.add(tool)

    def ends(self, tools: Collection[str]) -> bool:
        """Return whether these calls end the turn: one of them ends it, and none continues it."""
        kinds = {rule.kind for rule in self._rules if rule.tool in tools}
        return "exit_loop" in kinds and "continue_loop" not in kinds

    def _breaks(self, tool: str, rule: ToolRule) -> bool:
        if rule.kind == "start_constraint":
            first = {other.tool for other in self._rules if other.kind == "start_constraint"}
            return tool not in first and rule.tool not in self._done
        if rule.tool != tool:
            return False
        if rule.kind == "max_calls":
            return self._made[tool] >= rule.limit
        return rule.kind == "requires_prior" and rule.prior not in self._done
