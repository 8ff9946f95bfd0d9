"""`weft sessions` and `weft search` as a person types them."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import weft

Done = subprocess.CompletedProcess[str]


def _run(home: Path, *args: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "weft", *args],
        capture_output=True,
        text=True,
        env={"WEFT_HOME": str(home), "PATH": "/usr/bin:/bin"},
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

    assert (unknown.returncode, unknown.stdout) == (1, "")
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

    assert (done.returncode, done.stdout) == (1, "telegram_2: 1 messages\n")
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
    assert (twice.returncode, taken.returncode) == (1, 1)
    assert "import into a new one" in twice.stderr
    assert "name a new folder" in taken.stderr
