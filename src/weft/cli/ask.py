"""`weft ask`: one question, one answer, in a session of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated

import typer

from weft.channels.attachments import read_attachment, with_attachments
from weft.channels.terminal import show_answer, show_receipt
from weft.channels.terminal_consent import TerminalConsent
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
    note_stand_in,
    out,
    run,
    settings,
    waiting_for,
)
from weft.compose import connect
from weft.errors import ConfigError, ReadOnlyStore, StoreError
from weft.gateway.assistant import Assistant
from weft.providers.base import collected
from weft.types.codec import to_dict
from weft.types.escape import printable
from weft.types.reply import Event
from weft.types.session import ONE_OFF

app = typer.Typer(add_completion=False)
_PLACE = (ONE_OFF, ONE_OFF, PERSON.sender_id)


@app.command()
def ask(
    text: Text = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Attach a text or a picture; may be repeated."),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Continue the last question.")] = False,
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    window: Window = None,
    workspace: Workspace = None,
    receipt: Annotated[bool, typer.Option("--receipt", help="Show the receipt after the answer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask one question and get one answer; `-c` continues it, and nothing is learned from it."""
    config = settings(recipe=recipe, provider=provider, model=model, window=window, workspace=workspace)
    max_bytes = config.context.max_attachment_bytes
    attachments = [read_attachment(file, max_bytes=max_bytes) for file in files or ()]
    question = with_attachments(message(text), attachments)

    async def work() -> None:
        assistant = await connect(config)
        note_stand_in(config, assistant.engine.provider.info)
        try:
            session = await (_last_session(assistant) if go_on else _new_session(assistant))
            is_asked = sys.stdin.isatty() and err.is_terminal
            caller = replace(question.caller, ask=TerminalConsent(err).ask if is_asked else None)
            request = replace(question, caller=caller, session=session, one_off=not go_on and bool(session))
            events = assistant.handle(request)
            if as_json:
                await _print_json(events)
                return
            reply = await show_answer(events, out, err, waiting=waiting_for(assistant.engine.provider.info))
            if receipt and reply is not None and reply.receipt is not None:
                show_receipt(reply.receipt, err)
        finally:
            await assistant.close()

    run(work())


async def _new_session(assistant: Assistant) -> str:
    """Return the id of a new session for a question, or nothing if the store cannot be written to."""
    try:
        store = await assistant.store.get()
        return (await store.sessions.new(*_PLACE, agent_id=PERSON.agent_id)).id
    except ReadOnlyStore:
        return ""  # the store has said so when it was opened
    except StoreError as error:
        typer.echo(f"weft: nothing of this is kept. {printable(str(error))}", err=True)
        return ""


async def _last_session(assistant: Assistant) -> str:
    """Return the id of the session of the last question.

    Raises:
        ConfigError: there is none.
    """
    store = await assistant.store.find()
    session = (await store.sessions.find_either(ONE_OFF, *_PLACE[1:]))[1] if store else None
    if store is None or session is None:
        raise ConfigError("There is no question to continue: ask one without `-c` first.")
    return (await store.sessions.reopen(session.id, rule=assistant.engine.builder.recipe.session)).id


async def _print_json(events: AsyncGenerator[Event]) -> None:
    reply = to_dict(await collected(events))
    typer.echo(json.dumps({"text": "", **reply}, ensure_ascii=False))
