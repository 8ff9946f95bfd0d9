"""`weft sessions` and `weft search` as a person types them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from programs import environ, run_weft
from weft.types.secret import fingerprint

Done = subprocess.CompletedProcess[str]


def _run(home: Path, *args: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "weft", *args],
        capture_output=True,
        text=True,
        env=environ(home),
        timeout=60,
        check=False,
    )


def _talk(home: Path, session: str) -> None:
    async def work() -> None:
        async with await weft.open(home / "weft.db") as store:
            asked = weft.Message(role="user", content="Where is the marlin?")
            await store.messages.append(session, asked, weft.Message(role="assistant", content="At sea."))

    asyncio.run(work())


def test_a_conversation_is_begun_listed_read_and_found(tmp_path: Path) -> None:
    session = _run(tmp_path, "sessions", "new").stdout.strip()
    _talk(tmp_path, session)

    (listed,) = json.loads(_run(tmp_path, "sessions", "list", "--json").stdout)
    found = json.loads(_run(tmp_path, "search", "marl*", "--json").stdout)

    assert (listed["id"], listed["closed"]) == (session, False)
    assert _run(tmp_path, "sessions", "show", session).stdout == (
        "[user]\nWhere is the marlin?\n\n[assistant]\nAt sea.\n"
    )
    assert json.loads(_run(tmp_path, "sessions", "show", session, "--last", "1", "--json").stdout) == [
        {"role": "assistant", "content": "At sea."}
    ]
    assert [hit["content"] for hit in found] == ["Where is the marlin?"]
    assert session in _run(tmp_path, "sessions", "list").stdout
    assert "marlin" in _run(tmp_path, "search", "marlin").stdout


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    unknown = _run(tmp_path, "sessions", "show", "gone")
    nothing = _run(tmp_path, "search", "marlin")

    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no session 'gone'" in unknown.stderr
    assert nothing.stdout == "Nothing was found.\n"


def test_a_store_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "weft.db").write_text("my notes " * 100, "utf-8")

    done = _run(tmp_path, "sessions", "list")

    assert (done.returncode, done.stdout) == (1, "")
    assert "not a Weft store" in done.stderr
    assert (tmp_path / "weft.db").read_text("utf-8") == "my notes " * 100


def test_the_doctor_looks_at_the_store(tmp_path: Path) -> None:
    before = _run(tmp_path, "doctor")
    _run(tmp_path, "sessions", "new")
    whole = _run(tmp_path, "doctor")
    data = bytearray((tmp_path / "weft.db").read_bytes())
    data[4096:12288] = b"x" * 8192
    (tmp_path / "weft.db").write_bytes(bytes(data))
    broken = _run(tmp_path, "doctor")

    assert "nothing is kept yet" in before.stdout
    assert "weft.db is whole" in whole.stdout
    assert broken.returncode == 1
    assert "damaged" in broken.stdout
    assert "Traceback" not in broken.stderr


def test_a_conversation_goes_out_and_comes_in_again(tmp_path: Path) -> None:
    session = _run(tmp_path / "a", "sessions", "new").stdout.strip()
    _talk(tmp_path / "a", session)
    ours, theirs = str(tmp_path / "ours.jsonl"), str(tmp_path / "theirs.json")
    _run(tmp_path / "a", "sessions", "export", session, ours)
    _run(tmp_path / "a", "sessions", "export", session, theirs, "--format", "miniclaw")

    for number, file in enumerate((ours, theirs)):
        home = tmp_path / f"b{number}"
        done = _run(home, "sessions", "import", file)
        assert (done.returncode, done.stdout) == (0, f"{session}: 2 messages\n")
        assert _run(home, "sessions", "show", session).stdout == (
            "[user]\nWhere is the marlin?\n\n[assistant]\nAt sea.\n"
        )


def test_a_damaged_file_is_named_and_left_and_the_others_come_in(tmp_path: Path) -> None:
    (tmp_path / "telegram_1.json").write_text('{"messages": [{"role"', "utf-8")
    (tmp_path / "telegram_2.json").write_text('{"messages": [{"role": "user", "content": "hi"}]}', "utf-8")
    files = [str(tmp_path / name) for name in ("telegram_1.json", "gone.json", "telegram_2.json")]

    done = _run(tmp_path / "home", "sessions", "import", *files)
    again = _run(tmp_path / "home", "sessions", "import", files[2])

    assert (done.returncode, done.stdout) == (1, "telegram_2: 1 message\n")
    assert "telegram_1 is damaged" in done.stderr
    assert "gone.json cannot be read" in done.stderr
    assert (tmp_path / "telegram_1.json").read_text("utf-8") == '{"messages": [{"role"'
    assert again.returncode == 1
    assert "a session 'telegram_2' already" in again.stderr


def test_everything_goes_into_a_folder_and_back(tmp_path: Path) -> None:
    session = _run(tmp_path / "a", "sessions", "new").stdout.strip()
    _talk(tmp_path / "a", session)

    out = json.loads(_run(tmp_path / "a", "export", str(tmp_path / "out"), "--json").stdout)
    back = _run(tmp_path / "b", "import", str(tmp_path / "out"))
    twice = _run(tmp_path / "b", "import", str(tmp_path / "out"))
    taken = _run(tmp_path / "a", "export", str(tmp_path / "out"))

    assert (out["sessions"], out["messages"]) == (1, 2)
    assert "2 messages" in back.stdout
    assert _run(tmp_path / "b", "sessions", "show", session).stdout.startswith("[user]\nWhere is the marlin?")
    assert (twice.returncode, taken.returncode) == (1, 2)
    assert "import into a new one" in twice.stderr
    assert "name a new folder" in taken.stderr


def test_a_session_is_named_by_the_first_characters_of_its_id(tmp_path: Path) -> None:
    first, second = (_run(tmp_path, "sessions", "new").stdout.strip() for _ in range(2))
    _talk(tmp_path, first)
    short = next(first[:n] for n in range(4, 30) if not second.startswith(first[:n]))

    assert "marlin" in _run(tmp_path, "sessions", "show", short).stdout
    assert "marlin" in _run(tmp_path, "sessions", "export", short).stdout
    several = _run(tmp_path, "sessions", "show", first[:4])
    assert several.returncode == 2
    assert f"Several sessions begin with '{first[:4]}'" in several.stderr
    assert first in several.stderr
    assert second in several.stderr
    too_short = _run(tmp_path, "sessions", "show", first[:3])
    assert too_short.returncode == 2
    assert "at least 4 characters" in too_short.stderr


def test_a_conversation_has_the_title_of_its_first_line_or_its_own(tmp_path: Path) -> None:
    session = _run(tmp_path, "sessions", "new").stdout.strip()
    _talk(tmp_path, session)
    assert "Where is the marlin?" in _run(tmp_path, "sessions", "list").stdout

    assert _run(tmp_path, "sessions", "rename", session, "Fish\x1b[2J\nand ships").returncode == 0

    shown = _run(tmp_path, "sessions", "list").stdout
    assert "Fish" in shown
    assert "marlin" not in shown
    assert "\x1b" not in shown
    assert json.loads(_run(tmp_path, "sessions", "list", "--json").stdout)[0]["title"].startswith("Fish")


def test_a_title_is_what_the_person_said_without_the_files_and_also_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("hello there", "utf-8")
    (tmp_path / "config.toml").write_text('provider = "openai"\n', "utf-8")
    around = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    for args, stdin in ((("look", "-f", str(tmp_path / "f.txt")), ""), ((), "```py\nprint(1)\n```\nwhy?")):
        run_weft(environ(tmp_path), "ask", "-p", "scripted", *args, stdin=stdin)
    failed = run_weft(environ(tmp_path, **around), "ask", "will this fail?")

    rows = json.loads(run_weft(environ(tmp_path), "sessions", "list", "--json").stdout)

    assert failed.returncode == 1
    assert [row["title"].strip() for row in rows] == ["will this fail?", "py\nprint(1)", "look"]


def test_a_deleted_conversation_leaves_nothing_but_a_fingerprint(
    tmp_path: Path, sql: Callable[..., list[tuple[object, ...]]]
) -> None:
    session = _run(tmp_path, "sessions", "new").stdout.strip()
    _talk(tmp_path, session)

    refused = _run(tmp_path, "sessions", "delete", session)
    done = _run(tmp_path, "sessions", "delete", session, "--yes")

    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    assert (done.returncode, done.stdout) == (0, "Deleted, with 2 messages.\n")
    assert _run(tmp_path, "sessions", "list").stdout == "There are no conversations yet.\n"
    assert _run(tmp_path, "search", "marlin").stdout == "Nothing was found.\n"
    assert b"marlin" not in b"".join(file.read_bytes() for file in tmp_path.glob("weft.db*"))
    assert sql("select fingerprint, places from purges") == [(fingerprint(session), 2)]


def test_deleting_asks_a_person_first(tmp_path: Path) -> None:
    session = _run(tmp_path, "sessions", "new").stdout.strip()
    for answer, left in (("n", 1), ("y", 0)):
        ours, theirs = os.openpty()
        os.write(ours, f"{answer}\n".encode())
        command = [sys.executable, "-m", "weft", "sessions", "delete", session]
        done = subprocess.run(command, stdin=theirs, capture_output=True, env=environ(tmp_path), check=False)
        os.close(ours)
        os.close(theirs)
        assert b"for good?" in done.stdout
        assert len(json.loads(_run(tmp_path, "sessions", "list", "--json").stdout)) == left


async def test_deleting_takes_everything_of_a_session_and_nothing_of_another(store: weft.Store) -> None:
    for name in ("one", "two"):
        model = weft.ScriptedProvider([f"the {name} answer"])
        app = await weft.connect(provider=model, store=store)
        await app.ask(f"the {name} question", session=name)
        await app.close()
    sessions = {one.conversation: one for one in await store.sessions.list()}
    await store.summaries.add("app", "owner", "a summary of one", session_id=sessions["one"].id)
    await store.facts.set("app:owner", "city", "Lisbon", source=(sessions["one"].id, 1))

    assert await store.sessions.delete(sessions["one"].id) == 2

    assert [one.id for one in await store.sessions.list()] == [sessions["two"].id]
    assert [m.content for m in await store.messages.all(sessions["two"].id)] == [
        "the two question",
        "the two answer",
    ]
    assert list(await store.summaries.recent("app", "owner")) == []
    assert await store.facts.get("app:owner", "city") == "Lisbon", "a fact is forgotten by its own command"
    with pytest.raises(weft.StoreError, match="no session"):
        await store.sessions.delete(sessions["one"].id)
