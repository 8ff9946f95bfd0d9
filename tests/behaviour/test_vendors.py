"""`weft ask` with a vendor that answers on loopback, as real processes."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from weft.wire import violations


class Ollama(BaseHTTPRequestHandler):
    """Answers in Ollama's protocol, line by line."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()
        for line in (
            {"model": "tiny", "message": {"content": "At sea, "}},
            {"model": "tiny", "message": {"content": "of course."}},
            {"done": True, "done_reason": "stop", "prompt_eval_count": 40, "eval_count": 6},
        ):
            self.wfile.write(json.dumps(line).encode() + b"\n")

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def ollama() -> Iterator[str]:
    Ollama.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Ollama) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _ask(home: Path, host: str, *args: str) -> subprocess.CompletedProcess[str]:
    environ = {"WEFT_HOME": str(home), "OLLAMA_HOST": host, "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-m", "weft", "ask", *args],
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=False,
    )


def test_a_running_ollama_is_found_and_answers(ollama: str, tmp_path: Path) -> None:
    done = _ask(tmp_path, ollama, "--model", "tiny", "--receipt", "Where is the boat?")

    assert (done.returncode, done.stdout.strip()) == (0, "At sea, of course.")
    assert "ollama (tiny): Ollama is running" in done.stderr
    (payload,) = Ollama.asked
    assert violations("ollama", payload) == []
    assert payload["messages"][-1]["content"].endswith("Where is the boat?")
    assert payload["options"]["num_ctx"] == 4096, "the window in our tokens, less what is kept for the answer"


def test_what_the_command_shows_is_what_is_sent(ollama: str, tmp_path: Path) -> None:
    environ = {"WEFT_HOME": str(tmp_path), "OLLAMA_HOST": ollama, "PATH": os.environ["PATH"]}
    words = ("-r", "omega", "-p", "ollama", "-m", "tiny", "Where is the boat?")
    shown = subprocess.run(
        [sys.executable, "-m", "weft", "context", *words],
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=True,
    )
    _ask(tmp_path, ollama, *words)

    assert Ollama.asked == [json.loads(shown.stdout) | {"stream": True}]


def test_nobody_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[requests]\nretries = 0\n", "utf-8")

    done = _ask(tmp_path, "127.0.0.1:9", "-p", "ollama", "Hi")

    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be reached at http://127.0.0.1:9: is it running?" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
