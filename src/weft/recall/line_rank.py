"""The ranking of lines: one linear formula over words, neighbors, episodes, speakers and dates.

A line seldom has all the words of a question. The line before it, or the same person's next one, has the
rest. So a line is also scored by what stands around it. A first guess is cheap and is made for every
candidate; the features of `weights.py` are computed for the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from heapq import nlargest
from operator import itemgetter, mul
from typing import NamedTuple

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
_FIRST_AROUND = (FIRST["run"], FIRST["before"], FIRST["after"], FIRST["around"])
"""Weights of what a run covers, in the order of `_Run.covers`."""

# Plain numbers: an operation on flags takes ten times as long.
_QUESTION, _PLACE, _CAPITALIZED = Cue.QUESTION.value, Cue.PLACE.value, Cue.CAPITALIZED.value
_CAPITALIZED_TWICE = Cue.CAPITALIZED_TWICE.value
_FIRST_PERSON, _FIRST_PERSON_TWICE = Cue.FIRST_PERSON.value, Cue.FIRST_PERSON_TWICE.value
_ONE_CUE = (Cue.TIME | Cue.NUMBER | Cue.REASON).value
_DAY_SECONDS, _FIRST_DAY = 86_400, date(1970, 1, 1).toordinal()


class Features(NamedTuple):
    """What is known of a line that is looked at closely. `WEIGHTS` says what each stands for."""

    own: float
    run: float
    before: float
    around: float
    session: float
    matches: float
    episode: float
    best_near: float
    speaker: float
    month: float
    day: float
    cue: float
    length: float
    length_before: float
    answers: float
    asks: float
    names: float
    first_person: float
    meaning: float
    meaning_near: float


class _Coverage(dict[int, float]):
    """The share of the question that a set of terms has, computed once: a thousand lines have a few dozen."""

    def __init__(self, rarities: Sequence[float]) -> None:
        super().__init__()
        self._rarities, self._total = rarities, sum(rarities) or 1.0

    def __missing__(self, hits: int) -> float:
        share = self[hits] = sum([self._rarities[bit] for bit in _bits(hits)]) / self._total
        return share


@dataclass(slots=True)
class _Episode:
    """What was said without a pause: its runs, which terms it has how often, and its length."""

    runs: dict[int, _Run] = field(default_factory=dict)
    hits: int = 0
    words: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    score: float = 0.0
    best: float = 0.0
    meaning: float = 0.0


@dataclass(slots=True)
class _Run:
    """What one speaker said in a row, and what stands around it."""

    episode: _Episode
    hits: int = 0
    chars: int = 0
    asks: bool = False
    covers: tuple[float, ...] = ()
    """What it has of the question alone, with the run before, the next, two and three on either side."""
    guess: float = 0.0
    """What all of that and the episode add to the first guess for a line."""


def rank(question: Question, candidates: LineCandidates, limit: int) -> list[RankedLine]:
    """Return the best lines for a question, best first."""
    ranking = _Ranking(question, candidates)
    weights = [WEIGHTS[name] for name in Features._fields]
    scored = [
        (sum(map(mul, weights, features)), at, features)
        for at, features in ranking.close_lines(max(LOOKED_AT, limit))
    ]
    return [
        RankedLine(
            line=candidates.lines[at],
            score=score,
            relevance=ranking.relevance(at),
            reasons=_reasons(features),
        )
        for score, at, features in nlargest(limit, scored, key=itemgetter(0))
    ]


def close_lines(question: Question, candidates: LineCandidates) -> list[tuple[Line, Features]]:
    """Return the lines that are looked at closely, with their features."""
    close = _Ranking(question, candidates).close_lines(LOOKED_AT)
    return [(candidates.lines[at], features) for at, features in close]


def _reasons(features: Features) -> dict[str, float]:
    return {
        group: sum([WEIGHTS[name] * getattr(features, name) for name in names])
        for group, names in GROUPS.items()
    }


class _Ranking:
    """One ranking: the runs and episodes of the candidates, with what they have of the question."""

    def __init__(self, question: Question, candidates: LineCandidates) -> None:
        self._question, self._candidates, self._lines = question, candidates, candidates.lines
        self._coverage, self._answer = _Coverage(candidates.rarities), question.answer.value
        known = [line.meaning for line in self._lines if line.meaning is not None]
        self._knows_meaning, self._usual_meaning = bool(known), sum(known) / max(len(known), 1)
        self._named = next(iter(question.speakers)) if len(question.speakers) == 1 else ""
        self._months = _months(question)
        past = [span for span in question.spans if span.first <= question.today]
        self._days = [span.first.toordinal() for span in past if (span.last - span.first).days < 3]
        self._asked_days = [(s.first.toordinal(), s.last.toordinal()) for s in question.spans]
        self._dates: Callable[[int], tuple[float, float]] = cache(self._date_features)
        self._episodes: dict[tuple[str, int], _Episode] = {}
        self._runs = self._gathered()
        self._score_episodes()
        for episode in self._episodes.values():
            self._look_around(episode)
        self._best_guess = 1.0

    def _gathered(self) -> list[_Run]:
        """Gather runs and episodes. Returns the run of each line."""
        runs, place, episode = list[_Run](), ("", 0), _Episode()
        for line in self._lines:
            if (line.session_id, line.episode) != place:
                place = (line.session_id, line.episode)
                episode = self._episodes.setdefault(place, _Episode())
            run = episode.runs.get(line.run)
            if run is None:
                run = episode.runs[line.run] = _Run(episode)
            runs.append(run)
            run.chars += line.chars
            if line.cues & _QUESTION:
                run.asks = True
            episode.words += line.words
            if line.hits:
                run.hits |= line.hits
                episode.hits |= line.hits
                for bit in _bits(line.hits):
                    episode.counts[bit] = episode.counts.get(bit, 0) + 1
        return runs

    def _score_episodes(self) -> None:
        """Score each episode as one document, in the manner of BM25, relative to the best."""
        episodes = list(self._episodes.values())
        average = sum(episode.words for episode in episodes) / max(len(episodes), 1) or 1.0
        terms = range(len(self._candidates.rarities))
        numbers = [sum(bit in episode.counts for episode in episodes) for bit in terms]
        rarities = [math.log(1 + (len(episodes) - number + 0.5) / (number + 0.5)) for number in numbers]
        for episode in episodes:
            length = _K * (1 - _B + _B * episode.words / average)
            episode.score = sum(
                rarities[bit] * count * (_K + 1) / (count + length) for bit, count in episode.counts.items()
            )
        best = max((episode.score for episode in episodes), default=0.0) or 1.0
        for episode in episodes:
            episode.score /= best

    def _look_around(self, episode: _Episode) -> None:
        """Find out what each run of an episode covers with those around it."""
        coverage = self._coverage
        hits = {number: run.hits for number, run in episode.runs.items()}.get
        for number, run in episode.runs.items():
            before = run.hits | hits(number - 1, 0)
            after = before | hits(number + 1, 0)
            around = after | hits(number - 2, 0) | hits(number + 2, 0)
            wide = around | hits(number - 3, 0) | hits(number + 3, 0)
            run.covers = (
                coverage[run.hits],
                coverage[before],
                coverage[after],
                coverage[around],
                coverage[wide],
            )
            run.guess = FIRST["episode"] * episode.score + sum(map(mul, _FIRST_AROUND, run.covers))

    def close_lines(self, limit: int) -> list[tuple[int, Features]]:
        """Return the places of the best lines by the first guess, with their features."""
        guesses = self._guesses()
        best = nlargest(limit, range(len(guesses)), key=guesses.__getitem__)
        return [(at, self._features(at)) for at in best]

    def relevance(self, at: int) -> float:
        """Return how much of the question a line has, with what its neighbors add to it.

        Words that many lines have count half. One word that few lines have is enough, and so is the time,
        unless the question names somebody or something that nobody has spoken of.
        """
        line, rarities, rarest = self._lines[at], self._candidates.rarities, self._candidates.rarest
        own, (_, _, after, *_) = self._coverage[line.hits], self._runs[at].covers
        known = sum(rarities)
        mass = (own + _NEIGHBOR_SHARE * (after - own)) * known
        words = mass / (known + self._candidates.unknown or 1.0)
        words *= max(_COMMON_SHARE, min(1.0, mass / (_TELLING * rarest)))
        own_rarest = max([rarities[bit] for bit in _bits(line.hits)], default=0.0)
        is_strange = self._candidates.is_strange
        rare = _RARE_SHARE if own_rarest >= _TELLING * rarest and not is_strange else 0.0
        is_dated = self._question.asks and not is_strange
        dated = max(*self._said_on(line), self._speaks_of(line)) if is_dated else 0.0
        named = _NAMED_SHARE if self._question.speakers and words else 0.0
        alike = ((line.meaning or 0.0) - _UNRELATED) / (_ALIKE - _UNRELATED)
        return min(1.0, max(words + named, rare, _DATE_SHARE * dated, alike))

    def _guesses(self) -> list[float]:
        """Return the first guess for every line; it also tells the best one of each episode."""
        coverage, average = self._coverage, self._candidates.average_words or 1.0
        fixed, grows = 1 + _K * (1 - _B), _K * _B / average
        by_words = [
            coverage[line.hits] / (fixed + grows * line.words) if line.hits else 0.0 for line in self._lines
        ]
        scale, own = FIRST["words"] / (max(by_words, default=0.0) or 1.0), FIRST["own"]
        guesses = [
            scale * words + own * coverage[line.hits] + run.guess
            for words, line, run in zip(by_words, self._lines, self._runs, strict=True)
        ]
        for at, line in enumerate(self._lines):
            if self._named:
                guesses[at] += FIRST["speaker"] * self._speaker(line)
            if self._months:
                guesses[at] += FIRST["month"] * max(self._said_on(line))
            if self._knows_meaning:
                guesses[at] += FIRST["meaning"] * self._meaning(line)
        for guess, line, run in zip(guesses, self._lines, self._runs, strict=True):
            run.episode.best = max(run.episode.best, guess)
            if self._knows_meaning:
                run.episode.meaning = max(run.episode.meaning, self._meaning(line))
        self._best_guess = max(guesses, default=0.0) or 1.0
        return guesses

    def _features(self, at: int) -> Features:
        """Return all features of a line, after the first guess."""
        line, here = self._lines[at], self._runs[at]
        own, (run, before, after, around, wide) = self._coverage[line.hits], here.covers
        episode, previous = here.episode, here.episode.runs.get(line.run - 1)
        month, day = self._said_on(line)
        spoken_of = self._speaks_of(line)
        return Features(
            own=own,
            run=run - own,
            before=before - run,
            around=around - after,
            session=self._coverage[episode.hits] - wide,
            matches=min(_MOST_MATCHES, line.hits.bit_count()) / _MOST_MATCHES,
            episode=episode.score,
            best_near=episode.best / self._best_guess,
            speaker=self._speaker(line),
            month=max(month, spoken_of),
            day=max(day, spoken_of),
            cue=self._cue(line.cues),
            length=math.log(line.chars + 1) / 5,
            length_before=math.log(previous.chars + 1) / 5 if previous else 0.0,
            answers=float(previous.asks) if previous else 0.0,
            asks=float(line.cues & _QUESTION != 0),
            names=_capitalized(line.cues),
            first_person=_first_person(line.cues),
            meaning=self._meaning(line),
            meaning_near=episode.meaning,
        )

    def _meaning(self, line: Line) -> float:
        """Return how near a line's meaning is; one that is not embedded yet counts as the usual line."""
        return self._usual_meaning if line.meaning is None else line.meaning

    def _speaker(self, line: Line) -> float:
        """Return 1 for a line of the one person whom the question names, -1 for one of somebody else."""
        if not self._named:
            return 0.0
        return 1.0 if line.speaker == self._named else -1.0

    def _said_on(self, line: Line) -> tuple[float, float]:
        """Return how well the month and the day fit on which a line was said."""
        return self._dates(int(line.at // _DAY_SECONDS) + _FIRST_DAY) if self._asked_days else (0.0, 0.0)

    def _date_features(self, said: int) -> tuple[float, float]:
        """Return how well a month and a day fit. What happened on a day is told on that day or soon after."""
        month = max([fit for first, last, fit in self._months if first <= said <= last], default=0.0)
        day = max([_nearness(said - asked) for asked in self._days], default=0.0)
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


def _months(question: Question) -> list[tuple[int, int, float]]:
    """Return the days between which something may have been said: a month counts whole, a year half."""
    spans = []
    for span in question.spans:
        if span.first > question.today:
            continue
        days = (span.last - span.first).days
        first = span.first.replace(day=1) if days < 31 else span.first
        last = span.last if days >= 31 else min(span.last.replace(day=28), date.max)
        last = max(last, span.last)
        spans.append((first.toordinal(), last.toordinal(), 0.5 if days > 100 else 1.0))
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
