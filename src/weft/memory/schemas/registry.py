"""The kinds of memory blocks that Weft brings. A program adds its own with `register`."""

from __future__ import annotations

from weft.memory.schemas.base import content_of, measure, register, render, render_block
from weft.memory.schemas.composite import CompositeKind
from weft.memory.schemas.list import ListKind
from weft.memory.schemas.log import LogKind
from weft.memory.schemas.map import MapKind
from weft.memory.schemas.text import TextKind
from weft.types.schema import CompositeSchema, ListSchema, LogSchema, MapSchema, TextSchema

__all__ = ["content_of", "measure", "register", "render", "render_block"]

register(TextSchema, TextKind())
register(MapSchema, MapKind())
register(ListSchema, ListKind())
register(LogSchema, LogKind())
register(CompositeSchema, CompositeKind())
