"""The whole store as a folder that a person can read and another program can load, and back again.

One file of JSON Lines for each kind of thing, and the text of each block beside them. What can be made again
from these, such as the search index, is left out. Exporting what was imported gives the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

from weft.errors import StoreError, WeftError
from weft.store.sqlite.database import Database, translated
from weft.store.sqlite.index import index_message, index_text
from weft.store.sqlite.rows import MESSAGE_COLUMNS, message_from
from weft.types.codec import dump_json
from weft.types.memory import BlockType, Permission
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.schema import schema_from_dict

FORMAT = 3
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, in the order in which its rows are written; which of its columns hold JSON, which bytes."""

    name: str
    columns: str
    order: str
    as_json: tuple[str, ...] = ()
    as_bytes: tuple[str, ...] = ()


# Each after those it refers to.
TABLES = (
    _Table("sessions", "id, channel, conversation, sender, agent_id, created_at, active_at, closed_at", "id"),
    _Table("bindings", "channel, conversation, sender, session_id", "1, 2, 3"),
    _Table(
        "messages",
        f"id, session_id, seq, batch, {MESSAGE_COLUMNS}, tokens, chars, sum_tokens, sum_chars4, sum_chars5, "
        "created_at",
        "id",
        as_json=("tool_calls", "parts", "provider_data"),
    ),
    _Table("links", "sender, person", "sender"),
    _Table("facts", "id, person, key, value, message_id, created_at, ended_at", "id"),
    _Table("summaries", "id, channel, sender, session_id, text, created_at", "id"),
    _Table(
        "tasks",
        "id, sender, text, due, due_at, repeat, action, status, created_at, zone, first_due, channel, "
        "conversation, attempts",
        "id",
    ),
    _Table(
        "blocks",
        "id, agent_id, label, description, block_type, schema, permission, char_limit, pinned, rendered, "
        "version, created_at, updated_at, rendered_version, epoch",
        "id",
        as_json=("schema",),
    ),
    _Table(
        "block_updates",
        "seq, block_id, kind, blob, before, after, undoes, author, at",
        "seq",
        as_bytes=("blob", "before", "after"),
    ),
    _Table("block_snapshots", "block_id, seq, blob", "block_id", as_bytes=("blob",)),
    _Table("block_shares", "block_id, agent_id, permission", "1, 2"),
    _Table("archive", "id, agent_id, content, metadata, created_at", "id", as_json=("metadata",)),
    _Table(
        "turns",
        "id, session_id, state, text, owner, error, receipt, created_at, ended_at, inbox_id, is_known",
        "id",
        as_json=("receipt",),
    ),
    _Table("turn_steps", "turn_id, seq, message", "1, 2", as_json=("message",)),
    _Table("folds", "session_id, last, text, created_at", "1, 2"),
    _Table("results", "id, session_id, tool, content, created_at", "id"),
    _Table("ratios", "model, ratio", "model"),
    _Table(
        "inbox",
        "id, channel, external_id, conversation, sender, text, name, kind, origin, blocks, state, "
        "created_at, ended_at",
        "id",
        as_json=("blocks",),
    ),
    _Table(
        "outbox",
        "id, inbox_id, task_id, channel, conversation, text, state, attempts, next_at, created_at, sent_at, "
        "arrived",
        "id",
    ),
    _Table("streams", "name, source, origin, begun_at", "name"),
    _Table("stream_items", "stream, item, signature, digest, times, block_id, at", "1, 2"),
    _Table("denials", "id, channel, sender, why, at", "id"),
    _Table("purges", "fingerprint, at, places", "fingerprint"),
    _Table("auth_pairings", "channel, sender, at", "1, 2"),
    _Table("auth_tokens", "name, hash, at", "name", as_bytes=("hash",)),
)


class SqliteDump:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def export(self, folder: Path) -> dict[str, int]:
        """Write everything into a new folder, as it is at one moment; how many rows of each kind.

        Raises:
            StoreError: there is something in that place already, or it cannot be written to.
        """
        return await self._database.read(lambda db: _export(db, folder))

    async def restore(self, folder: Path) -> dict[str, int]:
        """Read everything from such a folder into this store, all of it or nothing.

        Raises:
            StoreError: the store is not empty, or the folder is damaged; the sentence names the line.
        """
        return await self._database.write(lambda db: _restore(db, folder))


