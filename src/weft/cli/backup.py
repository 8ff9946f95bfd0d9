"""`weft backup`: a checked copy of the database, made while it is in use."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from weft.cli.options import AsJson, err, say, settings
from weft.cli.stores import with_store
from weft.errors import ConfigError, StoreError

app = typer.Typer(add_completion=False)
_NAME = re.compile(r"weft-\d{8}-\d{6}-\d{6}\.db")
_QUIET_SECONDS = 1.0


@app.command()
def backup(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A new file; with `--keep`, a folder.")],
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="Keep the newest N backups in the folder PATH."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy everything that is kept to one file, while it is in use, and check the copy."""
    database = settings().paths.database
    if not database.exists():
        raise StoreError(f"There is nothing to back up yet: {database} does not exist.")
    place = Path(path).expanduser().absolute()
    target = place if keep is None else place / f"weft-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.db"
    _check_place(place, is_folder=keep is not None)
    started = time.monotonic()
    with _Bar() as bar:
        size = with_store(lambda store: store.backup(target, progress=bar.update))
    seconds = time.monotonic() - started
    removed = [] if keep is None else _remove_oldest(place, keep)
    if as_json:
        report = {"path": str(target), "bytes": size, "seconds": round(seconds, 3), "removed": removed}
        typer.echo(json.dumps(report))
        return
    say(f"{target} is a checked copy ({size / 1_000_000:.1f} MB, {seconds:.1f} s).")
    for name in removed:
        say(f"Removed the older backup {name}.")


def _check_place(place: Path, *, is_folder: bool) -> None:
    if is_folder and place.exists() and not place.is_dir():
        raise ConfigError(f"{place} is a file, and `--keep` needs a folder: name one, or leave `--keep` out.")
    if not is_folder and place.is_dir():
        raise ConfigError(f"{place} is a folder: name a new file in it, or add `--keep N`.")


def _remove_oldest(folder: Path, keep: int) -> list[str]:
    """Remove backups beyond the newest `keep`. Files that have another kind of name are left alone."""
    backups = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
    for path in backups[:-keep]:
        path.unlink(missing_ok=True)
    return [str(path) for path in backups[:-keep]]


class _Bar:
    """A progress bar that appears when the work takes longer than a second and somebody watches."""

    def __init__(self) -> None:
        self._progress = Progress(console=err, transient=True, disable=not err.is_terminal)
        self._task = self._progress.add_task("Copying", total=None)
        self._starts_at = time.monotonic() + _QUIET_SECONDS

    def update(self, done: int, total: int) -> None:
        if time.monotonic() > self._starts_at:
            self._progress.start()
            self._progress.update(self._task, completed=done, total=total)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
