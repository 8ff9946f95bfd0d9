"""Text for XML."""

from __future__ import annotations

import re
from html import escape

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml(text: str) -> str:
    """Escape a text for a picture: what XML forbids is replaced."""
    return escape(_NOT_XML.sub("\ufffd", text))
