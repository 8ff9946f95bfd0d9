"""The tables of the database. A new column is one line here: it says what the column holds.

Each table stands after those it refers to: an import follows the same order.
"""

from __future__ import annotations

from weft.store.sqlite.schema import Column, Holds, Table, integers, names, texts, times

_CONVERSATIONS = (
    Table(
        name="sessions",
        columns=(
            *names("id", sql="text primary key"),
            *names("channel", "conversation", "sender"),
            *names("agent_id", sql="text not null default ''"),
            *times("created_at", "active_at"),
            *times("closed_at", sql="real"),
        ),
        indexes=("create index sessions_by_sender on sessions(sender, active_at)",),
    ),
    Table(
        name="bindings",
        columns=(
            *names("channel", "conversation", "sender"),
            *names("session_id", sql="text not null references sessions(id)"),
        ),
        constraints=("primary key (channel, conversation, sender)",),
        has_rowid=False,
    ),
    Table(
        name="messages",
        columns=(
            *integers("id", sql="integer primary key"),
            *names("session_id", sql="text not null references sessions(id)"),
            *integers("seq", "batch"),
            *names("role"),
            *texts("content"),
            Column("tool_calls", "text", Holds.JSON),
            *names("tool_call_id", "tool_name", "timestamp", sql="text"),
            *names("origin"),
            Column("parts", "text", Holds.JSON),
            Column("provider_data", "text", Holds.JSON),
            *integers("tokens", "chars", "sum_tokens", "sum_chars4", "sum_chars5"),
            *times("created_at"),
        ),
        constraints=("unique (session_id, seq)",),
    ),
)

_PEOPLE = (
    Table(
        name="links",
        columns=(*names("sender", sql="text primary key"), *names("person")),
        has_rowid=False,
    ),
    Table(
        name="facts",
        columns=(
            *integers("id", sql="integer primary key"),
            *names("person"),
            *texts("key", "value"),
            *integers("message_id", sql="integer references messages(id)"),
            *times("created_at"),
            *times("ended_at", sql="real"),
        ),
        indexes=(
            "create unique index facts_now on facts(person, key) where ended_at is null",
            "create index facts_of on facts(person, key, created_at)",
        ),
    ),
    Table(
        name="summaries",
        columns=(
            *integers("id", sql="integer primary key"),
            *names("channel", "sender"),
            *names("session_id", sql="text references sessions(id)"),
            *texts("text"),
            *times("created_at"),
        ),
        indexes=("create index summaries_of on summaries(channel, sender, created_at)",),
    ),
    Table(
        name="tasks",
        columns=(
            *names("id", sql="text primary key"),
            *names("sender"),
            *texts("text"),
            *names("due", "first_due", sql="text"),
            *times("due_at", sql="real"),
            *names("repeat", "action", "status"),
            *times("created_at"),
            *names("zone", sql="text not null default 'UTC'"),
            *names("channel", "conversation", sql="text not null default ''"),
            *integers("attempts", sql="integer not null default 0"),
        ),
        indexes=(
            "create index tasks_of on tasks(sender, status, due_at)",
            "create index tasks_due on tasks(due_at) where status = 'pending' and due_at is not null",
        ),
    ),
)

