"""`weft inspect`: the pages alone, which read the database and change nothing."""

from __future__ import annotations

import asyncio
import secrets
import signal
import webbrowser
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from weft.cli.options import run, settings, write
from weft.compose import connect_to_preview, page_settings
from weft.config import Config
from weft.errors import ConfigError
from weft.types.escape import printable

app = typer.Typer(add_completion=False)
_FREE_PORT = 0


@app.command()
def inspect(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where the pages are served.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Its port; 0: a free one.")
    ] = _FREE_PORT,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Look at everything in a browser: turns, memory, recipes. Nothing can be changed there."""
    config = settings()
    if not config.paths.database.exists():
        raise ConfigError("There is nothing to look at yet: talk first, with `weft chat` or `weft serve`.")
    run(_serve(config, host, port, opens=not no_browser))


async def _serve(config: Config, host: str, port: int, *, opens: bool) -> None:
    from weft.channels.http import HttpServer  # noqa: PLC0415 - half a second that only servers need
    from weft.channels.pages.browsers import Browsers  # noqa: PLC0415 - as above

    # Other people of this machine reach the port, too: only the browser that opens the link gets in.
    token = secrets.token_urlsafe(32)

    def announce(url: str, browsers: Browsers) -> None:
        link = f"{url}/enter?{urlencode({'key': browsers.make_link(token)})}"
        typer.echo(f"weft: the pages are at {url}; this link opens them once:\n{printable(link)}", err=True)
        if opens and not webbrowser.open(_redirect(page, link).as_uri()):
            typer.echo("weft: no browser could be opened: copy the link into one", err=True)

    page = config.paths.data_dir / "inspect.html"
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    http = replace(config.http, host=host, port=port)
    assistant = await connect_to_preview(config)
    try:
        pages = replace(page_settings(config), can_write=False)
        server = HttpServer(http, token, pages=pages, announce=announce)
        await server.run(assistant, stopped, lambda line: typer.echo(f"weft: {line}", err=True))
    finally:
        page.unlink(missing_ok=True)
        await assistant.close()


def _redirect(page: Path, link: str) -> Path:
    """Write a file that leads a browser to a link. Other people see what a program is called with."""
    page.unlink(missing_ok=True)
    write(page, f'<meta http-equiv="refresh" content="0;url={escape(link)}"><title>Weft</title>')
    return page.absolute()
