"""Break the code on purpose, and see the tests of each line notice. Run by `make mutate`.

`docs/reference/lines.txt` names the functions that serve each line of the four documents. One place in each
of them is broken in a copy of the source: a call removed, a condition swapped, a return emptied, a text
changed. Then the tests that carry the line's id must fail. Which place it is depends only on the function.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "reference" / "mutants.txt"
LONGEST_SECONDS = 150
_SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_EMPTIED = """
def _emptied(value):
    try:
        return type(value)()
    except TypeError:
        return None
"""


def _conformance() -> Any:
    """Load the script of the documentation that knows the lines and their tests."""
    spec = spec_from_file_location("conformance_page", ROOT / "docs" / "conformance.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conformance = _conformance()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break: the line it belongs to, the function, the kind of break, and which of that kind it is."""

    line_id: str
    module: str
    function: str
    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.line_id} {self.module}:{self.function} {self.kind} {self.number}"


class _Break(ast.NodeTransformer):
    """Makes the break of one kind and number in a function, and counts how many there could be."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind, self.number, self.seen = kind, number, 0

    def _is_it(self, kind: str) -> bool:
        self.seen += self.kind == kind
        return self.kind == kind and self.seen == self.number

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self._is_it("emptied return"):
            node.value = ast.Call(ast.Name("_emptied", ast.Load()), [node.value], [])
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self._is_it("swapped condition"):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if self._is_it("swapped condition"):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        for at, test in enumerate(node.ifs):
            if self._is_it("swapped condition"):
                node.ifs[at] = ast.UnaryOp(ast.Not(), test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if type(node.ops[0]) in _SWAPS and self._is_it("swapped comparison"):
            node.ops[0] = _SWAPS[type(node.ops[0])]()
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        inner = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(inner, ast.Call) and self._is_it("removed call"):
            return ast.Pass()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value.strip() and self._is_it("changed text"):
            return ast.Constant(f"{node.value}~")
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)  # the format itself is no text
        return node


_LETTERS = {
    "r": "emptied return",
    "c": "swapped condition",
    "x": "removed call",
    "o": "swapped comparison",
    "t": "changed text",
}
_KINDS = ("emptied return", "swapped condition", "removed call", "swapped comparison", "changed text")


def lines() -> list[tuple[str, list[str]]]:
    """Return every line's id with the functions that serve it, as `module:function`."""
    return [(line_id, code) for line_id, _, _, code in conformance.lines()]


def plan() -> list[Mutant]:
    """Return one mutant for each function of each line."""
    return [
        mutant
        for line_id, code in lines()
        for place in code
        for mutant in [_chosen(line_id, *re.split("[:@]", place))]
    ]


def _chosen(line_id: str, module: str, function: str, place: str = "") -> Mutant:
    """Choose a break by the text of the function, so that it stays the same while the function does.

    A place may be named where only one of several is about the line: `r2` is the second return, `c` is
    a condition, `x` a call, `o` a comparison and `t` a text.
    """
    if place:
        return Mutant(line_id, module, function, _LETTERS[place[0]], int(place[1:]))
    tree = ast.parse((ROOT / "src" / "weft" / module).read_text("utf-8"))
    node = _function(tree, module, function)
    places = [(kind, number) for kind in _KINDS[:4] for number in range(1, _count(node, kind) + 1)]
    places = places or [("changed text", number) for number in range(1, _count(node, "changed text") + 1)]
    if not places:
        raise SystemExit(f"There is nothing to break in {module}:{function}: name another function.")
    digest = sha256(f"{line_id}{ast.dump(node)}".encode()).digest()
    return Mutant(line_id, module, function, *places[int.from_bytes(digest[:4], "big") % len(places)])


def _function(tree: ast.Module, module: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise SystemExit(f"There is no function {name!r} in {module}: correct docs/reference/lines.txt.")


def _without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def _count(node: ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> int:
    counter = _Break(kind, -1)
    for statement in deepcopy(_without_docstring(node)):
        counter.visit(statement)
    return counter.seen


def broken(mutant: Mutant) -> str:
    """Return the text of the module with the break in it."""
    tree = ast.parse((ROOT / "src" / "weft" / mutant.module).read_text("utf-8"))
    node = _function(tree, mutant.module, mutant.function)
    breaker = _Break(mutant.kind, mutant.number)
    start = len(node.body) - len(_without_docstring(node))
    node.body[start:] = [breaker.visit(statement) for statement in node.body[start:]]
    return ast.unparse(ast.fix_missing_locations(tree)) + _EMPTIED


def tests_of(line_id: str) -> list[str]:
    """Return the tests that carry a line's id, as pytest names them; the slow ones come last."""
    proofs = sorted(conformance.proofs().get(line_id, []), key=lambda name: name.startswith("test_day"))
    return [f"tests/conformance/{name.replace('::', '.py::')}" for name in proofs]


def is_caught(mutant: Mutant, copy: Path) -> bool:
    """Break a copy of the source, run the tests of the line, and mend it again."""
    target, original = copy / "weft" / mutant.module, ROOT / "src" / "weft" / mutant.module
    target.write_text(broken(mutant), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *tests_of(mutant.line_id)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        shutil.copyfile(original, target)


def run(mutants: Sequence[Mutant], *, workers: int = 2) -> Iterator[tuple[Mutant, bool]]:
    """Try mutants, each worker in a copy of its own. Yields whether each was caught."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies: Queue[Path] = Queue()
        for number in range(workers):
            shutil.copytree(ROOT / "src", Path(folder) / str(number))
            copies.put(Path(folder) / str(number))

        def attempt(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return is_caught(mutant, copy)
            finally:
                copies.put(copy)

        yield from zip(mutants, pool.map(attempt, mutants), strict=True)


def known_survivors() -> dict[str, str]:
    """Return the mutants that no test can notice, each with the reason, as the results list them."""
    text = RESULTS.read_text("utf-8") if RESULTS.exists() else ""
    rows = [line.split(" | ", 1) for line in text.splitlines() if " | " in line]
    return {name: reason for name, reason in rows if reason != "caught"}


def main() -> None:
    started, survivors = time.monotonic(), known_survivors()
    chosen = [mutant for mutant in plan() if not sys.argv[1:] or mutant.line_id in sys.argv[1:]]
    rows, unexpected = list[str](), list[Mutant]()
    for mutant, caught in run(chosen):
        reason = "caught" if caught else survivors.get(mutant.name, "SURVIVED")
        print(f"{mutant.name} | {reason}", flush=True)
        rows.append(f"{mutant.name} | {reason}")
        unexpected += [mutant] if reason == "SURVIVED" else []
    if not sys.argv[1:]:
        RESULTS.write_text("\n".join(rows) + "\n", "utf-8")
    minutes = (time.monotonic() - started) / 60
    print(
        f"{len(rows) - len(unexpected)} of {len(rows)} mutants caught or explained in {minutes:.1f} minutes"
    )
    raise SystemExit(bool(unexpected))


def sample(number: int) -> list[Mutant]:
    """Choose some mutants anew, among those that were caught when all were tried."""
    caught = {line.removesuffix(" | caught") for line in RESULTS.read_text("utf-8").splitlines()}
    return random.sample([mutant for mutant in plan() if mutant.name in caught], number)


if __name__ == "__main__":
    main()