_MEMORY = (
    Table(
        name="blocks",
        columns=(
            *names("id", sql="text primary key"),
            *names("agent_id"),
            *texts("label", "description"),
            *names("block_type", "permission"),
            Column("schema", "text not null", Holds.JSON),
            *integers("char_limit", "pinned"),
            Column("rendered", "text not null default ''", Holds.BLOCK),
            *integers("version", "rendered_version", "epoch", sql="integer not null default 0"),
            *times("created_at", "updated_at"),
        ),
        constraints=("unique (agent_id, label)",),
        indexes=("create index blocks_stale on blocks(id) where rendered_version <> version",),
    ),
    Table(
        name="block_updates",
        columns=(
            *integers("seq", sql="integer primary key autoincrement"),
            *names("block_id", sql="text not null references blocks(id) on delete cascade"),
            *names("kind"),
            Column("blob", "blob not null", Holds.BLOCK),
            Column("before", "blob not null", Holds.BLOCK),
            Column("after", "blob not null", Holds.BLOCK),
            *integers("undoes", sql="integer"),
            *names("author"),
            *times("at"),
        ),
        indexes=(
            "create index block_updates_of on block_updates(block_id, seq)",
            "create index block_updates_when on block_updates(at)",
        ),
    ),
    Table(
        name="block_snapshots",
        columns=(
            *names("block_id", sql="text primary key references blocks(id) on delete cascade"),
            *integers("seq"),
            Column("blob", "blob not null", Holds.BLOCK),
        ),
        has_rowid=False,
    ),
    Table(
        name="block_shares",
        columns=(
            *names("block_id", sql="text not null references blocks(id) on delete cascade"),
            *names("agent_id", "permission"),
        ),
        constraints=("primary key (block_id, agent_id)",),
        indexes=("create index block_shares_with on block_shares(agent_id)",),
        has_rowid=False,
    ),
    Table(
        name="archive",
        columns=(
            *names("id", sql="text primary key"),
            *names("agent_id"),
            *texts("content"),
            Column("metadata", "text", Holds.JSON),
            *times("created_at"),
        ),
        indexes=("create index archive_of on archive(agent_id, created_at)",),
    ),
    Table(
        name="purges",
        columns=(*names("fingerprint", sql="text primary key"), *times("at"), *integers("places")),
    ),
)

_TURNS = (
    Table(
        name="turns",
        columns=(
            *names("id", sql="text primary key"),
            *names("session_id", sql="text references sessions(id)"),
            *names("state"),
            *texts("text", "error", sql="text"),
            *names("owner", sql="text not null default ''"),
            Column("receipt", "text", Holds.JSON),
            *times("created_at"),
            *times("ended_at", sql="real"),
            *names("inbox_id", sql="text"),
            *integers("is_known", sql="integer not null default 0"),
        ),
        indexes=(
            "create index turns_of on turns(session_id, created_at)",
            "create index turns_running on turns(session_id) where state = 'running'",
        ),
    ),
    Table(
        name="turn_steps",
        columns=(
            *names("turn_id", sql="text not null references turns(id)"),
            *integers("seq"),
            Column("message", "text not null", Holds.JSON),
        ),
        constraints=("primary key (turn_id, seq)",),
        has_rowid=False,
    ),
    Table(
        name="folds",
        columns=(
            *names("session_id", sql="text not null references sessions(id)"),
            *integers("last"),
            *texts("text"),
            *times("created_at"),
        ),
        constraints=("primary key (session_id, last)",),
        has_rowid=False,
    ),
    Table(
        name="results",
        columns=(
            *names("id", sql="text primary key"),
            *names("session_id", sql="text not null references sessions(id)"),
            *names("tool"),
            *texts("content"),
            *times("created_at"),
        ),
    ),
    Table(
        name="ratios",
        columns=(*names("model", sql="text primary key"), Column("ratio", "real not null")),
        has_rowid=False,
    ),
)

