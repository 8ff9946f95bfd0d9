"""Facts that have words of a query.

Facts are few and short, and are not in the index: their words are compared here. The scores are those that
the index would give to texts of this length, so that both can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from heapq import nlargest
from typing import Any

import apsw

from weft.store.base import Scope
from weft.store.sqlite.identity import person_behind
from weft.store.sqlite.index import indexable, stems
from weft.store.sqlite.rows import moment
from weft.types.person import person_of
from weft.types.search import Candidate, FactType

_MOST_FACTS, _MOST_CHARS = 20_000, 2_000
_SHORT_TEXT = 1.7
"""What BM25 gives to a word in a text that is much shorter than most."""
_ENDED = 0.9
"""What a fact that is no longer true is worth beside one that is."""
_FREQUENCY = "select doc from temp.vocabulary where term = ?"
_FACTS = """
    select id, person, key, value, created_at, ended_at from facts
    where (?1 or person = ?2) and (?3 is null or created_at >= ?3) and (?4 is null or created_at < ?4)
    order by ended_at is not null, id desc limit ?5
"""


def find_facts(db: apsw.Connection, terms: Mapping[str, str], scope: Scope, limit: int) -> list[Candidate]:
    """Return the facts in a scope that have terms of a query, best first.

    `terms` are those of `query_terms`. Nobody says a fact, so that none is left if a speaker is asked for.
    """
    if not terms or limit <= 0 or scope.only.names_speaker:
        return []
    only, person = scope.only, "" if scope.everyone else _person(db, scope.owner)
    values = (int(scope.everyone), person, only.since, only.until, _MOST_FACTS)
    weights = _weights(db, terms)
    hits: list[tuple[float, bool, int, Any]] = []
    for row in db.execute(_FACTS, values):
        _, _, key, value, _, ended_at = row
        text = f"{key} {str(value)[:_MOST_CHARS]}".replace("_", " ")
        score = _score(weights, frozenset(stems(db, indexable(text))))
        score *= 1.0 if ended_at is None else _ENDED
        if score:
            hits.append((score, ended_at is None, row[0], row))
    best = nlargest(limit, hits, key=lambda hit: hit[:3])
    return [_candidate(score, row) for score, _, _, row in best]


def _weights(db: apsw.Connection, terms: Mapping[str, str]) -> dict[tuple[str, bool], float]:
    """Return how rare each term is among all texts, by its stem and whether it only begins a word."""
    db.execute("create virtual table if not exists temp.vocabulary using fts5vocab(main, items_fts, row)")
    total = int(db.execute("select coalesce(max(id), 0) from items").get or 0)
    weights = {}
    for word, term in terms.items():
        is_prefix = term.endswith("*")
        stem = word if is_prefix else next(iter(stems(db, word)), word)
        count = min(int(db.execute(_FREQUENCY, (stem,)).get or 0), total)
        weights[stem, is_prefix] = max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6)
    return weights


def _score(weights: Mapping[tuple[str, bool], float], words: Collection[str]) -> float:
    return _SHORT_TEXT * sum(
        weight
        for (stem, is_prefix), weight in weights.items()
        if (any(word.startswith(stem) for word in words) if is_prefix else stem in words)
    )


def _person(db: apsw.Connection, owner: str) -> str:
    """Return whose facts an agent, or a sender, may find."""
    person = person_of(owner)
    return person_behind(db, owner) if person is None and ":" in owner else person or ""


def _candidate(score: float, row: Any) -> Candidate:
    fact, person, key, value, created_at, ended_at = row
    return Candidate(
        source=FactType.FACTS,
        id=str(fact),
        content=f"{key}: {value}",
        words=score,
        at=moment(created_at),
        label=str(key),
        owner=str(person),
        ended_at=None if ended_at is None else moment(ended_at),
    )
