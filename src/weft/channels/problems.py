"""Errors over HTTP: one sentence, in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from weft.errors import (
    BudgetExceeded,
    ChannelError,
    ConfigError,
    ContextError,
    EmptyMessage,
    InvalidEdit,
    LimitExceeded,
    PermissionDenied,
    ProviderError,
    ToolError,
    UnknownName,
    WeftError,
)

STATUS: tuple[tuple[type[WeftError], int, str], ...] = (
    (EmptyMessage, 400, "empty_message"),
    (BudgetExceeded, 400, "context_length_exceeded"),
    (ContextError, 400, "invalid_value"),
    (ConfigError, 400, "invalid_value"),
    (PermissionDenied, 403, "permission_denied"),
    (LimitExceeded, 409, "limit_exceeded"),
    (InvalidEdit, 400, "invalid_value"),
    (UnknownName, 404, "not_found"),
    (ProviderError, 502, "provider_error"),
    (ToolError, 502, "tool_error"),
    (ChannelError, 503, "busy"),
    (WeftError, 503, "unavailable"),
)
"""Status and code of each of our errors; the first row that fits counts."""
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class JsonResponse(Response):
    """A JSON response. What UTF-8 cannot hold becomes a question mark."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return text.encode("utf-8", "replace")


def described(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def problem(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    return JsonResponse(described(status, message, param=param, code=code), status, dict(headers or {}))


class Refused(HTTPException):
    """A request that is refused, with the code and the place of what is wrong."""

    def __init__(self, status: int, message: str, *, code: str, param: str | None = None) -> None:
        self.code, self.param = code, param
        super().__init__(status, message)


class NotFound(Refused):
    """Nothing has that name."""

    def __init__(self, message: str, *, code: str, param: str | None = None) -> None:
        super().__init__(404, message, code=code, param=param)


def placed(error: WeftError) -> tuple[int, str]:
    """Return the status and the code of an error of ours."""
    return next((status, code) for kind, status, code in STATUS if isinstance(error, kind))


async def on_error(_: Request, error: Exception) -> Response:
    """Answer with an error of ours: its sentence is written for people."""
    assert isinstance(error, WeftError)  # noqa: S101 - that is what it is registered for
    status, code = placed(error)
    retry = {"retry-after": "1"} if status == 503 else {}
    return problem(status, str(error), code=code, headers=retry)


async def on_refusal(_: Request, error: Exception) -> Response:
    """Answer an unknown address, a wrong method, or an HTTP error that we raised."""
    assert isinstance(error, HTTPException)  # noqa: S101 - that is what it is registered for
    param, code = (error.param, error.code) if isinstance(error, Refused) else (None, None)
    return problem(error.status_code, error.detail, param=param, code=code, headers=error.headers)


async def on_invalid(_: Request, error: Exception) -> Response:
    """Answer a request of the wrong shape with the place and the remedy. What was sent is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - that is what it is registered for
    return await on_refusal(_, invalid(error.errors()[0], start=1))


def invalid(first: Mapping[str, Any], *, start: int = 0) -> Refused:
    """Return the refusal of a request by its first mistake; the place of that is told from `start` on."""
    param = ".".join(str(step) for step in first["loc"][start:])
    return Refused(
        400, f"{param or 'The request'}: {first['msg']}.", param=param or None, code="invalid_value"
    )


async def on_bug(_: Request, error: Exception) -> Response:
    """Answer a bug. The log says what it was, the response does not."""
    return problem(500, "Something went wrong here: the log of the server says what.", code="internal_error")
