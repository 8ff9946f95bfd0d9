"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when one of its methods is called for the first time.

    For patterns that few runs need: large ones take milliseconds each, and all of them took a tenth of the
    start of every command. It has the methods of a pattern, but functions such as `re.sub` do not accept it.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._compiled, name)
        setattr(self, name, method)  # later calls do not come through here
        return method
