"""`weft recall`: which embedder compares meanings, and how many texts it has indexed."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.progress import Progress

from weft.cli.embedders import OURS, choose_embedder, list_offers
from weft.cli.options import AsJson, err, out, refuse_empty, run, safe, say, settings
from weft.cli.settings_file import edit_table
from weft.compose import make_embedder
from weft.compose import open as open_store
from weft.config import Config, SearchSettings
from weft.errors import ConfigError, WeftError
from weft.recall.embed import Embedder, packed
from weft.types.escape import printable
from weft.types.plural import counted

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Choose what compares meanings in searches, and index what was said.",
)
_KEYS = ("embedder", "model", "url")
_GOES_ON = "`weft recall index` goes on there."
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="wordllama, minilm, ollama, openai, a plugin, or none.",
        autocompletion=lambda: list(OURS),
        show_default=False,
        callback=refuse_empty,
    ),
]


@app.command()
def setup(
    name: Name = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="ID", help="The embedding model of ollama or openai.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where its server is, if elsewhere.")
    ] = None,
) -> None:
    """Choose an embedder; without a name, list what is there."""
    config = settings()
    if name is None:
        if model or url:
            raise ConfigError("Say for which embedder that is: `weft recall setup ollama --model ID`.")
        name = _ask(config)
    if name:
        run(_set_up(name.strip().lower(), model, url, config))


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the embedder, and how many texts it has indexed."""
    config = settings()
    try:
        embedder, problem = make_embedder(config), ""
    except WeftError as error:
        embedder, problem = None, str(error)
    indexed, texts = run(_counts(config, embedder))
    search = config.search
    if as_json:
        row = {key: getattr(search, key) for key in _KEYS}
        typer.echo(json.dumps({**row, "indexed": indexed, "texts": texts, "problem": problem}))
        return
    if search.embedder is None:
        out.print("No embedder is set: searches go by words alone. `weft recall setup` shows what is there.")
        return
    if problem:
        out.print(f"[yellow]{safe(search.embedder)} cannot be used[/]: {safe(problem)}", soft_wrap=True)
        return
    rest = "" if indexed == texts else f" {_GOES_ON}"
    out.print(f"{safe(_described(search))}: {indexed:,} of {_texts(texts)} indexed.{rest}", soft_wrap=True)


@app.command()
def index() -> None:
    """Index the texts that are not indexed yet."""
    config = settings()
    embedder = make_embedder(config)
    if embedder is None:
        raise ConfigError("No embedder is set: `weft recall setup` lists what is there.")
    run(_index(config, embedder))


def _ask(config: Config) -> str:
    """List what is there, and ask which to take, if somebody is at a terminal."""
    for offer in run(list_offers(config)):
        is_used = offer.name == (config.search.embedder or "none")
        state = "[green]in use[/]" if is_used else "ready" if offer.is_ready else "[yellow]not here[/]"
        out.print(f"[bold]{safe(offer.name):<10}[/] {state}  [dim]{safe(offer.about)}[/]", soft_wrap=True)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        out.print("`weft recall setup NAME` takes one.")
        return ""
    answer: str = typer.prompt("Which one (Enter changes nothing)", default="", show_default=False)
    return answer.strip()


async def _set_up(name: str, model: str | None, url: str | None, config: Config) -> None:
    """Check that an embedder works, write it into the settings, and index everything with it."""
    chosen = await choose_embedder(name, model, url, config)
    config = replace(config, search=chosen)
    embedder = make_embedder(config)
    if embedder is not None:
        with err.status(f"Trying {safe(_described(chosen))}"):
            await packed(embedder, ["Does it work?"])
    edit_table("search", lambda table: _change(table, chosen))
    if embedder is None:
        say("Searches go by words alone now.")
        return
    say(f"{_described(chosen)} works, and is in the settings now. If `weft serve` runs, start it again.")
    await _index(config, embedder)


def _change(table: Any, chosen: SearchSettings) -> None:
    for key in _KEYS:
        value = getattr(chosen, key)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value


async def _index(config: Config, embedder: Embedder) -> None:
    """Index what is not indexed yet, with a progress bar. Ctrl-C stops it and loses nothing."""
    if not config.paths.database.exists():
        say("Nothing is kept yet, so there is nothing to index.")
        return
    async with await open_store(config.paths.database, embedder=embedder) as store:
        await store.memory.save_texts()
        meaning = store.meaning
        assert meaning is not None  # noqa: S101 - the store was opened with an embedder
        texts, missing = await store.count_texts(), await meaning.count_missing()
        done, bar = 0, Progress(console=err, transient=True, disable=not err.is_terminal)
        try:
            with bar:
                task = bar.add_task("Indexing", total=missing)
                async for number in meaning.catch_up():
                    done += number
                    bar.update(task, completed=done)
        except (asyncio.CancelledError, WeftError):
            indexed = texts - missing + done
            err.print(f"Stopped: {indexed:,} of {_texts(texts)} indexed. {_GOES_ON}", soft_wrap=True)
            raise
    say(f"Indexed {counted(done, 'text')}." if done else f"Nothing is new: {_texts(texts)} indexed.")


async def _counts(config: Config, embedder: Embedder | None) -> tuple[int, int]:
    """Return how many texts are indexed, and how many there are."""
    if not config.paths.database.exists():
        return 0, 0
    async with await open_store(config.paths.database, embedder=embedder) as store:
        texts = await store.count_texts()
        return (texts - await store.meaning.count_missing() if store.meaning else 0), texts


def _texts(number: int) -> str:
    return f"{counted(number, 'text')} {'is' if number == 1 else 'are'}"


def _described(search: SearchSettings) -> str:
    model = f" with {search.model}" if search.model else ""
    return printable(f"{search.embedder}{model}")
