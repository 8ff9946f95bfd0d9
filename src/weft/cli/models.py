"""`weft models`: who can answer, and with which models."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import typer

from weft.cli.options import AsJson, out, run, safe, settings
from weft.config import Config
from weft.errors import ProviderError, WeftError
from weft.models import make_provider, reachable
from weft.providers.discover import ListedModel
from weft.providers.local import INSTALL_STEPS, unavailable

app = typer.Typer(add_completion=False)
_SECONDS = 5.0
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one provider said when it was asked for its models: the models, or why there are none."""

    provider: str
    why: str
    address: str = ""
    seconds: float = 0.0
    models: tuple[ListedModel, ...] = ()
    problem: str = ""


@app.callback(invoke_without_command=True)
def models(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the models that can answer; install the embedded one.

    A provider that cannot be used is a line of the list, not a failure.
    """
    if ctx.invoked_subcommand is not None:
        return
    listings = run(_ask_all(settings()))
    if as_json:
        typer.echo(json.dumps([_to_dict(listing) for listing in listings], ensure_ascii=False))
        return
    for listing in listings:
        _show(listing)
    out.print("[dim]Ask one with `weft ask -m PROVIDER:MODEL ...`, or set `provider` and `model`.[/]")


@app.command("install-local")
def install_local() -> None:
    """Install the embedded model and its runtime into this environment, about 140 MB."""
    config = settings()
    if unavailable(config.local) is None:
        out.print("The embedded model is installed already.")
        return
    if find_spec("pip") is None:
        out.print("This environment has no pip. Install both into it with your own tool, as these would:")
        for step in INSTALL_STEPS:
            typer.echo(f"  pip install {' '.join(step)}")
        raise typer.Exit(1)
    for step in INSTALL_STEPS:
        command = [sys.executable, "-m", "pip", "install", *step]
        if subprocess.run(command, env=os.environ, check=False).returncode:  # noqa: S603 - fixed words, no shell
            raise ProviderError(f"`pip install {' '.join(step)}` failed: see what it says above.")
    out.print("The embedded model is installed: `weft ask -p local hello` asks it.")


async def list_models(name: str, why: str, config: Config) -> Listing:
    """Ask one provider for its models. What goes wrong is a part of the listing."""
    begun = time.monotonic()
    listing = Listing(provider=name, why=why)
    try:
        provider = make_provider(name, replace(config, model=None))
    except WeftError as error:
        return replace(listing, problem=str(error))
    try:
        ask: Any = getattr(provider, "list_models", None)
        async with asyncio.timeout(_SECONDS):
            models = await ask() if ask else [ListedModel(id=provider.info.id)]
        listing = replace(listing, models=tuple(models))
    except ProviderError as error:
        listing = replace(listing, problem=str(error).rstrip("."))
    except TimeoutError:
        listing = replace(listing, problem=f"no answer within {_SECONDS:.0f} seconds")
    finally:
        await provider.close()
    return replace(listing, address=provider.info.address, seconds=time.monotonic() - begun)


async def _ask_all(config: Config) -> list[Listing]:
    return await asyncio.gather(*(list_models(name, why, config) for name, why in reachable(config)))


async def model_names(config: Config) -> list[str]:
    """Return the names of all models that can be asked, as `PROVIDER:MODEL`."""
    return [f"{one.provider}:{model.id}" for one in await _ask_all(config) for model in one.models]


def _show(listing: Listing) -> None:
    place = f" at {listing.address}" if listing.address else ""
    head = f"[bold]{safe(listing.provider)}[/]{safe(place)}"
    if listing.problem:
        out.print(f"{head} [yellow]cannot be used[/]: {safe(listing.problem)}", soft_wrap=True)
        return
    took = f", {listing.seconds * 1000:.0f} ms" if listing.address else ""
    count = f"{len(listing.models)} {'model' if len(listing.models) == 1 else 'models'}"
    out.print(f"{head} [dim]{count}{took}; {safe(listing.why)}[/]", soft_wrap=True)
    for model in listing.models[:_SHOWN]:
        window = f"  [dim]reads {model.window:,} tokens[/]" if model.window else ""
        out.print(f"  {safe(f'{listing.provider}:{model.id}')}{window}", soft_wrap=True)
    if len(listing.models) > _SHOWN:
        out.print(f"  [dim]and {len(listing.models) - _SHOWN} more: `weft models --json` lists all[/]")


def _to_dict(listing: Listing) -> dict[str, Any]:
    return {
        "provider": listing.provider,
        "why": listing.why,
        "address": listing.address,
        "problem": listing.problem,
        "models": [{"id": model.id, "window": model.window} for model in listing.models],
    }
