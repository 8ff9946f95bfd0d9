"""Search by words, within a scope.

Each word of a query is quoted, so that none is read as query syntax. Common words are left out, a word that
ends in `*` matches all words that begin so, and a script without spaces is cut into pairs as in the index. Of
a long query only the rarest words are searched for: a thousand words in one query hold up all other readers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Repository
from weft.store.sqlite.fact_search import find_facts
from weft.store.sqlite.identity import search_owners
from weft.store.sqlite.index import scope_word
from weft.store.sqlite.rows import fetch, record
from weft.types.search import Candidate, SearchContentType
from weft.types.tokenize import MOST_TERMS, STOP_WORDS, is_unspaced, pairs, query_part, words

TEXT = """case items.source
    when 'message' then (select content from messages where id = cast(items.ref as integer))
    when 'block' then (select rendered from blocks where id = items.ref)
    else (select content from archive where id = items.ref) end"""
ITEM = f"""items.source, items.ref as id, coalesce({TEXT}, '') as content, items.at, items.session_id,
    coalesce((
        select role from messages where items.source = 'message' and id = cast(items.ref as integer)
    ), '') as speaker, coalesce((
        select origin from messages where items.source = 'message' and id = cast(items.ref as integer)
    ), '') as origin, (
        select outside from messages where items.source = 'message' and id = cast(items.ref as integer)
    ) as outside, items.speaker as name, items.place, coalesce((
        select label from blocks where items.source = 'block' and id = items.ref
    ), '') as label, items.agent_id as owner"""
MAY_FIND = """items.source in (select value from json_each(:sources))
    and (:everyone or items.agent_id in (select value from json_each(:owners))
        or items.sender in (select value from json_each(:owners)) or items.source = 'block'
        and items.ref in (select block_id from block_shares where agent_id = :owner))
    and (:without_session = '' or items.session_id <> :without_session or :view_from > 1
        and (select seq from messages where id = cast(items.ref as integer)) < :view_from)
    and (:since is null or items.at >= :since) and (:until is null or items.at < :until)
    and (:speaker = '' or items.speaker = :speaker)
    and (:senders is null or items.sender in (select value from json_each(:senders)))
    and (:role = '' or items.source = 'message'
        and (select role from messages where id = cast(items.ref as integer)) = :role)"""

_MOST_CHECKED, _MOST_SENDERS, _MOST_SPEAKERS = 100_000, 100, 1_000
_SENDERS = """
    with recursive names(name) as (
        select min(sender) from items where place > 0
        union all
        select (select min(sender) from items where place > 0 and sender > names.name)
        from names where names.name is not null limit ?
    )
    select name from names where name is not null
"""
_SPEAKERS = """
    select distinct speaker from items where speaker <> ''
        and (:everyone or sender in (select value from json_each(:owners))) order by 1 limit :limit
"""
_AROUND = f"""
    select hit.value as hit, {ITEM} from json_each(:messages) as hit
    cross join items as line on line.source = 'message' and line.ref = hit.value and line.place > 0
    cross join items on items.session_id = line.session_id and items.place > 0
        and items.place between line.place - :count and line.place + :count
    order by hit.key, items.place
"""
# Not `order by rank`, which took twice as long.
_RANKED = """
    select rowid, bm25(items_fts, 1.0, 0.0) as score from items_fts where items_fts match ?
    order by score limit ?
"""
_FREQUENCY = "select doc from temp.vocabulary where term = ?"
_NAMED = f"""
    select {ITEM}, -(hit.value ->> 1) as words
    from json_each(:hits) as hit join items on items.id = hit.value ->> 0
    where {MAY_FIND}
    order by words desc, items.id limit :limit
