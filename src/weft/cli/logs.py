"""What `weft serve` logs: lines of keys and values on stderr, each with the session and the turn it is of.

Nobody's text is in them unless `logs.content` is set, and secrets are not even then. Modules log as ever,
with the standard library; what they give as `extra` becomes keys.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from weft.config import LogSettings
from weft.turn.trace import ids
from weft.types.escape import printable
from weft.types.redacted import HIDDEN, Redacted
from weft.types.secret import without_secrets

_OURS = "weft"
_DETAILS = ("weft.turn.build", "weft.workspace.skills")
"""Tell several things of every turn: programs get them at `info`, a server only at `debug`."""
_ANYBODYS = frozenset({"timestamp", "level", "logger", "event", "exception"})
_Given = tuple[object, ...] | Mapping[str, object] | None


def log_to_stderr(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Log from now on as the settings say, and in no other way."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    quiet = max(level, logging.WARNING)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(settings))
    if level > logging.DEBUG:
        handler.addFilter(lambda record: not getattr(record, "missing", False))
    # Other packages tell addresses, headers and messages below a warning; one of those addresses holds a key.
    logging.basicConfig(level=quiet, handlers=[handler], force=True)
    logging.getLogger(_OURS).setLevel(level)
    for name in _DETAILS:
        logging.getLogger(name).setLevel(level if level == logging.DEBUG else quiet)
    logging.raiseExceptions = False  # a line that cannot be written would be printed with all its arguments


def formatter(settings: LogSettings) -> logging.Formatter:
    """Makes lines: one JSON object each, or one for people to read."""
    last: list[Processor] = [structlog.processors.JSONRenderer()]
    if settings.format == "text":
        plain = structlog.dev.plain_traceback
        last = [
            _on_one_line,
            structlog.dev.ConsoleRenderer(
                colors=False, pad_event_to=0, sort_keys=False, exception_formatter=plain
            ),
        ]
    return structlog.stdlib.ProcessorFormatter(
        use_get_message=False,
        pass_foreign_args=True,
        processors=[
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            _with_content if settings.content else _without_content,
            _with_ids,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _without_any_secret,
            *last,
        ],
    )


def _with_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event.update(ids())
    return event


def _with_content(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A line with everything that it tells."""
    event["event"] = _filled(str(event["_record"].msg), event.pop("positional_args"))
    error = _error(event)
    if error is not None:
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()
    return {key: str(value.value) if isinstance(value, Redacted) else value for key, value in event.items()}


def _without_content(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A line with nobody's text in it: neither what was marked as such, nor what errors say."""
    event["event"] = _sentence(event["_record"], event.pop("positional_args"))
    error = _error(event)
    if error is not None:
        event["exception"] = "".join(_places(error, set())).rstrip()
    ours = _is_ours(event["_record"])
    return {
        key: _shown(value) if isinstance(value, BaseException) else value
        for key, value in event.items()
        if key.startswith("_") or key in _ANYBODYS or (ours and not isinstance(value, Redacted))
    }


def _error(event: EventDict) -> BaseException | None:
    """The error that a line is about."""
    told = event.pop("exc_info", None)
    event.pop("stack_info", None)
    event.pop("missing", None)
    return told[1] if isinstance(told, tuple) else None


def _sentence(record: logging.LogRecord, given: _Given) -> str:
    """What a line says, without what is not ours to tell.

    Of another package only the words are known that it wrote itself, up to the end of the line: behind it
    asyncio, for one, shows a whole task with what it returned.
    """
    ours = _is_ours(record)
    words = record.msg if isinstance(record.msg, str) else HIDDEN
    words = words if ours else (words.splitlines() or [""])[0]
    if isinstance(given, Mapping):
        return _filled(words, {key: _shown(value, ours=ours) for key, value in given.items()})
    return _filled(words, tuple(_shown(value, ours=ours) for value in given or ()))


def _filled(words: str, given: _Given) -> str:
    """The words with their arguments; alone, if these do not fit."""
    try:
        return words % given if given else words
    except (TypeError, ValueError, KeyError):
        return words


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OURS


def _shown(value: object, *, ours: bool = True) -> object:
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, int | float):
        return value
    return value if ours and not isinstance(value, Redacted) else HIDDEN


def _places(error: BaseException, seen: set[int]) -> Iterator[str]:
    """A traceback without what the errors said: their types, and where they came from."""
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _places(before, seen)
        yield "which led to\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__qualname__}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "in it\n"
        yield from _places(inner, seen)


def _without_any_secret(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {key: _masked(value) for key, value in event.items()}


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    return value


def _on_one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A line that cannot move the cursor, nor pretend to be two; only a traceback has lines of its own."""
    return {key: _tame(key, value) if isinstance(value, str) else value for key, value in event.items()}


def _tame(key: str, value: str) -> str:
    if key == "exception":
        return printable(value)
    return printable(value.replace("\n", "\\n").replace("\r", "\\r"))
