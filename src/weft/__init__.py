"""Weft weaves what a model sees. `__init__.pyi` lists the public names; each is loaded at its first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading `typing` is half of the time until Ctrl-C is handled (`__main__.py`)
    from typing import Any


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Return the module of each public name and its name there, as the stub imports them."""
    import ast  # noqa: PLC0415 - `import weft` alone costs nothing
    from pathlib import Path  # noqa: PLC0415

    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [(str(node.module), node.names) for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (home, alias.name) for home, names in imports for alias in names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name not in _homes():
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    home, original = _homes()[name]
    value = import_module("weft.wire") if name == "wire" else getattr(import_module(home), original)
    globals()[name] = value
    return value
