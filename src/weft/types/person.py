"""People: who the senders of messages are, and whose memory belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OWNER_NAME = "owner"
ASKING_OWNER = "ask:owner"
"""The owner in `weft ask`, whose questions are never recalled."""
OWNER_SENDERS = ("app:owner", ASKING_OWNER, "http:owner", "import:owner", "terminal:owner")
"""The owner of the machine, as each of these channels calls them. No other channel can claim the name."""
ASKED_BY = ", asked by "
"""What stands in an author between the agent and the texts of strangers that may be behind a change."""
ASSISTANT = "weft"
"""Whose memory the assistant's own is, and its owner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One human, and the senders (`CHANNEL:ID`) that they write as."""

    name: str
    senders: tuple[str, ...] = ()


def person_author(person: str, way: str) -> str:
    """Name a person as the author of a change, with the way in which they made it."""
    return f"{person} ({way})"


def is_person_author(author: str) -> bool:
    return author.endswith(")")


def author_of(agent_id: str, outside: Sequence[str] = ()) -> str:
    """Name an agent as the author of a change, with the texts of strangers that may be behind it.

    A closing parenthesis at the end would name a person.
    """
    return f"{agent_id}{ASKED_BY}{', '.join(outside).rstrip(')')}" if outside else agent_id


def agent_behind(author: str) -> str:
    """Return the agent of an author without what it was asked by."""
    return author.partition(ASKED_BY)[0]


def default_person(sender: str) -> str:
    """Return the name of the person behind a sender that nobody has linked."""
    return OWNER_NAME if sender in OWNER_SENDERS else sender


def agent_of(person: str) -> str:
    """Return whose memory a person's blocks are in."""
    return ASSISTANT if person == OWNER_NAME else f"{ASSISTANT}/{person}"


def person_of(agent_id: str) -> str | None:
    """Return the person whose memory this is, or None for an agent that belongs to nobody."""
    if agent_id == ASSISTANT:
        return OWNER_NAME
    return agent_id.removeprefix(f"{ASSISTANT}/") if agent_id.startswith(f"{ASSISTANT}/") else None


def shared_label(label: str, owner: str) -> str:
    """Return the name of a shared block beside others of its label: `LABEL@OWNER`."""
    return f"{label}@{person_of(owner) or owner}"