_MAILBOX = (
    Table(
        name="inbox",
        columns=(
            *names("id", sql="text primary key"),
            *names("channel", "external_id", "conversation", "sender"),
            *texts("text", sql="text"),
            *texts("name"),
            *names("kind", "state"),
            *names("origin", sql="text not null default 'user'"),
            Column("blocks", "text not null default '[]'", Holds.NAMES),
            *times("created_at"),
            *times("ended_at", sql="real"),
        ),
        indexes=(
            "create unique index inbox_once on inbox(channel, external_id) where external_id <> ''",
            "create index inbox_open on inbox(created_at) where state <> 'done'",
        ),
    ),
    Table(
        name="outbox",
        columns=(
            *names("id", sql="text primary key"),
            *names("inbox_id", "task_id", sql="text"),
            *names("channel", "conversation", "state"),
            *texts("text", sql="text"),
            *integers("attempts", "arrived", sql="integer not null default 0"),
            *times("next_at", "created_at"),
            *times("sent_at", sql="real"),
        ),
        indexes=("create index outbox_open on outbox(next_at) where state in ('pending', 'sending')",),
    ),
    Table(
        name="streams",
        columns=(*names("name", sql="text primary key"), *names("source", "origin"), *times("begun_at")),
    ),
    Table(
        name="stream_items",
        columns=(
            *names("stream", sql="text not null references streams(name)"),
            *names("item", "signature", "digest"),
            *integers("times"),
            *names("block_id"),
            *times("at"),
        ),
        constraints=("primary key (stream, item)",),
        indexes=("create index stream_items_blocks on stream_items(block_id) where block_id <> ''",),
        has_rowid=False,
    ),
    Table(
        name="denials",
        columns=(
            *integers("id", sql="integer primary key"),
            *names("channel", "sender", "why"),
            *times("at"),
        ),
    ),
)

_AUTH = (
    Table(
        name="auth_pairings",
        columns=(*names("channel", "sender"), *times("at")),
        constraints=("primary key (channel, sender)",),
        has_rowid=False,
    ),
    Table(
        name="auth_tokens",
        columns=(
            *names("name", sql="text primary key"),
            *names("hash", sql="blob not null unique"),
            *times("at"),
        ),
        has_rowid=False,
    ),
    Table(
        name="auth_codes",
        columns=(*names("channel", "sender"), *names("hash", sql="blob not null unique"), *times("ends_at")),
        constraints=("primary key (channel, sender)",),
        has_rowid=False,
        left_out="secret",
    ),
)

_SEARCH = (
    Table(
        name="items",
        columns=(
            # Ids are never used again: a vector that was made for an old text is not taken for a new one's.
            *integers("id", sql="integer primary key autoincrement"),
            *names("source", "ref", "agent_id", "sender", "session_id"),
            *times("at"),
            *integers("embedded", sql="integer not null default 0"),
        ),
        constraints=("unique (source, ref)",),
        indexes=("create index items_not_embedded on items(id) where embedded = 0",),
        left_out="derived",
    ),
    Table(
        name="items_fts",
        columns=(Column("text", "", Holds.INDEX), Column("scope", "", Holds.NAME)),
        virtual="fts5(text, scope, content = '', contentless_delete = 1, "
        "tokenize = \"porter unicode61 remove_diacritics 2\", prefix = '3')",
        left_out="derived",
    ),
    Table(name="embedder", columns=names("name", sql="text primary key"), left_out="derived"),
    Table(
        name="vectors",
        columns=(
            *integers("item_id", sql="integer primary key references items(id) on delete cascade"),
            Column("vector", "blob not null", Holds.INDEX),
        ),
        left_out="derived",
    ),
    Table(
        name="vector_signs",
        columns=(
            *integers("item_id", sql="integer primary key references items(id) on delete cascade"),
            *names("source"),
            *integers("agent", "sender", "session"),
            Column("signs", "blob not null", Holds.INDEX),
        ),
        left_out="derived",
    ),
)

_HOUSEKEEPING = (
    Table(
        name="migrations",
        columns=(
            *integers("number", sql="integer primary key"),
            *names("name", sql="text"),
            *times("at", sql="real"),
        ),
        left_out="local",
    ),
    Table(
        name="backups",
        columns=(
            *integers("id", sql="integer primary key check (id = 1)"),
            *times("at"),
            *names("path"),
        ),
        left_out="local",
    ),
)

TABLES = (
    *_CONVERSATIONS,
    *_PEOPLE,
    *_MEMORY,
    *_TURNS,
    *_MAILBOX,
    *_AUTH,
    *_SEARCH,
    *_HOUSEKEEPING,
)
