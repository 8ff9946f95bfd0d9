"""Fits the weights of recall anew, and measures them on conversations that they were not fitted on.

For each conversation the weights are fitted on all others, as they are and with turns cut into sentences, and
its questions then go through the same search as a turn (see `recall.py`) with these weights. The
formula is linear: the score of a line is turned into a probability among the lines of a question, and the
probability of the evidence is made as high as it goes. Needs numpy.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import weft
from recall import Result, Talk, _embedder, _fill, figures, read, search, split
from timing import arguments, out, table, workplace, write_json
from weft.recall.conversation_recall import line_query
from weft.recall.line_rank import Features, close_lines
from weft.recall.question import Question, read_question
from weft.recall.weights import WEIGHTS
from weft.store.base import Scope
from weft.types.line import Line, LineCandidates, LineQuery, LineSearch, RankedLine

NAMES = Features._fields
_FITTED_ON, _STRENGTH, _ADVERSARIAL, _STEPS = 50, 0.01, 0.3, 400
"""How many lines of a question compete: those far behind are not among the first ten under any weights."""


@dataclass(slots=True)
class Example:
    """The lines of one question: their features, which of them are evidence, and the ids of their turns."""

    features: Any
    is_gold: Any
    names: list[str]
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One conversation with weights that were fitted on the others, and R@10 of it with the shipped ones."""

    what: str
    recall_at_10: float
    recall_at_4k: float
    shown: float
    adversarial: float
    shipped: float


class _Recorder:
    """A search that keeps the features of its lines."""

    def __init__(self, text: str, now: Any) -> None:
        self._text, self._now = text, now
        self._question = Question(words=())
        self.lines: Sequence[tuple[Line, Features]] = ()

    def ask(self, speakers: Sequence[str]) -> LineQuery:
        self._question = read_question(self._text, speakers, self._now)
        return line_query(self._question)

    def rank(self, candidates: LineCandidates) -> Sequence[RankedLine]:
        self.lines = close_lines(self._question, candidates)
        return ()


async def examples(folder: Path, talk: Talk, embedder: str | None) -> list[Example]:
    """Ask all questions of a conversation, and keep what recall knows of the lines."""
    made = []
    async with await weft.open(folder / "weft.db", embedder=_embedder(embedder)) as store:
        [names] = await _fill(store, [talk])
        if store.meaning is not None:
            async for _ in store.meaning.catch_up():
                pass
        now = max(line.at for line in talk.lines) + timedelta(days=1)
        index: Any = vars(store)["_backend"].lines
        for question in talk.questions:
            recorder = _Recorder(question.text, now)
            search = LineSearch(ask=recorder.ask, rank=recorder.rank, limit=0)
            if store.meaning is not None:
                vector = await store.meaning.vector_of(question.text)
                search = replace(search, embedder=store.meaning.embedder, vector=vector)
            await index.search(search, Scope(owner="app:owner"))
            ids = [names.get(f"{line.session_id}/{line.place}", "") for line, _ in recorder.lines]
            features = np.array([list(row) for _, row in recorder.lines] or [[0.0] * len(NAMES)])
            gold = np.array([name in question.evidence for name in ids] or [False])
            made.append(Example(features, gold, ids or [""], question.evidence, question.category))
    return made


