"""What people need to test their own agents. It ships with the package; nothing of ours imports it."""

from weft.providers.scripted import ScriptedProvider
from weft.store.in_memory import InMemoryMessages
from weft.testing.store import (
    InMemoryBlocks,
    InMemoryFacts,
    InMemoryInstructions,
    InMemoryRecall,
    InMemoryStore,
    InMemorySummaries,
    InMemoryTasks,
)
from weft.testing.vendors import LoopbackVendor, Refusal, SentRequest

__all__ = [
    "InMemoryBlocks",
    "InMemoryFacts",
    "InMemoryInstructions",
    "InMemoryMessages",
    "InMemoryRecall",
    "InMemoryStore",
    "InMemorySummaries",
    "InMemoryTasks",
    "LoopbackVendor",
    "Refusal",
    "ScriptedProvider",
    "SentRequest",
]
