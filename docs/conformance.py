"""Write `docs/reference/conformance.md`: every line of the four systems, how to reach it, and its tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINES = ROOT / "docs" / "reference" / "lines.txt"
MUTANTS = ROOT / "docs" / "reference" / "mutants.txt"
PAGE = ROOT / "docs" / "reference" / "conformance.md"
SYSTEMS = {"O": "Omega", "P": "Pattern", "C": "Chai", "M": "miniclaw"}
_TEST = re.compile(r"^(?:async )?def (test_((?:[OPCM]\d+_)+)\w+)\(", re.MULTILINE)


def lines() -> list[tuple[str, str, str, list[str]]]:
    """Return every line: its id, what it says, how a person reaches it, and the functions that serve it."""
    rows = [line.split(" | ") for line in LINES.read_text("utf-8").splitlines()]
    return [(id_, what, reach, [] if code == "-" else code.split(", ")) for id_, what, reach, code in rows]


def proofs() -> dict[str, list[str]]:
    """Return the conformance tests by the ids in their names."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "conformance").glob("test_*.py")):
        for name, ids in _TEST.findall(path.read_text("utf-8")):
            for line_id in ids.strip("_").split("_"):
                found.setdefault(line_id, []).append(f"{path.stem}::{name}")
    return found


def mutants() -> dict[str, list[tuple[str, str]]]:
    """Return the mutants of each line by its id: the place that was broken, and what became of it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in MUTANTS.read_text("utf-8").splitlines() if MUTANTS.exists() else ():
        name, _, reason = row.partition(" | ")
        line_id, _, place = name.partition(" ")
        found.setdefault(line_id, []).append((place, reason))
    return found


def page() -> str:
    """Write the whole page as Markdown."""
    found, broken, rows = proofs(), mutants(), lines()
    shown = sum(line_id in found for line_id, *_ in rows)
    tried = [reason for each in broken.values() for _, reason in each]
    text = [
        "# Conformance",
        "",
        "Four assistants are described in open documents. Each line of them has an id here, a way in which a",
        "person or a program reaches it, and tests in `tests/conformance/` that carry the id in their names.",
        "`make mutate` breaks the functions that serve a line, one place each, and runs the line's tests:",
        "*caught* counts how many breaks they noticed. Lines without a number are about structure, advice or",
        "tests, so there is nothing to break.",
        "",
        f"Made by `python docs/conformance.py`; {shown} of {len(rows)} lines are proved, and",
        f"{tried.count('caught')} of {len(tried)} breaks were caught.",
    ]
    for letter, system in SYSTEMS.items():
        text += [
            "",
            f"## {system}",
            "",
            "| id | what | reached by | test | caught |",
            "|---|---|---|---|---|",
        ]
        for line_id, what, reach, _ in rows:
            if line_id.startswith(letter):
                tests, tries = found.get(line_id, []), [reason for _, reason in broken.get(line_id, [])]
                more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
                proof = f"`{tests[0]}`{more}" if tests else "later"
                caught = f"{tries.count('caught')} of {len(tries)}" if tries else ""
                text.append(f"| {line_id} | {what} | {reach} | {proof} | {caught} |")
    text += _explained(broken)
    return "\n".join(text) + "\n"


def _explained(broken: dict[str, list[tuple[str, str]]]) -> list[str]:
    """List the breaks that no test can notice, with the reason."""
    rows = [
        f"- {line_id}, `{place}`: {reason}"
        for line_id, each in broken.items()
        for place, reason in each
        if reason != "caught"
    ]
    return ["", "## Breaks that change nothing", "", *rows] if rows else []


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