def fit(training: Sequence[Example]) -> Any:
    """Return the weights under which the evidence is most likely."""
    used = [one for one in training if one.is_gold[:_FITTED_ON].any()]
    width = max(len(one.names[:_FITTED_ON]) for one in used)
    features = np.zeros((len(used), width, len(NAMES)))
    wanted, outside = np.zeros((len(used), width)), np.full((len(used), width), -1e9)
    for at, one in enumerate(used):
        number = len(one.names[:_FITTED_ON])
        features[at, :number] = one.features[:number]
        gold = one.is_gold[:number]
        wanted[at, :number], outside[at, :number] = gold / gold.sum(), 0.0
    importance = np.array([_ADVERSARIAL if one.category == "5" else 1.0 for one in used])
    spread = np.concatenate([one.features for one in used]).std(0) + 1e-9
    features /= spread
    weights, mean, square = np.zeros(len(NAMES)), np.zeros(len(NAMES)), np.zeros(len(NAMES))
    for step in range(1, _STEPS + 1):
        scores = features @ weights + outside
        likely = np.exp(scores - scores.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        error = importance[:, None] * (likely - wanted)
        slope = np.einsum("kn,knf->f", error, features) / importance.sum() + 2 * _STRENGTH * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
    return weights / spread


def recall_at_10(tested: Sequence[Example], weights: Any, *, adversarial: bool) -> float:
    """Return R@10 of weights, in percent."""
    shares = []
    for one in tested:
        if (one.category == "5") is adversarial:
            order = np.argsort(-(one.features @ weights), kind="stable")
            seen = list(dict.fromkeys(one.names[at] for at in order))[:10]
            shares.append(len(one.evidence & set(seen)) / len(one.evidence))
    return 100 * sum(shares) / max(len(shares), 1)


def worth(tested: Sequence[Example], shipped: Any) -> dict[str, tuple[float, float]]:
    """Return R@10 and the adversarial R@10 with each weight left out, and with all of them."""
    without = {"all of them": shipped}
    for at, name in enumerate(NAMES):
        without[name] = shipped.copy()
        without[name][at] = 0.0
    return {
        name: (
            recall_at_10(tested, weights, adversarial=False),
            recall_at_10(tested, weights, adversarial=True),
        )
        for name, weights in without.items()
    }


async def ask_all(
    folder: Path, talk: Talk, weights: Any, embedder: str | None, progress: Progress
) -> list[Result]:
    """Ask the questions of a conversation in turns with these weights instead of the shipped ones."""
    shipped = dict(WEIGHTS)
    WEIGHTS.update(zip(NAMES, map(float, weights), strict=True))
    options = Namespace(one_store=False, embedder=embedder, window=0)
    try:
        results, _ = await search(folder, [talk], options, progress)
    finally:
        WEIGHTS.update(shipped)
    return results


def _row(what: str, results: Sequence[Result], shipped: float) -> Row:
    measured = figures(results)
    answered, adversarial = measured["1-4"], measured.get("5", {"R@10": 0.0})
    return Row(
        what=what,
        recall_at_10=answered["R@10"],
        recall_at_4k=answered["R@4k"],
        shown=answered["shown"],
        adversarial=adversarial["R@10"],
        shipped=shipped,
    )


async def measure(
    folder: Path, talks: Sequence[Talk], embedder: str | None, progress: Progress
) -> tuple[list[Row], dict[str, float], dict[str, tuple[float, float]]]:
    plain, cut = list[list[Example]](), list[list[Example]]()
    for at, talk in enumerate(progress.track(talks, description="asking")):
        for kind, one, kept in (("plain", talk, plain), ("cut", split(talk), cut)):
            place = folder / f"{kind}{at}"
            place.mkdir()
            kept.append(await examples(place, one, embedder))
    shipped = np.array([WEIGHTS[name] for name in NAMES])
    rows, together = list[Row](), list[Result]()
    for at, talk in enumerate(talks):
        training = [one for n in range(len(talks)) if n != at for one in (*plain[n], *cut[n])]
        results = await ask_all(folder, talk, fit(training), embedder, progress)
        as_shipped = recall_at_10(plain[at], shipped, adversarial=False)
        rows.append(_row(f"conversation {at + 1}", results, as_shipped))
        together += results
    everything = [one for group in plain for one in group]
    ablation = worth(everything, shipped)
    rows.append(_row("all", together, ablation["all of them"][0]))
    weights = fit([*everything, *(one for group in cut for one in group)])
    return rows, {name: round(float(value), 2) for name, value in zip(NAMES, weights, strict=True)}, ablation


def main() -> None:
    parser = arguments("Fit the weights of recall on all conversations but one, for each of them.")
    parser.add_argument("path", type=Path, help="conversations with questions, as JSON")
    parser.add_argument("--embedder", metavar="NAME", help="wordllama or minilm; none by default")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        work = measure(folder, read(options.path), options.embedder, progress)
        rows, weights, ablation = asyncio.run(work)
    write_json(options.json, rows)
    shown = table("fitted on the others", "R@10", "R@4k", "shown", "adversarial R@10", "R@10 as shipped")
    for row in rows:
        figure = (row.recall_at_10, row.recall_at_4k, row.shown, row.adversarial, row.shipped)
        shown.add_row(row.what, *(f"{one:.1f}" for one in figure))
    out.print(shown)
    out.print("fitted on all of them, beside the shipped ones:")
    for name, value in weights.items():
        out.print(f"  {name:14} {value:6.2f}   {WEIGHTS[name]:5.1f}")
    out.print("R@10 and adversarial R@10 of the shipped weights without one of them:")
    for name, (found, adversarial) in ablation.items():
        out.print(f"  {name:14} {found:6.1f}   {adversarial:5.1f}")


if __name__ == "__main__":
    main()
