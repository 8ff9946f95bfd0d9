"""What the site adds to the pages: the colors of code, and the programs in `examples/`."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

EXAMPLES = Path(__file__).parent.parent / "examples"
_OUT_OF_DOCS = re.compile(r"\]\((?:\.\./)+examples/")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the examples, which lie beside the folder of the pages, and the style of highlighted code."""
    for path in sorted(EXAMPLES.rglob("*")):
        if path.suffix in {".py", ".toml", ".jsonl", ".md"}:
            name = f"examples/{path.relative_to(EXAMPLES).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    style = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    files.append(File.generated(config, "code.css", content=style))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Lead links to an example to its copy in the site."""
    return _OUT_OF_DOCS.sub(f"]({'../' * page.file.src_uri.count('/')}examples/", markdown)
