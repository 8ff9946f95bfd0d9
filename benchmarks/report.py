"""Writes `docs/explanation/benchmarks.md` and its charts from what the other scripts wrote with `--json`.

FOLDER has one file for each script, such as `trim.json`. A script whose file is missing is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from report_own import own_section
from report_peers import quality_section, search_section, startup_section, trim_section, updates_section
from report_reasons import REASONS
from report_tables import Page
from timing import out, versions

DOCS = Path(__file__).parent.parent / "docs" / "explanation"
_PACKAGES = (
    "weft",
    "apsw",
    "bm25s",
    "langchain-core",
    "litellm",
    "llama-index-core",
    "mem0ai",
    "numba",
    "numpy",
    "pydantic-ai-slim",
    "sqlite-vec",
    "wordllama",
)
_SECTIONS: tuple[tuple[str, Callable[[Page, Any], None]], ...] = (
    ("trim", trim_section),
    ("peer_search", search_section),
    ("quality", quality_section),
    ("startup", startup_section),
    ("lost_updates", updates_section),
)


def write_page(folder: Path, note: str = "") -> Page:
    """Put the page together from the figures in a folder. `note` is a sentence about the machine."""
    figures = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    body = Page(reasons=REASONS)
    for name, section in _SECTIONS:
        if name in figures or name == "quality":
            section(body, figures.get(name))
    own_section(body, figures)
    page = Page(charts=body.charts, behind=body.behind)
    page.lines += ["# Benchmarks", ""]
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    page.text(
        "`make bench` measures all of this and writes this page. What is compared in a table has the same "
        "work, on the same machine, in one run of one script, and takes turns. The ratios last; the times "
        f"are those of this machine: {machine}, Python {platform.python_version()}, "
        f"{datetime.now(UTC):%Y-%m-%d}. {note}".rstrip(),
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions(*_PACKAGES).items()) + ".",
    )
    if body.behind:
        page.heading("Where Weft is behind")
        page.lines += [f"- {'; '.join(rows)}: {reason}." for reason, rows in body.behind.items()] + [""]
    page.lines += body.lines
    return page


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write docs/explanation/benchmarks.md from the figures of a run."
    )
    parser.add_argument("folder", type=Path, help="folder with the files that the scripts wrote")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page and its charts")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    options = parser.parse_args()
    if not any(options.folder.glob("*.json")):
        sys.exit(f"There are no figures in {options.folder}: run `make bench`, or scripts with --json.")
    page = write_page(options.folder, options.note)
    options.docs.mkdir(parents=True, exist_ok=True)
    (options.docs / "benchmarks.md").write_text("\n".join(page.lines).rstrip() + "\n", "utf-8")
    for name, svg in page.charts.items():
        (options.docs / name).write_text(svg, "utf-8")
    behind = sum(len(rows) for rows in page.behind.values())
    out.print(f"Wrote benchmarks.md and {len(page.charts)} charts; Weft is behind in {behind} figures.")


if __name__ == "__main__":
    main()
