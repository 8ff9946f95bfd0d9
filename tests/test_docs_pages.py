"""Every block of the documentation runs as a reader types it, or is checked in a way that is named here."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from keyword import iskeyword
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from cronsim import CronSim
from markdown_it import MarkdownIt
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

import weft
from doc_pages import ROOT, STAND_INS, Block, Reader, Typed, blocks, commands
from embedding_server import EmbeddingServer
from weft.cli.main import COMMANDS
from weft.config import load_config
from weft.testing import LoopbackVendor
from weft.wire import VENDORS
from weft.workspace.skills import split_front_matter

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]
SCRIPT = list[str | weft.Reply]

NOT_RUN = {
    ("ARCHITECTURE.md", " terminal"): "a drawing of the way of a message",
    ("ARCHITECTURE.md", "cli "): "the layers, which `tests/test_architecture.py` compares with the imports",
    (
        "README.md",
        "make demo",
    ): "`make demo` and `make test` are the Makefile's; `test_docs.py` compares both",
    ("docs/explanation/epochs.md", "<context:now>"): "what a model reads",
    ("docs/guides/recall.md", "2026-05-03"): "an example of a hit",
    ("docs/reference/logs.md", "2026-11-16"): "lines of a log",
}
"""Blocks that are not run, by their page and the beginning of their first line, each with its reason."""


def _call(name: str, **arguments: Any) -> weft.Reply:
    return weft.Reply(tool_calls=(weft.ToolCall(id="call", name=name, arguments=arguments),))


def _cached(text: str, cached: int) -> weft.Reply:
    return weft.Reply(text=text, usage=weft.Usage(input_tokens=2600, output_tokens=9, cached_tokens=cached))


@dataclass(frozen=True)
class Setup:
    """What stands in for the world of a page: a vendor with its answers, servers, what was done before."""

    script: SCRIPT = field(default_factory=list)
    vendor: str = "anthropic"
    address: str = ""
    embeds_at: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


_QWEN = {"name": "qwen3:8b", "model": "qwen3:8b"}
LISTS: dict[str, dict[str, Any]] = {
    "anthropic": {"/v1/models": {"data": [{"id": "claude-sonnet-5"}]}},
    "openai": {"/v1/models": {"data": [{"id": "qwen3-8b"}]}},
    "ollama": {"/api/tags": {"models": [_QWEN]}, "/api/show": {}, "/api/version": {"version": "1"}},
}
SETUPS = {
    "docs/tutorial/install.md": Setup(),
    "docs/tutorial/first-assistant.md": Setup(
        [
            "I am Iris.",
            _call("remember_fact", key="home", value="Lisbon"),
            "I will remember that.",
            "In Lisbon.",
            "I will.",
        ]
    ),
    "docs/tutorial/first-skill.md": Setup(
        [_call("word_count", file="SOUL.md"), "SOUL.md has 19 words."],
    ),
    "docs/tutorial/first-agent.md": Setup(
        [_call("tide", hour=9), "No, at nine the tide is low.", _call("tide", hour=2), "At two it is high."],
    ),
    "docs/tutorial/openai-memory.md": Setup(
        [_call("remember_fact", key="boat", value="Marlin"), "I will remember that.", "Marlin.", "Marlin."],
    ),
    "docs/guides/anthropic-caching.md": Setup([_cached("At nine.", 0), _cached("At eight.", 2400)]),
    "docs/guides/service.md": Setup(),
    "docs/guides/backup.md": Setup(before=("weft init",)),
    "docs/guides/moving.md": Setup(before=("weft init",)),
    "README.md": Setup(before=("mkdir my-workspace",)),
    "docs/guides/recall.md": Setup(embeds_at="127.0.0.1:8080"),
}


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    """A reader of the page that the test names, with its servers."""
    setup = SETUPS.get(request.param, Setup(environ={"WEFT_PROVIDER": "scripted"}))
    addresses: dict[str, str] = {}
    environ = dict(setup.environ)
    with ExitStack() as stack:
        if setup.script or request.param in SETUPS:
            vendor = stack.enter_context(
                LoopbackVendor(setup.vendor, setup.script, pages=LISTS.get(setup.vendor))
            )
            environ |= vendor.environ
        if request.param == "docs/guides/local-servers.md":
            pair = [
                stack.enter_context(LoopbackVendor(name, ["Hello.", "Hello."], pages=LISTS[name]))
                for name in ("ollama", "openai")
            ]
            environ = {"OLLAMA_HOST": pair[0].url}
            addresses["127.0.0.1:1234"] = pair[1].url.removeprefix("http://")
        if setup.embeds_at:
            server = stack.enter_context(EmbeddingServer())
            environ |= {"OLLAMA_HOST": server.url}
            addresses[setup.embeds_at] = server.url.removeprefix("http://")
        reader = stack.enter_context(Reader(tmp_path, environ, addresses))
        for command in setup.before:
            reader.run(Typed(command), "before")
        yield reader


PAGES_WITH_BLOCKS = sorted({block.page for block in BLOCKS})


@pytest.mark.parametrize("reader", PAGES_WITH_BLOCKS, indirect=True)
def test_every_block_of_a_page_runs_or_is_checked(reader: Reader, request: pytest.FixtureRequest) -> None:
    page = request.node.callspec.params["reader"]
    for block in (block for block in BLOCKS if block.page == page):
        if block.save_as:
            reader.save(block)
        check(block, reader)
    calls = reader.calls.read_text("utf-8").splitlines() if reader.calls.exists() else []
    for name, *words in map(shlex.split, calls):
        FOREIGN[name](words)


def check(block: Block, reader: Reader) -> None:
    """Run a block, or check it in the way of its language."""
    if any(block.page == page and block.text.startswith(start) for page, start in NOT_RUN):
        return
    assert block.language in CHECKS, (
        f"{block}: nothing checks {block.language or 'a block without a language'}"
    )
    CHECKS[block.language](block, reader)


def _check_commands(block: Block, reader: Reader) -> None:
    for typed in commands(block):
        reader.run(typed, str(block))


def _check_python(block: Block, reader: Reader) -> None:
    if not block.save_as:
        reader.run_python(block)
        return
    later = [each for each in BLOCKS if each.page == block.page and each.line > block.line]
    assert any(f"$ python {block.save_as}" in each.text for each in later), f"{block} is saved and never run"


def _check_toml(block: Block, reader: Reader) -> None:
    """Load it as what it is: a part of a package, a recipe, or settings."""
    data = tomllib.loads(block.text)
    file = reader.work / "checked.toml"
    file.write_text(block.text, "utf-8")
    if "project" in data:
        groups = {"weft.channels", "weft.providers", "weft.embedders", "weft.sources", "weft.tools"}
        assert data["project"]["entry-points"].keys() <= groups
    elif "layers" in data:
        weft.ContextBuilder(recipe=weft.Recipe.load(file))
    else:
        load_config(file, environ={})


def _check_json(block: Block, reader: Reader) -> None:
    """Check a `tools.json` as a skill's; settings of another program are in a test of their own."""
    data = json.loads(block.text)
    if "tools" in data:
        skill = reader.work / "a-skill"
        skill.mkdir()
        (skill / "SKILL.md").write_text(
            "---\nname: a-skill\ndescription: Has tools.\n---\nUse them.\n", "utf-8"
        )
        (skill / "tools.json").write_text(block.text, "utf-8")
        _weft(reader, "skills", "validate", str(skill))
    else:
        assert block in MCP_SETTINGS, f"{block}: nothing checks this JSON"


