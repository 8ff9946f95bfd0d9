"""`weft ask`: one question, one answer, nothing stored."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from weft.channels.terminal import show_answer, show_receipt
from weft.cli.options import (
    PERSON,
    AsJson,
    ModelName,
    ProviderName,
    RecipeName,
    Text,
    Window,
    Workspace,
    err,
    message,
    out,
    run,
    settings,
)
from weft.compose import connect
from weft.gateway.assistant import Assistant
from weft.types.codec import to_dict

app = typer.Typer(add_completion=False)


@app.command()
def ask(
    text: Text = None,
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    window: Window = None,
    workspace: Workspace = None,
    receipt: Annotated[bool, typer.Option("--receipt", help="Show the receipt after the answer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask one question and get one answer; nothing is remembered."""
    config = settings(recipe=recipe, provider=provider, model=model, window=window, workspace=workspace)
    question = message(text)

    async def work() -> None:
        assistant = await connect(config)
        try:
            if as_json:
                await _print_json(assistant, question)
            else:
                reply = await show_answer(assistant.stream(question, caller=PERSON), out, err)
                if receipt and reply is not None and reply.receipt is not None:
                    show_receipt(reply.receipt, err)
        finally:
            await assistant.close()

    run(work())


async def _print_json(assistant: Assistant, question: str) -> None:
    reply = to_dict(await assistant.ask(question, caller=PERSON))
    typer.echo(json.dumps({"text": "", **reply}, ensure_ascii=False))
