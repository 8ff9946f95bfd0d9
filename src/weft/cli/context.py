"""`weft context`: what the model would see."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from weft import wire
from weft.channels.terminal import show_receipt
from weft.cli.options import (
    PERSON,
    AsJson,
    ModelName,
    ProviderName,
    RecipeName,
    Text,
    Window,
    Workspace,
    message,
    out,
    run,
    say,
    settings,
    write,
)
from weft.compose import connect_to_preview
from weft.config import Config
from weft.models import find_vendor
from weft.types.context import Context
from weft.types.message import Message
from weft.types.section import Place
from weft.web.receipt import receipt_svg

app = typer.Typer(add_completion=False)


class FormName(StrEnum):
    SINGLE = "single"
    PARTS = "parts"
    MESSAGES = "messages"


@app.command()
def context(
    text: Text = None,
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    window: Window = None,
    workspace: Workspace = None,
    form: Annotated[FormName | None, typer.Option("--form", help="How it is written out.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the receipt in place of the text.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write the receipt as a picture.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the model would see, without asking it."""
    config = settings(recipe=recipe, provider=provider, model=model, window=window, workspace=workspace)
    vendor = find_vendor(config.provider, config)
    built = run(_build(config, message(text).text))
    if form is not None:
        built = replace(built, form=form.value)
    if svg is not None and built.receipt is not None:
        write(svg, receipt_svg(built.receipt))
    if as_json:
        typer.echo(built.to_json(receipt=explain))
    elif explain and built.receipt is not None:
        show_receipt(built.receipt, out)
    elif vendor and form is None:
        payload = wire.to_wire(vendor, built, model=config.model)
        say(json.dumps(payload, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))
    else:
        say(written(built))


async def _build(config: Config, text: str) -> Context:
    """Build the context for the model that would answer; without one, for the recipe's own limits.

    The model is not asked to answer, so its key is not needed.
    """
    assistant = await connect_to_preview(config)
    try:
        return await assistant.context(text, caller=PERSON)
    finally:
        await assistant.close()


def written(context: Context) -> str:
    """Write a context as text: flat, or message by message with its system parts apart."""
    if context.form == "single":
        return context.to_prompt_string()
    if context.form == "messages":
        return "\n\n".join(map(_message, context.to_messages()))
    system = [s for s in context.sections if s.place == Place.SYSTEM]
    parts = [f"--- system: {s.layer} ---\n{s.text}" for s in system]
    return "\n\n".join(parts + [_message(m) for m in context.to_api_messages()[1]])


def _message(message: Message) -> str:
    calls = "".join(f"\n(calls {call.name} {dict(call.arguments)})" for call in message.tool_calls)
    return f"--- {message.role} ---\n{message.content}{calls}"