def _check_markdown(block: Block, reader: Reader) -> None:
    """Check a skill as a skill. Other texts must be files that the page saves."""
    front, _ = split_front_matter(block.text)
    if front is None:
        assert block.save_as, f"{block}: no sentence says where this text is saved"
        return
    skill = reader.work / yaml.safe_load(front)["name"]
    skill.mkdir()
    (skill / "SKILL.md").write_text(block.text, "utf-8")
    _weft(reader, "skills", "validate", str(skill))


def _check_yaml(block: Block, reader: Reader) -> None:
    """Check rules as those of a skill, and services of Compose by their commands."""
    data = yaml.safe_load(block.text)
    if "tool-rules" in data:
        for rule in data["tool-rules"]:
            weft.ToolRule.from_table(rule, where=str(block))
        return
    for service in data["services"].values():
        assert check_call(service["command"])
        assert [volume for volume in service["volumes"] if volume.split(":")[0] not in data["volumes"]] == []


def _check_unit(block: Block, reader: Reader) -> None:
    """Compare a unit with the one that the program prints."""
    printed = _weft(reader, "serve", "--print-unit")

    def shape(unit: str) -> list[str]:
        return [line for line in re.sub(r"=\S*/weft ", "=weft ", unit).splitlines() if line]

    assert shape(block.text) == shape(printed)


