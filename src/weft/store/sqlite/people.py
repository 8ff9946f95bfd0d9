"""People: which senders are one human. What belongs to a person moves with a sender who is linked."""

from __future__ import annotations

import builtins
from secrets import token_hex
from typing import Any

import apsw

from weft.errors import ConfigError, did_you_mean
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.identity import PERSON, identities, person_behind
from weft.store.sqlite.index import index_text
from weft.store.sqlite.rows import fetch, storable
from weft.store.sqlite.search import TEXT
from weft.types.memory import Fact
from weft.types.person import OWNER_NAME, OWNER_SENDERS, Person, agent_of, default_person

_KNOWN = """
    select distinct channel || ':' || sender from sessions where channel <> ''
    union select sender from links
    union select channel || ':' || sender from auth_pairings
    union select person from facts where instr(person, ':')
    union select person from instructions where instr(person, ':')
"""


class SqlitePeople(Repository):
    async def find(self, sender: str) -> str:
        return await self._value(str, f"select {PERSON}", sender) or default_person(sender)

    async def list(self) -> builtins.list[Person]:
        def work(db: apsw.Connection) -> builtins.list[Person]:
            people: dict[str, builtins.list[str]] = {OWNER_NAME: []}
            for (sender,) in db.execute(f"{_KNOWN} order by 1"):
                people.setdefault(person_behind(db, sender), []).append(sender)
            return [Person(name=name, senders=tuple(senders)) for name, senders in people.items()]

        return await self._read(work)

    async def senders(self, person: str) -> builtins.list[str]:
        return await self._lookup(lambda db: identities(db, person))

    async def link(self, sender: str, person: str) -> builtins.list[Fact]:
        sender, person = storable(sender.strip()), storable(person.strip())
        _check_sender(sender)

        def work(db: apsw.Connection) -> builtins.list[Fact]:
            target, before = person_behind(db, person), person_behind(db, sender)
            _check_name(target)
            if sender in OWNER_SENDERS and target != OWNER_NAME:
                raise ConfigError(f"{sender} is the owner of this machine and stays so: link others to them.")
            db.execute("insert or replace into links(sender, person) values(?, ?)", (sender, target))
            if before == target:
                return []
            if before == sender:
                _move(db, before, target)
            return _disagreeing(db, target)

        return await self._write(work)

    async def join(self, person: str, channel: str) -> tuple[str, str]:
        name = await self.find(person) if ":" in person else person.strip()
        if name == OWNER_NAME:
            return name, name
        start = f"{channel}:"
        known = [sender for sender in await self.senders(name) if sender.startswith(start) and sender != name]
        sender = next(iter(sorted(known)), f"{start}{name}")
        if await self.find(sender) not in (sender, name):  # somebody who had that name before
            sender = f"{start}{name}:{token_hex(3)}"
        await self.link(sender, name)
        return name, sender.removeprefix(start)

    async def unlink(self, sender: str) -> bool:
        def work(db: apsw.Connection) -> bool:
            db.execute("delete from links where sender = ?", (sender,))
            was_linked = db.changes() > 0
            if was_linked:
                forget_epochs(db, "permission")
            return was_linked

        return await self._write(work)

    async def rename(self, person: str, name: str) -> None:
        person, name = person.strip(), storable(name.strip())
        _check_name(name)

        def work(db: apsw.Connection) -> None:
            known = {person_behind(db, str(row[0])) for row in db.execute(_KNOWN)}
            if person == OWNER_NAME:
                raise ConfigError("The owner of this machine is called 'owner', and keeps that name.")
            if person not in known:
                raise ConfigError(f"Nobody is called {person!r}: {did_you_mean(person, known)}")
            if name in (OWNER_NAME, *known):
                raise ConfigError(f"Somebody is called {name!r} already: choose another name, or link them.")
            for sender in (sender for sender in identities(db, person) if ":" in sender):
                db.execute("insert or replace into links(sender, person) values(?, ?)", (sender, name))
            _move(db, person, name)

        await self._write(work)


def _check_sender(sender: str) -> None:
    channel, colon, id_ = sender.partition(":")
    if not (channel.strip() and colon and id_.strip()):
        raise ConfigError(f"{sender!r} is no sender: write it as CHANNEL:ID, such as telegram:123.")


def _check_name(name: str) -> None:
    if not name or not name.isprintable() or "/" in name or len(name) > 100:
        raise ConfigError(f"A person cannot be called {name!r}: use a short name without a slash.")


def _move(db: apsw.Connection, old: str, new: str) -> None:
    """Give what belongs to a person to another. Nothing is lost: a label that clashes gets another name."""
    for table in ("facts", "instructions"):
        db.execute(f"update {table} set person = ? where person = ?", (new, old))
    before, after = agent_of(old), agent_of(new)
    for block_id, label, is_empty in db.execute(
        "select id, label, trim(rendered) = '' and rendered_version = version from blocks where agent_id = ?",
        (before,),
    ).fetchall():
        clashes = db.execute("select id from blocks where agent_id = ? and label = ?", (after, label)).get
        if clashes and is_empty:
            continue  # an empty block of theirs is not worth a second one
        label = f"{label} ({old})" if clashes else label  # noqa: PLW2901
        db.execute("update blocks set agent_id = ?, label = ? where id = ?", (after, label, block_id))
    db.execute("update archive set agent_id = ? where agent_id = ?", (after, before))
    db.execute(
        "update or ignore block_shares set agent_id = ? where agent_id = ? and block_id not in "
        "(select id from blocks where agent_id = ?)",
        (after, before, after),
    )
    _index_again(db, before, after)


def _index_again(db: apsw.Connection, before: str, after: str) -> None:
    query = (
        f"select source, ref, sender, session_id, at, {TEXT} from items "
        "where agent_id = ? and source in ('block', 'archive')"
    )
    rows: list[Any] = db.execute(query, (before,)).fetchall()
    for source, ref, sender, session_id, at, text in rows:
        block: Any = db.execute("select agent_id, label from blocks where id = ?", (ref,)).fetchone()
        owner, label = block if source == "block" else (after, None)
        indexed = text if label is None else f"{label}\n{text}"
        index_text(db, (source, ref), str(indexed or ""), (owner, sender, session_id), at)


def _disagreeing(db: apsw.Connection, person: str) -> builtins.list[Fact]:
    """Return the facts of a person that have several values, newest first."""
    query = (
        "select key, value, created_at, ended_at from facts where person = ?1 and ended_at is null "
        "and key in (select key from facts where person = ?1 and ended_at is null group by key "
        "having count(distinct value) > 1) order by key, began_seq desc"
    )
    return fetch(db, Fact, query, person)
