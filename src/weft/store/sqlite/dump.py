"""Export: the whole store as a folder that a person can read and another program can load. And import.

Each table is one file of JSON Lines; the text of each block is in a file beside them. The description of the
tables decides which columns are exported: those that can be computed again, such as the search index, are
left out. An export of an imported store has the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

from weft.errors import StoreError, WeftError, WrongPath
from weft.private_files import make_private_folder, private_opener, write_private
from weft.store.sqlite.connection import explain
from weft.store.sqlite.index import index_messages, index_text
from weft.store.sqlite.receipts import check as check_receipt
from weft.store.sqlite.rows import MESSAGE_COLUMNS, message_from
from weft.store.sqlite.schema import Column, Table
from weft.types.codec import dump_json
from weft.types.memory import BlockType, Permission
from weft.types.message import Message
from weft.types.schema import schema_from_dict

FORMAT = 4
MANIFEST = "manifest.json"


_CHECKS: dict[tuple[str, str], Callable[[Any], object]] = {
    ("blocks", "block_type"): BlockType,
    ("blocks", "permission"): Permission,
    ("blocks", "schema"): schema_from_dict,
    ("block_shares", "permission"): Permission,
    ("turns", "receipt"): check_receipt,
    ("turn_steps", "message"): lambda message: Message.from_json(dump_json(message)),
}
"""Values that could be stored but not be read again are refused."""


def export_tables(db: apsw.Connection, tables: Sequence[Table], folder: Path) -> dict[str, int]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WrongPath(f"There is something in {folder} already: name a new folder.")
    part = folder.with_name(f".{folder.name}.part-{os.getpid()}")
    try:
        make_private_folder(part)
        counts = {table.name: _write_rows(db, table, part) for table in tables}
        _write_texts(db, part / "blocks")
        manifest = {"format": FORMAT, "rows": counts}
        write_private(part / MANIFEST, json.dumps(manifest, indent=1) + "\n")
        part.replace(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{folder} cannot be written ({reason}): name another place.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return counts


def _write_rows(db: apsw.Connection, table: Table, folder: Path) -> int:
    columns, count = table.exported, 0
    names = ", ".join(column.name for column in columns)
    path = folder / f"{table.name}.jsonl"
    with open(path, "w", encoding="utf-8", newline="\n", opener=private_opener) as file:
        for row in db.execute(f"select {names} from {table.name} order by {table.order}"):
            pairs = zip(columns, row, strict=True)
            values = {column.name: _to_json(column, value) for column, value in pairs if value is not None}
            file.write(dump_json(values) + "\n")
            count += 1
    return count


def _to_json(column: Column, value: Any) -> Any:
    if column.is_json:
        return json.loads(value)
    return b64encode(value).decode("ascii") if column.is_bytes else value


def _write_texts(db: apsw.Connection, folder: Path) -> None:
    """Write the text of each block to a file of its own, for people. An import reads the rows only."""
    for block_id, agent, label, text in db.execute("select id, agent_id, label, rendered from blocks"):
        path = folder / _file_name(agent) / f"{_file_name(label)}-{block_id[-6:]}.txt"
        write_private(path, text)


def _file_name(name: str) -> str:
    """Make a name that any file system takes and that cannot lead out of the folder."""
    safe = re.sub(r"[^\w.-]+", "_", name).strip("._")[:60]
    return safe if safe and safe == name else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


def import_tables(db: apsw.Connection, tables: Sequence[Table], folder: Path) -> dict[str, int]:
    counts = _counts(folder)
    filled = [table.name for table in tables if db.execute(f"select exists(select 1 from {table.name})").get]
    if filled:
        raise StoreError(f"This store has {', '.join(filled)} already: import into a new one.")
    for table in tables:
        rows = _read_rows(db, table, folder)
        if rows != counts.get(table.name):
            raise StoreError(
                f"{folder / table.name}.jsonl has {rows} rows and should have {counts.get(table.name)}: "
                "export again."
            )
    _index(db)
    return {table.name: counts[table.name] for table in tables}


def _counts(folder: Path) -> Mapping[str, int]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        number, counts = manifest["format"], manifest["rows"]
        counts = {str(name): int(count) for name, count in counts.items()}
    except OSError as error:
        raise WrongPath(f"{folder} is no folder that Weft exported: there is no {MANIFEST} in it.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder / MANIFEST} is damaged: export again.") from error
    if number != FORMAT:
        raise StoreError(
            f"{folder} was exported by another version of Weft (format {number}): use that one to import it."
        )
    return counts


def _read_rows(db: apsw.Connection, table: Table, folder: Path) -> int:
    columns = {column.name: column for column in table.exported}
    count = 0
    for number, line in _lines(folder / f"{table.name}.jsonl"):
        try:
            _insert(db, table.name, columns, json.loads(line))
            count += 1
        except (ValueError, KeyError, TypeError, AttributeError, WeftError, apsw.Error) as error:
            reason = explain(error, folder.name) if isinstance(error, apsw.Error) else error
            raise StoreError(
                f"{folder / table.name}.jsonl, line {number} cannot be read ({reason}): nothing was imported."
            ) from error
    return count


def _insert(db: apsw.Connection, table: str, columns: Mapping[str, Column], row: dict[str, Any]) -> None:
    """Insert one row; a column that is not in it gets its default.

    Raises:
        StoreError: the row has a column that the table does not have.
    """
    for name in row:
        if name not in columns:
            raise StoreError(f"{name!r} is not known here")
    values = {name: _from_json(table, columns[name], value) for name, value in row.items()}
    if table == "messages":
        message_from([values.get(name) for name in MESSAGE_COLUMNS.split(", ")])
    marks = ", ".join("?" * len(values))
    db.execute(f"insert into {table}({', '.join(values)}) values({marks})", tuple(values.values()))


def _from_json(table: str, column: Column, value: Any) -> Any:
    if check := _CHECKS.get((table, column.name)):
        check(value)
    if column.is_json:
        return dump_json(value)
    return b64decode(value, validate=True) if column.is_bytes else value


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from enumerate(file, 1)
    except OSError as error:
        raise StoreError(f"{path} is missing: export again.") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not UTF-8: export again.") from error


def _index(db: apsw.Connection) -> None:
    """Fill the search index from the rows."""
    index_messages(db)
    for block_id, agent, label, text, at in db.execute(
        "select id, agent_id, label, rendered, updated_at from blocks order by id"
    ):
        index_text(db, ("block", block_id), f"{label}\n{text}", (agent, "", ""), at)
    for note, agent, text, at in db.execute("select id, agent_id, content, created_at from archive"):
        index_text(db, ("archival", note), text, (agent, "", ""), at)
