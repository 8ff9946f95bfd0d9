"""Finding candidates: what matches the words of a query, among what its owner may find.

Words are never taken as query syntax: each is quoted. Common words are left out, a word that ends in `*`
finds all that begin so, and a query in a script without spaces is cut into pairs as the index is.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Database
from weft.store.sqlite.index import scope_word
from weft.store.sqlite.rows import moment
from weft.types.records import Candidate, SearchContentType
from weft.types.words import STOP_WORDS, is_unspaced, pairs, words

_TEXTS = {
    "message": "(select content from messages where id = cast(items.ref as integer))",
    "block": "(select rendered from blocks where id = items.ref)",
    "archival": "(select content from archive where id = items.ref)",
}


class SqliteSearch:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(
        self, query: str, scope: Scope, *, sources: Sequence[SearchContentType], limit: int
    ) -> list[Candidate]:
        """The best matches by words, best first. No telling word in the query: nothing."""
        match = fts_query(query)
        if not match or limit <= 0 or not sources:
            return []
        return await self._database.read(lambda db: _candidates(db, match, scope, sources, limit))

    async def lines(self, query: str, *, sender: str, without_session: str, limit: int) -> list[Candidate]:
        """What was said in a sender's other conversations."""
        scope = Scope(owner=sender, without_session=without_session)
        return await self.candidates(query, scope, sources=(SearchContentType.MESSAGES,), limit=limit)


def fts_query(query: str) -> str:
    """A query for the index: every telling word quoted, any of them may match."""
    prefixes = {word.rstrip("*").lower() for word in query.split() if len(word) > 1 and word.endswith("*")}
    found = words(query)
    telling = [word for word in found if word not in STOP_WORDS] or found
    terms: list[str] = []
    for word in dict.fromkeys(telling):
        if is_unspaced(word):
            terms += [f'"{pair}"' if len(pair) > 1 else f'"{pair}" *' for pair in _query_pairs(word)]
        else:
            terms.append(f'"{word}" *' if word in prefixes else f'"{word}"')
    return " OR ".join(terms)


def _query_pairs(word: str) -> list[str]:
    return pairs(word)[:-1] or [word]


def _candidates(
    db: apsw.Connection, match: str, scope: Scope, sources: Sequence[SearchContentType], limit: int
) -> list[Candidate]:
    wanted = ", ".join(f"'{source.value}'" for source in sources)
    conditions, values = [f"items.source in ({wanted})"], []
    shared: list[str] = []
    if not scope.everyone:
        shared = _shared_blocks(db, scope.owner)
        conditions.append("(items.agent_id = ? or items.sender = ?)")
        values += [scope.owner, scope.owner]
    if scope.without_session:
        conditions.append("items.session_id <> ?")
        values.append(scope.without_session)
    own = f"text:({match})" if scope.everyone else f"scope:{scope_word(scope.owner)} AND text:({match})"
    found = _rows(db, own, " and ".join(conditions), values, limit)
    if shared and SearchContentType.BLOCKS in sources:
        marks = ", ".join("?" * len(shared))
        found += _rows(
            db, f"text:({match})", f"items.source = 'block' and items.ref in ({marks})", shared, limit
        )
    found.sort(key=lambda candidate: -candidate.words)
    return found[:limit]


def _rows(
    db: apsw.Connection, match: str, condition: str, values: Sequence[object], limit: int
) -> list[Candidate]:
    text = " ".join(f"when '{source}' then {query}" for source, query in _TEXTS.items())
    rows = db.execute(
        f"select items.source, items.ref, case items.source {text} end, -bm25(items_fts, 1.0, 0.0), "
        "items.at, items.session_id, (select role from messages where items.source = 'message' "
        "and id = cast(items.ref as integer)) "
        f"from items_fts join items on items.id = items_fts.rowid where items_fts match ? and {condition} "
        "order by bm25(items_fts, 1.0, 0.0) limit ?",
        (match, *values, limit),
    )
    return [
        Candidate(
            source=SearchContentType(source),
            id=ref,
            content=content or "",
            words=score,
            at=moment(at),
            speaker=role or "",
            session_id=session_id,
        )
        for source, ref, content, score, at, session_id, role in rows
    ]


def _shared_blocks(db: apsw.Connection, agent_id: str) -> list[str]:
    return [row[0] for row in db.execute("select block_id from block_shares where agent_id = ?", (agent_id,))]
