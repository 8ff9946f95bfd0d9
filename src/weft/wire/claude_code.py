"""Claude Code's command line: its arguments, and the lines that it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import EmptyMessage, ProviderError
from weft.types.context import Context
from weft.types.reply import Reply
from weft.types.secret import brief
from weft.wire.anthropic import usage

ARGUMENT_LIMIT = 128 * 1024
"""The size from which Linux refuses an argument. The zero byte at its end counts."""
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FORMAT = ("--output-format", "stream-json", "--verbose", "--include-partial-messages")
_REFUSALS = {
    "error_max_budget_usd": "the spending limit was reached: raise `claude_code.max_budget_usd`",
    "error_max_turns": "it took too many steps: ask for less",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A call: the arguments, standard input if the prompt goes there, and the MCP servers by name."""

    args: tuple[str, ...]
    stdin: bytes | None = None
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def to_invocation(context: Context, *, model: str = "", max_budget_usd: float | None = None) -> Invocation:
    """Write the call of `claude` for a context.

    Raises:
        EmptyMessage: there is nothing to answer.
        ProviderError: a name could be read as an option of the command line.
    """
    if not context.current_message.strip():
        raise EmptyMessage
    if model.startswith("-"):
        raise ProviderError(f"{model!r} is no name of a model: a name does not begin with a dash.")
    prompt = context.to_prompt_string().encode("utf-8", "replace")
    as_argument = len(prompt) < ARGUMENT_LIMIT and b"\0" not in prompt
    # The prompt stands right after `-p`: behind options that take lists it would be read as an item.
    args = ["-p", *([prompt.decode()] if as_argument else []), *_FORMAT]
    if model:
        args += ["--model", model]
    if max_budget_usd is not None:
        args += ["--max-budget-usd", f"{max_budget_usd:.6f}".rstrip("0").rstrip(".")]
    servers = _servers(context)
    if servers:
        # Newer versions read no servers from the settings file, so the command line has them too.
        args += ["--mcp-config", json.dumps({"mcpServers": servers})]
    for name in servers:
        args += ["--allowedTools", f"mcp__{name}__*"]
    return Invocation(args=tuple(args), stdin=None if as_argument else prompt, servers=servers)


def _servers(context: Context) -> dict[str, dict[str, Any]]:
    servers: dict[str, dict[str, Any]] = {}
    for server in context.mcp_servers:
        if not _SERVER_NAME.fullmatch(server.name):
            raise ProviderError(
                f"{server.name!r} cannot name an MCP server: use letters, digits, `-` and `_` in the skill."
            )
        servers.setdefault(server.name, {"command": server.command, "args": list(server.args)})
    return servers


class Assembler:
    """Puts the answer together from lines of `stream-json`. Unknown lines are ignored."""

    def __init__(self) -> None:
        self._result: Mapping[str, Any] | None = None
        self._text: list[str] = []
        self._model = ""
        self._streamed = self._break = False

    @property
    def done(self) -> bool:
        """Return whether the last line of an answer has come."""
        return self._result is not None

    def feed(self, line: bytes) -> str:
        """Take one line. Returns the text that it adds to the answer."""
        try:
            event = _table(json.loads(line))
        except (ValueError, RecursionError):
            return ""
        if event.get("parent_tool_use_id"):
            return ""  # a subagent of Claude's speaks to Claude
        kind = event.get("type")
        if kind == "result":
            self._result = event
        elif kind == "stream_event":
            return self._partial(_table(event.get("event")))
        elif kind == "assistant":
            return self._whole(_table(event.get("message")))
        elif kind == "system":
            self._model = str(event.get("model") or self._model)
        return ""

    def _partial(self, event: Mapping[str, Any]) -> str:
        delta = _table(event.get("delta"))
        if event.get("type") == "message_start":
            self._break = bool(self._text)
        if event.get("type") != "content_block_delta" or delta.get("type") != "text_delta":
            return ""
        self._streamed = True
        return self._added(str(delta.get("text") or ""))

    def _whole(self, message: Mapping[str, Any]) -> str:
        """Take a whole message. Its text is new only in older versions, which send no parts."""
        self._model = str(message.get("model") or self._model)
        blocks = message.get("content")
        if self._streamed or not isinstance(blocks, list):
            return ""
        self._break = bool(self._text)
        texts = [_table(block).get("text") for block in blocks if _table(block).get("type") == "text"]
        return self._added("\n\n".join(str(text) for text in texts if text))

    def _added(self, text: str) -> str:
        if text and self._break:
            text, self._break = f"\n\n{text}", False
        self._text.append(text)
        return text

    def reply(self) -> Reply:
        """Return the answer. Its text is what Claude Code calls the result, without the text before tools.

        Raises:
            ProviderError: it broke off, or ended with an error.
        """
        result = self._result
        if result is None:
            raise ProviderError("The answer of Claude Code broke off before its end: ask again.")
        text = result.get("result")
        if result.get("is_error") or str(result.get("subtype") or "success") != "success":
            raise ProviderError(f"Claude Code could not answer: {_reason(result)}.")
        data = {name: result[name] for name in ("session_id", "total_cost_usd") if name in result}
        return Reply(
            text=text if isinstance(text, str) and text else "".join(self._text),
            stop_reason="max_tokens" if result.get("stop_reason") == "max_tokens" else "end",
            usage=usage(_table(result.get("usage"))) if result.get("usage") else None,
            model=self._model,
            provider_data={"provider": "claude_code", **data},
        )


def _reason(result: Mapping[str, Any]) -> str:
    """Return why there is no answer, with a remedy."""
    if known := _REFUSALS.get(str(result.get("subtype"))):
        return known
    errors = result.get("errors")
    text = result.get("result") or ("; ".join(map(str, errors)) if isinstance(errors, list) else "")
    flat = brief(str(text))
    if "login" in flat.lower() or "api key" in flat.lower():
        return f"{flat}: start `claude` in a terminal and log in"
    return f"{flat or 'it did not say why'}: ask again, or start `claude` in a terminal to see more"


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
