"""`weft --verbose`: what was decided for an answer, and why."""

import re
from pathlib import Path

from programs import Terminal, environ, run_weft
from weft.testing import LoopbackVendor

SETTINGS = "[context]\nmax_tokens = 2300\nreserved_response_tokens = 200\n"


def test_it_says_who_answers_and_why_what_fits_what_was_left_out_and_what_was_recalled(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.toml").write_text(SETTINGS, "utf-8")
    with LoopbackVendor("openai", ["Noted. " * 40] * 30) as server:
        env = environ(tmp_path, WEFT_MODEL="gpt-4o", OLLAMA_HOST="127.0.0.1:1", **server.environ)
        run_weft(env, "chat", stdin="My boat is called Marlin and leaves at six\n")
        lines = "\n".join(["/new", "Do you remember what my boat is called?", *["Go on."] * 20])
        told = run_weft(env, "--verbose", "chat", stdin=lines).stderr

    assert f"weft.turn.run: openai answers (gpt-4o at {server.url}): OPENAI_API_KEY is set" in told
    assert "weft.turn.run: its window of 128000 tokens comes from the table of known models" in told
    assert "tokens: gave way: the budget is 2100 tokens" in told
    assert re.search(r"weft\.turn\.decide: recalled \d{4}-\d\d-\d\d User: My boat is called Marlin", told)


def test_where_an_unknown_window_comes_from_is_said(tmp_path: Path) -> None:
    page = {"data": [{"id": "mine", "max_model_len": 40_960}, {"id": "other"}]}
    with LoopbackVendor("openai", ["Hi."] * 3, pages={"/v1/models": page}) as server:
        env = environ(tmp_path, OPENAI_BASE_URL=f"{server.url}/v1", OLLAMA_HOST="127.0.0.1:1")
        served = run_weft(env, "--verbose", "ask", "-m", "mine", "hi").stderr
        assumed = run_weft(env, "--verbose", "ask", "-m", "other", "hi").stderr
        chosen = run_weft(env, "--verbose", "ask", "-m", "other", "--window", "9000", "hi").stderr

    assert "its window of 40960 tokens comes from its server" in served
    assert "tokens comes from an assumption" in assumed
    assert "its window of 9000 tokens comes from the settings" in chosen


def test_the_last_line_of_the_log_is_not_glued_to_the_answer(tmp_path: Path) -> None:
    terminal = Terminal(environ(tmp_path, TERM="dumb"), "--verbose", "ask", "-p", "scripted", "hi")
    try:
        terminal.read_until("This reply was scripted: no model was asked.")
        assert terminal.read_until("weft.turn.trace").strip(" ") == "\r\n"
    finally:
        terminal.close()


def test_a_person_at_a_terminal_reads_whom_they_wait_for(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[scripted]\ndelay_seconds = 0.2\n", "utf-8")
    terminal = Terminal(environ(tmp_path, TERM="xterm"), "ask", "-p", "scripted", "hi")
    try:
        shown = terminal.read_until("This reply was scripted")
    finally:
        terminal.close()

    assert "waiting for scripted" in shown
    assert "loading the model" not in shown
    assert "0/?" not in shown