def _check_dockerfile(block: Block, reader: Reader) -> None:
    """Check what is copied and installed, and that the command and its options exist."""
    lines = dict(line.split(" ", 1) for line in block.text.splitlines())
    assert lines.keys() <= {*"FROM COPY RUN USER ENV VOLUME EXPOSE HEALTHCHECK CMD".split()}
    python = re.fullmatch(r"python:(3\.\d+)-slim", lines["FROM"])
    assert python
    assert float(python[1][2:]) >= 11
    pip = next(part for part in lines["RUN"].split(" && ") if part.startswith("pip"))
    check_pip(shlex.split(pip)[1:])
    assert check_call(json.loads(lines["CMD"]))
    compile(json.loads(lines["HEALTHCHECK"].removeprefix("CMD "))[2], str(block), "exec")
    assert lines["ENV"] == f"WEFT_HOME={lines['VOLUME']}"


def _check_crontab(block: Block, reader: Reader) -> None:
    for line in block.text.splitlines():
        *fields, command = line.split(" ", 5)
        assert next(CronSim(" ".join(fields), datetime.now(UTC)))
        assert check_call(shlex.split(command))


CHECKS: dict[str, Callable[[Block, Reader], None]] = {
    "console": _check_commands,
    "crontab": _check_crontab,
    "dockerfile": _check_dockerfile,
    "ini": _check_unit,
    "json": _check_json,
    "markdown": _check_markdown,
    "python": _check_python,
    "toml": _check_toml,
    "yaml": _check_yaml,
}


