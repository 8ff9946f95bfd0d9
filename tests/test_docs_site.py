"""The site: it builds without a warning, loads nothing from other hosts, and shows what the pages say."""

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LOADS = re.compile(
    r"""<(?:script|link|img|iframe|source|video|audio)\b[^>]*?(?:src|href)\s*=\s*["']([^"']*)"""
)
OUTSIDE = re.compile(r"^(?:https?:)?//")


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(site),
        "-f",
        str(config),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    loads = {url for page in pages for url in LOADS.findall(page.read_text("utf-8"))}
    styles = {
        url
        for style in site.rglob("*.css")
        for url in re.findall(r"url\(['\"]?([^)'\"]*)", style.read_text())
    }

    assert len(pages) > len(PAGES)
    assert len(loads) > 5
    assert [url for url in loads | styles if OUTSIDE.match(url)] == []


class _Counts(HTMLParser):
    """The lists, rows and programs in the main part of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self._main = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._main |= ("role", "main") in attrs
        if self._main and tag in {"li", "tr", "pre", "h2", "h3"}:
            self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._main &= tag != "footer"

    def handle_comment(self, data: str) -> None: ...


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_site_shows_the_lists_tables_and_programs_of_a_page(site: Path, page: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))
    wanted = Counter(
        token.tag for token in tokens if token.nesting == 1 and token.tag in {"li", "tr", "h2", "h3"}
    )
    wanted["pre"] = sum(token.type in {"fence", "code_block"} for token in tokens)
    html = _Counts()

    html.feed((site / page.relative_to(DOCS)).with_suffix(".html").read_text("utf-8"))

    assert html.tags == +wanted


@pytest.mark.parametrize(
    ("mistake", "complaint"),
    [
        ("[gone](gone.md)", "gone.md"),
        ("[gone](index.md#gone)", "#gone"),
        ("[gone](../../outside.md)", "outside.md"),
    ],
)
def test_a_broken_link_or_anchor_stops_the_build(tmp_path: Path, mistake: str, complaint: str) -> None:
    config = copy_of_the_configuration(tmp_path, "nav: [index.md]")
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{mistake}\n", "utf-8")

    done = build(config, tmp_path / "site")

    assert done.returncode == 1
    assert complaint in done.stderr


def test_a_page_that_nothing_leads_to_stops_the_build(tmp_path: Path) -> None:
    config = copy_of_the_configuration(tmp_path, "nav: [index.md]")
    (tmp_path / "docs" / "index.md").write_text("# Page\n", "utf-8")
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n", "utf-8")

    done = build(config, tmp_path / "site")

    assert done.returncode == 1
    assert "lost.md" in done.stderr


def copy_of_the_configuration(folder: Path, nav: str) -> Path:
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[0]
    (folder / "docs").mkdir()
    config = folder / "mkdocs.yml"
    config.write_text(text.replace("docs/hooks.py", str(DOCS / "hooks.py")) + f"\n{nav}\n", "utf-8")
    return config


def test_pages_are_plain_markdown_with_names_of_their_own() -> None:
    names = [page.stem for page in PAGES]
    special = re.compile(r"^(?:!!!|\?\?\?|:::|=== \"|--8<--|\{[:%{])", re.MULTILINE)

    assert len(names) == len(set(names))  # `weft docs NAME`
    assert [page.name for page in PAGES if special.search(page.read_text("utf-8"))] == []
    assert [page.name for page in PAGES if not page.read_text("utf-8").startswith("# ")] == []
