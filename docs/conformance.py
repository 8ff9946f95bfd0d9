"""Write `docs/reference/conformance.md`: every line of the four systems, and the test that proves it."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINES = ROOT / "docs" / "reference" / "lines.txt"
PAGE = ROOT / "docs" / "reference" / "conformance.md"
SYSTEMS = {"O": "Omega", "P": "Pattern", "C": "Chai", "M": "miniclaw"}
_TEST = re.compile(r"^(?:async )?def (test_((?:[OPCM]\d+_)+)\w+)\(", re.MULTILINE)


def proofs() -> dict[str, list[str]]:
    """Return the conformance tests by the ids in their names."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "conformance").glob("test_*.py")):
        for name, ids in _TEST.findall(path.read_text("utf-8")):
            for line_id in ids.strip("_").split("_"):
                found.setdefault(line_id, []).append(f"{path.stem}::{name}")
    return found


def page() -> str:
    """Write the whole page as Markdown."""
    found = proofs()
    lines = [line.split(" ", 1) for line in LINES.read_text("utf-8").splitlines()]
    shown = sum(line_id in found for line_id, _ in lines)
    text = [
        "# Conformance",
        "",
        "Four assistants are described in open documents. Each line of them has an id here, and a test in",
        "`tests/conformance/` that carries the id in its name. *Later* means: not built yet.",
        f"Made by `python docs/conformance.py`; {shown} of {len(lines)} lines are proved.",
    ]
    for letter, system in SYSTEMS.items():
        text += ["", f"## {system}", "", "| id | what | test |", "|---|---|---|"]
        for line_id, what in lines:
            if line_id.startswith(letter):
                tests = found.get(line_id, [])
                more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
                proof = f"`{tests[0]}`{more}" if tests else "later"
                text.append(f"| {line_id} | {what} | {proof} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
