"""The program `weft`, which is also `python -m weft`."""

from importlib import import_module

from weft.cli.environment import hide_environment
from weft.cli.interrupt import end_on_interrupt


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, also while it is still being imported."""
    end_on_interrupt()
    hide_environment()
    import_module("weft.cli.main").main()


if __name__ == "__main__":
    main()
