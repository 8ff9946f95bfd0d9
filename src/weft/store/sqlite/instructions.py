"""Standing instructions of people, with those that have ended."""

from __future__ import annotations

import builtins
import time
from secrets import token_hex

import apsw

from weft.errors import StoreError, UnknownName
from weft.store.instruction_limits import problem_with_instruction
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.identity import PERSON
from weft.store.sqlite.rows import fetch, next_seq, storable
from weft.types.instruction import StandingInstruction, instruction_key, numbered_instruction, without_copies

_ALL = (
    "select instructions.id, text, pinned, coalesce(messages.session_id, '') as session_id, "
    "messages.seq as message, instructions.created_at, ended_at "
    f"from instructions left join messages on messages.id = message_id where person = {PERSON}"
)
_NOW = f"{_ALL} and ended_at is null order by began_seq, instructions.id"
_ENDED = (
    f"{_ALL} and ended_at is not null and messages.session_id = ?2 "
    "order by ended_at desc, instructions.id limit ?3"
)
_TAKEN_BACK = 0
"""`began_seq` and `ended_seq` of an instruction that `/undo` took back: nothing is left there to undo."""


class SqliteInstructions(Repository):
    async def list(self, sender: str) -> builtins.list[StandingInstruction]:
        return without_copies(await self._fetch(StandingInstruction, _NOW, sender))

    async def list_ended(
        self, sender: str, session_id: str, limit: int
    ) -> builtins.list[StandingInstruction]:
        return without_copies(await self._fetch(StandingInstruction, _ENDED, sender, session_id, limit))

    async def add(
        self, sender: str, text: str, *, pinned: bool = False, source: tuple[str, int] | None = None
    ) -> StandingInstruction:
        text = storable(text.strip())

        def work(db: apsw.Connection) -> StandingInstruction:
            active = fetch(db, StandingInstruction, _NOW, sender)
            same = [one for one in active if instruction_key(one.text) == instruction_key(text)]
            for one in same:
                if one.pinned or not pinned:
                    return one
            if problem := problem_with_instruction(text, [one.text for one in active if one.pinned]):
                raise StoreError(problem)
            now, number, new = time.time(), _next_number(db), token_hex(8)
            _end(db, same, now, number)
            message = "(select id from messages where session_id = ?5 and seq = ?6)"
            db.execute(
                "insert into instructions(id, person, text, pinned, message_id, created_at, began_seq) "
                f"values(?2, {PERSON}, ?3, ?4, {message}, ?7, ?8)",
                (sender, new, text, int(pinned), *(source or ("", 0)), now, number),
            )
            return fetch(db, StandingInstruction, f"{_ALL} and instructions.id = ?2", sender, new)[0]

        return await self._write(work)

    async def remove(self, sender: str, which: str) -> StandingInstruction:
        def work(db: apsw.Connection) -> StandingInstruction:
            active = fetch(db, StandingInstruction, _NOW, sender)
            chosen = numbered_instruction(without_copies(active), which)
            if chosen is None:
                raise UnknownName(
                    f"There is no standing instruction {which!r}: `/instructions` and "
                    "`weft instructions list` show their numbers."
                )
            copies = [one for one in active if instruction_key(one.text) == instruction_key(chosen.text)]
            _end(db, copies, time.time(), _next_number(db))
            forget_epochs(db, "forget")
            return chosen

        return await self._write(work)

    async def last_change(self, sender: str) -> StandingInstruction | None:
        newest = "max(began_seq, coalesce(ended_seq, 0)) desc, began_seq desc"
        query = f"{_ALL} and began_seq > {_TAKEN_BACK} order by {newest}, instructions.id limit 1"
        return next(iter(await self._fetch(StandingInstruction, query, sender)), None)

    async def undo(self, sender: str, instruction_id: str) -> bool:
        def work(db: apsw.Connection) -> bool:
            mine = f"from instructions where person = {PERSON}"
            newest = f"select max(began_seq, coalesce(ended_seq, 0)) {mine} and id = ?2"
            number = db.execute(f"{newest} and began_seq > {_TAKEN_BACK}", (sender, instruction_id)).get
            if number is None:
                return False
            # An instruction that was pinned ended its copy with the number of its own beginning.
            db.execute(
                f"update instructions set ended_at = ?3, began_seq = {_TAKEN_BACK}, "
                f"ended_seq = {_TAKEN_BACK} where person = {PERSON} and began_seq = ?2",
                (sender, number, time.time()),
            )
            db.execute(
                f"update instructions set ended_at = null, ended_seq = null where person = {PERSON} "
                "and ended_seq = ?2",
                (sender, number),
            )
            forget_epochs(db, "undo")
            return True

        return await self._write(work)


def _next_number(db: apsw.Connection) -> int:
    """Return the number of a change, inside a transaction: changes are ordered by it, not by their times."""
    return int(db.execute(f"select {next_seq('instructions', 'began_seq', 'ended_seq')}").get)


def _end(db: apsw.Connection, instructions: list[StandingInstruction], now: float, number: int) -> None:
    for one in instructions:
        db.execute("update instructions set ended_at = ?, ended_seq = ? where id = ?", (now, number, one.id))
