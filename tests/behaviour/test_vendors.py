"""`weft ask` with a vendor that answers on loopback, as real processes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from programs import environ, run_weft
from weft.testing import LoopbackVendor
from weft.wire import violations


@pytest.fixture
def ollama() -> Iterator[LoopbackVendor]:
    with LoopbackVendor("ollama", ["At sea, of course."] * 2) as server:
        yield server


def test_a_running_ollama_is_found_and_answers(ollama: LoopbackVendor, tmp_path: Path) -> None:
    words = ("--model", "tiny", "--receipt", "Where is the boat?")
    done = run_weft(environ(tmp_path, **ollama.environ), "ask", *words)

    assert (done.returncode, done.stdout.strip()) == (0, "At sea, of course.")
    assert f"ollama (tiny) at {ollama.url}: Ollama is running" in done.stderr
    (request,) = ollama.requests
    assert violations("ollama", request.payload) == []
    assert request.payload["messages"][-1]["content"].endswith("Where is the boat?")
    window = request.payload["options"]["num_ctx"]
    assert window == 32_768, "the model's window, whatever the size of the request"


def test_context_prints_the_payload_that_ask_sends(ollama: LoopbackVendor, tmp_path: Path) -> None:
    words = ("-r", "omega", "-p", "ollama", "-m", "tiny", "Where is the boat?")
    shown = run_weft(environ(tmp_path, **ollama.environ), "context", *words)
    run_weft(environ(tmp_path, **ollama.environ), "ask", *words)

    assert [request.payload for request in ollama.requests] == [json.loads(shown.stdout) | {"stream": True}]


def test_a_vendor_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[requests]\nretries = 0\n", "utf-8")

    done = run_weft(environ(tmp_path, OLLAMA_HOST="127.0.0.1:9"), "ask", "-p", "ollama", "Hi")

    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be reached at http://127.0.0.1:9: is it running?" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
