"""Where each vendor listens and how it wants to be addressed, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How long to wait, and how often to try again."""

    connect_seconds: float = 10.0
    silence_seconds: float = 120.0
    retries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor's address. `key` names the environment variable of its key, `base` that of its address."""

    name: str
    url: str
    base: str
    key: str = ""
    path: Callable[[str, bool], str]
    headers: Callable[[str], Mapping[str, str]]
    lines: bool = False
    """Whether a stream is JSON line by line; server-sent events otherwise."""


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


def _gemini_path(model: str, stream: bool) -> str:
    action = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{quote(model, safe='')}:{action}"


VENDORS: Mapping[str, Vendor] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="anthropic",
            url="https://api.anthropic.com",
            base="ANTHROPIC_BASE_URL",
            key="ANTHROPIC_API_KEY",
            path=lambda model, stream: "/v1/messages",
            headers=lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        ),
        Vendor(
            name="openai",
            url="https://api.openai.com/v1",
            base="OPENAI_BASE_URL",
            key="OPENAI_API_KEY",
            path=lambda model, stream: "/chat/completions",
            headers=_bearer,
        ),
        Vendor(
            name="openai_responses",
            url="https://api.openai.com/v1",
            base="OPENAI_BASE_URL",
            key="OPENAI_API_KEY",
            path=lambda model, stream: "/responses",
            headers=_bearer,
        ),
        Vendor(
            name="openrouter",
            url="https://openrouter.ai/api/v1",
            base="OPENROUTER_BASE_URL",
            key="OPENROUTER_API_KEY",
            path=lambda model, stream: "/chat/completions",
            headers=_bearer,
        ),
        Vendor(
            name="gemini",
            url="https://generativelanguage.googleapis.com",
            base="GEMINI_BASE_URL",
            key="GEMINI_API_KEY",
            path=_gemini_path,
            headers=lambda key: {"x-goog-api-key": key},
        ),
        Vendor(
            name="ollama",
            url="http://127.0.0.1:11434",
            base="OLLAMA_HOST",
            path=lambda model, stream: "/api/chat",
            headers=lambda key: {},
            lines=True,
        ),
    )
}


def address(vendor: Vendor, environ: Mapping[str, str]) -> str:
    """Where to ask: the environment's address, or the vendor's own."""
    given = environ.get(vendor.base, "").strip().rstrip("/")
    return (given if "//" in given else f"http://{given}") if given else vendor.url
