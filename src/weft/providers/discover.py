"""What a server says about its models: which it has, and how much each of them reads.

Servers that speak OpenAI's protocol name the window in many ways. These functions read all of them, and never
fail: what is not named in a known way is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WINDOWS = (
    "loaded_context_length",  # LM Studio, of a model that is loaded
    "max_model_len",  # vLLM
    "meta.n_ctx",  # llama-server
    "context_length",  # OpenRouter
    "context_window",
    "max_context_length",  # LM Studio
    "inputTokenLimit",  # Gemini
    "max_input_tokens",
)
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|prompt is too long|too many tokens|input is too long"
    r"|exceeds the maximum number of tokens|maximum context",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"(?:maximum context length is|context length of only|context (?:size|window|length) \(?(?:of |is )?"
    r"|maximum number of tokens allowed \(?|max_model_len[^0-9]{0,10}|n_ctx[^0-9]{0,5}|> |limit of )"
    r"\s*(\d[\d,]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model that a server has, and its window if the server names it."""

    id: str
    window: int | None = None


def listed_models(body: Any) -> list[ListedModel]:
    """Read the models in a server's list, in the order of the server."""
    rows = body.get("data") or body.get("models") if isinstance(body, Mapping) else body
    entries = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    models = [ListedModel(id=_id(entry), window=_window(entry)) for entry in entries]
    return [model for model in models if model.id]


def find_listed(models: Sequence[ListedModel], wanted: str) -> ListedModel | None:
    """Find a model by its id. A server with a single model answers with it, whatever it is called."""
    names = (wanted, f"{wanted}:latest")
    by_id = next((model for model in models if model.id in names), None)
    return by_id or (models[0] if len(models) == 1 else None)


def described_window(body: Any) -> int | None:
    """Read the window in Ollama's description of a model: the one that its file sets, or its own."""
    if not isinstance(body, Mapping):
        return None
    parameters = re.search(r"^num_ctx\s+(\d+)", str(body.get("parameters") or ""), re.MULTILINE)
    if parameters:
        return int(parameters[1]) or None
    info = body.get("model_info")
    rows = info.items() if isinstance(info, Mapping) else ()
    return next((_number(value) for key, value in rows if str(key).endswith(".context_length")), None)


def props_window(body: Any) -> int | None:
    """Read the window in the properties of a llama-server."""
    return _number(_find(body, "default_generation_settings.n_ctx"))


def is_too_long(text: str) -> bool:
    """Return whether an error is about the length of the request."""
    return _TOO_LONG.search(text) is not None


def window_in(text: str) -> int | None:
    """Find the window that a server names when it refuses a request for its length."""
    match = _LIMIT.search(text)
    return _number(int(match[1].replace(",", ""))) if match else None


def _id(entry: Mapping[str, Any]) -> str:
    name = entry.get("id") or entry.get("model") or entry.get("name") or entry.get("key")
    return str(name or "").removeprefix("models/")


def _window(entry: Mapping[str, Any]) -> int | None:
    return next((window for path in _WINDOWS if (window := _number(_find(entry, path)))), None)


def _find(table: Any, path: str) -> Any:
    for name in path.split("."):
        table = table.get(name) if isinstance(table, Mapping) else None
    return table


def _number(value: Any) -> int | None:
    """Return a plausible window, and None for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 256 <= value <= 100_000_000 else None
