"""What others on this machine may read of Weft's own files, and how that ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from weft.config import Paths

_OTHERS = 0o077
_KEY = re.compile(r"""(?im)^\s*["']?[\w-]*(?:token|key|secret|password)["']?\s*=\s*["'][^"'\s]+["']""")


def open_to_others(paths: Paths, backup: str = "") -> list[Path]:
    """Return Weft's own files and folders that others may read or write."""
    return [path for path in dict.fromkeys(_own(paths, backup)) if path.stat().st_mode & _OTHERS]


def _own(paths: Paths, backup: str) -> Iterator[Path]:
    """Yield the folders, the settings, the database with all beside it, and the newest backup."""
    for folder in (paths.config_dir, paths.data_dir):
        if folder.is_dir() and folder not in (Path.home(), Path("/")):
            yield folder
    files = [paths.config_file, Path(backup), *paths.data_dir.glob(f"{paths.database.name}*")]
    yield from (path for path in (*files, paths.data_dir / "serve.lock") if path.is_file())
    if paths.workspace.is_dir() and not paths.workspace.is_symlink():
        yield paths.workspace


def holds_keys(config_file: Path) -> bool:
    """Check whether a file of settings has a key or a token in it."""
    try:
        return _KEY.search(config_file.read_text("utf-8", "replace")) is not None
    except OSError:
        return False


def make_private_again(paths: list[Path]) -> list[Path]:
    """Take the rights of others away. Returns the paths for which that failed."""
    failed = []
    for path in paths:
        try:
            if not path.is_symlink():  # what a link leads to may be somebody else's
                path.chmod(path.stat().st_mode & 0o777 & ~_OTHERS)
        except OSError:
            failed.append(path)
    return failed