def _weft(reader: Reader, *args: str) -> str:
    done = subprocess.run(["weft", *args], env=reader.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_call(words: list[str]) -> bool:
    """Parse a call of the program without running it. Returns whether it is one."""
    if words[:1] != ["weft"]:
        return False
    name, *rest = words[1:]
    assert name in COMMANDS
    command = command_of(name)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context(name, rest)  # refuses an option that does not exist
    return True


def command_of(name: str) -> Any:
    app = importlib.import_module(f"weft.cli.{name}_" if iskeyword(name) else f"weft.cli.{name}").app
    return typer.main.get_command(app)


def check_pip(words: list[str]) -> None:
    """Check that what is installed exists: our own parts, or packages that decision 0001 does not forbid."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert words[0] == "install"
    for word in words[1:]:
        ours = re.fullmatch(r"(?:\.|/src|weft)(?:\[([\w,]+)\])?", word)
        assert ours or word.startswith(("--", "opentelemetry-")), word
        assert set(ours[1].split(",") if ours and ours[1] else []) <= extras.keys()


def check_docker(words: list[str]) -> None:
    """Check the call of the program inside of the container: what stands behind the name of the image."""
    assert words[0] in {"build", "run", "exec"}
    if words[0] != "build":
        named = words.index("--name") + 1 if "--name" in words[: words.index("weft")] else 0
        rest = words[words.index("weft", named + 1) + 1 :]
        assert not rest or check_call(rest)


def check_claude(words: list[str]) -> None:
    assert words[:2] == ["mcp", "add"]
    assert words[words.index("--") - 1] == "weft"  # options stand before the name
    assert check_call(words[words.index("--") + 1 :])


def check_system(words: list[str]) -> None:
    """Accept a call of a program that only a whole system has."""
    assert words


def check_launcher(words: list[str]) -> None:
    assert check_call(words)


FOREIGN: dict[str, Callable[[list[str]], None]] = {
    "claude": check_claude,
    "docker": check_docker,
    "journalctl": check_system,
    "loginctl": check_system,
    "ollama": check_system,
    "opentelemetry-instrument": check_launcher,
    "pip": check_pip,
    "pipx": check_pip,
    "scp": check_system,
    "systemctl": check_system,
}

MCP_SETTINGS = [block for block in BLOCKS if block.page == "docs/guides/mcp.md" and block.language == "json"]
MCP_KEYS = {"mcpServers": 4, "servers": 1, "context_servers": 1}


def test_the_guide_to_mcp_has_settings_for_six_programs() -> None:
    keys = [key for block in MCP_SETTINGS for key in json.loads(block.text)]
    text = (ROOT / "docs/guides/mcp.md").read_text("utf-8")

    assert {key: keys.count(key) for key in keys} == MCP_KEYS
    for name in ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "Zed", "Gemini CLI"):
        assert f"**{name}**" in text


@pytest.mark.parametrize("number", range(6))
async def test_the_settings_of_another_program_start_a_server_that_answers(
    number: int, tmp_path: Path
) -> None:
    [servers] = json.loads(MCP_SETTINGS[number].text).values()
    server = servers["weft"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {"PATH": path, "HOME": str(tmp_path), "WEFT_HOME": str(tmp_path / "home")} | server.get(
        "env", {}
    )
    parameters = StdioServerParameters(command=server["command"], args=server["args"], env=environ)

    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        await session.call_tool("remember_fact", {"key": "boat", "value": "Marlin"})
        facts = await session.call_tool("list_facts", {})

    assert {"search", "read_block", "remember_fact", "ask"} <= tools
    assert "Marlin" in str(facts.content)


def test_every_block_that_is_not_run_exists_and_has_a_reason() -> None:
    starts = [
        (page, start)
        for page, start in NOT_RUN
        if not any(block.page == page and block.text.startswith(start) for block in BLOCKS)
    ]

    assert starts == []
    assert [key for key, reason in NOT_RUN.items() if len(reason) < 10] == []
    assert len(NOT_RUN) <= 6  # a block that runs is worth more than a reason


def test_every_block_has_a_language_that_something_checks() -> None:
    unchecked = [
        str(block)
        for block in BLOCKS
        if block.language not in CHECKS
        and not any(block.page == page and block.text.startswith(start) for page, start in NOT_RUN)
    ]

    assert len(BLOCKS) > 100
    assert unchecked == []


@pytest.mark.parametrize("language", ["", "text", "sh", "bash"])
def test_a_block_that_nothing_checks_is_refused(language: str, tmp_path: Path) -> None:
    block = Block("docs/new.md", 1, language, "weft ask\n", "")

    with pytest.raises(AssertionError, match="nothing checks"):
        check(block, Reader(tmp_path, {}, {}))


@pytest.mark.parametrize(
    "typed", [Typed("weft --version", prints=["harbor ..."]), Typed("weft no-such"), Typed("exit 3")], ids=str
)
def test_a_command_that_fails_or_prints_something_else_is_noticed(typed: Typed, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="page"):
        Reader(tmp_path, {}, {}).run(typed, "page")


def test_a_command_with_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Exception, match="no-such"):
        check_call(["weft", "serve", "--no-such"])


def test_every_foreign_program_has_a_check_and_every_vendor_a_row() -> None:
    assert sorted(FOREIGN) == sorted(STAND_INS)
    assert set(LISTS) <= VENDORS.keys()


def spoken_of(path: Path) -> Iterator[str]:
    """Yield the calls of the program that stand in a sentence or a table."""
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8")):
        for child in token.children or ():
            if child.type == "code_inline" and re.match(r"weft [a-z]", child.content):
                yield re.split(r" [|>&<] ?|;", child.content.replace("\\|", ","))[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_in_a_sentence_exists_with_its_options(page: Path) -> None:
    wrong = []
    for call in spoken_of(page):
        name, *rest = re.sub(r"[\[\]]", "", call).split()[1:]
        command: Any = command_of(name.rstrip(",")) if name.rstrip(",") in COMMANDS else None
        while hasattr(command, "commands") and rest and rest[0][0] != "-":
            command = command.commands.get(rest.pop(0).rstrip(","))
        options = {
            option for each in getattr(command, "params", ()) for option in each.opts + each.secondary_opts
        }
        unknown = [word for word in rest if re.match(r"--?[a-z]", word) and word not in options | {"--help"}]
        if command is None or unknown:
            wrong.append(call)

    assert wrong == []
