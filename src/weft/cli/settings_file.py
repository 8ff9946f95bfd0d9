"""Changes to the settings file that leave all other lines and comments as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from weft.cli.options import write
from weft.config import find_paths, load_config
from weft.errors import ConfigError


def edit_table(name: str, change: Callable[[Any], None]) -> None:
    """Change one table of the settings; it is added if there is none.

    Raises:
        ConfigError: the file has an error, or cannot be changed.
    """
    file = find_paths().config_file
    load_config()  # a file with an error is not made worse
    try:
        document = tomlkit.parse(file.read_text("utf-8") if file.exists() else "")
        change(document.setdefault(name, tomlkit.table()))
    except (OSError, TOMLKitError, TypeError) as error:
        raise ConfigError(f"{file} cannot be changed ({error}): edit `[{name}]` by hand.") from error
    write(file, tomlkit.dumps(document))
