"""`weft serve` with Telegram, end to end, killed and started again."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import weft
from fake_telegram import TOKEN, FakeTelegram
from programs import environ, run_weft, start_server
from weft.config import load_config
from weft.gateway.dispatcher import Dispatcher
from weft.gateway.streams import Stream


def with_bot(home: Path) -> dict[str, str]:
    return environ(home, TELEGRAM_BOT_TOKEN=TOKEN)


def configure(home: Path, fake: FakeTelegram, *, allowed: str = '"7"', reply: str = "answer {n}") -> None:
    texts = ", ".join(f'"{reply.replace("{n}", str(n))}"' for n in range(100))
    (home / "config.toml").write_text(
        f'provider = "scripted"\n[scripted]\nreplies = [{texts}]\n'
        f'[telegram]\napi_url = "{fake.url}"\nallowed = [{allowed}]\npoll_seconds = 2\n'
        "[learn]\nenabled = false\n[http]\nport = 0\n",
        "utf-8",
    )


def start(home: Path) -> "subprocess.Popen[str]":
    """A server that has said that it is open."""
    child = start_server(with_bot(home))
    assert child.stderr is not None
    for line in child.stderr:
        if "telegram is open" in line:
            return child
    raise AssertionError(child.wait(30))


def stop(child: "subprocess.Popen[str]", number: int = signal.SIGINT) -> tuple[int, str]:
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    return child.returncode, err


def test_people_are_answered_and_ctrl_c_ends_it_in_order(tmp_path: Path, fake: FakeTelegram) -> None:
    configure(tmp_path, fake)
    child = start(tmp_path)
    try:
        fake.write("hello")
        assert fake.wait(1) == ["answer 0"]
        fake.write("/status")
        assert "session" in fake.wait(2)[1]
        assert fake.actions
    finally:
        code, err = stop(child)

    assert code == 0
    assert "stopping" in err
    assert TOKEN not in err
    assert b"secret-token" not in (tmp_path / "weft.db").read_bytes()


def test_a_stranger_pairs_and_is_answered(tmp_path: Path, fake: FakeTelegram) -> None:
    configure(tmp_path, fake, allowed="")
    child = start(tmp_path)
    try:
        fake.write("hello")
        code = re.search(r"weft pair (\w+)", fake.wait(1)[0])
        assert code is not None
        paired = run_weft(with_bot(tmp_path), "pair", code[1])
        hint = "If this is you: weft people link telegram:7 owner"
        assert (paired.returncode, paired.stdout) == (0, f"telegram:7 may come in.\n{hint}\n")
        fake.write("hello again")
        assert fake.wait(2)[1] == "answer 0"
    finally:
        stop(child)


@pytest.mark.parametrize("round_", range(3))
def test_killed_in_the_middle_each_message_is_answered_once_or_reported(
    tmp_path: Path, fake: FakeTelegram, round_: int
) -> None:
    configure(tmp_path, fake, reply="echo {message}")
    written = [f"message {n}" for n in range(6)]
    for text in written:
        fake.write(text)
    child = start(tmp_path)
    fake.wait(1 + round_)
    child.kill()
    child.communicate()

    child = start(tmp_path)
    try:
        fake.write("the end")
        fake.wait_for(lambda sent: "echo the end" in sent)
    finally:
        stop(child)

    texts = [one["text"] for one in fake.sent]
    told = {
        text: texts.count(f"echo {text}") + sum(f"“{text}”" in other for other in texts) for text in written
    }
    doubts = sum("while I was sending" in text for text in texts)
    assert max(told.values()) == 1
    assert list(told.values()).count(0) <= doubts <= 1


def test_only_one_server_runs_in_a_home(tmp_path: Path, fake: FakeTelegram) -> None:
    configure(tmp_path, fake)
    child = start(tmp_path)
    try:
        second = run_weft(with_bot(tmp_path), "serve")
        fake.write("hello")
        assert fake.wait(1) == ["answer 0"], "the first one still answers"
    finally:
        stop(child)

    assert second.returncode == 2
    assert "Another `weft serve` runs" in second.stderr


def test_a_wrong_token_is_one_sentence(tmp_path: Path, fake: FakeTelegram) -> None:
    configure(tmp_path, fake)
    done = run_weft(with_bot(tmp_path) | {"TELEGRAM_BOT_TOKEN": "42:wrong"}, "serve")

    assert done.returncode == 1
    assert "Telegram does not accept the token" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_with_nothing_to_serve_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[http]\nenabled = false\n", "utf-8")

    done = run_weft(environ(tmp_path, WEFT_PROVIDER="scripted"), "serve")

    assert done.returncode == 2
    assert "There is nothing to serve" in done.stderr


def test_print_unit_prints_a_systemd_unit_for_this_home(tmp_path: Path) -> None:
    unit = run_weft(environ(tmp_path, WEFT_PROVIDER="scripted"), "serve", "--print-unit")

    assert unit.returncode == 0, unit.stderr
    assert f"ExecStart={sys.executable} -m weft serve" in unit.stdout
    assert f"Environment=WEFT_HOME={tmp_path}" in unit.stdout


def test_a_new_file_in_a_folder_is_told_once_though_the_server_is_killed(
    tmp_path: Path, fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    folder = tmp_path / "notes"
    folder.mkdir()
    configure(tmp_path, fake)
    with (tmp_path / "config.toml").open("a", encoding="utf-8") as file:
        file.write(f'[[streams]]\nname = "notes"\nfolder = "{folder}"\nevery_seconds = 1\n')
        file.write('channel = "telegram"\nconversation = "7"\nsender = "7"\n')
    asyncio.run(_first_look())
    (folder / "a.md").write_text("one", "utf-8")
    child = start(tmp_path)
    assert fake.wait(1) == ["answer 0"]
    child.kill()
    child.communicate()

    (folder / "b.md").write_text("two", "utf-8")
    child = start(tmp_path)
    assert child.stderr is not None
    line = next(line for line in child.stderr if "the stream" in line)
    fake.wait_for(lambda sent: sum(text.startswith("answer") for text in sent) >= 2)
    code, _ = stop(child)

    assert code == 0
    assert line == f"weft: the stream 'notes' watches the folder {folder} every 1 s for telegram:7\n"
    answers = [one["text"] for one in fake.sent if one["text"].startswith("answer")]
    assert answers == ["answer 0", "answer 0"], "each server told one"


async def _first_look() -> None:
    config = load_config()
    app = await weft.connect(config, provider="scripted")
    try:
        dispatcher = Dispatcher(app, [])
        assert await Stream(config.streams[0], app.store, dispatcher.submit).look() == 0
    finally:
        await app.close()


def test_programs_are_answered_over_http_and_the_conversation_is_remembered(
    tmp_path: Path, fake: FakeTelegram
) -> None:
    configure(tmp_path, fake)
    child = start_server(with_bot(tmp_path))
    assert child.stderr is not None
    line = next(line for line in child.stderr if "HTTP is open at" in line)
    url = line.split()[-1]
    try:
        body = {"model": "", "messages": [{"role": "user", "content": "hello"}]}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60).json()
        [session] = httpx.get(f"{url}/api/sessions", timeout=60).json()["sessions"]
        ask = {"text": "and now?", "session": session["id"]}
        context = httpx.post(f"{url}/api/context", json=ask, timeout=60).json()
    finally:
        code, _ = stop(child)

    assert code == 0
    assert answer["choices"][0]["message"]["content"] == "answer 0"
    assert session["channel"] == "http"
    assert [message["content"] for message in context["history"]] == ["hello", "answer 0"]


def test_with_log_format_json_log_lines_are_json_and_lines_for_people_stay_plain(
    tmp_path: Path, fake: FakeTelegram
) -> None:
    configure(tmp_path, fake)
    child = start_server(with_bot(tmp_path), "--log-format", "json", "--log-level", "info")
    try:
        fake.write("hello, it is hunter2")
        fake.wait(1)
    finally:
        _, err = stop(child)

    told = [line for line in err.splitlines() if line.startswith("weft: ")]
    lines = [json.loads(line) for line in err.splitlines() if line not in told]
    assert told[:2] == ["weft: scripted answers (scripted): it was asked for", "weft: telegram is open"]
    assert [line["event"] for line in lines] == ["message received", "turn ended"]
    assert {"session", "turn", "ms", "model"} < set(lines[1])
    assert "hunter2" not in err


def test_an_open_port_without_a_token_is_refused(tmp_path: Path) -> None:
    quiet = environ(tmp_path, WEFT_PROVIDER="scripted")
    done = run_weft(quiet, "serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is refused

    assert done.returncode == 2
    assert "set WEFT_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("delay", "stop_seconds", "status"), [(1.0, 60, 200), (600, 0.2, 503)], ids=["in time", "too long"]
)
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
async def test_a_client_that_waits_gets_its_answer_or_a_proper_error_when_the_server_stops(
    tmp_path: Path, number: int, delay: float, stop_seconds: float, status: int, is_stream: bool
) -> None:
    (tmp_path / "config.toml").write_text(
        f'provider = "scripted"\n[scripted]\nreplies = ["At six."]\ndelay_seconds = {delay}\n'
        f"[gateway]\nstop_seconds = {stop_seconds}\n[learn]\nenabled = false\n[http]\nport = 0\n",
        "utf-8",
    )
    child = start_server(environ(tmp_path))
    assert child.stderr is not None
    url = next(line for line in child.stderr if "HTTP is open" in line).split()[-1]
    body = {"messages": [{"role": "user", "content": "When?"}], "stream": is_stream}
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        asking = asyncio.create_task(client.post("/v1/chat/completions", json=body))
        while "weft_turns_running 1" not in (await client.get("/metrics")).text:
            assert not asking.done()

        code, err = await asyncio.to_thread(stop, child, number)
        answer = await asking

    assert (code, answer.status_code) == (0, status)
    assert "six." in answer.text if status == 200 else "stopping" in answer.json()["error"]["message"]
    assert "Traceback" not in err
    assert "Cancel" not in err


def test_sigterm_ends_a_server_in_time_whatever_its_clients_and_turns_do(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'provider = "scripted"\n[scripted]\nreplies = ["late"]\ndelay_seconds = 100000\n'
        "[learn]\nenabled = false\n[gateway]\nstop_seconds = 0.2\n[http]\nport = 0\n",
        "utf-8",
    )
    child = start_server(environ(tmp_path))
    assert child.stderr is not None
    address = next(line for line in child.stderr if "HTTP is open" in line).split()[-1]
    place = httpx.URL(address)
    clients = [socket.create_connection((place.host, place.port or 0)) for _ in range(4)]
    head = b"POST /api/turns HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    clients[1].sendall(b"GET / HT")
    clients[2].sendall(head + b"content-length: 100\r\n\r\n{")
    clients[3].sendall(head + b'content-length: 13\r\n\r\n{"text":"Hi"}')
    while httpx.get(f"{address}/api/sessions").json() == {"sessions": []}:
        pass

    try:
        code, err = stop(child, signal.SIGTERM)
        answer = clients[3].recv(100)
    finally:
        for client in clients:
            client.close()

    assert code == 0, err
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert "Traceback" not in err


def test_a_server_ends_even_if_a_thread_of_it_does_not() -> None:
    program = (
        "import threading; from weft.cli.serve import Deadline\n"
        "with Deadline(0.05) as _, Deadline(1000) as _: pass\n"
        "late = Deadline(0.05); late.begin(); threading.Event().wait()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 1
    assert done.stderr == "weft: something did not end in time and was left behind\n"
