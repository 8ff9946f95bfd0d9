"""What not everybody may read who reads a log: texts of people, models and files."""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = "…"


@dataclass(frozen=True, slots=True, repr=False)
class Redacted:
    """A part of a line that quotes somebody.

    A program and the person at the terminal read it, since it is their own. `weft serve` leaves it out unless
    `logs.content` is set. An error in a line needs no such mark: it is known by its type.
    """

    value: object

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return HIDDEN


class Content(Redacted):
    """What was said, as a key of a line: nobody reads it who did not ask for it."""

    __slots__ = ()

    def __str__(self) -> str:
        return HIDDEN
