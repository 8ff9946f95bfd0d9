"""Slash commands: run without a model, alike in every channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from weft.errors import ConfigError, did_you_mean
from weft.gateway.conversation import Conversation
from weft.gateway.instruction_commands import always, instructions
from weft.gateway.memory_commands import (
    cancel_task,
    forget_fact,
    reload,
    show_facts,
    show_last,
    show_memory,
    show_skills,
    show_status,
    show_tasks,
)
from weft.gateway.undo import undo_memory
from weft.providers.base import describe
from weft.types.escape import fenced, one_line
from weft.types.plural import counted
from weft.types.receipt import Receipt
from weft.types.recipe import packaged

_NEXT = "(your next message)"
_TITLE_CHARS, _MIN_PREFIX, _COUNTED = 60, 4, 1000


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does, in one sentence, and the function that returns its answer in Markdown."""

    about: str
    run: Callable[[Conversation, str], Awaitable[str]]


def is_command(text: str) -> bool:
    """Return whether a message is a command: a slash and a word, not a path."""
    word = text.strip().split(maxsplit=1)[0] if text.strip() else ""
    return word.startswith("/") and word[1:].isalpha()


async def run_command(conversation: Conversation, text: str) -> str:
    """Run a command and return its answer.

    Raises:
        ConfigError: there is no such command.
    """
    word, *more = text.split(maxsplit=1)
    rest = more[0] if more else ""
    name = word.removeprefix("/").lower()
    if name not in COMMANDS:
        nearest = did_you_mean(f"/{name}", [f"/{known}" for known in COMMANDS])
        raise ConfigError(f"There is no command {word!r}: {nearest}")
    return await COMMANDS[name].run(conversation, rest.strip())


async def _help(_: Conversation, rest: str) -> str:
    return "\n".join(f"- `/{name}` {command.about}" for name, command in COMMANDS.items())


async def _new(conversation: Conversation, rest: str) -> str:
    await conversation.begin_anew()
    return "A new session begins. What was said before is kept, and can still be searched."


async def _context(conversation: Conversation, rest: str) -> str:
    context = await conversation.context(_NEXT)
    if rest == "full":
        return fenced(context.to_prompt_string())
    if rest:
        raise ConfigError(f"`/context` does not know {rest!r}: it takes `full`, or nothing.")
    return _table(context.receipt) if context.receipt else "There is no receipt."


async def _receipt(conversation: Conversation, rest: str) -> str:
    receipt = await conversation.last_receipt()
    return _table(receipt) if receipt else "Nothing was answered yet."


async def _model(conversation: Conversation, rest: str) -> str:
    if rest:
        conversation.provider = conversation.engine.provider_named(rest, conversation.provider.info)
    info = await describe(conversation.provider)
    how = " (assumed)" if info.is_assumed else ""
    window = f", which reads {info.max_tokens:,} tokens{how}" if info.max_tokens else ""
    place = f" at {info.address}" if info.address else ""
    return f"{info.provider} answers with `{info.id}`{place}{window}."


async def _recipe(conversation: Conversation, rest: str) -> str:
    if rest:
        known = {*packaged(), conversation.engine.builder.recipe.name}
        if rest not in known:  # the name of a file comes only from the command line
            raise ConfigError(f"There is no recipe {rest!r} here: {did_you_mean(rest, known)}")
        conversation.engine.builder_named(rest)
        conversation.recipe = rest
    recipe = conversation.engine.builder_named(conversation.recipe).recipe
    layers = ", ".join(dict.fromkeys(layer.source for layer in recipe.layers))
    return f"**{recipe.name}**: {recipe.description}\n\nIts layers: {layers}."


