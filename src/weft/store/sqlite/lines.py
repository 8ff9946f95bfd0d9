"""Lines of conversations for recall: those that match a query, with what stands around each.

The index finds lines by their words and by the time at which they were said. The rarest words come first, and
a word that very many lines have finds only the newest of them: no query takes long, whatever it says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Repository
from weft.store.sqlite.index import MOST_DAYS, scope_word, stems
from weft.store.sqlite.rows import fetch
from weft.store.sqlite.search import ITEM, MAY_FIND, scope_values
from weft.store.sqlite.vectors import SIGNS_NEAR, near_values, version_of
from weft.types.line import Line, LineCandidates, LineQuery, LineSearch, RankedLine
from weft.types.search import Candidate, SearchContentType
from weft.types.tokenize import is_unspaced, pairs

_MOST_TERMS = 48
_MATCHES, _MATCHES_BY_TIME, _NEWEST, _NEAR = 120, 60, 60, 100
_MOST_LOOKED_AT = 10_000
"""How many matches of words are compared at most; more common words only find their newest lines."""
_AROUND, _FEW = 5, 2_000
_UNSEEN = 100
"""Lines without the words, as if they were there too: in a handful of lines no word is common yet."""
_MOST_SPEAKERS = 200

_SPEAKERS = """
    with recursive names(name) as (
        select min(speaker) from items where sender = :sender and speaker <> ''
        union all
        select (
            select min(speaker) from items where sender = :sender and speaker <> '' and speaker > names.name
        ) from names where names.name is not null limit :limit
    )
    select name from names where name is not null
"""
_FREQUENCY = "select doc from temp.vocabulary where term = ?"
_STARTS = "select sum(doc) from (select doc from temp.vocabulary where term >= ? and term < ? limit 500)"
_AFTER_ALL = "\U0010ffff"
_WORD, _NAME, _PAIR, _START = 0.5, 3.0, 0.25, 0.4
"""How much a word counts that no text has, or a name, or a pair of characters, and one character that begins
a pair."""
_NEARLY_THE_SAME = 0.8
_MOST_STRANGE, _MOST_COMPARED = 4, 500
"""How alike a name and a word are, of which one is the other misspelt, how many names are looked at, and with
how many words each is compared."""
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
_BEYOND_FEW = "select id from items where sender = ? and place > 0 order by at limit 1 offset ?"
_BY_DAY = """
    select id from items where sender = ? and first_day between ? and ? and first_day > 0 and last_day >= ?
    order by first_day desc limit ?
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
_TERMS = "select terms from json_each(?) as hit join items on items.id = hit.value"
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
    known = [term for term in terms if term.count]
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
    candidates = _with_neighbors(db, places, known, near)
    strange = _strange(db, terms, query.named, matches)
    unknown = _unknown(terms, candidates, strange)
    candidates = replace(candidates, unknown=unknown, is_strange=bool(strange))
    return _with_texts(db, search.rank(candidates), values, search.limit)


