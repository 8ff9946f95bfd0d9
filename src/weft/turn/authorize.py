"""Authorization of tool calls in a turn that has read text of strangers.

A page, a feed, an import or an MCP server can say anything, and a model may do what it reads. So in such a
turn a tool that acts needs the consent of the person, unless they asked for just this in their own message.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from weft.errors import NotDone
from weft.tools.base import Tool
from weft.types.escape import one_line, quoted_lines
from weft.types.lazy_pattern import lazy_pattern
from weft.types.message import ToolCall
from weft.types.request import Caller

_log = logging.getLogger(__name__)

NEEDS_YOU = "not done: needs you"
_EXCERPT = 120
_ORDERS = {
    "remember": """remember|keep in mind|(?:don['’]t|do not) forget|note (?:down|that|this)|save
        |write (?:it |this )?down|recuerda|no olvides|anota|guarda|lembra|não esqueças|souviens|retiens
        |n['’]oublie|note que|merk|denk daran|vergiss nicht|notier|ricorda|annota|onthoud|noteer""",
    "forget": """(?<!don't )(?<!don’t )(?<!not )forget|delete|olvida|borra|esquece|apaga|(?<!n')(?<!n’)oublie
        |efface|vergiss(?! nicht)|lösch|dimentica|cancella|vergeet|verwijder""",
    "remind": """remind|task|schedule|alarm|timer|to-?do|recu[eé]rda|recordatorio|tarea|lembr|tarefa|rappel
        |tâche|erinner|aufgabe|wecker|ricord|promemoria|compito|herinner|taak""",
    "cancel": "cancel|delete|remove|borra|cancela|apaga|annule|supprime|lösch|streich|annulla|annuleer",
}
"""The words with which people ask for a change of memory or tasks, by the order that a tool obeys."""
_PATTERNS = {
    order: lazy_pattern(rf"(?<!\w)(?:{''.join(map(str.strip, words.splitlines()))})", re.IGNORECASE)
    for order, words in _ORDERS.items()
}
_SHORTEST_ID = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ActsFreely:
    """Which kinds of tools act without a question in a turn that has read text of strangers.

    `memory` writes memory and facts, `tasks` creates and changes tasks, `programs` runs programs of skills,
    `servers` calls MCP servers, `send` sends an address or data into the network, and `other` are tools of
    plugins and of the program that embeds Weft.
    """

    memory: bool = False
    tasks: bool = False
    programs: bool = False
    servers: bool = False
    send: bool = False
    other: bool = False


async def authorize(tool: Tool, call: ToolCall, caller: Caller, freely: ActsFreely) -> Caller:
    """Check that a call may be made, and ask the person where that is needed.

    Returns the caller for the call, who may have `agreed` to it.

    Raises:
        NotDone: the person did not agree, or cannot be asked.
    """
    if not caller.outside or tool.kind in ("read", "asks") or getattr(freely, tool.kind):
        return caller
    if is_asked_for(tool, call.arguments, caller):
        return replace(caller, outside=())
    if not caller.is_attended or caller.ask is None:
        raise _needs_person(call, caller)
    digest = digest_of(call)
    agreed = await caller.ask(question(call, caller, digest))
    _log.info("consent", extra={"tool": tool.name, "digest": digest, "agreed": agreed})
    if not agreed:
        raise NotDone("not done: the person did not agree.")
    if digest_of(call) != digest:
        raise NotDone("not done: the call changed while the person was asked.")
    return replace(caller, agreed=True)


def question(call: ToolCall, caller: Caller, digest: str) -> str:
    """Write the question to the person, with every argument in full."""
    places = ", ".join(map(one_line, caller.outside))
    lines = [quoted_lines(f"{name}: {_text(value)}") for name, value in call.arguments.items()]
    return "\n\n".join(
        (
            f"May I use `{one_line(call.name)}`? This turn has read text from outside ({places}), "
            "which may be behind it.",
            "\n".join(lines) or "    (no arguments)",
            f"(Its check sum is {digest}, as in the log.)",
        )
    )


def digest_of(call: ToolCall) -> str:
    """Return a short name for exactly this call."""
    data = json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str)
    return sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_asked_for(tool: Tool, arguments: Mapping[str, Any], caller: Caller) -> bool:
    """Return whether the person asks for a call in so many words: the order, and what is to be written.

    A change of memory or of tasks needs a word such as "remember" or "remind", any other tool its own name,
    or an address. Every argument must stand in the message as it is, but for the label of a block that the
    model sees, and the time of a reminder. A tool that overwrites is never asked for in this way.
    """
    if tool.kind in ("memory", "tasks") and not tool.order:
        return False
    message = _flat(caller.words)
    contents = {
        name: value for name, value in arguments.items() if value not in (None, "") and value is not False
    }
    if contents.get("label") in caller.visible_blocks:
        contents.pop("label")
    if tool.order == "remind":
        contents = {name: value for name, value in contents.items() if (name, value) != ("repeat", "once")}
        contents.pop("due", None)
    if tool.order == "cancel" and len(str(contents.get("id", ""))) < _SHORTEST_ID:
        return False
    texts = [_flat(_text(value)) for value in contents.values()]
    if not texts or not all(text and _stands_in(text, message) for text in texts):
        return False
    if tool.kind == "send":
        return all("://" in text for text in texts)
    if tool.order:
        return _PATTERNS[tool.order].search(caller.words) is not None
    return all(_stands_in(word, message) for word in re.split(r"[\W_]+", tool.name.casefold()) if word)


def _stands_in(text: str, message: str) -> bool:
    """Return whether a text stands in a message between other words."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", message) is not None


def _flat(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?;,\"'“”")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _needs_person(call: ToolCall, caller: Caller) -> NotDone:
    """Return the refusal of a call that nobody can agree to now. The person reads later what was wanted."""
    places = ", ".join(caller.outside)
    _log.warning(
        "a call was not done, because it needs the person's consent",
        extra={"tool": call.name, "outside": places},
    )
    why = "nobody can be asked here" if caller.is_attended else "nobody is there to be asked"
    arguments = one_line("; ".join(f"{name}: {_text(value)}" for name, value in call.arguments.items()))
    excerpt = arguments if len(arguments) <= _EXCERPT else f"{arguments[:_EXCERPT]}…"
    return NotDone(
        f"{NEEDS_YOU}. This turn has read text from outside ({places}), and {why}.",
        wanted=f"{one_line(call.name)} ({excerpt}), asked by {places} ({why})",
    )
