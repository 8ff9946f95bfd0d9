"""Pictures as SVG: shapes and texts, in which everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from weft.web.xml import xml


def shape(name: str, *children: str, title: str = "", **attributes: object) -> str:
    """Write one element. A title is what a mouse that rests on it shows, and what a screen reader says."""
    values = "".join(f' {_attribute(key)}="{xml(_value(value))}"' for key, value in attributes.items())
    inside = (f"<title>{xml(title)}</title>" if title else "") + "".join(children)
    return f"<{name}{values}>{inside}</{name}>" if inside else f"<{name}{values}/>"


def words(text: str, **attributes: object) -> str:
    """Write a text at a place."""
    values = "".join(f' {_attribute(key)}="{xml(_value(value))}"' for key, value in attributes.items())
    return f"<text{values}>{xml(text)}</text>"


def link(address: str, *children: str, label: str) -> str:
    return f'<a href="{xml(address)}" aria-label="{xml(label)}">{"".join(children)}</a>'


def picture(width: float, height: float, children: Iterable[str], *, label: str, css: str = "") -> Markup:
    """Write a picture that is as wide as its place, with a sentence for those who cannot see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_value(width)} {_value(height)}" '
        f'class="picture {xml(css)}" role="group" aria-label="{xml(label)}">'
    )
    return Markup(f"{head}{''.join(children)}</svg>")  # noqa: S704 - every text in it is escaped above


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
