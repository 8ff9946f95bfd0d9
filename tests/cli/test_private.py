"""What Weft makes is for its owner alone, whatever the umask is; `weft doctor` finds what is not."""

import ast
import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from programs import environ, run_weft

SOURCE = Path(weft.__file__).parent
UMASK_0 = (
    sys.executable,
    "-c",
    "import os, sys; os.umask(0); os.execv(sys.executable, [sys.executable, '-m', 'weft', *sys.argv[1:]])",
)
EDITOR = f"""{sys.executable} -c "
import os, sys
path = sys.argv[1]
for place in (path, os.path.dirname(path)):
    assert not os.stat(place).st_mode & 0o077, place
open(path, 'a').write('more')
" """


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _commands(home: Path) -> list[list[str]]:
    """Every command that writes a file, and what fills the database before."""
    return [
        ["init"],
        ["ask", "-p", "scripted", "hello"],
        ["chat", "-p", "scripted"],
        ["memory", "edit", "notes", "a boat"],
        ["memory", "edit", "notes"],
        ["tools", "enable", "fetch"],
        ["context", "--svg", str(home / "pictures" / "receipt.svg"), "hello"],
        ["sessions", "export", "SESSION", str(home / "talks" / "one.json")],
        ["backup", str(home / "copies" / "one.db")],
        ["backup", str(home / "kept"), "--keep", "2"],
        ["export", str(home / "text")],
        ["restore", str(home / "copies" / "one.db")],
        ["demo", "--folder", str(home / "demo"), "-p", "scripted"],
        ["doctor"],
    ]


def test_everything_that_a_command_writes_is_for_its_owner_alone_even_with_a_umask_of_0(
    tmp_path: Path,
) -> None:
    home = tmp_path / "new" / "home"
    env = environ(home, EDITOR=EDITOR)

    for command in _commands(home):
        args = list(command)
        if "SESSION" in args:
            listed = run_weft(env, "sessions", "list", "--json", program=UMASK_0)
            args[args.index("SESSION")] = json.loads(listed.stdout)[0]["id"]
        done = run_weft(env, *args, stdin="hello\n", program=UMASK_0)
        assert done.returncode in ((0, 1) if args == ["doctor"] else (0,)), (args, done.stderr)

    paths = list((tmp_path / "new").rglob("*"))
    assert [str(path) for path in paths if _mode(path) & 0o077] == []
    assert {path.name for path in home.iterdir()} >= {
        *("config.toml", "weft.db", "workspace", "text", "copies", "kept", "talks", "pictures", "demo")
    }


def test_a_server_and_its_files_are_for_their_owner_alone_while_it_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = subprocess.Popen(
        [*UMASK_0, "serve", "--port", "0", "-p", "scripted"],
        env=environ(home),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        assert any(re.search(r"127\.0\.0\.1:\d+", line) for line in lines)
        assert [str(path) for path in (home, *home.rglob("*")) if _mode(path) & 0o077] == []
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_doctor_finds_what_others_may_read_and_fixes_it_when_asked(tmp_path: Path) -> None:
    env = environ(tmp_path)
    run_weft(env, "init")
    run_weft(env, "backup", str(tmp_path / "copies" / "one.db"))
    assert "for their owner alone" in run_weft(env, "doctor").stdout
    (tmp_path / "config.toml").write_text('[http]\ntoken = "abc"\n')
    loose = ["config.toml", "weft.db", "workspace", "copies/one.db"]
    for name in loose:
        (tmp_path / name).chmod(0o755)

    before = run_weft(env, "doctor")
    fixed = run_weft(env, "doctor", "--fix")

    for name in loose:
        assert f"others on this machine may read {tmp_path / name}" in before.stdout
        assert f"{tmp_path / name} is for its owner alone now" in fixed.stdout
        assert _mode(tmp_path / name) & 0o077 == 0
    assert f"chmod 600 {tmp_path / 'weft.db'}" in before.stdout
    assert "with your keys in it" in before.stdout
    assert before.returncode == 1, "a key that others may read is an error"
    assert "others on this machine" not in run_weft(env, "doctor").stdout


_WRITERS = {"write_text", "write_bytes", "mkdir", "makedirs", "touch", "copy", "copyfile", "copytree"}


def _writes(path: Path) -> list[str]:
    """Return the calls of a module that make a file or a folder without saying for whom."""
    calls = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = getattr(getattr(function, "value", None), "id", "")
        makes = name in _WRITERS and (owner in ("os", "shutil") or name not in ("copy", "copyfile"))
        if name == "open" and not any(word.arg == "opener" for word in node.keywords):
            mode = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            makes = any(isinstance(one, str) and re.fullmatch("[wax]b?[+]?", one) for one in mode)
        if makes:
            calls.append(f"{path}:{node.lineno} {name}")
    return calls


def test_no_module_makes_a_file_or_a_folder_but_by_private_files() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "private_files.py"]

    assert [call for path in modules for call in _writes(path)] == []


@pytest.mark.parametrize("code", ["open(p, 'w')", "Path(p).write_text('x')", "p.mkdir()", "p.open('a')"])
def test_that_rule_notices_a_call(tmp_path: Path, code: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(code)

    assert len(_writes(module)) == 1
