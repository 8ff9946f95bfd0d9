"""The log of `weft serve`: lines of keys and values on stderr, each with its session and turn.

They hold nobody's text unless `logs.content` is set, and never a secret. Modules log with the standard
library; their `extra` becomes keys.
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
_DETAILS = ("weft.turn.decide", "weft.turn.run", "weft.workspace.skills")
"""Loggers with several lines per turn: programs get them at `info`, a server only at `debug`."""
_COMMON_KEYS = frozenset({"timestamp", "level", "logger", "event", "exception"})
_Args = tuple[object, ...] | Mapping[str, object] | None

_LONGEST_VALUE = 20_000
"""How many characters of one value a line of the log has; a traceback of a deep call has fewer."""


def log_to_stderr(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Log as the settings say from now on."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    quiet = max(level, logging.WARNING)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(settings))
    if level > logging.DEBUG:
        handler.addFilter(lambda record: not getattr(record, "missing", False))
    # Below warnings, other packages log addresses, headers and messages; one of those addresses holds a key.
    logging.basicConfig(level=quiet, handlers=[handler], force=True)
    logging.getLogger(_OURS).setLevel(level)
    for name in _DETAILS:
        logging.getLogger(name).setLevel(level if level == logging.DEBUG else quiet)
    logging.raiseExceptions = False  # else a line that cannot be formatted is printed with all its arguments


def formatter(settings: LogSettings) -> logging.Formatter:
    """Make the formatter: one JSON object per line, or a line for people."""
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
    """Format a line with everything in it."""
    event["event"] = _filled(str(event["_record"].msg), event.pop("positional_args"))
    error = _error(event)
    if error is not None:
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()
    return {key: _whole(value) for key, value in event.items()}


def _without_content(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Format a line without people's text: neither redacted values nor the texts of errors."""
    event["event"] = _sentence(event["_record"], event.pop("positional_args"))
    error = _error(event)
    if error is not None:
        event["exception"] = "".join(_places(error, set())).rstrip()
    ours = _is_ours(event["_record"])
    return {
        key: _redacted(value) if isinstance(value, BaseException) else value
        for key, value in event.items()
        if key.startswith("_") or key in _COMMON_KEYS or (ours and not isinstance(value, Redacted))
    }


def _whole(value: Any) -> Any:
    if isinstance(value, Redacted):
        return str(value.value)
    return str(value) if isinstance(value, BaseException) else value


def _error(event: EventDict) -> BaseException | None:
    """Return the error that a line is about."""
    info = event.pop("exc_info", None)
    event.pop("stack_info", None)
    event.pop("missing", None)
    return info[1] if isinstance(info, tuple) else None


def _sentence(record: logging.LogRecord, args: _Args) -> str:
    """Return the sentence of a line with redacted arguments.

    Of another package only the first line of the format string is used: behind it asyncio, for one, prints a
    whole task with its result.
    """
    ours = _is_ours(record)
    words = record.msg if isinstance(record.msg, str) else HIDDEN
    words = words if ours else (words.splitlines() or [""])[0]
    if isinstance(args, Mapping):
        return _filled(words, {key: _redacted(value, ours=ours) for key, value in args.items()})
    return _filled(words, tuple(_redacted(value, ours=ours) for value in args or ()))


def _filled(words: str, args: _Args) -> str:
    """Format a string with its arguments; leave it as it is if they do not fit."""
    try:
        return words % args if args else words
    except (TypeError, ValueError, KeyError):
        return words


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OURS


def _redacted(value: object, *, ours: bool = True) -> object:
    if isinstance(value, BaseException):
        return getattr(value, "log_text", "") or _type_name(value)
    if isinstance(value, int | float):
        return value
    return value if ours and not isinstance(value, Redacted) else HIDDEN


def _type_name(error: BaseException) -> str:
    """Return the type of an error; of a private type, the public one that it stands for."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


def _places(error: BaseException, seen: set[int]) -> Iterator[str]:
    """Yield a traceback without the texts of errors: their types and places only."""
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
        return without_secrets(_cut(value))
    if isinstance(value, Mapping):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    return value


def _cut(value: str) -> str:
    """Cut a value before anything else is done with it, at the end of a word: it may be half of a secret."""
    if len(value) <= _LONGEST_VALUE:
        return value
    words = value[:_LONGEST_VALUE].rsplit(None, 1)
    return f"{words[0]} … ({len(value) - len(words[0])} characters more)"


def _on_one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Keep a value from moving the cursor or posing as two lines. Only a traceback has several."""
    return {
        key: _on_its_line(key, value) if isinstance(value, str) else value for key, value in event.items()
    }


def _on_its_line(key: str, value: str) -> str:
    if key == "exception":
        return printable(value)
    return printable(value.replace("\n", "\\n").replace("\r", "\\r"))
