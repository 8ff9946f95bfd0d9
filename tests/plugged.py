"""The example package of plugins as an installed one, for programs that the tests start."""

import os
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "plugins"


def install(folder: Path) -> dict[str, str]:
    """Return the environment of a program for which the example package is installed."""
    site = folder / "site"
    info = site / "weft_harbor-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-harbor\nVersion: 1.0.0\n", "utf-8")
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *map(_entry, names.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    path = os.pathsep.join((str(EXAMPLE / "src"), str(site)))
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**keep, "PYTHONPATH": path, "WEFT_HOME": str(folder / "home")}


def _entry(item: tuple[str, str]) -> str:
    return f"{item[0]} = {item[1]}"


def configure(environ: dict[str, str], text: str) -> None:
    home = Path(environ["WEFT_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text, "utf-8")
