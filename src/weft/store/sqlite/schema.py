"""What the store must know of a table and of each of its columns.

`tables.py` has the tables. Their description creates a new database, and drives export, import and purge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

LeftOut = Literal["", "derived", "secret", "local"]
"""Why something is not exported: it can be computed again, is a secret, or concerns this machine only."""


class Holds(Enum):
    """What a column holds, and so what a purge does with it."""

    NUMBER = "a number or a time"
    CODE = "a state, a kind, a hash or a time in words: Weft made it, and nobody's text is in it"
    NAME = "an id or a name, perhaps from outside: a purge replaces it in the same way in all tables"
    NAMES = "JSON of such names"
    TEXT = "text of a person or a model: a purge overwrites it"
    JSON = "JSON with such text in it: a purge overwrites it there"
    EXCERPT = "the beginning of such text, or a sentence that quotes it: a purge overwrites a beginning too"
    BLOCK = "content of a memory block: a purge replaces it with that of the masked block"
    INDEX = "words of texts that are indexed: a purge indexes the texts again"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type and constraints as SQLite takes them, what it holds, and why it is not exported."""

    name: str
    sql: str
    holds: Holds = Holds.NUMBER
    left_out: LeftOut = ""
    is_exact: bool = False
    """Whether every character of its JSON counts, so that an export has it as text."""
    where: str = "true"
    """The rows in which a name is one that a purge replaces."""

    @property
    def is_json(self) -> bool:
        return self.holds in (Holds.JSON, Holds.NAMES) and not self.is_exact

    @property
    def is_bytes(self) -> bool:
        return self.sql.startswith("blob")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, further constraints and indexes, and why none of it is exported.

    `virtual` is the module of a virtual table, with its arguments.
    """

    name: str
    columns: tuple[Column, ...]
    constraints: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    has_rowid: bool = True
    left_out: LeftOut = ""
    virtual: str = ""

    @property
    def exported(self) -> tuple[Column, ...]:
        return () if self.left_out else tuple(column for column in self.columns if not column.left_out)

    @property
    def order(self) -> str:
        """The columns of the primary key, by which the rows of an export are sorted."""
        for constraint in self.constraints:
            if constraint.startswith("primary key"):
                return constraint.removeprefix("primary key").strip(" ()")
        return next(column.name for column in self.columns if "primary key" in column.sql)

    def statements(self) -> list[str]:
        """Return the statements that create the table and its indexes."""
        if self.virtual:
            return [f"create virtual table {self.name} using {self.virtual}"]
        parts = (*(f"{column.name} {column.sql}" for column in self.columns), *self.constraints)
        options = "strict" if self.has_rowid else "strict, without rowid"
        return [f"create table {self.name}({', '.join(parts)}) {options}", *self.indexes]


def table(
    name: str,
    *columns: Column,
    constraints: tuple[str, ...] = (),
    indexes: tuple[str, ...] = (),
    has_rowid: bool = True,
    left_out: LeftOut = "",
) -> Table:
    """Describe a table, column by column."""
    return Table(name, columns, constraints, indexes, has_rowid, left_out)


def names(*columns: str, sql: str = "text not null") -> tuple[Column, ...]:
    """Describe columns of ids and names, also those that come from outside."""
    return tuple(Column(column, sql, Holds.NAME) for column in columns)


def codes(*columns: str, sql: str = "text not null") -> tuple[Column, ...]:
    """Describe columns of states, kinds, hashes and times in words."""
    return tuple(Column(column, sql, Holds.CODE) for column in columns)


def texts(*columns: str, sql: str = "text not null") -> tuple[Column, ...]:
    """Describe columns of people's texts."""
    return tuple(Column(column, sql, Holds.TEXT) for column in columns)


def excerpts(*columns: str, sql: str = "text not null") -> tuple[Column, ...]:
    """Describe columns that hold the beginning of people's texts."""
    return tuple(Column(column, sql, Holds.EXCERPT) for column in columns)


def integers(*columns: str, sql: str = "integer not null") -> tuple[Column, ...]:
    return tuple(Column(column, sql) for column in columns)


def times(*columns: str, sql: str = "real not null") -> tuple[Column, ...]:
    """Describe columns of times, in seconds since 1970."""
    return tuple(Column(column, sql) for column in columns)
