"""Lines of conversations for recall: those that match a query, with what stands around each.

The index finds lines by their words and by the time at which they were said. The rarest words come first, and
a word that very many lines have finds only the newest of them: no query takes long, whatever it says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Repository
from weft.store.sqlite.index import indexable, scope_word, stems
from weft.store.sqlite.rows import fetch
from weft.store.sqlite.search import ITEM, MAY_FIND, scope_values
from weft.store.sqlite.vectors import SIGNS_NEAR, near_values, version_of
from weft.types.line import Line, LineCandidates, LineQuery, LineSearch, RankedLine
from weft.types.search import Candidate, SearchContentType

_MOST_TERMS = 48
_MATCHES, _MATCHES_BY_TIME, _NEWEST, _NEAR = 250, 60, 60, 200
_MOST_LOOKED_AT = 30_000
"""How many matches of words are compared at most; more common words only find their newest lines."""
_AROUND = 6
_UNSEEN = 100
"""Lines without the words, as if they were there too: in a handful of lines no word is common yet."""
_MOST_SPEAKERS = 200

_SPEAKERS = """
    with recursive names(name) as (
        select min(speaker) from items where sender = :sender and speaker > ''
        union all
        select (select min(speaker) from items where sender = :sender and speaker > names.name)
        from names where names.name is not null limit :limit
    )
    select name from names where name is not null
"""
_FREQUENCY = "select doc from temp.vocabulary where term = ?"
_RANKED = """
    select rowid, bm25(items_fts, 1.0, 0.0) as score from items_fts where items_fts match ?
    order by score limit ?
"""
_NEW = "select rowid from items_fts where items_fts match ? order by rowid desc limit ?"
_PLACES = f"""
    select items.session_id, items.place from json_each(:ids) as hit join items on items.id = hit.value
    where items.place > 0 and {MAY_FIND}
"""
_BY_TIME = """
    select id from items where sender = ? and place > 0 and at between ? and ? order by at limit ?
"""
_COLUMNS = """
    items.id, items.session_id, place, run, episode, speaker, at, terms, words, chars, cues, first_day,
    last_day
"""
_NEAR_LINES = """
    json_each(:ranges) as near
    join items on items.session_id = near.value ->> 0 and place between near.value ->> 1 and near.value ->> 2
"""
_LINES = f"select {_COLUMNS} from {_NEAR_LINES} where place > 0"
_LINES_BY_MEANING = f"""
    select {_COLUMNS}, iif(
        length(vectors.vector) = length(:vector), 1.0 - vec_distance_cosine(vectors.vector, :vector), null
    ) from {_NEAR_LINES}
    left join vectors on vectors.item_id = items.id and vectors.version = :version where place > 0