async def _resume(conversation: Conversation, rest: str) -> str:
    sessions = await conversation.sessions()
    if not rest:
        lines = [
            f"{number}. **{one_line(one.title)[:_TITLE_CHARS] or '(nothing said yet)'}** "
            f"{one.active_at:%Y-%m-%d %H:%M} `{one.id}`"
            for number, one in enumerate(sessions, 1)
        ]
        return "\n".join((*lines, "", "`/resume NUMBER` continues one of them."))
    by_number = {str(number): one for number, one in enumerate(sessions, 1)}
    matches = [one for one in sessions if len(rest) >= _MIN_PREFIX and one.id.startswith(rest)]
    session = by_number.get(rest) or (matches[0] if len(matches) == 1 else None)
    if session is None:
        which = "Several sessions begin" if matches else "No session of yours begins"
        raise ConfigError(f"{which} with {rest!r}: `/resume` lists them.")
    await conversation.resume(session)
    count = len(await conversation.newest(_COUNTED))
    messages = "1 message" if count == 1 else f"{count}{'+' * (count == _COUNTED)} messages"
    return f"**{one_line(session.title)[:_TITLE_CHARS]}** goes on, with {messages} so far."


async def _tools(conversation: Conversation, rest: str) -> str:
    tools = (await conversation.context(_NEXT)).tools
    lines = [f"- `{tool.name}` {(tool.description or '').partition(chr(10))[0]}" for tool in tools]
    return "\n".join(lines) or "No tools are offered to this model."


async def _agree(_: Conversation, rest: str) -> str:
    return "I am not asking you anything at the moment."


def _table(receipt: Receipt) -> str:
    """Write a receipt as a Markdown table, with what was left out below it."""
    share = receipt.total_tokens / receipt.limit if receipt.limit else 0
    rows = [
        f"{receipt.total_tokens:,} of {receipt.limit:,} tokens ({share:.0%}), recipe {receipt.recipe}",
        "",
    ]
    rows += ["| layer | tokens | what |", "|---|---:|---|"]
    for layer, tokens in receipt.by_layer.items():
        rows.append(f"| {layer} | {tokens:,} | {_cell(receipt.titles(layer))} |")
    rows += [""] * bool(receipt.dropped)
    for group in receipt.left_out():
        rows += [f"- left out {_cell(item.title)} ({item.tokens:,}): {item.reason}" for item in group.items]
        if group.more:
            rows.append(f"- {group.rest}, {counted(group.more_tokens, 'token')}: {group.reason}")
    rows += [f"- {_cell(note)}" for note in (*receipt.errors, *receipt.warnings, *receipt.remarks)]
    return "\n".join(rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


COMMANDS = {
    "help": Command("lists the commands.", _help),
    "new": Command("begins a new session; the old one stays in the log.", _new),
    "resume": Command("lists your earlier sessions; `/resume NUMBER` continues one.", _resume),
    "context": Command("shows what the model sees, by layer and tokens; `full` shows the text.", _context),
    "receipt": Command("shows what the last answer was made from.", _receipt),
    "model": Command("says who answers, or changes it: `/model ollama:llama3.2`.", _model),
    "tools": Command("lists the tools that the model can call.", _tools),
    "skills": Command("lists what the assistant knows how to do.", show_skills),
    "recipe": Command("says by which recipe contexts are built, or changes it: `/recipe NAME`.", _recipe),
    "status": Command("says where the conversation is.", show_status),
    "memory": Command("lists the memory blocks; `/memory LABEL` shows one.", show_memory),
    "undo": Command("takes the last change of memory back; `/undo LABEL` that of one block.", undo_memory),
    "facts": Command("lists what is known about you.", show_facts),
    "forget": Command("forgets a fact about you: `/forget KEY`.", forget_fact),
    "always": Command("makes something a rule for good: `/always TEXT`.", always),
    "instructions": Command(
        "lists your standing instructions; `/instructions remove NUMBER` removes one.", instructions
    ),
    "tasks": Command("lists what is pending for you.", show_tasks),
    "cancel": Command("cancels a task: `/cancel ID`.", cancel_task),
    "last": Command("shows the last answer once more.", show_last),
    "yes": Command("agrees to what the assistant asks.", _agree),
    "no": Command("does not agree.", _agree),
    "reload": Command("reads instructions and skills anew.", reload),
}
