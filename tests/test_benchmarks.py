"""The scripts of `benchmarks/` start and measure, with small sizes. How fast it was is never asserted."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatter import Chatter
from weft.types.tokenize import STOP_WORDS
from weft.wire import PROVIDERS

FOLDER = Path(__file__).parent.parent / "benchmarks"


def _run(script: str, home: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(FOLDER / f"{script}.py"), *args],
        capture_output=True,
        text=True,
        env={"WEFT_HOME": str(home), "TMPDIR": str(home), "PATH": "/usr/bin:/bin"},
        timeout=120,
        check=False,
    )


def _report(script: str, folder: Path, *args: str) -> tuple[Any, str]:
    """Run a script; its figures and what it printed. Nothing of its own may stay behind."""
    done = _run(script, folder, *args, "--json", str(folder / "out.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["out.json"]
    return json.loads((folder / "out.json").read_text()), done.stdout


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    else:
        yield value


@pytest.mark.parametrize(
    "script",
    [
        *("build", "first_token", "heartbeat", "lost_updates", "peer_search", "quality", "recipes", "serve"),
        *("pages", "stability", "startup", "store", "trim", "wire"),
    ],
)
def test_every_script_explains_itself(tmp_path: Path, script: str) -> None:
    done = _run(script, tmp_path, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "--json OUT" in done.stdout


def test_the_store_is_timed_at_every_size_beside_a_bare_insert_and_plain_search(tmp_path: Path) -> None:
    args = ("--messages", "1500,1000", "--rounds", "5", "--edits", "3")

    report, printed = _report("store", tmp_path, *args)

    assert list(report) == ["inserts", "blocks", "sizes", "searches", "builds"]
    assert list(report["inserts"]) == ["singly", "bare", "of_bare", "bulk", "concurrent"]
    assert report["blocks"]["edits"] == 3
    for part in ("sizes", "searches"):
        assert [row["messages"] for row in report[part]] == [1000, 1500]
    assert all(row["agreement"] > 0.9 for row in report["searches"]), "ours and plain have the same hits"
    assert (report["builds"]["short_messages"], report["builds"]["long_messages"]) == (1000, 1500)
    assert all(math.isfinite(number) and number > 0 for number in _numbers(report))
    assert "search of 1,000 / plain FTS5: " in printed
    assert "build from 1,500 messages / from 1,000: " in printed


@pytest.mark.parametrize("sizes", ["many", "", "1000,", "10", "1000,-5", "1e5"])
def test_sizes_that_are_no_sizes_are_refused(tmp_path: Path, sizes: str) -> None:
    done = _run("store", tmp_path, f"--messages={sizes}")

    assert (done.returncode, done.stdout) == (2, "")
    assert "argument --messages" in done.stderr


def test_the_wire_is_timed_for_every_provider(tmp_path: Path) -> None:
    rows, _ = _report("wire", tmp_path, "--messages", "40", "--rounds", "5")

    assert [row["provider"] for row in rows] == list(PROVIDERS)
    assert all(row["write_p50_ms"] > 0 and row["check_p50_ms"] > 0 and row["bytes"] > 1000 for row in rows)


def test_a_build_is_timed_beside_counting_anew(tmp_path: Path) -> None:
    report, _ = _report("build", tmp_path, "--rounds", "5", "--skills", "3", "--largest", "12000")

    assert [row["messages"] for row in report["rows"]] == [1_000, 10_000, 12_000]
    assert report["of_count_10k"] > 0
    assert report["growth"] > 0


def test_the_server_is_timed_beside_a_bare_handler(tmp_path: Path) -> None:
    args = ("--sessions", "10", "--turns", "2", "--at-once", "5", "--delay-ms", "1")

    report, _ = _report("serve", tmp_path, *args)

    assert report["per_second"] > 0
    assert report["ratio"] > 0
    assert [step["sessions"] for step in report["growth"]] == [2, 5, 7, 10]


def test_pages_are_timed_beside_an_empty_one(tmp_path: Path) -> None:
    sizes = ("--turns", "110", "--blocks", "100", "--rounds", "2")

    report, printed = _report("pages", tmp_path, *sizes, "--no-browser")

    assert {page["name"] for page in report["pages"]} >= {"an empty page", "the newest turn", "over time"}
    assert all(page["server_ms"] > 0 for page in report["pages"])
    assert "an empty page" in printed


def test_a_conversation_is_priced_in_four_ways(tmp_path: Path) -> None:
    rows, printed = _report("stability", tmp_path, "--turns", "12")

    names = [row["name"] for row in rows]
    assert names == ["epochs", "rebuild", "sliding window", "never folded"]
    assert all(0 < row["share"] < 1 and row["tokens"] > 0 and row["anthropic"] > 0 for row in rows)
    assert rows[0]["share"] > rows[1]["share"], "what epochs are for"
    assert "what differed first where a new epoch began: nothing" in printed


def test_the_random_words_are_the_same_for_every_search_engine() -> None:
    chatter = Chatter()

    words = {word for message in chatter.messages(200) for word in message.content.split()[:-1]}

    assert len(words) > 1000
    assert not words & STOP_WORDS
    assert all(word.isascii() and word[-1] in "aou" for word in words)


def test_common_words_are_common_and_most_words_are_rare() -> None:
    chatter = Chatter()
    texts = [set(message.content.split()) for message in chatter.messages(1000)]
    counts = sorted((sum(word in text for text in texts) for word in set().union(*texts)), reverse=True)

    assert counts[0] > 200
    assert counts[len(counts) // 2] < 20


def test_a_query_has_up_to_four_different_words() -> None:
    chatter = Chatter()

    queries = [chatter.query() for _ in range(200)]

    assert {len(query) for query in queries} == {1, 2, 3, 4}
    assert all(len(query) == len(set(query)) for query in queries)


def test_every_recipe_is_timed_and_measured_beside_the_numbers_of_the_documents(tmp_path: Path) -> None:
    rows, printed = _report("recipes", tmp_path, "--rounds", "5", "--messages", "60", "--entries", "50")

    assert [row["recipe"] for row in rows] == ["chai", "miniclaw", "omega", "pattern", "weft"]
    assert all(row["context_bytes"] > 0 and row["tokens"] > 0 and row["p50_ms"] > 0 for row in rows)
    assert rows[1]["saved"] > 0
    assert "promises 50 ms and 1 MB" in printed
    assert "a saving of 55%" in printed


def test_the_heart_beats_beside_every_way_in_and_a_table_says_for_how_long_it_stopped(tmp_path: Path) -> None:
    report, printed = _report("heartbeat", tmp_path, "--bytes", "20000")

    names = [row["entry"] for row in report]
    assert len(names) == len(set(names)) >= 40
    assert all(row["whole_ms"] > row["worst_ms"] >= 0 for row in report)
    assert all(f"| {name} | " in printed for name in names)
    assert "stop the loop for at most 100 ms" in printed
