"""`weft ask` as a process: standard input, files, and the session of a question."""

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import environ, run_weft
from weft.testing import LoopbackVendor
from wire_marks import text_in, without_marks

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def ask(home: Path, vendor: LoopbackVendor, *args: str, stdin: Any = b"") -> str:
    """Ask, and return what the vendor was sent as the last message."""
    given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(
        [sys.executable, "-m", "weft", "ask", *args],
        env=environ(home, **vendor.environ),
        cwd=home,
        capture_output=True,
        timeout=60,
        check=False,
        **given,
    )
    assert done.returncode == 0, done.stderr
    content = without_marks(vendor.requests[-1].payload["messages"][-1]["content"])
    return text_in(content) if len(content) == 1 else json.dumps(content)


def test_the_model_gets_the_words_and_then_the_data_of_a_pipe(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["fine"]) as vendor:
        sent = ask(tmp_path, vendor, "-r", "omega", "Summarise this", stdin=b"a\n```\nb\n````\n")

    assert sent == "Summarise this\n\n`````\na\n```\nb\n````\n`````"


def test_the_data_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("from a file", "utf-8")
    with LoopbackVendor("openai", ["fine"]) as vendor, (tmp_path / "data").open() as data:
        assert "```\nfrom a file\n```" in ask(tmp_path, vendor, "-r", "omega", "Read", stdin=data)


@pytest.mark.parametrize("kind", ["pipe", "socket", "null"])
def test_a_silent_standard_input_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    ours, theirs = socket.socketpair() if kind == "socket" else os.pipe()[::-1]
    stdin = subprocess.DEVNULL if kind == "null" else theirs
    with LoopbackVendor("openai", ["fine"]) as vendor:
        assert ask(tmp_path, vendor, "-r", "omega", "Hello", stdin=stdin) == "Hello"
    for end in (ours, theirs):
        os.close(end if isinstance(end, int) else end.detach())


def test_a_dash_reads_a_block_from_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weft", "memory", "edit", "notes", "-"]
    subprocess.run(command, input=b"from a pipe", env=environ(tmp_path), check=True, timeout=60)

    assert run_weft(environ(tmp_path), "memory", "show", "notes").stdout == "from a pipe\n"


def test_a_question_is_continued_and_the_next_one_is_new(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["one", "two", "three", "four"]) as vendor:
        for args in (["First?"], ["-c", "And?"], ["-c", "Then?"], ["New?"]):
            ask(tmp_path, vendor, *args)
        said = [
            [text_in(m["content"]).split("\n")[-1] for m in r.payload["messages"][1:]]
            for r in vendor.requests
        ]

    assert said == [
        ["First?"],
        ["First?", "one", "And?"],
        ["First?", "one", "And?", "two", "Then?"],
        ["New?"],
    ]


def test_without_a_question_there_is_nothing_to_continue(tmp_path: Path) -> None:
    done = run_weft(environ(tmp_path), "ask", "-p", "scripted", "-c", "And?")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "weft: There is no question to continue: ask one without `-c` first.\n"


def test_a_question_sees_nothing_of_earlier_ones_and_omega_nothing_of_memory(tmp_path: Path) -> None:
    async def set_fact() -> None:
        async with await weft.open(tmp_path / "weft.db") as store:
            await store.facts.set("terminal:owner", "city", "Lisbon")

    asyncio.run(set_fact())
    with LoopbackVendor("openai", ["fine"] * 3) as vendor:
        ask(tmp_path, vendor, "The heron is called Ada.")
        ask(tmp_path, vendor, "What is the heron called?")
        ask(tmp_path, vendor, "-r", "omega", "What is the heron called?")
        first, omega = (
            json.dumps([{**m, "content": text_in(m["content"])} for m in request.payload["messages"]])
            for request in vendor.requests[1:]
        )
        one_shot = weft.Recipe.load("omega").one_shot("What is the heron called?")

    assert "Ada" not in first
    assert "Lisbon" in first
    assert "tools" not in vendor.requests[-1].payload
    assert json.loads(omega) == [
        {"role": message.role, "content": message.content} for message in one_shot.to_messages()
    ]


