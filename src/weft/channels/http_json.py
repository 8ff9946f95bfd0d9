"""Bodies of requests: counted before anything else, then read and checked, large ones in a thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from weft.channels.http_bodies import AskedBody
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.problems import Refused, invalid
from weft.offload import offloaded

_MOST_METADATA = 16


def limited(settings: HttpChannelSettings) -> type[APIRoute]:
    """Make a kind of route whose bodies are read within the limits of the settings."""

    class Limited(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            model = self.body_field.field_info.annotation if self.body_field is not None else None
            if not (isinstance(model, type) and issubclass(model, BaseModel)):
                return handle
            body_model: type[BaseModel] = model

            async def handle_limited(request: Request) -> Response:
                return await handle(_Request(request, body_model, settings))

            return handle_limited

    return Limited


class _Request(Request):
    """A request whose body is a checked value by the time the framework asks for it."""

    def __init__(self, request: Request, model: type[BaseModel], settings: HttpChannelSettings) -> None:
        super().__init__(request.scope, request.receive)
        self._model, self._settings = model, settings

    async def json(self) -> BaseModel:
        body = await self.body()
        return await offloaded(len(body), read_body, body, self._model, self._settings)


def read_body(body: bytes, model: type[BaseModel], settings: HttpChannelSettings) -> BaseModel:
    """Read a body, count what it holds, and check its shape.

    Raises:
        Refused: it holds more than is allowed, or has the wrong shape.
        JSONDecodeError: it is not JSON.
    """
    # Each of these steps into Python and lets other threads run: in one go four million bytes stop them all.
    data = json.loads(body, parse_int=_integer, parse_float=_decimal, object_pairs_hook=_object)
    if isinstance(data, dict) and issubclass(model, AskedBody):
        _refuse_many(model, data, settings)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_input=False)[0]) from None


def _refuse_many(model: type[AskedBody], data: Mapping[str, Any], settings: HttpChannelSettings) -> None:
    most = {
        "messages": settings.max_messages,
        "parts": settings.max_messages,
        "tools": settings.max_tools,
        "metadata": _MOST_METADATA,
    }
    remedies = {"tools": ", or raise `http.max_tools`", "metadata": ""}
    for key, what, count in model.counts(data):
        if count > most[what]:
            remedy = remedies.get(what, ", or raise `http.max_messages`")
            sentence = f"{key}: There are {count} {what} and {most[what]} are allowed: send fewer{remedy}."
            raise Refused(400, sentence, code="too_many", param=key)


def _integer(digits: str) -> int:
    return int(digits)


def _decimal(digits: str) -> float:
    return float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs)