def _speakers(db: apsw.Connection, owners: Iterable[str]) -> list[str]:
    """Return the names of those who speak in the conversations of a person."""
    names = dict[str, None]()
    for owner in owners:
        rows: Any = db.execute(_SPEAKERS, {"sender": owner, "limit": _MOST_SPEAKERS})
        names |= dict.fromkeys(name for (name,) in rows)
    return list(names)


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of the query as the index has it, how a match for it is written, and how many texts have it.

    One character of a script without spaces begins a pair of the index, or is alone.
    """

    term: str
    match: str
    count: int
    is_start: bool = False


def _terms(db: apsw.Connection, words: Sequence[str]) -> list[_Term]:
    """Return the terms of words, the rarest first."""
    db.execute("create virtual table if not exists temp.vocabulary using fts5vocab(main, items_fts, row)")
    terms = dict[str, _Term]()
    for word in words[: 4 * _MOST_TERMS]:
        if is_unspaced(word) and len(word) == 1:
            count = db.execute(_STARTS, (word, word + _AFTER_ALL)).get or 0
            terms[word] = _Term(word, f'"{word}" *', int(count), is_start=True)
            continue
        for piece in pairs(word)[:-1] if is_unspaced(word) else [word]:
            stem = next(iter(stems(db, piece)), "")
            if stem:
                count = db.execute(_FREQUENCY, (stem,)).get or 0
                terms[stem] = _Term(stem, '"' + piece.replace('"', '""') + '"', int(count))
    return sorted(terms.values(), key=lambda one: (one.count, one.term))[:_MOST_TERMS]


def _matches(
    db: apsw.Connection,
    terms: Sequence[_Term],
    owners: Sequence[str],
    scope: Scope,
    values: dict[str, Any],
) -> set[int]:
    """Return the texts that match best. The scope is checked after, and in the index only if few remain."""
    rare, looked_at = list[str](), 0
    for term in terms:
        looked_at += term.count
        if 0 < looked_at <= _MOST_LOOKED_AT:
            rare.append(term.match)
    common = [term.match for term in terms[len(rare) :]]
    only_mine = f"scope:({' OR '.join(scope_word(name) for name in owners)}) AND "
    matches = set[int]()
    if rare:
        match = f"text:({' OR '.join(rare)})"
        few = not scope.everyone and _has_few(db, owners)
        rows = db.execute(_RANKED, (only_mine + match if few else match, _MATCHES))
        matches = {int(row[0]) for row in rows}
        if not (few or scope.everyone) and len(matches) == _MATCHES:
            mine = db.execute(_SHOWABLE, {**values, "ids": json.dumps(list(matches))}).fetchall()
            if len(mine) < _MATCHES // 2:
                rows = db.execute(_RANKED, (only_mine + match, _MATCHES))
                matches = {int(row[0]) for row in rows}
    if len(common) > 1:
        common.insert(0, " AND ".join(common[:2]))
    for match in common[: 0 if len(matches) >= _MATCHES else 3]:
        scoped = f"text:({match})" if scope.everyone else f"{only_mine}text:({match})"
        matches |= {int(row[0]) for row in db.execute(_NEW, (scoped, _NEWEST))}
    return matches


def _has_few(db: apsw.Connection, owners: Sequence[str]) -> bool:
    """Check whether these people have few lines: then the index looks at theirs alone."""
    return all(db.execute(_BEYOND_FEW, (owner, _FEW)).get is None for owner in owners)


def _by_time(db: apsw.Connection, query: LineQuery, owners: Sequence[str]) -> set[int]:
    """Return lines that were said in the spans of time that a query names, or speak of these days."""
    ids = set[int]()
    for first, last in query.spans:
        for owner in owners:
            ids |= {int(row[0]) for row in db.execute(_BY_TIME, (owner, first, last, _MATCHES_BY_TIME))}
    for first_day, last_day in query.days:
        for owner in owners:
            days = (owner, first_day - MOST_DAYS, last_day, first_day, _MATCHES_BY_TIME)
            ids |= {int(row[0]) for row in db.execute(_BY_DAY, days)}
    return ids


def _by_meaning(db: apsw.Connection, search: LineSearch, scope: Scope, version: int) -> set[int]:
    """Return the lines whose meaning is nearest, as far as their signs tell."""
    values = near_values(db, scope, (SearchContentType.MESSAGES,), vector=search.vector, limit=1)
    return {int(row[0]) for row in db.execute(SIGNS_NEAR, {**values, "version": version, "looks": _NEAR})}


def _strange(
    db: apsw.Connection, terms: Sequence[_Term], named: Iterable[str], matches: Iterable[int]
) -> set[str]:
    """Return the terms that are written like names and that no text has.

    A word that is nearly the same in a text that matches is taken for the name, spelled differently.
    """
    names = {stem for name in named for stem in stems(db, name)}
    missing = {one.term for one in terms if not one.count and one.term in names}
    if not missing:
        return set()
    rows: Any = db.execute(_TERMS, (json.dumps(list(matches)),))
    said = {term for (text,) in rows for term in text.split()}
    return {name for name in sorted(missing)[:_MOST_STRANGE] if not _is_misspelt(name, said)}


def _is_misspelt(name: str, said: Iterable[str]) -> bool:
    """Check whether a name is nearly the same as one of many terms, which may be its right spelling."""
    lengths, start, end = range(len(name) - 2, len(name) + 3), name[:2], name[-2:]
    near = [term for term in said if len(term) in lengths and (term.startswith(start) or term.endswith(end))]
    return bool(get_close_matches(name, near[:_MOST_COMPARED], 1, _NEARLY_THE_SAME))


def _unknown(terms: Sequence[_Term], candidates: LineCandidates, strange: Container[str]) -> float:
    """Return what the terms weigh that no text has.

    A word is as rare as the others of the query, and a name decides what the query is about. Most pairs of
    characters are parts of two words.
    """
    usual, total = sum(candidates.rarities) / max(len(candidates.rarities), 1), 0.0
    for term in (one.term for one in terms if not one.count):
        if is_unspaced(term):
            total += _PAIR * candidates.rarest
        else:
            total += _NAME * candidates.rarest if term in strange else _WORD * usual
    return total


def _with_neighbors(
    db: apsw.Connection, places: Sequence[Any], terms: Sequence[_Term], near: dict[str, Any]
) -> LineCandidates:
    """Read the lines at places and around them, each with the terms of the query that it has.

    With an embedder, `near` has its version and the vector of the query.
    """
    ranges = list(_ranges(places))
    needles = [
        (f" {term.term}" if term.is_start else f" {term.term} ", 1 << at) for at, term in enumerate(terms)
    ]
    lines, words = list[Line](), 0
    statement = _LINES_BY_MEANING if near["version"] else _LINES
    for item, session, place, run, episode, speaker, at, text, *numbers in db.execute(
        statement, {"ranges": json.dumps(ranges), **near}
    ):
        padded = f" {text} "
        hits = sum([bit for needle, bit in needles if needle in padded])
        lines.append(Line(item, session, place, run, episode, speaker, at, hits, *numbers))
        words += int(str(numbers[0]))
    total = _UNSEEN + int(db.execute("select coalesce(max(id), 0) from items").get or 0)
    rarities = [_rarity(term.count, total) * (_START if term.is_start else 1.0) for term in terms]
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
