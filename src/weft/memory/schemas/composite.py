"""Named sections, each with a schema of its own. They are edited by the operations of their schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import InvalidEdit, did_you_mean
from weft.memory.containers import Containers
from weft.memory.schemas.base import Kind, check, content_of, kind_for, render
from weft.types.schema import READ_ONLY_MARK, CompositeSchema, CompositeSection

_HEADER_LIKE = re.compile(r"^\\*=== .* ===\s*$", re.MULTILINE)


class CompositeKind(Kind[CompositeSchema]):
    """Sections. The content is a dict of their contents."""

    operations = "set_text_in_section or set_field_in_section"

    def content(self, schema: CompositeSchema, block: Containers, place: str) -> dict[str, Any]:
        return {
            section.name: content_of(block, section.schema, block.section(section.name, place))
            for section in schema.sections
        }

    def render(self, schema: CompositeSchema, content: Any, *, bare: bool) -> str:
        parts = []
        for section in schema.sections:
            parts.append(f"=== {section.name}{READ_ONLY_MARK if section.read_only else ''} ===")
            body = render(section.schema, content[section.name], bare=bare)
            if (
                kind_for(section.schema).sections(section.schema) is None
            ):  # else the headers are those of its sections
                body = _HEADER_LIKE.sub(r"\\\g<0>", body)
            if body:
                parts.append(body)
        return "\n\n".join(parts)

    def check(self, schema: CompositeSchema, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidEdit(f"{where} must be a table of sections, not {value!r:.40}.")
        known = {section.name: section.schema for section in schema.sections}
        for name in value:
            if name not in known:
                raise InvalidEdit(f"{where} has no section {name!r}: {did_you_mean(str(name), known)}")
        return {name: check(known[name], part, f"{where}.{name}") for name, part in value.items()}

    def sections(self, schema: CompositeSchema) -> Sequence[CompositeSection]:
        return schema.sections
