"""Times starting Weft, one question and imports, beside other libraries, and weighs what they install.

The question gets a scripted reply, so that no model takes time, and its database is there already. Every
start is a fresh process; all take turns. Each library is installed once with its dependencies into a folder
of its own, which stays in the environment, so that a second run is quick.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich.progress import Progress

from timing import arguments, at_least, out, p50, table, workplace, write_json

ROOT = Path(__file__).parent.parent
QUESTION, QUESTION_GOAL_MS = "weft ask", 400.0
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""litellm reads its table of prices from its own files, as its documentation says for machines offline."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that is started: the arguments for Python, the package on the index, and its import name."""

    what: str
    arguments: tuple[str, ...]
    package: str
    module: str


SUBJECTS = (
    Subject("weft --help", ("-m", "weft", "--help"), "weft", "weft"),
    Subject(QUESTION, ("-m", "weft", "ask", "-p", "scripted", "hi"), "weft", "weft"),
    Subject("import weft", ("-c", "import weft; weft.ContextBuilder"), "weft", "weft"),
    Subject(
        "import langchain_core.messages",
        ("-c", "import langchain_core.messages"),
        "langchain-core",
        "langchain_core",
    ),
    Subject("import llama_index.core", ("-c", "import llama_index.core"), "llama-index-core", "llama_index"),
    Subject("import litellm", ("-c", "import litellm"), "litellm", "litellm"),
    Subject("import pydantic_ai", ("-c", "import pydantic_ai"), "pydantic-ai-slim", "pydantic_ai"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The median of fresh processes; without a time there is a note that says why.

    `own_ms` is without the start of the interpreter itself.
    """

    what: str
    p50_ms: float | None
    own_ms: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What a fresh installation with all dependencies takes."""

    package: str
    version: str
    mb: float | None
    packages: int | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupReport:
    """All that one run measured."""

    starts: tuple[Start, ...]
    weights: tuple[Weight, ...]


def _started_ms(arguments_: tuple[str, ...], home: Path) -> float:
    environ = {**os.environ, **_OFFLINE, "WEFT_HOME": str(home)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each start would compile anew what was edited
    started = time.perf_counter()
    subprocess.run(  # noqa: S603 - our own list above
        [sys.executable, *arguments_],
        check=True,
        env=environ,
        stdin=subprocess.DEVNULL,  # a question would wait for a silent pipe
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
    )
    return (time.perf_counter() - started) * 1000


def measure_starts(home: Path, rounds: int, progress: Progress) -> tuple[Start, ...]:
    """Start everything that is installed, in turns; the first start of each is not timed."""
    bare = Subject("python, nothing imported", ("-c", "pass"), "", "sys")
    present = [bare, *(subject for subject in SUBJECTS if importlib.util.find_spec(subject.module))]
    times: dict[str, list[float]] = {subject.what: [] for subject in present}
    failures: dict[str, str] = {}
    for at in progress.track(range(rounds + 1), description="starting"):
        for subject in present:
            try:
                took = _started_ms(subject.arguments, home)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                failures[subject.what] = f"failed: {type(error).__name__}"
                continue
            times[subject.what] += [took] if at else []
    return tuple(_start(subject.what, times, failures, bare.what) for subject in (bare, *SUBJECTS))


def _start(what: str, times: dict[str, list[float]], failures: dict[str, str], bare: str) -> Start:
    if not times.get(what):
        return Start(what=what, p50_ms=None, own_ms=None, note=failures.get(what, "not installed"))
    median = p50(times[what])
    return Start(what=what, p50_ms=median, own_ms=median - p50(times[bare]))


def measure_weights(cache: Path, progress: Progress) -> tuple[Weight, ...]:
    """Install each package with its dependencies into a folder of its own, and weigh the folder."""
    packages = list(dict.fromkeys(subject.package for subject in SUBJECTS))
    return tuple(_weight(package, cache) for package in progress.track(packages, description="installing"))


def _weight(package: str, cache: Path) -> Weight:
    if package == "weft":
        version, wanted = _digest(), str(ROOT)
    else:
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            return Weight(package=package, version="", mb=None, packages=None, note="not installed")
        wanted = f"{package}=={version}"
    folder = cache / f"{package}-{version}"
    if not (folder / ".done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), wanted]
        installed = subprocess.run(  # noqa: S603 - names from the list above
            command, capture_output=True, text=True, check=False
        )
        if installed.returncode:
            return Weight(
                package=package, version=version, mb=None, packages=None, note="pip could not install it"
            )
        (folder / ".done").touch()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    infos = list(folder.glob("*.dist-info"))
    shown = metadata.version("weft") if package == "weft" else version
    return Weight(package=package, version=shown, mb=size / 1e6, packages=len(infos))


def _digest() -> str:
    """Return a short hash of the checkout's own code, so that a change is installed anew."""
    digest = hashlib.blake2b((ROOT / "pyproject.toml").read_bytes(), digest_size=6)
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return re.sub(r"\W", "", digest.hexdigest())


def _show(report: StartupReport) -> None:
    shown = table("what", "p50", "without Python itself")
    for start in report.starts:
        if start.p50_ms is None or start.own_ms is None:
            shown.add_row(start.what, start.note, "")
        else:
            shown.add_row(start.what, f"{start.p50_ms:.0f} ms", f"{start.own_ms:.0f} ms")
    out.print(shown)
    out.print(f"{QUESTION}: goal at most {QUESTION_GOAL_MS:.0f} ms")
    out.print()
    shown = table("what", "version", "size", "packages")
    for weight in report.weights:
        size = weight.note if weight.mb is None else f"{weight.mb:.0f} MB"
        shown.add_row(weight.package, weight.version, size, str(weight.packages or ""))
    out.print(shown)


def main() -> None:
    parser = arguments("Time starts and imports in fresh processes, and weigh what is installed.")
    parser.add_argument("--rounds", type=at_least(1), default=5, help="fresh processes of each")
    parser.add_argument("--no-sizes", action="store_true", help="install nothing")
    cache = Path(sys.prefix) / "bench-sizes"
    parser.add_argument("--cache", type=Path, default=cache, help="folder of the installations")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        starts = measure_starts(folder, options.rounds, progress)
        weights = () if options.no_sizes else measure_weights(options.cache, progress)
    report = StartupReport(starts=starts, weights=weights)
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
