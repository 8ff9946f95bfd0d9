"""The scripts that compare Weft with other libraries measure, with small sizes and whatever is installed."""

import json
import math
import re
from importlib import util
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from charts import Bar, chart
from report import write_page
from report_tables import Page
from test_benchmarks import FOLDER, _report, _run
from trim import Talk, check
from weft import Message
from weft.types.message import ToolCall

CALL = Message(role="assistant", content="", tool_calls=(ToolCall(id="a", name="look"),))
RESULT = Message(role="tool", content="blue", tool_call_id="a")
QUESTION, ANSWER = Message(role="user", content="hi"), Message(role="assistant", content="hello")
SAID = frozenset({"", "blue", "hi", "hello"})


def test_a_trimmed_history_is_valid_if_calls_have_results_and_the_user_begins() -> None:
    assert check([QUESTION, CALL, RESULT, ANSWER, QUESTION], SAID, 100).holds


@pytest.mark.parametrize(
    "shown",
    [
        [QUESTION, RESULT, ANSWER],
        [QUESTION, CALL, ANSWER],
        [QUESTION, CALL],
        [CALL, RESULT, ANSWER],
        [ANSWER, QUESTION],
        [],
    ],
)
def test_a_history_that_a_provider_would_refuse_is_not_valid(shown: list[Message]) -> None:
    assert not check(shown, SAID, 100).holds


def test_a_history_over_the_budget_or_with_a_shortened_text_is_noticed() -> None:
    assert not check([QUESTION, ANSWER], SAID, 1).within
    assert not check([QUESTION, Message(role="assistant", content="he..o")], SAID, 100).whole


def test_two_salts_make_different_texts_of_the_same_shape() -> None:
    one, other = (Talk(seed=1, salt=salt).history(50) for salt in (100, 101))

    assert [message.role for message in one] == [message.role for message in other]
    assert not {message.content for message in one if message.content} & {m.content for m in other}


def test_trimming_is_timed_and_what_weft_keeps_is_always_valid(tmp_path: Path) -> None:
    report, printed = _report("trim", tmp_path, "--rounds", "1", "--turns", "2", "--messages", "400")

    rows = {row["name"]: row for row in report["rows"]}
    for name in ("Weft, from a list", "Weft, from the database"):
        assert rows[name]["first_ms"] > 0
        assert rows[name]["checked"] == rows[name]["valid"] == rows[name]["whole"] == 3
        assert 0 < rows[name]["kept_tokens"] <= report["budget"]
    if util.find_spec("langchain_core") is None:
        assert rows["langchain-core trim_messages"]["note"] == "not installed"
        assert "not installed" in printed


def test_searches_are_timed_beside_other_engines_and_find_what_was_just_stored(tmp_path: Path) -> None:
    report, _ = _report("peer_search", tmp_path, "--messages", "60", "--small", "20", "--queries", "5")

    measured = {row["name"]: row for row in report["rows"] if not row["note"]}
    assert {"Weft, by words", "FTS5, bare SQL", "Weft, recall of a turn"} <= set(measured)
    # A vector also has the lines before its own, so a text may find another one first.
    assert all(row["finds_new"] > 0.9 and row["search_p50_ms"] > 0 for row in measured.values())
    assert all(row["bytes_per_message"] > 0 for row in measured.values())


def _conversation(path: Path) -> Path:
    texts = [
        "The boat leaves at nine.",
        "My sister lives in Lisbon. She paints.",
        "It rained.",
        "Good night.",
    ]
    messages = [{"id": str(at), "speaker": "Ann", "text": text} for at, text in enumerate(texts)]
    questions = [
        {"text": "Where does the sister live?", "evidence": ["1"]},
        {"text": "When does the boat leave?", "evidence": ["0"]},
    ]
    path.write_text(json.dumps({"conversations": [{"messages": messages, "questions": questions}]}))
    return path


