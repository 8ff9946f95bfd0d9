"""`weft recall`: an embedder is chosen, checked and written down; texts are indexed and nothing is lost."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import weft
from embedding_server import EmbeddingServer
from programs import WEFT, Terminal, environ, run_weft, start_server

SETTINGS = '# mine\nrecipe = "weft"  # the best\n\n[search]  # how\n# by words\n\n[skills]\n# none yet\n'


def keep(home: Path, count: int) -> None:
    async def work() -> None:
        async with await weft.open(home / "weft.db") as store:
            session = await store.sessions.find_or_create("terminal", "chat", "owner", agent_id="weft")
            lines = [weft.Message(role="user", content=f"Line {at} on the ship.") for at in range(count)]
            await store.messages.append(session.id, *lines)

    asyncio.run(work())


def status(home: Path) -> dict[str, Any]:
    done = run_weft(environ(home), "recall", "status", "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_an_embedder_is_set_up_and_taken_out_and_comments_stay(tmp_path: Path) -> None:
    keep(tmp_path, 5)
    config = tmp_path / "config.toml"
    config.write_text(SETTINGS, "utf-8")
    assert status(tmp_path)["embedder"] is None

    done = run_weft(environ(tmp_path), "recall", "setup", "minilm")

    assert done.returncode == 0, done.stderr
    assert "minilm works" in done.stdout
    assert "Indexed 5 texts." in done.stdout
    report = status(tmp_path)
    assert (report["embedder"], report["indexed"], report["texts"]) == ("minilm", 5, 5)
    assert "minilm: 5 of 5 texts are indexed." in run_weft(environ(tmp_path), "recall", "status").stdout
    assert "Nothing is new" in run_weft(environ(tmp_path), "recall", "index").stdout
    for line in SETTINGS.splitlines():
        assert line in config.read_text("utf-8").splitlines()

    assert run_weft(environ(tmp_path), "recall", "setup", "none").returncode == 0
    assert config.read_text("utf-8") == SETTINGS
    assert "by words alone" in run_weft(environ(tmp_path), "recall", "status").stdout


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_a_server_is_set_up_with_its_address_and_model(tmp_path: Path, kind: str) -> None:
    keep(tmp_path, 3)
    with EmbeddingServer() as server:
        url = server.url if kind == "ollama" else f"{server.url}/v1"
        model = () if kind == "ollama" else ("--model", "m1")
        done = run_weft(environ(tmp_path), "recall", "setup", kind, "--url", f"{url}/", *model)

        assert done.returncode == 0, done.stderr
        report = status(tmp_path)
        assert (report["url"], report["indexed"]) == (url, 3)
        assert report["model"] == ("nomic-embed-text:latest" if kind == "ollama" else "m1")
        hits = json.loads(run_weft(environ(tmp_path), "search", "which vessel", "--json").stdout)
        assert {hit["mode"] for hit in hits} == {"hybrid"}
        assert hits[0]["reasons"]["similarity"] > 0

    gone = run_weft(environ(tmp_path), "search", "ship", "-n", "1")
    assert "on the ship" in gone.stdout
    assert gone.stderr.count("weft: searches go by words alone for now") == 1


def test_without_a_name_it_lists_what_is_there(tmp_path: Path) -> None:
    with EmbeddingServer() as server:
        done = run_weft(environ(tmp_path, OLLAMA_HOST=server.url), "recall", "setup")

    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert done.returncode == 0
    assert list(lines)[:5] == ["wordllama", "minilm", "ollama", "openai", "none"]
    assert "nomic-embed-text" in lines["ollama"]
    assert "llama3.2" not in lines["ollama"]
    assert "OPENAI_API_KEY" in lines["openai"]
    assert "in use" in lines["none"]
    assert not (tmp_path / "config.toml").exists()


def test_at_a_terminal_it_asks_which_one_to_take(tmp_path: Path) -> None:
    terminal = Terminal(environ(tmp_path, TERM="xterm"), "recall", "setup")
    try:
        terminal.read_until("Which one")
        terminal.type("minilm\r")
        terminal.read_until("there is nothing to index")
    finally:
        terminal.close()

    assert status(tmp_path)["embedder"] == "minilm"


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("setup", "mini"), 2, "did you mean 'minilm'?"),
        (("setup", "minilm", "--model", "x"), 2, "leave them out"),
        (("setup", "--url", "http://x"), 2, "Say for which embedder"),
        (("setup", "openai"), 2, "needs a key or an address"),
        (("setup", "openai", "--url", "nowhere"), 2, "is no address"),
        (("setup", "openai", "--url", "http://[", "--model", "m"), 2, "is no address"),
        (("setup", "openai", "--url", "http://127.0.0.1:9"), 2, "Name the embedding model"),
        (("setup", "openai", "--url", "http://127.0.0.1:9", "--model", "m"), 1, "cannot be reached"),
        (("setup", "ollama", "--url", "http://127.0.0.1:9"), 2, "does not answer"),
        (("index",), 2, "No embedder is set"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_call_is_one_sentence_and_changes_nothing(
    tmp_path: Path, args: tuple[str, ...], code: int, sentence: str
) -> None:
    done = run_weft(environ(tmp_path), "recall", *args)

    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", ["500", "shape"])
def test_an_embedder_that_does_not_work_is_not_written_down(tmp_path: Path, failure: str) -> None:
    with EmbeddingServer(failure=failure) as server:
        url = f"{server.url}/v1"
        done = run_weft(environ(tmp_path), "recall", "setup", "openai", "--url", url, "--model", "m")

    assert done.returncode == 1
    assert not (tmp_path / "config.toml").exists()


def test_a_setting_that_cannot_be_used_is_named_and_can_be_changed(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[search]\nembedder = "ollama"\n', "utf-8")

    assert "needs a model" in status(tmp_path)["problem"]
    assert "cannot be used" in run_weft(environ(tmp_path), "recall", "status").stdout
    assert run_weft(environ(tmp_path), "recall", "setup", "none").returncode == 0
    assert status(tmp_path)["problem"] == ""


def test_indexing_goes_on_where_it_was_stopped_and_searches_work_meanwhile(tmp_path: Path) -> None:
    keep(tmp_path, 100)
    with EmbeddingServer(most=3) as server:
        args = (*WEFT, "recall", "setup", "ollama", "--url", server.url)
        indexing = subprocess.Popen(
            args, env=environ(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert server.waits.wait(60)
        server.most = 10**9
        search = run_weft(environ(tmp_path), "search", "line 7", "-n", "1", "--mode", "fts")
        indexing.send_signal(signal.SIGINT)
        _, errors = indexing.communicate(timeout=60)
        server.go_on.set()
        stopped_at = status(tmp_path)["indexed"]
        done = run_weft(environ(tmp_path), "recall", "index")

    assert "Line 7 on the ship." in search.stdout
    assert (indexing.returncode, stopped_at) == (130, 64)
    assert errors == "Stopped: 64 of 100 texts are indexed. `weft recall index` goes on there.\n"
    assert "Indexed 36 texts." in done.stdout
    assert status(tmp_path)["indexed"] == 100
    ours = [text for text in server.texts if text.startswith("Line 99")]
    assert len(ours) <= 2  # what was indexed is not embedded again


def test_a_failure_while_indexing_says_how_far_it_got(tmp_path: Path) -> None:
    keep(tmp_path, 100)
    with EmbeddingServer(most=3) as server:
        args = (*WEFT, "recall", "setup", "ollama", "--url", server.url)
        indexing = subprocess.Popen(args, env=environ(tmp_path), stderr=subprocess.PIPE, text=True)
        assert server.waits.wait(60)
        server.failure = "500"
        server.go_on.set()
        _, errors = indexing.communicate(timeout=60)

    assert indexing.returncode == 1
    assert errors.startswith("Stopped: 64 of 100 texts are indexed.")
    assert "refused with 500" in errors


def test_a_server_indexes_when_it_starts_and_ends_at_once_while_it_does(tmp_path: Path) -> None:
    keep(tmp_path, 3)
    with EmbeddingServer(most=0) as embeddings:
        settings = f'[search]\nembedder = "ollama"\nmodel = "m"\nurl = "{embeddings.url}"\n'
        (tmp_path / "config.toml").write_text(settings, "utf-8")
        server = start_server(environ(tmp_path), "--provider", "scripted", "--port", "0")
        try:
            assert embeddings.waits.wait(60)
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=60)
        finally:
            server.kill()

    assert (server.returncode, "Traceback" in errors) == (0, False)
    assert (status(tmp_path)["indexed"], status(tmp_path)["texts"]) == (0, 3)
