"""Why Weft is behind in a row, by the row and the library it is compared with. Each is from a profile."""

from __future__ import annotations

REASONS: dict[tuple[str, str], str] = {}