"""


class SqliteSearch(Repository):
    async def candidates(
        self, query: str, scope: Scope, *, sources: Sequence[SearchContentType], limit: int
    ) -> list[Candidate]:
        if limit <= 0 or not sources:
            return []

        def work(db: apsw.Connection) -> list[Candidate]:
            match = fts_query(db, query)
            return _best(db, match, scope, sources, limit) if match else []

        return await self._read(work)

    async def fact_candidates(self, query: str, scope: Scope, *, limit: int) -> list[Candidate]:
        return await self._read(lambda db: find_facts(db, query_terms(query), scope, limit))

    async def around(self, messages: Sequence[str], count: int) -> dict[str, list[Candidate]]:
        def work(db: apsw.Connection) -> dict[str, list[Candidate]]:
            lines: dict[str, list[Candidate]] = {}
            cursor = db.execute(_AROUND, {"messages": json.dumps(list(messages)), "count": count})
            for hit, *columns in cursor:
                names = [name for name, _ in cursor.get_description()][1:]
                lines.setdefault(str(hit), []).append(record(Candidate, names, columns))
            return lines

        return await self._read(work)

    async def speakers(self, scope: Scope) -> list[str]:
        def work(db: apsw.Connection) -> list[str]:
            owners = json.dumps(search_owners(db, scope.owner))
            values = {"everyone": int(scope.everyone), "owners": owners, "limit": _MOST_SPEAKERS}
            return [str(name) for (name,) in db.execute(_SPEAKERS, values)]

        return await self._read(work)


def _all_senders(db: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in db.execute(_SENDERS, (_MOST_SENDERS,))]


def fts_query(db: apsw.Connection, query: str) -> str:
    """Write a query for the index: the rarest significant words quoted, any of them may match."""
    return " OR ".join(_rarest(db, query_terms(query)))


def query_terms(query: str) -> dict[str, str]:
    """Return the significant words of a query, each as it is written in a query for the index."""
    part = query_part(query)
    prefixes = {word.rstrip("*").lower() for word in part.split() if len(word) > 1 and word.endswith("*")}
    all_words = words(part)
    significant = [word for word in all_words if word not in STOP_WORDS] or all_words
    terms: dict[str, str] = {}
    for word in dict.fromkeys(significant):
        if is_unspaced(word):
            pieces = pairs(word)[:-1] or [word]
            terms |= {piece: f'"{piece}"' if len(piece) > 1 else f'"{piece}" *' for piece in pieces}
        else:
            terms[word] = f'"{word}" *' if word in prefixes else f'"{word}"'
    return terms


def _rarest(db: apsw.Connection, terms: dict[str, str]) -> list[str]:
    """Return the terms that tell most: of many the rarest, those that begin words before the others.

    A term that no text has is left out.
    """
    if len(terms) <= MOST_TERMS:
        return list(terms.values())
    db.execute("create virtual table if not exists temp.vocabulary using fts5vocab(main, items_fts, row)")
    tokenize = db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    counts: dict[str, int] = {}
    for word, term in terms.items():
        stems = tokenize(
            word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
        )
        stem = str(next(iter(stems), ""))
        count = 0 if term.endswith("*") else db.execute(_FREQUENCY, (stem,)).get
        if count is not None:
            counts[term] = count
    return nsmallest(MOST_TERMS, counts, key=lambda term: counts[term])


def scope_values(db: apsw.Connection, scope: Scope, sources: Sequence[SearchContentType]) -> dict[str, Any]:
    """Return the values of the parameters in `MAY_FIND`.

    Among the conversations of everyone, the owners are all senders.
    """
    owners = _all_senders(db) if scope.everyone else search_owners(db, scope.owner)
    only = scope.only
    return {
        "sources": json.dumps([source.value for source in sources]),
        "everyone": int(scope.everyone),
        "owner": scope.owner,
        "owners": json.dumps(owners),
        "since": only.since,
        "until": only.until,
        "role": only.role,
        "speaker": only.speaker,
        "senders": None if only.senders is None else json.dumps(only.senders),
        "without_session": scope.without_session,
        "view_from": scope.view_from,
    }


def _best(
    db: apsw.Connection, match: str, scope: Scope, sources: Sequence[SearchContentType], limit: int
) -> list[Candidate]:
    """Rank by the index first, then check the best; if too many of those are out of scope, check more."""
    values = {**scope_values(db, scope, sources), "limit": limit, "match": _scoped(db, match, scope)}
    checked = limit
    while True:
        hits = [(row[0], row[1]) for row in db.execute(_RANKED, (values["match"], checked))]
        candidates = fetch(db, Candidate, _NAMED, {**values, "hits": json.dumps(hits)})
        if len(candidates) >= limit or len(hits) < checked or checked > _MOST_CHECKED:
            return candidates
        checked *= 8


def _scoped(db: apsw.Connection, match: str, scope: Scope) -> str:
    """Add the scope to a query, so that the index itself leaves the rest out."""
    if scope.everyone:
        return f"text:({match})"
    shares = db.execute("select distinct block_id from block_shares where agent_id = ?", (scope.owner,))
    words = [scope_word(name) for name in search_owners(db, scope.owner)]
    words += [scope_word(block) for (block,) in shares]
    return f"scope:({' OR '.join(words)}) AND text:({match})"
