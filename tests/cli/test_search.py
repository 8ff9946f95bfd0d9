"""`weft search` as a person types it: hits with their reasons, filters, and what was said around a hit."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import Terminal, environ, run_weft

MAY = datetime(2026, 5, 3, 18, 0, tzinfo=UTC)
LINES = [
    ("user", "Caroline", "I went to the pottery class with my sister."),
    ("assistant", "Melanie", "How was it? What did you make?"),
    ("user", "Caroline", "A blue bowl, and a cup with a broken handle."),
    ("assistant", "Melanie", "I love blue things."),
    ("user", "", "Remember that the [red]boat[/red] is called Marlin."),
    ("assistant", "", "I will remember the boat."),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep a conversation of May, one of July, another person's, two values of a fact, a block and a note."""
    home = tmp_path_factory.mktemp("kept")

    async def work() -> None:
        async with await weft.open(home / "weft.db") as store:
            session = await store.sessions.new("terminal", "chat", "owner", agent_id="weft")
            for at, (role, name, text) in enumerate(LINES):
                said = MAY + timedelta(minutes=at)
                message = weft.Message(role=role, name=name, content=text, timestamp=said)
                await store.messages.append(session.id, message)
            july = datetime(2026, 7, 5, tzinfo=UTC)
            painted = weft.Message(role="user", content="We painted the boat.", timestamp=july)
            await store.messages.append(session.id, painted)
            other = await store.sessions.new("telegram", "42", "42", agent_id="weft/telegram:42")
            await store.messages.append(
                other.id, weft.Message(role="user", content="My boat is red.", timestamp=july)
            )
            for name in ("Dory", "Marlin"):
                await store.facts.set("terminal:owner", "boat_name", name)
            await store.memory.create_block("weft", "plans")
            await store.memory.update_block_text("weft", "plans", "Paint the boat.", is_system=True)
            await store.memory.insert_archival("weft", "The key of the boat is in the bowl.")

    asyncio.run(work())
    return home