def test_the_owner_is_one_person_also_in_ask(tmp_path: Path) -> None:
    around = environ(tmp_path, WEFT_PROVIDER="scripted")
    run_weft(around, "ask", "hi")
    run_weft(around, "chat", stdin="hi\n")

    people = json.loads(run_weft(around, "people", "list", "--json").stdout)

    assert people == [{"name": "owner", "senders": ["ask:owner", "terminal:owner"], "facts": 0}]


def test_a_question_is_never_learned_from_or_recalled(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["fine"] * 3) as vendor:
        ask(tmp_path, vendor, "The heron is called Ada.")
        for line in ("The otter is called Bo.", "How are the heron and the otter called?"):
            command = [sys.executable, "-m", "weft", "chat", "--new"]
            variables = environ(tmp_path, **vendor.environ)
            subprocess.run(command, input=line.encode(), env=variables, check=True, timeout=60)
        sent = json.dumps(vendor.requests[-1].payload)

    async def list_unlearned() -> list[str]:
        async with await weft.open(tmp_path / "weft.db") as store:
            return [session.channel for session in await store.sessions.list_unlearned(float("inf"))]

    assert "otter is called Bo" in sent
    assert "Ada" not in sent
    assert asyncio.run(list_unlearned()) == ["terminal", "terminal"]


def test_a_store_that_cannot_be_written_to_does_not_stop_a_question(tmp_path: Path) -> None:
    (tmp_path / "weft.db").write_text("my notes " * 100, "utf-8")

    done = run_weft(environ(tmp_path), "ask", "-p", "scripted", "-r", "omega", "Hello")

    assert (done.returncode, done.stdout) == (0, "This reply was scripted: no model was asked.\n")
    assert done.stderr.startswith("weft: nothing of this is kept. ")
    assert len(done.stderr.splitlines()) == 1


def test_texts_and_pictures_are_attached_and_are_in_the_receipt(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("tide at six\n", "utf-8")
    (tmp_path / "bird.png").write_bytes(PICTURE)
    with LoopbackVendor("openai", ["fine", "fine"]) as vendor:
        sent = json.loads(
            ask(tmp_path, vendor, "-r", "omega", "Look", "-f", "notes.txt", "-f", "bird.png", "--receipt")
        )
        ask(tmp_path, vendor, "-c", "And now?")
        history = json.dumps(vendor.requests[-1].payload["messages"])

    assert sent[0] == {"type": "text", "text": "Look\n\n```notes.txt\ntide at six\n```"}
    assert sent[1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    assert sent[1]["image_url"]["url"] in history, "the next question still shows the picture"


def test_the_receipt_names_what_is_attached_and_what_the_model_does_not_take(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("tide at six\n", "utf-8")
    (tmp_path / "bird.png").write_bytes(PICTURE)
    claude = tmp_path / "claude"
    claude.write_text('#!/bin/sh\necho \'{"type":"result","subtype":"success","result":"seen"}\'\n', "utf-8")
    claude.chmod(0o755)
    files = ["-f", str(tmp_path / "notes.txt"), "-f", str(tmp_path / "bird.png")]

    taken = run_weft(environ(tmp_path), "ask", "-p", "scripted", "Look", *files, "--receipt").stderr
    environment = environ(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    refused = run_weft(environment, "ask", "-p", "claude_code", "Look", *files, "--receipt").stderr

    assert "attached notes.txt, 12 bytes" in taken
    assert "attached bird.png, 28 bytes" in taken
    assert "takes no pictures" not in taken
    assert "claude_code takes no pictures: 1 left out" in refused


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.txt", "There is no file 'gone.txt' to attach: check the path."),
        (".", "'.' is a folder: attach the files in it that you need."),
        ("binary", "'binary' is neither UTF-8 text nor a picture: attach another file."),
        (
            "large",
            "'large' is too large to attach: shorten it to 1,000,000 bytes, "
            "or raise `context.max_attachment_bytes`.",
        ),
    ],
)
def test_a_file_that_cannot_be_attached_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    (tmp_path / "binary").write_bytes(b"a\0\xff")
    (tmp_path / "large").write_bytes(b"a" * 1_000_001)
    monkeypatch.chdir(tmp_path)

    done = run_weft(environ(tmp_path), "ask", "-p", "scripted", "Look", "-f", name)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"weft: {sentence}\n")
