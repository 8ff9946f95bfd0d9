"""The program `weft`, which is also `python -m weft`."""

import atexit
import gc
import os
import sys
from importlib import import_module

from weft.cli.environment import hide_environment
from weft.cli.interrupt import end_on_interrupt


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, also while it is still being imported."""
    end_on_interrupt()
    hide_environment()
    gc.disable()  # nothing that is imported is garbage: looking for some takes 5 ms until `--help` is there
    codes: list[int] = []
    if not atexit._ncallbacks():  # the first handler runs last: it must skip nobody else's
        atexit.register(_leave, codes)
    try:
        import_module("weft.cli.main").main()
    except SystemExit as end:
        codes += [end.code] if isinstance(end.code, int) else []
        raise


def _leave(codes: list[int]) -> None:
    """End the process without freeing its memory piece by piece, which takes 15 ms.

    All threads have ended and all other exit handlers have run. A program that fails has no code here.
    """
    for code in codes:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
