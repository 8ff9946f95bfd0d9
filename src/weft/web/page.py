"""Pages: values put into templates, in which every text is escaped."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from weft.types.codec import to_dict
from weft.types.escape import printable
from weft.types.plural import counted
from weft.web.layers import layer_class, origin_mark

HERE = Path(__file__).parent
STATIC = HERE / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load: only what this server sends, and no script or style inside of it."""


NAV = (
    ("/talk", "Talk"),
    ("/sessions", "Conversations"),
    ("/memory", "Memory"),
    ("/recipes", "Recipes"),
    ("/search", "Search"),
    ("/tasks", "Tasks"),
    ("/people", "People"),
    ("/skills", "Skills"),
    ("/health", "Health"),
)
"""The pages that every page links to."""


def page(template: str, /, **values: Any) -> str:
    """Write a page from its template."""
    return _templates().get_template(f"{template}.html").render(values)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_printable,
    )
    templates.filters |= {
        "number": _number,
        "percent": _percent,
        "moment": moment,
        "count": counted,
        "json": _json,
        "layer_class": layer_class,
        "origin_mark": origin_mark,
    }
    templates.globals |= {"static": static_url, "nav": NAV, "is_here": _is_here}
    return templates


def _is_here(here: str, address: str) -> bool:
    return here == address or (here == "/" and address == "/talk") or here.startswith(f"{address}/")


@cache
def static_url(name: str) -> str:
    """Return the address of a file of ours. It changes with the file, so that browsers keep it for good."""
    digest = blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?{digest}"


def moment(at: datetime | None) -> str:
    """Write a time as this machine's clocks show it."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else ""


def _printable(value: Any) -> Any:
    """Keep control characters of stored texts from having an effect."""
    return printable(value) if type(value) is str else value


def _number(value: float) -> str:
    return f"{value:,}"


def _json(value: Any) -> str:
    return json.dumps(to_dict(value), ensure_ascii=False, indent=2, default=str)


def _percent(value: float) -> str:
    return f"{value:.0%}"
