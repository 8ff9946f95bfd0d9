"""The ranking of lines: one linear formula over words, neighbors, episodes, speakers and dates.

A line seldom has all the words of a question. The line before it, or the same person's next one, has the
rest. So a line is also scored by what stands around it. A first guess is cheap and is made for every
candidate; the features of `weights.py` are computed for the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from heapq import nlargest

from weft.recall.question import Question
from weft.recall.weights import FIRST, GROUPS, WEIGHTS
from weft.types.line import Cue, Line, LineCandidates, RankedLine

LOOKED_AT = 250
"""How many lines get all features; the others stand behind them, as the first guess has them."""
_DAYS_AFTER, _BEFORE_IS_WORSE = 5.0, 3.0
_K, _B = 1.2, 0.75
_MOST_MATCHES = 5
_NEIGHBOR_SHARE, _DATE_SHARE, _NAMED_SHARE = 0.4, 0.6, 0.2
"""What neighbors, the date, and the name of somebody who speaks here add to relevance."""
_TELLING, _RARE_SHARE, _COMMON_SHARE = 0.75, 0.4, 0.5
"""How rare a word is that alone makes a line relevant, and how relevant; how much common words count."""
_UNRELATED, _ALIKE = 0.35, 0.75
"""How near the meanings are of a line that has nothing to do with a question, and of one that answers it."""

# Plain numbers: an operation on flags takes ten times as long.
_QUESTION, _PLACE, _CAPITALIZED = Cue.QUESTION.value, Cue.PLACE.value, Cue.CAPITALIZED.value
_CAPITALIZED_TWICE = Cue.CAPITALIZED_TWICE.value
_FIRST_PERSON, _FIRST_PERSON_TWICE = Cue.FIRST_PERSON.value, Cue.FIRST_PERSON_TWICE.value
_ONE_CUE = (Cue.TIME | Cue.NUMBER | Cue.REASON).value
Features = Mapping[str, float]


@dataclass(slots=True)
class _Run:
    """What one speaker said in a row."""

    hits: int = 0
    chars: int = 0
    asks: bool = False


_NO_RUN = _Run()
"""Stands beside the first and the last run of an episode. It is never changed."""


@dataclass(slots=True)
class _Episode:
    """What was said without a pause: which terms it has how often, and its length."""

    hits: int = 0
    words: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    score: float = 0.0
    best: float = 0.0
    meaning: float = 0.0


def rank(question: Question, candidates: LineCandidates, limit: int) -> list[RankedLine]:
    """Return the best lines for a question, best first."""
    ranking = _Ranking(question, candidates)
    scored = [
        (sum(WEIGHTS[name] * value for name, value in features.items()), line, features)
        for line, features in ranking.close_lines(max(LOOKED_AT, limit))
    ]
    return [
        RankedLine(line=line, score=score, relevance=ranking.relevance(line), reasons=_reasons(features))
        for score, line, features in nlargest(limit, scored, key=lambda one: one[0])
    ]


def close_lines(question: Question, candidates: LineCandidates) -> list[tuple[Line, Features]]:
    """Return the lines that are looked at closely, with their features."""
    return _Ranking(question, candidates).close_lines(LOOKED_AT)


def _reasons(features: Features) -> dict[str, float]:
    return {
        group: sum(WEIGHTS[name] * features.get(name, 0.0) for name in names)
        for group, names in GROUPS.items()
    }


class _Ranking:
    """One ranking: the runs and episodes of the candidates, with what they have of the question."""

    def __init__(self, question: Question, candidates: LineCandidates) -> None:
        self._question, self._lines = question, candidates.lines
        self._answer = question.answer.value
        self._rarities, self._average = candidates.rarities, candidates.average_words or 1.0
        self._rarest, self._unknown = candidates.rarest, candidates.unknown
        total = sum(self._rarities) or 1.0
        # A thousand lines have a few dozen sets of terms.
        self._mass: Callable[[int], float] = cache(
            lambda hits: sum(self._rarities[bit] for bit in _bits(hits))
        )
        self._coverage: Callable[[int], float] = cache(lambda hits: self._mass(hits) / total)
        self._runs: dict[tuple[str, int, int], _Run] = {}
        self._episodes: dict[tuple[str, int], _Episode] = {}
        known = [line.meaning for line in self._lines if line.meaning is not None]
        self._usual_meaning = sum(known) / len(known) if known else 0.0
        for line in self._lines:
            self._add(line)
        self._score_episodes()
        self._best_guess = 1.0
        self._months = _months(question)
        past = [span for span in question.spans if span.first <= question.today]
        self._days = [span.first for span in past if (span.last - span.first).days < 3]
        self._asked_days = [(s.first.toordinal(), s.last.toordinal()) for s in question.spans]
        self._named = next(iter(question.speakers)) if len(question.speakers) == 1 else ""
        self._dates: Callable[[float], tuple[float, float]] = cache(self._date_features)
        self._around: Callable[[str, int, int], tuple[float, ...]] = cache(self._run_coverages)

    def _add(self, line: Line) -> None:
        run = self._runs.get((line.session_id, line.episode, line.run))
        if run is None:
            run = self._runs[line.session_id, line.episode, line.run] = _Run()
        run.hits |= line.hits
        run.chars += line.chars
        run.asks = run.asks or line.cues & _QUESTION != 0
        episode = self._episodes.get((line.session_id, line.episode))
        if episode is None:
            episode = self._episodes[line.session_id, line.episode] = _Episode()
        episode.hits |= line.hits
        episode.words += line.words
        episode.meaning = max(episode.meaning, self._meaning(line))
        for bit in _bits(line.hits):
            episode.counts[bit] = episode.counts.get(bit, 0) + 1

    def _score_episodes(self) -> None:
        """Score each episode as one document, in the manner of BM25, relative to the best."""
        episodes = list(self._episodes.values())
        average = sum(episode.words for episode in episodes) / max(len(episodes), 1) or 1.0
        numbers = [sum(bit in episode.counts for episode in episodes) for bit in range(len(self._rarities))]
        rarities = [math.log(1 + (len(episodes) - number + 0.5) / (number + 0.5)) for number in numbers]
        for episode in episodes:
            length = _K * (1 - _B + _B * episode.words / average)
            episode.score = sum(
                rarities[bit] * count * (_K + 1) / (count + length) for bit, count in episode.counts.items()
            )
        best = max((episode.score for episode in episodes), default=0.0) or 1.0
        for episode in episodes:
            episode.score /= best

    def close_lines(self, limit: int) -> list[tuple[Line, Features]]:
        """Return the best lines by the first guess, with their features."""
        guesses = self._guesses()
        best = nlargest(limit, range(len(guesses)), key=guesses.__getitem__)
        return [(self._lines[at], self._features(self._lines[at])) for at in best]

    def relevance(self, line: Line) -> float:
        """Return how much of the question a line has, with what its neighbors add to it.

        Words that many lines have count half. One word that few lines have is enough.
        """
        own = self._coverage(line.hits)
        _, _, after, *_ = self._around(line.session_id, line.episode, line.run)
        known = sum(self._rarities)
        mass = (own + _NEIGHBOR_SHARE * (after - own)) * known
        words = mass / (known + self._unknown or 1.0)
        words *= max(_COMMON_SHARE, min(1.0, mass / (_TELLING * self._rarest)))
        rarest = max((self._rarities[bit] for bit in _bits(line.hits)), default=0.0)
        rare = _RARE_SHARE if rarest >= _TELLING * self._rarest else 0.0
        dated = max(*self._dates(line.at), self._speaks_of(line)) if self._question.asks else 0.0
        named = _NAMED_SHARE if self._question.speakers and words else 0.0
        alike = ((line.meaning or 0.0) - _UNRELATED) / (_ALIKE - _UNRELATED)
        return min(1.0, max(words + named, rare, _DATE_SHARE * dated, alike))

    def _guesses(self) -> list[float]:
        """Return the first guess for every line; it also tells the best one of each episode."""
        by_words = [self._by_words(line) for line in self._lines]
        best = max(by_words, default=0.0) or 1.0
        guesses = []
        for line, words in zip(self._lines, by_words, strict=True):
            run, before, after, around, _ = self._around(line.session_id, line.episode, line.run)
            episode = self._episodes[line.session_id, line.episode]
            guess = (
                FIRST["words"] * words / best
                + FIRST["own"] * self._coverage(line.hits)
                + FIRST["run"] * run
                + FIRST["before"] * before
                + FIRST["after"] * after
                + FIRST["around"] * around
                + FIRST["speaker"] * self._speaker(line)
                + FIRST["month"] * max(self._dates(line.at))
                + FIRST["episode"] * episode.score
                + FIRST["meaning"] * self._meaning(line)
            )
            episode.best = max(episode.best, guess)
            guesses.append(guess)
        self._best_guess = max(guesses, default=0.0) or 1.0
        return guesses

    def _features(self, line: Line) -> dict[str, float]:
        """Return all features of a line, after the first guess."""
        own = self._coverage(line.hits)
        run, before, after, around, wide = self._around(line.session_id, line.episode, line.run)
        episode = self._episodes[line.session_id, line.episode]
        month, day = self._dates(line.at)
        previous = self._runs.get((line.session_id, line.episode, line.run - 1))
        return {
            "own": own,
            "run": run - own,
            "before": before - run,
            "around": around - after,
            "session": self._coverage(episode.hits) - wide,
            "matches": min(_MOST_MATCHES, line.hits.bit_count()) / _MOST_MATCHES,
            "episode": episode.score,
            "best_near": episode.best / self._best_guess,
            "speaker": self._speaker(line),
            "month": max(month, self._speaks_of(line)),
            "day": max(day, self._speaks_of(line)),
            "cue": self._cue(line.cues),
            "length": math.log(line.chars + 1) / 5,
            "length_before": math.log(previous.chars + 1) / 5 if previous else 0.0,
            "answers": float(previous.asks) if previous else 0.0,
            "asks": float(line.cues & _QUESTION != 0),
            "names": _capitalized(line.cues),
            "first_person": _first_person(line.cues),
            "meaning": self._meaning(line),
            "meaning_near": episode.meaning,
        }

    def _meaning(self, line: Line) -> float:
        """Return how near a line's meaning is; one that is not embedded yet counts as the usual line."""
        return self._usual_meaning if line.meaning is None else line.meaning

    def _by_words(self, line: Line) -> float:
        if not line.hits:
            return 0.0
        length = 1 + _K * (1 - _B + _B * line.words / self._average)
        return self._mass(line.hits) * (_K + 1) / length

    def _run_coverages(self, session: str, episode: int, run: int) -> tuple[float, ...]:
        """Return what a run covers alone, with the one before, the next, two and three on either side."""
        runs = self._runs
        hits = [runs.get((session, episode, near), _NO_RUN).hits for near in range(run - 3, run + 4)]
        own = hits[3]
        before = own | hits[2]
        after = before | hits[4]
        around = after | hits[1] | hits[5]
        return tuple(map(self._coverage, (own, before, after, around, around | hits[0] | hits[6])))

    def _speaker(self, line: Line) -> float:
        """Return 1 for a line of the one person whom the question names, -1 for one of somebody else."""
        if not self._named:
            return 0.0
        return 1.0 if line.speaker == self._named else -1.0

    def _date_features(self, at: float) -> tuple[float, float]:
        """Return how well the month and the day fit on which something was said.

        What happened on a day is told on that day or soon after it.
        """
        if not self._question.spans:
            return 0.0, 0.0
        said = datetime.fromtimestamp(at, UTC).date()
        month = max((fit for first, last, fit in self._months if first <= said <= last), default=0.0)
        day = max((_nearness((said - asked).days) for asked in self._days), default=0.0)
        return month, day

    def _speaks_of(self, line: Line) -> float:
        """Return 1 if a line speaks of a day that is asked for, whenever it was said."""
        if not line.first_day:
            return 0.0
        return float(
            any(first <= line.last_day and line.first_day <= last for first, last in self._asked_days)
        )

    def _cue(self, cues: int) -> float:
        """Return whether a line looks like an answer to this kind of question."""
        answer = self._answer
        fit = float(answer & cues & _ONE_CUE != 0)
        if answer & _PLACE:
            fit = max(fit, 0.5 * (cues & _PLACE != 0) + 0.5 * _capitalized(cues))
        if answer & _CAPITALIZED:
            fit = max(fit, _capitalized(cues))
        return fit


def _months(question: Question) -> list[tuple[date, date, float]]:
    """Return the spans in which something may have been said: a month counts whole, a year half."""
    spans = []
    for span in question.spans:
        if span.first > question.today:
            continue
        days = (span.last - span.first).days
        first = span.first.replace(day=1) if days < 31 else span.first
        last = span.last if days >= 31 else min(span.last.replace(day=28), date.max)
        spans.append((first, max(last, span.last), 0.5 if days > 100 else 1.0))
    return spans


def _nearness(days: int) -> float:
    return math.exp(-(days if days >= 0 else -days * _BEFORE_IS_WORSE) / _DAYS_AFTER)


def _capitalized(cues: int) -> float:
    return 0.5 * (cues & _CAPITALIZED != 0) + 0.5 * (cues & _CAPITALIZED_TWICE != 0)


def _first_person(cues: int) -> float:
    return 0.5 * (cues & _FIRST_PERSON != 0) + 0.5 * (cues & _FIRST_PERSON_TWICE != 0)


@lru_cache(maxsize=4096)
def _bits(hits: int) -> tuple[int, ...]:
    """Return the numbers of the terms that a line has."""
    return tuple(bit for bit in range(hits.bit_length()) if hits >> bit & 1)
