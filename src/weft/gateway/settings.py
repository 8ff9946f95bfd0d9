"""Settings of the desk: how many turns run at once, what waits, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Limits that hold for every channel together.

    `at_once` turns run at the same time, and `max_waiting` messages of one conversation wait for theirs. A
    message that comes `while_running` a turn of its conversation waits, steers that turn (the model reads it
    before its next round), or is refused. A question for consent counts as refused after `consent_seconds`.
    Where somebody else's turn needs the consent of the owner, it waits for them, or continues without: then
    the owner only reads what was wanted.
    """

    at_once: int = 8
    max_waiting: int = 20
    while_running: Literal["wait", "steer", "refuse"] = "wait"
    consent_seconds: float = 300.0
    owner_consent: Literal["wait", "continue"] = "wait"
    typing_seconds: float = 4.0
    attempts: int = 8
    stop_seconds: float = 60.0