def found(home: Path, *args: str) -> list[dict[str, Any]]:
    done = run_weft(environ(home), "search", *args, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_all_kinds_are_in_one_list_best_first_with_everything_that_is_known(kept: Path) -> None:
    rows = found(kept, "boat")

    assert {row["source"] for row in rows} == {"message", "block", "archival", "fact"}
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    message = next(row for row in rows if row["content"] == "We painted the boat.")
    assert (message["place"], message["speaker"], message["at"]) == (7, "user", "2026-07-05T00:00:00+00:00")
    assert message["reasons"]["words"] > 0
    facts = {row["content"]: row["ended_at"] for row in rows if row["source"] == "fact"}
    assert facts["boat_name: Marlin"] is None
    assert facts["boat_name: Dory"] is not None
    assert {row["label"] for row in rows if row["source"] == "block"} == {"plans"}


def test_what_a_person_reads_has_date_speaker_place_snippet_and_reasons(kept: Path) -> None:
    lines = run_weft(environ(kept), "search", "broken handle").stdout.splitlines()

    session = found(kept, "broken handle")[0]["session"]
    assert lines[0].startswith("2026-05-03 18:02  Caroline  session ")
    assert session[:24] in lines[0]
    assert lines[1] == "  A blue bowl, and a cup with a broken handle."
    assert lines[2].startswith("  why: ")
    assert "words 0." in lines[2]


def test_a_fact_that_has_ended_says_until_when(kept: Path) -> None:
    text = run_weft(environ(kept), "search", "dory").stdout

    assert "fact boat_name  about owner, was so until 20" in text
    assert "boat_name: Dory" in text


def test_markup_in_a_message_is_text_and_a_pipe_gets_no_colours(kept: Path) -> None:
    text = run_weft(environ(kept), "search", "marlin").stdout

    assert "[red]boat[/red]" in text
    assert "\x1b" not in text


def test_words_of_the_query_stand_out_at_a_terminal_also_with_another_ending(kept: Path) -> None:
    terminal = Terminal(environ(kept, TERM="xterm"), "search", "painting boat", "-n", "1", "--in", "messages")
    try:
        shown = terminal.read_until("why:")
    finally:
        terminal.close()

    assert "\x1b[1;33mpainted\x1b[0m" in shown
    assert "\x1b[1;33mboat\x1b[0m" in shown


def test_a_date_in_the_query_and_a_name_count(kept: Path) -> None:
    dated = found(kept, "what was made in May 2026")
    named = found(kept, "what does Melanie love")

    assert dated[0]["reasons"]["date"] > 0
    assert all(row["at"].startswith("2026-05") for row in dated)
    assert named[0]["content"] == "I love blue things."
    assert named[0]["reasons"]["speaker"] > 0


@pytest.mark.parametrize(
    ("args", "contents"),
    [
        (("--since", "2026-06-01", "--until", "2026-07-31"), {"We painted the boat.", "My boat is red."}),
        (("--since", "July 2026", "--until", "July 2026"), {"We painted the boat.", "My boat is red."}),
        (("--until", "may 2026"), {LINES[4][2], LINES[5][2]}),
        (("--since", "2026-05-03T18:05:00+00:00", "--until", "2026-05-03"), {LINES[5][2]}),
        (("--who", "assistant"), {LINES[5][2]}),
        (("--who", "ME"), {LINES[4][2], "We painted the boat."}),
        (("--who", "telegram:42"), {"My boat is red."}),
        (("--in", "blocks, archive"), {"Paint the boat.", "The key of the boat is in the bowl."}),
        (("--in", "facts"), {"boat_name: Marlin", "boat_name: Dory"}),
        (("--who", "user", "--since", "2026-07-01"), {"We painted the boat.", "My boat is red."}),
    ],
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)  # fmt: skip
def test_filters_leave_out_all_else(kept: Path, args: tuple[str, ...], contents: set[str]) -> None:
    assert {row["content"] for row in found(kept, "boat", *args)} == contents


def test_a_speaker_is_found_by_any_spelling_of_the_name(kept: Path) -> None:
    rows = found(kept, "blue", "--who", "caroline")

    assert {row["speaker"] for row in rows} == {"Caroline"}
    assert rows[0]["content"] == LINES[2][2]


def test_the_conversation_around_a_hit_is_shown_with_the_hit_marked(kept: Path) -> None:
    args = ("search", "broken handle", "-n", "1", "--around", "1")
    lines = run_weft(environ(kept), *args).stdout.splitlines()

    assert [line.split(": ", 1)[1] for line in lines[1:4]] == [LINES[1][2], LINES[2][2], LINES[3][2]]
    assert [line.startswith(">") for line in lines[1:4]] == [False, True, False]
    (row,) = found(kept, "broken handle", "-n", "1", "--around", "20")
    assert [line["content"] for line in row["around"]][:2] == [LINES[0][2], LINES[1][2]]
    assert [line.get("is_hit", False) for line in row["around"]].count(True) == 1


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--since", "banana"), "'banana' is no day"),
        (("--since", "2026-02-30"), "'2026-02-30' is no day"),
        (("--until", "9999-12-31"), "no day"),
        (("--until", "since May"), "no day"),
        (("--since", "May 2025, later July 2026"), "no day"),
        (("--since", "2026-07-01", "--until", "2026-06-01"), "the first must be the earlier"),
        (("--who", "Carolina"), "did you mean 'Caroline'?"),
        (("--who", "zzz"), "known are "),
        (("--in", "mesages"), "did you mean 'messages'?"),
        (("--in", "facts", "--who", "me"), "Only messages have a speaker"),
        (("--limit", "0"), "--limit"),
        (("--limit", "201"), "--limit"),
        (("--around", "-1"), "--around"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_filter_is_a_sentence(kept: Path, args: tuple[str, ...], sentence: str) -> None:
    done = run_weft(environ(kept), "search", "boat", *args)

    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("query", ['"(*', "*", "the", "\udcff", "x" * 100_000, "NEAR(", "日本", "-x"])
def test_any_query_is_answered(kept: Path, query: str) -> None:
    done = run_weft(environ(kept), "search", "--json", "--", query)

    assert (done.returncode, done.stderr) == (0, "")
    assert isinstance(json.loads(done.stdout), list)
