"""`weft bench store` as a person types it, with small sizes. How fast it was is never asserted."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.cli.measure.chatter import Chatter
from weft.types.tokenize import STOP_WORDS
from weft.wire import PROVIDERS

SMALL = ("--rounds", "5", "--edits", "3")


def _bench(home: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "weft", "bench", "store", *args],
        capture_output=True,
        text=True,
        env={"WEFT_HOME": str(home), "TMPDIR": str(home), "PATH": "/usr/bin:/bin"},
        timeout=120,
        check=False,
    )


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    else:
        yield value


def test_every_figure_of_every_size_is_in_the_json(tmp_path: Path) -> None:
    done = _bench(tmp_path, "--messages", "1500,1000", "--json", *SMALL)

    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert list(report) == ["inserts", "blocks", "sizes", "searches", "builds"]
    assert list(report["inserts"]) == ["singly", "bulk", "concurrent"]
    assert report["blocks"]["edits"] == 3
    assert {"edit_new_ms", "edit_long_ms", "load_new_ms", "load_long_ms"} < set(report["blocks"])
    for part in ("sizes", "searches"):
        assert [row["messages"] for row in report[part]] == [1000, 1500]
    assert {"ratio", "ratio_to_raw_inside", "ratio_to_lean", "ours_p95_ms"} < set(report["searches"][0])
    assert (report["builds"]["short_messages"], report["builds"]["long_messages"]) == (1000, 1500)
    assert all(math.isfinite(number) and number > 0 for number in _numbers(report))


def test_ours_and_plain_search_find_the_same_and_nothing_is_left_behind(tmp_path: Path) -> None:
    done = _bench(tmp_path, "--messages", "1000", "--json", *SMALL)

    (row,) = json.loads(done.stdout)["searches"]
    assert row["agreement"] > 0.9
    assert list(tmp_path.iterdir()) == []


def test_the_table_names_the_goals_and_what_was_compared(tmp_path: Path) -> None:
    done = _bench(tmp_path, "--messages", "1000", *SMALL)

    assert done.returncode == 0, done.stderr
    assert "search of 1,000 / plain FTS5: " in done.stdout
    assert "(goal at most 1.3)" in done.stdout
    assert "build from 1,000 messages / from 1,000: " in done.stdout
    assert "(goal at most 1.5)" in done.stdout
    assert "Warm-up: " in done.stdout


@pytest.mark.parametrize("sizes", ["many", "", "1000,", "10", "1000,-5", "1e5"])
def test_sizes_that_are_no_sizes_are_refused_in_one_sentence(tmp_path: Path, sizes: str) -> None:
    done = _bench(tmp_path, f"--messages={sizes}")

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "such as 10000,100000" in done.stderr


def test_the_made_up_words_are_the_same_for_every_search_engine() -> None:
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


def test_the_wire_is_timed_for_every_provider() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft", "bench", "wire", "--messages", "40", "--rounds", "5", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    rows = json.loads(done.stdout)
    assert [row["provider"] for row in rows] == list(PROVIDERS)
    assert all(row["write_p50_ms"] > 0 and row["check_p50_ms"] > 0 and row["bytes"] > 1000 for row in rows)


def test_the_server_is_timed_beside_a_bare_handler(tmp_path: Path) -> None:
    args = ("--sessions", "10", "--turns", "2", "--at-once", "5", "--delay-ms", "1", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "bench", "serve", *args],
        capture_output=True,
        text=True,
        env={"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        timeout=60,
        check=True,
    )

    report = json.loads(done.stdout)
    assert report["per_second"] > 0
    assert report["ratio"] > 0
    assert [step["sessions"] for step in report["growth"]] == [2, 5, 7, 10]
    assert list(tmp_path.iterdir()) == [], "nothing of it is left behind"