"""
_TEXTS = f"select {ITEM} from json_each(?) as hit cross join items on items.id = hit.value order by hit.key"
_SHOWABLE = f"select items.id from json_each(:ids) as hit join items on items.id = hit.value where {MAY_FIND}"


class SqliteLines(Repository):
    async def search(self, search: LineSearch, scope: Scope) -> list[RankedLine]:
        return await self._read(lambda db: _search(db, search, scope))


def _search(db: apsw.Connection, search: LineSearch, scope: Scope) -> list[RankedLine]:
    """Find lines, rank them, and read the texts of the best."""
    values = scope_values(db, scope, (SearchContentType.MESSAGES,))
    owners: list[str] = json.loads(values["owners"])
    query = search.ask(_speakers(db, owners))
    terms = _terms(db, query.words)
    known = {term: count for term, count in terms.items() if count}
    matches = _matches(db, known, owners, scope, values) | _by_time(db, query, owners)
    version = version_of(db, search.embedder) if search.vector else 0
    if version:
        matches |= _by_meaning(db, search, scope, version)
    if query.names:
        matches |= _matches(db, _terms(db, query.names), owners, scope, values)
    if not matches:
        return []
    places = db.execute(_PLACES, {**values, "ids": json.dumps(list(matches))}).fetchall()
    near = {"version": version, "vector": search.vector}
    candidates = replace(_with_neighbors(db, places, known, near), unknown=len(terms) - len(known))
    return _with_texts(db, search.rank(candidates), values, search.limit)


def _speakers(db: apsw.Connection, owners: Iterable[str]) -> list[str]:
    """Return the names of those who speak in the conversations of a person."""
    names = dict[str, None]()
    for owner in owners:
        rows: Any = db.execute(_SPEAKERS, {"sender": owner, "limit": _MOST_SPEAKERS})
        names |= dict.fromkeys(name for (name,) in rows)
    return list(names)


def _terms(db: apsw.Connection, words: Sequence[str]) -> dict[str, int]:
    """Return the terms of words with the number of texts that have each, the rarest first."""
    db.execute("create virtual table if not exists temp.vocabulary using fts5vocab(main, items_fts, row)")
    wanted = dict.fromkeys(stems(db, indexable(" ".join(words))))
    counts = {term: db.execute(_FREQUENCY, (term,)).get or 0 for term in list(wanted)[: 4 * _MOST_TERMS]}
    rarest = sorted((count, term) for term, count in counts.items())
    return {term: count for count, term in rarest[:_MOST_TERMS]}


def _matches(
    db: apsw.Connection, terms: dict[str, int], owners: Sequence[str], scope: Scope, values: dict[str, Any]
) -> set[int]:
    """Return the texts that match best. The scope is checked after, and in the index only if few remain."""
    quoted = {term: '"' + term.replace('"', '""') + '"' for term in terms}
    rare, looked_at = list[str](), 0
    for term, count in terms.items():
        looked_at += count
        if 0 < looked_at <= _MOST_LOOKED_AT:
            rare.append(quoted[term])
    common = [quoted[term] for term in list(terms)[len(rare) :]]
    only_mine = f"scope:({' OR '.join(scope_word(name) for name in owners)}) AND "
    matches = set[int]()
    if rare:
        match = f"text:({' OR '.join(rare)})"
        matches = {int(row[0]) for row in db.execute(_RANKED, (match, _MATCHES))}
        if not scope.everyone and len(matches) == _MATCHES:
            mine = db.execute(_SHOWABLE, {**values, "ids": json.dumps(list(matches))}).fetchall()
            if len(mine) < _MATCHES // 2:
                rows = db.execute(_RANKED, (only_mine + match, _MATCHES))
                matches = {int(row[0]) for row in rows}
    for term in common[: 0 if len(matches) >= _MATCHES else 3]:
        scoped = f"text:({term})" if scope.everyone else f"{only_mine}text:({term})"
        matches |= {int(row[0]) for row in db.execute(_NEW, (scoped, _NEWEST))}
    return matches


def _by_time(db: apsw.Connection, query: LineQuery, owners: Sequence[str]) -> set[int]:
    """Return lines that were said in the spans of time that a query names."""
    ids = set[int]()
    for first, last in query.spans:
        for owner in owners:
            ids |= {int(row[0]) for row in db.execute(_BY_TIME, (owner, first, last, _MATCHES_BY_TIME))}
    return ids


def _by_meaning(db: apsw.Connection, search: LineSearch, scope: Scope, version: int) -> set[int]:
    """Return the lines whose meaning is nearest, as far as their signs tell."""
    values = near_values(db, scope, (SearchContentType.MESSAGES,), vector=search.vector, limit=1)
    return {int(row[0]) for row in db.execute(SIGNS_NEAR, {**values, "version": version, "looks": _NEAR})}


def _with_neighbors(
    db: apsw.Connection, places: Sequence[Any], terms: dict[str, int], near: dict[str, Any]
) -> LineCandidates:
    """Read the lines at places and around them, each with the terms of the query that it has.

    With an embedder, `near` has its version and the vector of the query.
    """
    ranges = list(_ranges(places))
    bits = {term: 1 << at for at, term in enumerate(terms)}
    wanted, lines, words = bits.keys(), list[Line](), 0
    statement = _LINES_BY_MEANING if near["version"] else _LINES
    for item, session, place, run, episode, speaker, at, text, *numbers in db.execute(
        statement, {"ranges": json.dumps(ranges), **near}
    ):
        hits = sum(bits[term] for term in wanted & set(str(text).split()))
        lines.append(Line(item, session, place, run, episode, speaker, at, hits, *numbers))
        words += int(str(numbers[0]))
    total = _UNSEEN + int(db.execute("select coalesce(max(id), 0) from items").get or 0)
    rarities = [_rarity(count, total) for count in terms.values()]
    return LineCandidates(
        lines=lines,
        rarities=rarities,
        rarest=_rarity(1, total),
        average_words=words / max(len(lines), 1),
    )


def _rarity(count: int, total: int) -> float:
    return math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def _ranges(places: Sequence[Any]) -> Iterable[tuple[str, int, int]]:
    """Join the places of each session to ranges, with the neighbors of each place."""
    first = last = 0
    session = ""
    for name, place in sorted(places):
        if name == session and place - _AROUND <= last + 1:
            last = place + _AROUND
            continue
        if session:
            yield session, first, last
        session, first, last = name, place - _AROUND, place + _AROUND
    if session:
        yield session, first, last


def _with_texts(
    db: apsw.Connection, ranked: Sequence[RankedLine], values: dict[str, Any], limit: int
) -> list[RankedLine]:
    """Read the texts of the best lines that are not in view."""
    ids = json.dumps([one.line.item for one in ranked])
    showable = {row[0] for row in db.execute(_SHOWABLE, {**values, "ids": ids})}
    best = [one for one in ranked if one.line.item in showable][:limit]
    texts = fetch(db, Candidate, _TEXTS, json.dumps([one.line.item for one in best]))
    return [replace(one, text=text) for one, text in zip(best, texts, strict=True)]
