"""Receipts in the store: runs of items that many turns share are stored once, by their hash.

A run is the items of one layer, such as all tools. A row of a turn has the hashes of its runs and the figures
that are its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

import apsw

from weft.store.sqlite.contents import save_content
from weft.store.sqlite.rows import storable
from weft.types.codec import dump_json, from_dict, to_dict
from weft.types.receipt import Receipt, ReceiptItem

_COLUMNS = tuple(field.name for field in fields(ReceiptItem))
_DEFAULTS = tuple(field.default for field in fields(ReceiptItem))
_SHARED = ("recipe", "counter", "provider", "model", "provider_reason", "address", "window", "warnings")
"""What stays the same from turn to turn, and is stored as one more run."""


def pack(db: apsw.Connection, receipt: Receipt) -> str:
    """Store the runs of a receipt. Returns what its turn's row has."""
    data = to_dict(replace(receipt, items=()))
    own = {name: value for name, value in data.items() if name not in ("items", *_SHARED, *Receipt.DERIVED)}
    shared = {name: data[name] for name in _SHARED if name in data}
    runs = [save_content(db, text) for text in _runs(receipt.items)]
    return dump_json({"runs": runs, "shared": save_content(db, storable(dump_json(shared))), **own})


def unpack(db: apsw.Connection, text: str) -> Receipt:
    """Read a receipt. One of an earlier version has its items in its row."""
    data = json.loads(text)
    if "runs" not in data:
        return Receipt.from_json(text)
    runs, shared = data.pop("runs"), data.pop("shared")
    items = [_item(row) for run in runs for row in _read(db, run)]
    return from_dict(Receipt, {**data, **(_read(db, shared) or {}), "items": items}, where="receipt")


def check(receipt: Any) -> None:
    """Check that a receipt of an export can be read again. Raises a WeftError, a KeyError or a TypeError."""
    if "runs" not in receipt:
        Receipt.from_json(dump_json(receipt))
    else:
        from_dict(
            Receipt, {name: value for name, value in receipt.items() if name != "runs"}, where="receipt"
        )


def _runs(items: tuple[ReceiptItem, ...]) -> Iterator[str]:
    """Write the items of each layer as JSON: the values of their fields, without defaults at the end."""
    for _, run in groupby(items, key=lambda item: item.layer):
        yield storable(dump_json([_row(item) for item in run]))


def _row(item: ReceiptItem) -> list[Any]:
    values = [getattr(item, name) for name in _COLUMNS]
    while values and values[-1] == _DEFAULTS[len(values) - 1]:
        values.pop()
    return values


def _item(row: list[Any]) -> dict[str, Any]:
    return dict(zip(_COLUMNS, row, strict=False))


def _read(db: apsw.Connection, hash_: str) -> Any:
    text = db.execute("select text from contents where hash = ?", (hash_,)).get
    return [] if text is None else json.loads(text)
