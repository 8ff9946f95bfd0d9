"""Every example runs as a program of its own, and prints what its text promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from doc_pages import ROOT, Reader, Typed
from programs import run_weft
from weft.testing import LoopbackVendor

EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*.py"))


def run(folder: Path, name: str, *args: str, **environ: str) -> str:
    """Run an example in a home of its own. Returns what it printed."""
    reader = Reader(folder, {"WEFT_HOME": str(folder / "home"), **environ}, {})
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        cwd=folder,
        env=reader.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def call(name: str, **arguments: str) -> weft.Reply:
    return weft.Reply(tool_calls=(weft.ToolCall(id="1", name=name, arguments=arguments),))


def test_agent_with_a_tool(tmp_path: Path) -> None:
    script: list[str | weft.Reply] = [call("high_tide", day="sunday"), "Leave before six."]
    with LoopbackVendor("anthropic", script) as vendor:
        printed = run(tmp_path, "agent_with_a_tool.py", **vendor.environ)

    assert re.fullmatch(
        r"\[high_tide \{'day': 'sunday'\}\]\nLeave before six\.\n\[\d+ tokens in \d+ items\]\n", printed
    )
    assert "Call `high_tide` at most 2 times" in str(vendor.requests[0].payload)
    assert "six" in str(vendor.requests[1].payload["messages"][-1])


def test_agenda_source_shows_what_comes_soon(tmp_path: Path) -> None:
    printed = run(tmp_path, "agenda_source.py")

    assert (
        "<context:agenda>\nThe next days:\n2026-11-18 14:00 Lunch with Clara\n2026-11-19 08:00 Dive"
        in printed
    )
    assert "Dentist" not in printed
    assert "Harbor office" not in printed
    assert "'agenda': " in printed


def test_recall_over_a_chat_finds_the_answer_beside_the_word(tmp_path: Path) -> None:
    printed = run(tmp_path, "recall_over_a_chat.py", str(EXAMPLES / "chat.jsonl"), "Who repairs the engine?")

    assert "Ben: I will bring my tools on Thursday and repair it." in printed
    assert "bowl" not in printed


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "two_writers.py") == ("4 programs wrote 200 lines at the same time; 0 were lost.\n")


def test_look_back_at_turns_replays_and_explains(tmp_path: Path) -> None:
    lines = run(tmp_path, "look_back_at_turns.py").splitlines()

    assert all(re.fullmatch(r"turn \d: \d+ bytes, replay equal: True", line) for line in lines[:3])
    assert re.match(r"turn 3 begins with \d+ bytes of turn 2: 9\d% of it", lines[3])
    assert lines[4] == "pier in turn 2, shown: True, facts: pier: new since the epoch began"


def test_cost_report_adds_up_what_the_vendor_reported(tmp_path: Path) -> None:
    used = weft.Usage(input_tokens=1_000_000, output_tokens=1000, cached_tokens=400_000)
    weft_home = tmp_path / "weft"
    weft_home.mkdir()
    settings = '[models."claude-sonnet-5"]\ninput_price = 3.0\noutput_price = 15.0\n'
    (weft_home / "config.toml").write_text(settings, "utf-8")
    with LoopbackVendor("anthropic", [weft.Reply(text="At nine.", usage=used)] * 2) as vendor:
        environ = {"WEFT_HOME": str(weft_home), **vendor.environ}
        chat = run_weft(
            Reader(tmp_path, environ, {}).environ, "chat", stdin="When does the boat leave?\nAnd back?\n"
        )

    assert chat.returncode == 0, chat.stderr
    (tmp_path / "report").mkdir()
    printed = run(tmp_path / "report", "cost_report.py", str(weft_home / "weft.db"))

    [head, row] = printed.splitlines()
    assert head.split() == ["turns", "read", "cached", "written", "money", "conversation"]
    turns, read, cached, written, money, *title = row.split()
    assert (turns, read, cached, written) == ("2", "2,000,000", "800,000", "2,000")
    assert float(money) == pytest.approx(2 * (0.6 * 3 + 0.4 * 0.3 + 0.001 * 15), rel=0.01)
    assert " ".join(title) == "When does the boat leave?"


def test_the_tests_of_an_agent_of_ones_own_pass(tmp_path: Path) -> None:
    reader = Reader(tmp_path, {}, {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_my_agent.py")],
        cwd=tmp_path,
        env=reader.environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout or "..." in done.stdout


def test_openai_client_is_remembered_from_one_run_to_the_next(tmp_path: Path) -> None:
    fact = call("remember_fact", key="boat", value="Marlin")
    script: list[str | weft.Reply] = [fact, "I will.", "Marlin."]
    with (
        LoopbackVendor("anthropic", script) as vendor,
        Reader(tmp_path, vendor.environ, {}) as reader,
    ):
        reader.run(Typed("weft serve"), "openai_client")
        server = reader.here("http://127.0.0.1:8713")
        program = f"WEFT_SERVER={server} python {EXAMPLES / 'openai_client.py'}"
        reader.run(
            Typed(f"{program} 'Remember my boat.'", prints=["I will.", "[Remembered boat: Marlin..."]), "tell"
        )
        reader.run(Typed(f"{program} 'What is my boat called?'", prints=["Marlin."]), "ask")

    assert "boat: Marlin" in str(vendor.requests[2].payload)


def test_ask_over_mcp_writes_and_finds_a_block(tmp_path: Path) -> None:
    printed = run(tmp_path, "ask_over_mcp.py")

    assert printed.startswith("14 tools: append_block, ask,")
    assert r'"text": "fins, mask\nwetsuit"' in printed
    assert '"hits"' in printed


def test_bulletin_board_answers_ada_and_refuses_eve(tmp_path: Path) -> None:
    printed = run(tmp_path, "bulletin_board.py")

    assert printed.startswith("to ada: At nine.\nto eve: I do not know you yet.")
    assert "Ada" not in printed


def test_tally_block_counts_votes(tmp_path: Path) -> None:
    assert run(tmp_path, "plugins/tally_block.py") == "rum: 2\ntea: 1\n"


async def test_the_reviewer_refuses_half_a_change() -> None:
    recipe = weft.Recipe.load(EXAMPLES / "recipes" / "reviewer.toml").replace(max_context_tokens=300)

    with pytest.raises(weft.BudgetExceeded):
        await weft.ContextBuilder(recipe=recipe).build("+ a line that was changed\n" * 200)


def test_every_example_is_listed_has_a_test_and_is_short() -> None:
    listed = re.findall(r"^\| \[`([^`]+)`\]", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    tests = Path(__file__).read_text("utf-8")

    assert len(PROGRAMS) >= 9
    assert [name for name in PROGRAMS if name not in listed or name not in tests] == []
    assert [name for name in listed if not (EXAMPLES / name).exists()] == []
    assert [n for n in PROGRAMS if len((EXAMPLES / n).read_text("utf-8").splitlines()) > 75] == []
    assert [n for n in PROGRAMS if not (EXAMPLES / n).read_text("utf-8").startswith('"""')] == []
