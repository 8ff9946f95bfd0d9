"""Files and folders for their owner alone, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_folder(path: Path) -> None:
    """Make a folder and those above it. Folders that exist stay as they are."""
    for folder in reversed((path, *path.parents)):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private_opener)`. A new one is private; others stay as they are."""
    return os.open(path, flags, 0o600)


def write_private(path: Path, text: str) -> None:
    """Write a text and make the folders above it."""
    make_private_folder(path.parent)
    with open(path, "w", encoding="utf-8", newline="", opener=private_opener) as file:
        file.write(text)
