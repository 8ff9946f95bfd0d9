"""`weft chat`: a conversation that is remembered."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
from rich.markup import escape

from weft.channels.chat import Chat, piped_lines, skippable, typed_lines
from weft.channels.completions import Completions
from weft.channels.terminal_consent import TerminalConsent
from weft.cli.models import model_names
from weft.cli.options import (
    CONVERSATION,
    PERSON,
    ModelName,
    ProviderName,
    RecipeName,
    Window,
    Workspace,
    err,
    note_stand_in,
    out,
    refuse_empty,
    run,
    settings,
)
from weft.cli.sessions import named_session
from weft.compose import connect
from weft.config import Config
from weft.errors import ProviderError, ReadOnlyStore
from weft.gateway.assistant import Assistant
from weft.gateway.background import idle_sessions, learn_facts_from, learn_from, learn_once, may_learn
from weft.providers.base import describe
from weft.types.escape import printable
from weft.types.plural import counted
from weft.types.request import TurnRequest

app = typer.Typer(add_completion=False)

_RECALLED_LINES = 200
_READ_ONLY = (
    "A conversation is kept, and here it cannot be: `weft doctor` says how to make the database writable, "
    "and `weft ask` answers without keeping anything."
)


@app.command()
def chat(
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    window: Window = None,
    workspace: Workspace = None,
    session: Annotated[
        str,
        typer.Option("--session", "-s", metavar="ID", help="Go on with this session.", callback=refuse_empty),
    ] = "",
    new: Annotated[bool, typer.Option("--new", help="Begin a new session.")] = False,
) -> None:
    """Talk in the terminal; what is said is remembered."""
    config = settings(recipe=recipe, provider=provider, model=model, window=window, workspace=workspace)

    async def work() -> int:
        assistant = await connect(config)
        note_stand_in(config, assistant.engine.provider.info)
        try:
            is_typed = sys.stdin.isatty()
            consent = TerminalConsent(out) if is_typed else None
            caller = replace(PERSON, conversation=CONVERSATION, ask=consent.ask if consent else None)
            request = TurnRequest(text="", caller=caller, session=CONVERSATION, commands=True)
            request = replace(request, session=await _session(assistant, request, session, new=new))
            for turn in await assistant.interrupted(request.session):
                text = escape(printable(turn.text))
                err.print(f"[yellow]This was not answered, because the program ended:[/] {text}")
            lines = piped_lines()
            if is_typed:
                completions = Completions(
                    assistant=assistant, caller=caller, list_models=partial(model_names, config)
                )
                lines = typed_lines(await _greet(assistant, request.session), out, completions)
            await _learn(assistant, config)
            chat = Chat(assistant, request, out, err, consent, config.context.max_attachment_bytes)
            chat.left = partial(_learn_all, assistant, config) if is_typed else None
            failed = await chat.run(lines)
            if is_typed:
                await _learn(assistant, config, chat.request.session)
            return failed
        finally:
            await assistant.close()

    try:
        failed = run(work())
    except ReadOnlyStore as error:
        raise ReadOnlyStore(_READ_ONLY) from error
    if failed and not sys.stdin.isatty():
        raise typer.Exit(1)


async def _learn(assistant: Assistant, config: Config, session_id: str = "") -> None:
    """Learn from conversations that are over, or the facts of the one that is left. Ctrl-C skips it."""
    engine = assistant.engine
    if not may_learn(engine, config.learn):
        return
    store = await assistant.store.get()
    if not session_id and await idle_sessions(engine, config.learn):
        await skippable(learn_once(engine, config.learn), "learning from earlier conversations", out, err)
    elif session := await store.sessions.find(session_id) if session_id else None:
        messages = await store.messages.all(session.id)
        if any(message.role == "user" for message in messages[session.learned_to :]):
            await skippable(learn_facts_from(engine, session, messages), "learning facts", out, err)


async def _learn_all(assistant: Assistant, config: Config, session_id: str) -> None:
    """Learn from a conversation that the person has ended."""
    session = await (await assistant.store.get()).sessions.find(session_id)
    if session is not None and may_learn(assistant.engine, config.learn):
        await skippable(learn_from(assistant.engine, session), "learning from this conversation", out, err)


async def _session(assistant: Assistant, request: TurnRequest, session_id: str, *, new: bool) -> str:
    """Return the id of the session to talk in: a given one, a new one, or the one of last time."""
    store, rule = await assistant.store.get(), assistant.engine.builder.recipe.session
    if session_id:
        session = await store.sessions.reopen((await named_session(store, session_id)).id, rule=rule)
    else:
        session = await assistant.engine.open_session(request)
    if new:
        caller = request.caller
        place = (caller.channel, caller.conversation, caller.sender_id)
        session = await store.sessions.new(*place, agent_id=caller.agent_id, rule=rule)
    return session.id


async def _greet(assistant: Assistant, session_id: str) -> list[str]:
    """Say where the conversation is. Returns what the person said before, for the arrow keys."""
    newest = await (await assistant.store.get()).messages.newest(session_id, _RECALLED_LINES)
    info = assistant.engine.provider.info
    with suppress(ProviderError):  # the first answer says it, and `/model` changes it
        info = await describe(assistant.engine.provider)
    so_far = f"{counted(len(newest), 'message')} so far" if newest else "a new session"
    line = f"{info.provider} ({info.id}) answers; {so_far}. `/help` lists the commands."
    out.print(f"[dim]{escape(printable(line))}[/]")
    return [message.content for message in newest if message.role == "user" and message.origin == "user"]
