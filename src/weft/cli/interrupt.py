"""Ctrl-C while the program starts. This module is loaded before all others, and so it imports little."""

from __future__ import annotations

import os
import signal

CODE = 128 + signal.SIGINT


def end_on_interrupt() -> None:
    """End the process without a word when Ctrl-C comes: there is nothing to clean up yet.

    An interrupted import would print a traceback, in part from inside of the interpreter. A process that
    was started to ignore Ctrl-C goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Make Ctrl-C a `KeyboardInterrupt` again, so that a command that runs can clean up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os._exit(CODE)
