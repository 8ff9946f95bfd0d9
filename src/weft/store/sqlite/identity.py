"""The identities of people inside queries: which senders and agents are one human."""

from __future__ import annotations

import apsw

from weft.types.person import ASKING_OWNER, OWNER_NAME, OWNER_SENDERS, agent_of, person_of

_OWNERS = ", ".join(f"'{sender}'" for sender in OWNER_SENDERS)
PERSON = (
    "coalesce((select person from links where sender = ?1), "
    f"case when ?1 in ({_OWNERS}) then '{OWNER_NAME}' else ?1 end)"
)
"""The name of the person behind the sender in the first parameter."""


def identities(db: apsw.Connection, person: str) -> list[str]:
    """Return all senders of a person, by the person's name."""
    linked = [str(row[0]) for row in db.execute("select sender from links where person = ?", (person,))]
    own = OWNER_SENDERS if person == OWNER_NAME else (person,)
    return [*linked, *(name for name in own if name not in linked and person_behind(db, name) == person)]


def same_person(db: apsw.Connection, sender: str) -> list[str]:
    """Return all senders of the person behind a sender, the sender itself among them."""
    return identities(db, person_behind(db, sender))


def search_owners(db: apsw.Connection, owner: str) -> list[str]:
    """Return the agents and senders whose items an agent, or a sender, may find: all of one person."""
    person = person_of(owner)
    if person is None and ":" not in owner:
        return [owner]
    senders = same_person(db, owner) if person is None else identities(db, person)
    senders = [sender for sender in senders if sender != ASKING_OWNER]
    agents = () if person is None else map(agent_of, senders)
    return list(dict.fromkeys((owner, *senders, *agents)))


def person_behind(db: apsw.Connection, sender: str) -> str:
    """Return the name of the person behind a sender."""
    return str(db.execute(f"select {PERSON}", (sender,)).get)
