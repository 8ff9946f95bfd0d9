"""Every exception Weft raises, in one place.

    WeftError                    catch this to catch all of them
    ├── ConfigError              a setting, a recipe or a name is wrong: the caller mends it
    ├── ContextError             a context could not be built
    │   ├── BudgetExceeded       what must be shown is larger than the limit
    │   └── EmptyMessage         there is nothing to answer
    ├── WorkspaceError           the workspace directory is missing or is not one
    ├── StoreError               what lasts could not be read or written
    │   ├── LimitExceeded        a block would grow past its limit
    │   ├── InvalidEdit          a value, a verb or a schema that a block cannot have
    │   ├── LostFile             the file of the store was deleted or replaced while it is open
    │   ├── PurgedText           a text that was purged a short time ago would be written back
    │   ├── ReadOnlyStore        the file of the store can be read and not written
    │   ├── UnknownName          nothing that is kept has this name
    │   └── WrongPath            a file or a folder that was named is not the right one
    ├── PermissionDenied         a write that the block, the share or the owner does not allow
    │   └── Unauthorized         the sender may not write to this assistant at all
    ├── ProviderError            a model could not be asked, or gave no usable answer
    │   └── RequestTooLong       a server refused a request for its length
    ├── ToolError                a tool could not be run
    │   └── NotDone              a call needs the consent of the person and does not have it
    └── ChannelError             a message could not be received or delivered

Each message is one sentence that says what happened, and then what to do. `exit_code` is what the
command line returns: 2 where the call was wrong, 1 where the work failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class WeftError(Exception):
    """The base of all errors of Weft.

    `log_text` is what the log of a server may say: our own words and a status, and no text of a person, a
    model or a vendor. Without it, the log has only the type of the error.
    """

    exit_code = 1
    log_text = ""


class ConfigError(WeftError):
    """A setting, a recipe or a name is wrong."""

    exit_code = 2


class ContextError(WeftError):
    """A context could not be built."""


class BudgetExceeded(ContextError):
    """The sections that must be shown are larger than the budget.

    `reserved` is how many tokens of the limit are kept for the answer and not in the budget.
    """

    def __init__(
        self,
        *,
        needed: int,
        budget: int,
        largest: str,
        remedies: Sequence[str] = ("shorten it", "raise `context.max_tokens`"),
        reserved: int = 0,
    ) -> None:
        self.needed, self.budget, self.largest, self.reserved = needed, budget, largest, reserved
        of_limit = f": {reserved} of {budget + reserved} are reserved for the answer" if reserved else ""
        if budget < needed <= budget + reserved:
            remedies = (*remedies, "lower `context.reserved_response_tokens`")
        super().__init__(
            f"What must be shown needs {needed} tokens but the budget is {budget}{of_limit}. "
            f"The largest part is {largest!r}: {', or '.join(remedies)}."
        )


class EmptyMessage(ContextError):
    """The message has no text."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__("The message is empty: write what you want to ask.")


class WorkspaceError(WeftError):
    """The workspace directory is missing or is not a directory."""

    exit_code = 2


class StoreError(WeftError):
    """What lasts could not be read or written."""


class LimitExceeded(StoreError):
    """A block would grow past its character limit or its number of items."""

    def __init__(self, *, label: str, limit: int, needed: int, unit: str = "characters") -> None:
        self.label, self.limit, self.needed, self.unit = label, limit, needed, unit
        setting = "char_limit" if unit == "characters" else "max_items"
        super().__init__(
            f"The block {label!r} holds at most {limit} {unit} and this would make it {needed}: "
            f"shorten it, or raise its {setting}."
        )


class InvalidEdit(StoreError):
    """A block cannot have this value, verb or schema; `kind` is its kind, where the verb is wrong."""

    exit_code = 2

    def __init__(self, sentence: str, *, kind: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind


class LostFile(StoreError):
    """The file of the store was deleted or replaced while it is open, so that no write would last."""

    log_text = "the database was deleted or replaced while it is open: start Weft again"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was deleted or replaced while it is open, so nothing is written any more: put it back, "
            "or start Weft again."
        )


class PurgedText(StoreError):
    """A text that was purged a short time ago would be written back into a block."""

    def __init__(self) -> None:
        super().__init__(
            "This has a text that was purged a short time ago, so nothing was written: leave it out."
        )


class ReadOnlyStore(StoreError):
    """The file of the store can be read, but not written to."""


class UnknownName(StoreError):
    """Nothing that is kept has this name."""

    exit_code = 2


class WrongPath(StoreError):
    """A file or a folder that the caller named is not one that this can be done with."""

    exit_code = 2


class PermissionDenied(WeftError):
    """A write was refused."""


class Unauthorized(PermissionDenied):
    """A sender may not write to this assistant."""

    def __init__(self) -> None:
        super().__init__("You may not write to this assistant: ask its owner to pair you with `weft pair`.")


class ProviderError(WeftError):
    """A model could not be asked, or gave no usable answer."""

    def __init__(self, sentence: str, *, log_text: str = "") -> None:
        super().__init__(sentence)
        self.log_text = log_text


class RequestTooLong(ProviderError):
    """A server refused a request because of its length; `window` is what it reads, if it says so."""

    def __init__(self, sentence: str, *, window: int | None = None, log_text: str = "") -> None:
        super().__init__(sentence, log_text=log_text)
        self.window = window


class ToolError(WeftError):
    """A tool could not be run."""


class NotDone(ToolError):
    """A call needs the consent of the person and does not have it.

    `wanted` says what it was to do, if the person could not be asked.
    """

    def __init__(self, sentence: str, *, wanted: str = "") -> None:
        super().__init__(sentence)
        self.wanted = wanted


class ChannelError(WeftError):
    """A message could not be received or delivered; `retry` says in how many seconds to try again.

    So many parts of it `arrived` all the same. `doubtful` says that nobody can know whether more did.
    """

    def __init__(
        self,
        sentence: str,
        *,
        retry: float | None = None,
        arrived: int = 0,
        doubtful: bool = False,
        log_text: str = "",
    ) -> None:
        self.retry, self.arrived, self.doubtful, self.log_text = retry, arrived, doubtful, log_text
        super().__init__(sentence)


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown name: the nearest known one, or the whole list."""
    names = sorted(known)
    same_letters = [name for name in names if sorted(name) == sorted(wrong)]
    near = same_letters or get_close_matches(wrong, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known are " + ", ".join(names) + "." if names else "none is known."


_EXTRAS = {
    "fastapi": "serve",
    "jinja2": "serve",
    "markupsafe": "serve",
    "markdown_it": "telegram",
    "mcp": "mcp",
    "pydantic": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
}


def missing_package(error: ModuleNotFoundError) -> str:
    """Say how to install a package that is missing. An error about a package of no extra is raised again."""
    name = (error.name or "").partition(".")[0]
    if name not in _EXTRAS:
        raise error
    return f"This needs more packages ({name} is missing): pip install 'weft[{_EXTRAS[name]}]'."
