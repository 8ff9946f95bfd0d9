"""Tools for facts: short things about the person that are shown in every conversation."""

from __future__ import annotations

from weft.errors import ToolError, did_you_mean
from weft.store.people import Facts
from weft.tools.base import Tool
from weft.tools.builtin import SOURCE
from weft.tools.function import tool_from
from weft.types.escape import one_line
from weft.types.request import Caller


class FactTools:
    """What is known about a person. The caller says about whom, never the model."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    async def remember_fact(self, key: str, value: str, caller: Caller) -> str:
        """Remember a short fact about the person, such as their name, home, work or a preference.

        Use this when the person says something lasting about themselves, even without being asked to. A new
        value replaces the old one; the history keeps both.

        Args:
            key: A short name in lower case, such as city or favorite_tea.
            value: The fact itself in a few words, such as Lisbon.
        """
        key = key.strip().lower().replace(" ", "_")
        await self._facts.set(caller.sender, key, value, by_model=True, asked_by=", ".join(caller.outside))
        caller.changes.append(f"remembered {one_line(key)}: {one_line(value)}")
        return f"remembered: {key} is {value.strip()}"

    async def forget_fact(self, key: str, caller: Caller) -> str:
        """Forget a fact about the person, when they ask for it or when it is no longer true.

        Args:
            key: The key of the fact, as it is listed.
        """
        keys = [fact.key for fact in await self._facts.list(caller.sender)]
        wanted = next((known for known in keys if known.lower() == key.strip().lower()), None)
        if wanted is None or not await self._facts.delete(caller.sender, wanted):
            raise ToolError(f"nothing is known under {key!r}: {did_you_mean(key, keys)}")
        caller.changes.append(f"forgot {one_line(wanted)}")
        return f"forgotten: {wanted}"


def fact_tools(facts: Facts) -> list[Tool]:
    tools = FactTools(facts)
    return [
        tool_from(tools.remember_fact, source=SOURCE, kind="memory", order="remember"),
        tool_from(tools.forget_fact, source=SOURCE, kind="memory", order="forget"),
    ]
