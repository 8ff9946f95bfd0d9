"""The rule for models that call no tools: an explicit "remember that ..." is stored without them."""

from __future__ import annotations

import re

from weft.types.lazy_pattern import lazy_pattern

_MAX_CHARS = 500
_ORDER = lazy_pattern(
    r"""^\s*(?:please[,\s]+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?
    (?:remember(?:\s+that|\s*:)|(?:do\s+not|don['’]t)\s+forget\s+that|keep\s+in\s+mind\s+that
    |(?:recuerda|no\s+olvides)\s+que|lembra(?:-te)?(?:\s+de)?\s+que|não\s+esqueças\s+que
    |(?:souviens-toi|retiens|n['’]oublie\s+pas)\s+que|(?:merk(?:e)?\s+dir|denk(?:e)?\s+daran|vergiss\s+nicht),?\s+dass
    |ricorda(?:ti)?\s+che|onthoud\s+dat)
    \s*(?P<what>\S.*)$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_STORY = lazy_pattern(r"(?:time|day|night|year|summer|winter|one)\b", re.IGNORECASE)


def explicit_memory(text: str) -> str | None:
    """Return what a message asks to remember, or None if it does not ask for that in so many words."""
    match = _ORDER.match(text)
    if match is None:
        return None
    what = " ".join(match["what"].split())
    is_question = what.endswith("?") and not text.lstrip().lower().startswith(
        ("can", "could", "would", "will")
    )
    if is_question or _STORY.match(what) or len(what) > _MAX_CHARS:
        return None
    what = what.rstrip("?").rstrip()
    return what[:1].upper() + what[1:] if what else None
