"""Spans for OpenTelemetry: who has configured it sees what was done; everybody else pays nothing.

Names and attributes are those of the GenAI conventions. No text of anybody goes into a span: only names, ids
and numbers. A span knows its parent, and is made the current one around plain awaits only: a generator that
yields in the middle of it would leave it behind in somebody else's context.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from weft.types.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.trace import Span as Recorded

Value = str | int | float | bool | Sequence[str] | None
_HERE: AbstractContextManager[Any] = nullcontext()


class Span:
    """Something that takes its time, as it is recorded; or nothing, where nobody records.

    As a block it ends with the block, and an error that leaves the block is its own. It is not current there.
    """

    __slots__ = ("_recorded",)

    def __init__(self, recorded: Recorded | None = None) -> None:
        self._recorded = recorded

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add what is known by now; what is empty is left out."""
        if self._recorded is not None:
            self._recorded.set_attributes(_known(attributes))

    def fail(self, kind: str) -> None:
        """Mark the span as failed with a kind of error, without the error's text, which may hold anything."""
        if self._recorded is not None and (api := _api()) is not None:
            self._recorded.set_status(api.StatusCode.ERROR)
            self._recorded.set_attribute("error.type", kind)

    def current(self) -> AbstractContextManager[Any]:
        """Make the span current: spans begun inside are its children. Never yield inside."""
        if self._recorded is None or (api := _api()) is None:
            return _HERE
        used: AbstractContextManager[Any] = api.use_span(
            self._recorded, record_exception=False, set_status_on_exception=False
        )
        return used

    def end(self) -> None:
        if self._recorded is not None:
            self._recorded.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.fail(type(error).__name__)
        self.end()


NOTHING = Span()
"""Where nobody records, and where there is no parent but the current span."""


def begin(
    name: str, attributes: Mapping[str, Value], *, parent: Span = NOTHING, client: bool = False
) -> Span:
    """Begin a span; the caller must end it. Without a parent it is a child of the current one.

    `client` says that the work is done elsewhere.
    """
    api = _api()
    if api is None:
        return NOTHING
    above = parent._recorded
    recorded = api.get_tracer("weft", VERSION).start_span(
        name,
        context=None if above is None else api.set_span_in_context(above),
        kind=api.SpanKind.CLIENT if client else api.SpanKind.INTERNAL,
        attributes=_known(attributes),
    )
    return Span(recorded) if recorded.get_span_context().is_valid else NOTHING


def _known(attributes: Mapping[str, Value]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None and value != ""}


def _api() -> ModuleType | None:
    """Return the tracing API if the program has loaded it: a program that records spans has."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # noqa: PLC0415 - 30 milliseconds that nobody pays who records nothing

    return trace
