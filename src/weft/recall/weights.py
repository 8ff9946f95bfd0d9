"""The weights of recall: what makes a line a good answer, and how much.

They are rounded, so that a person can explain them. `benchmarks/fit_recall.py` fits them anew, and
`benchmarks/recall.py --without NAME` shows what each of them is worth.
"""

from __future__ import annotations

FIRST = {
    "words": 1.0,
    "own": 0.4,
    "run": -0.4,
    "before": 0.8,
    "after": 0.4,
    "around": 0.3,
    "speaker": 0.15,
    "month": 0.3,
    "episode": 0.2,
    "meaning": 0.8,
}
"""Weights of the first guess, which chooses the lines that are looked at closely."""

WEIGHTS = {
    "own": 3.0,
    "run": 2.5,
    "before": 2.5,
    "around": 1.0,
    "session": -2.0,
    "matches": 2.0,
    "episode": 2.0,
    "best_near": 2.0,
    "speaker": 0.5,
    "month": 3.0,
    "day": 2.0,
    "cue": 1.0,
    "length": 0.5,
    "length_before": -1.5,
    "answers": 1.0,
    "asks": -0.5,
    "names": 0.5,
    "first_person": 0.5,
    "meaning": 5.0,
    "meaning_near": 3.5,
}
"""Weights of the features that `line_rank` computes for the best lines of the first guess."""

GROUPS = {
    "words": ("own", "matches"),
    "neighbor": ("run", "before", "around", "session", "length_before", "answers"),
    "episode": ("episode", "best_near"),
    "speaker": ("speaker",),
    "date": ("month", "day"),
    "similarity": ("meaning", "meaning_near"),
    "form": ("cue", "length", "asks", "names", "first_person"),
}
"""What the features are for, as a search shows it."""
