"""Addresses of pages, and what they are to a browser."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response

FILES = "/static/"
SIGN_IN, ENTER = "/sign-in", "/enter"
OPEN_PAGES = (SIGN_IN, ENTER)
"""Pages that need no token."""
_FOR_PROGRAMS = ("/api/", "/v1/", "/metrics", "/openapi.json")


def is_page(path: str) -> bool:
    """Return whether an address is a page for people, and no route for programs."""
    return not path.startswith(_FOR_PROGRAMS)


def wants_html(headers: Headers) -> bool:
    """Return whether a browser asks for a page, and no program for data."""
    return "text/html" in headers.get("accept", "")


def local_path(address: str) -> str:
    """Return an address if it is a path on this server; else the first page."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and address.isascii() and address.isprintable() else "/"


def see_other(address: str, **headers: str) -> Response:
    """Send the browser to another page."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status_code=303, headers={"location": address, "cache-control": "no-store", **more})