def test_the_quality_of_each_way_to_search_is_measured(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = _conversation(tmp_path / "talk.json")

    report, printed = _report("quality", tmp_path / "home", str(path))

    assert report["conversations"] == 1
    for variant in ("turns", "sentences"):
        rows = {row["name"]: row for row in report[variant]}
        assert rows["Weft"]["questions"] == 2
        assert rows["Weft"]["measures"]["R@5"] == rows["FTS5"]["measures"]["R@5"] == 100.0
    assert "turns: Weft" in printed


def test_without_conversations_quality_is_left_out_with_one_line(tmp_path: Path) -> None:
    done = _run("quality", tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Retrieval quality is left out")
    assert done.stdout.count("\n") == 1


def test_starts_are_timed_in_fresh_processes(tmp_path: Path) -> None:
    report, _ = _report("startup", tmp_path, "--rounds", "1", "--no-sizes")

    starts = {row["what"]: row for row in report["starts"]}
    assert starts["weft --help"]["p50_ms"] > 0
    assert starts["weft ask"]["p50_ms"] > 0
    assert starts["import weft"]["p50_ms"] > 0
    assert all(row["p50_ms"] is not None or row["note"] for row in report["starts"])
    assert report["weights"] == []


def test_no_line_that_two_writers_add_to_a_block_is_lost(tmp_path: Path) -> None:
    rows, _ = _report("lost_updates", tmp_path, "--lines", "8", "--think-ms", "1")

    ours = [row for row in rows if row["way"].startswith("Weft")]
    assert [(row["written"], row["survived"]) for row in ours] == [(16, 16), (16, 16)]
    assert [row["way"] for row in rows if row not in ours] == [
        "file: read, change, overwrite",
        "file: opened for appending",
    ]


def test_the_page_of_a_run_has_its_tables_and_charts(tmp_path: Path) -> None:
    rows = [
        {"way": "Weft: append_to_block", "written": 10, "survived": 10, "write_ms": 2.0},
        {"way": "file: read, change, overwrite", "written": 10, "survived": 6, "write_ms": 1.0},
    ]
    starts = [
        {"what": "weft ask", "p50_ms": 390.0, "own_ms": 370.0, "note": ""},
        {"what": "import weft", "p50_ms": 80.0, "own_ms": 60.0, "note": ""},
        {"what": "import litellm", "p50_ms": 900.0, "own_ms": 880.0, "note": ""},
        {"what": "import pydantic_ai", "p50_ms": None, "own_ms": None, "note": "not installed"},
    ]
    (tmp_path / "lost_updates.json").write_text(json.dumps(rows))
    (tmp_path / "startup.json").write_text(json.dumps({"starts": starts, "weights": []}))
    docs = tmp_path / "docs"

    done = _run("report", tmp_path, str(tmp_path), "--docs", str(docs))

    assert (done.returncode, done.stderr) == (0, "")
    text = (docs / "benchmarks.md").read_text("utf-8")
    assert "| `import litellm` | 900 ms | 880 ms | 15x ahead |" in text
    assert "| file: read, change, overwrite | 10 | 4 (40%) | 1.00 ms | **2.0x behind**, because " in text
    assert (
        "| `weft ask` in a fresh process, besides the model | 390 ms | 400 ms | Python alone 20.0 ms |"
        in text
    )
    assert "## Where Weft is behind" in text
    assert "no conversations were given" in text
    ElementTree.parse(docs / "benchmarks-startup.svg")  # noqa: S314 - a file of our own


def test_a_page_without_figures_is_refused(tmp_path: Path) -> None:
    done = _run("report", tmp_path, str(tmp_path))

    assert done.returncode == 1
    assert "run `make bench`" in done.stderr


def test_a_row_says_by_how_much_and_why_weft_is_behind() -> None:
    page = Page(reasons={("search", "x"): "it does more"})

    assert page.verdict("search", "x", 1.0, 3.0) == "3.0x ahead"
    assert page.verdict("search", "x", 1.0, 1.0) == "the same"
    assert page.verdict("search", "x", 3.0, 1.0) == "**3.0x behind**, because it does more"
    assert page.behind == {"it does more": ["**search**, against x, 3.0x"]}


@pytest.mark.parametrize("is_log", [False, True])
def test_a_longer_bar_is_a_larger_value(is_log: bool) -> None:
    svg = chart("times", "a note", [Bar("Weft", 1.5, "1.5"), Bar("a & b", 20.0, "20")], is_log=is_log)

    bars = [node for node in ElementTree.fromstring(svg) if node.tag.endswith("rect")]  # noqa: S314
    widths = [float(node.attrib["width"]) for node in bars]
    assert 0 < widths[0] < widths[1]
    assert math.isfinite(widths[1])
    assert [node.attrib["class"] for node in bars] == ["ours", "bar"]


def test_figures_of_all_scripts_are_read_from_one_folder(tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_text(json.dumps([{"recipe": "weft", "p50_ms": 3.0}]))

    page = write_page(tmp_path)

    assert (
        "| slowest build of the 1 recipes (weft) | 3.00 ms | 50 ms | the promise of miniclaw's document |"
        in (page.lines)
    )


def test_every_row_of_the_page_has_as_many_cells_as_its_table() -> None:
    lines = (FOLDER.parent / "docs" / "explanation" / "benchmarks.md").read_text("utf-8").splitlines()

    pairs = [(one, other) for one, other in pairwise(lines) if one.startswith("|") and other.startswith("|")]

    assert len(pairs) > 40
    assert [other for one, other in pairs if one.count("|") != other.count("|")] == []


def test_every_row_in_which_weft_is_behind_says_why() -> None:
    page = (FOLDER.parent / "docs" / "explanation" / "benchmarks.md").read_text("utf-8")

    behind = re.findall(r"\*\*[\d.,]+x behind\*\*(, because \w+)?", page)

    assert behind
    assert "" not in behind
