"""A text in the editor of the person."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.errors import ConfigError
from weft.private_files import write_private


def edited(text: str) -> str:
    """Let the person edit a text in their editor. A line break at the end that the editor adds is dropped.

    Raises:
        ConfigError: the editor failed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "block.md"
        write_private(path, text)
        try:
            command = [*shlex.split(editor), str(path)]
            subprocess.run(command, env=os.environ, check=True)  # noqa: S603 - the person's own
            edited = path.read_bytes().decode()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise ConfigError(f"The editor {editor!r} failed: set EDITOR to one that works.") from error
    return edited if text.endswith("\n") else edited.removesuffix("\n")