def _export(db: apsw.Connection, folder: Path) -> dict[str, int]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"There is something in {folder} already: name a new folder.")
    making = folder.with_name(f".{folder.name}.part-{os.getpid()}")
    try:
        making.mkdir(parents=True)
        counts = {table.name: _write_rows(db, table, making) for table in TABLES}
        _write_texts(db, making / "blocks")
        manifest = {"format": FORMAT, "rows": counts}
        (making / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
        making.replace(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{folder} cannot be written ({reason}): name another place.") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return counts


def _write_rows(db: apsw.Connection, table: _Table, folder: Path) -> int:
    names, count = table.columns.split(", "), 0
    with (folder / f"{table.name}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for row in db.execute(f"select {table.columns} from {table.name} order by {table.order}"):
            shown = {name: _shown(table, name, value) for name, value in zip(names, row, strict=True)}
            kept = {name: value for name, value in shown.items() if value is not None}
            file.write(dump_json(kept) + "\n")
            count += 1
    return count


def _shown(table: _Table, name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in table.as_json:
        return json.loads(value)
    return b64encode(value).decode("ascii") if name in table.as_bytes else value


def _write_texts(db: apsw.Connection, folder: Path) -> None:
    """The text of each block in a file of its own, for people: what is read back is the rows."""
    for block_id, agent, label, text in db.execute("select id, agent_id, label, rendered from blocks"):
        path = folder / _file_name(agent) / f"{_file_name(label)}-{block_id[-6:]}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def _file_name(name: str) -> str:
    """A name that any file system takes and that cannot lead out of the folder."""
    plain = re.sub(r"[^\w.-]+", "_", name).strip("._")[:60]
    return plain if plain and plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def _restore(db: apsw.Connection, folder: Path) -> dict[str, int]:
    counts = _counts(folder)
    filled = [table.name for table in TABLES if db.execute(f"select exists(select 1 from {table.name})").get]
    if filled:
        raise StoreError(f"This store has {', '.join(filled)} already: import into a new one.")
    for table in TABLES:
        found = _read_rows(db, table, folder)
        if found != counts.get(table.name):
            raise StoreError(
                f"{folder / table.name}.jsonl has {found} rows and should have {counts.get(table.name)}: "
                "export again."
            )
    _index(db)
    return {table.name: counts[table.name] for table in TABLES}


def _counts(folder: Path) -> Mapping[str, int]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        number, counts = manifest["format"], manifest["rows"]
        counts = {str(name): int(count) for name, count in counts.items()}
    except OSError as error:
        raise StoreError(
            f"{folder} is no folder that Weft exported: there is no {MANIFEST} in it."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder / MANIFEST} is damaged: export again.") from error
    if number != FORMAT:
        raise StoreError(
            f"{folder} was exported by another version of Weft (format {number}): use that one to import it."
        )
    return counts


def _read_rows(db: apsw.Connection, table: _Table, folder: Path) -> int:
    names = table.columns.split(", ")
    insert = f"insert into {table.name}({table.columns}) values({', '.join('?' * len(names))})"
    count = 0
    for number, line in _lines(folder / f"{table.name}.jsonl"):
        try:
            row = json.loads(line)
            _check(table, row)
            with translated(folder.name):
                db.execute(insert, tuple(_stored(table, name, row.pop(name, None)) for name in names))
            if row:
                raise StoreError(f"{next(iter(row))!r} is not known here")
            count += 1
        except (ValueError, KeyError, TypeError, AttributeError, WeftError) as error:
            raise StoreError(
                f"{folder / table.name}.jsonl, line {number} cannot be read ({error}): nothing was imported."
            ) from error
    return count


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from enumerate(file, 1)
    except OSError as error:
        raise StoreError(f"{path} is missing: export again.") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not UTF-8: export again.") from error


def _stored(table: _Table, name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in table.as_json:
        return dump_json(value)
    return b64decode(value, validate=True) if name in table.as_bytes else value


def _check(table: _Table, row: dict[str, Any]) -> None:
    """Refuse what could be stored but not be read."""
    if table.name == "blocks":
        BlockType(row["block_type"])
        Permission(row["permission"])
        schema_from_dict(row["schema"])
    elif table.name == "block_shares":
        Permission(row["permission"])
    elif table.name == "turns":
        Receipt.from_json(dump_json(row.get("receipt") or {}))
    elif table.name == "turn_steps":
        Message.from_json(dump_json(row["message"]))
    elif table.name == "messages":
        values = [_stored(table, name, row.get(name)) for name in MESSAGE_COLUMNS.split(", ")]
        message_from(values)


def _index(db: apsw.Connection) -> None:
    """Make the search index anew."""
    query = (
        f"select messages.id, session_id, agent_id, channel, sender, messages.created_at, {MESSAGE_COLUMNS} "
        "from messages join sessions on sessions.id = session_id order by messages.id"
    )
    for message_id, session_id, agent, channel, sender, at, *columns in db.execute(query):
        index_message(db, message_id, message_from(columns), session_id, (agent, channel, sender), at)
    for block_id, agent, label, text, at in db.execute(
        "select id, agent_id, label, rendered, updated_at from blocks order by id"
    ):
        index_text(db, ("block", block_id), f"{label}\n{text}", (agent, "", ""), at)
    for note, agent, text, at in db.execute("select id, agent_id, content, created_at from archive"):
        index_text(db, ("archival", note), text, (agent, "", ""), at)
