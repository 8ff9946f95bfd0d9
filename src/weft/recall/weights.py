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

# Beside each weight: what it stands for, and R@10 / adversarial R@10 without it. All of them: 82.6 / 92.7.
WEIGHTS = {
    "own": 3.0,  # the line's own words:  79.2 / 88.8
    "run": 2.5,  # what its speaker said just before and after it:  82.6 / 92.7
    "before": 2.5,  # what it answers to:  80.9 / 90.5
    "around": 1.0,  # two runs on either side:  82.3 / 90.9
    "session": -2.0,  # a whole conversation about it, less what stands near:  80.9 / 91.6
    "matches": 2.0,  # how many different words:  82.2 / 93.5
    "episode": 2.0,  # a stretch of conversation about it:  80.6 / 85.8
    "best_near": 2.0,  # the best line nearby:  81.1 / 88.8
    "speaker": 0.5,  # said by the one who is named:  81.3 / 96.1
    "month": 3.0,  # said in the month that is named, or speaks of it:  81.6 / 92.7
    "day": 2.0,  # said on the day that is named or soon after:  81.9 / 92.7
    "cue": 1.0,  # looks like an answer to when, where, who, why, how many:  82.0 / 91.8
    "length": 0.5,  # says much:  82.3 / 92.7
    "length_before": -1.5,  # the line before says little:  80.9 / 92.7
    "answers": 1.0,  # the line before is a question:  82.1 / 90.5
    "asks": -0.5,  # is a question itself:  82.7 / 93.1
    "names": 0.5,  # has names:  82.6 / 93.1
    "first_person": 0.5,  # speaks of themselves:  82.6 / 93.1
    "meaning": 5.0,  # with an embedder: near in meaning
    "meaning_near": 3.5,  # with an embedder: near the best line in meaning
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
