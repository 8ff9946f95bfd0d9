"""Every source by the name a recipe knows it by. History and message are the engine's own."""

from __future__ import annotations

from weft.sources import (
    activity,
    blocks,
    bootstrap,
    facts,
    instructions,
    memory_file,
    recall,
    skills,
    summaries,
    tasks,
    tool_docs,
    tool_rules,
)
from weft.sources.base import Source

SOURCES: dict[str, Source] = {
    "activity": activity.offer,
    "blocks": blocks.offer,
    "bootstrap": bootstrap.offer,
    "facts": facts.offer,
    "instructions": instructions.offer,
    "memory_file": memory_file.offer,
    "recall": recall.offer,
    "skills": skills.offer,
    "summaries": summaries.offer,
    "tasks": tasks.offer,
    "tool_docs": tool_docs.offer,
    "tool_rules": tool_rules.offer,
}
