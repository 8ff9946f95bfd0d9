"""Programs that run whatever they are given: shells, interpreters, and those that start other programs.

A skill that may run one of them may run anything, so its allowlist says nothing. They may run only where
scripts of skills may.
"""

from __future__ import annotations

import os
import re

_SHELLS = """
    ash bash busybox csh dash elvish fish ksh mksh nu osascript pwsh powershell rbash rksh sh tcsh xonsh
    zsh
"""
_LANGUAGES = """
    awk bun deno elixir erl expect gawk ghci groovy guile irb java jjs jshell julia lua luajit mawk nawk
    node nodejs octave perl php pypy pypy3 python pythonw r rscript racket raku ruby runghc sbcl scala
    swift tclsh ts-node tsx wish
"""
_STARTERS = """
    at batch capsh choom chroot chrt command coproc crontab doas env eval exec fakeroot flock gdb ionice
    ld-linux ld-linux-x86-64.so.2 ld.so logsave ltrace make nice prlimit sg start-stop-daemon
    nohup npm npx nsenter parallel pipx pkexec pnpm poetry runuser screen script setarch setpriv setsid
    ssh stdbuf strace su sudo systemd-run taskset time timeout tmux toybox unshare uv uvx watch xargs
    yarn
"""
INTERPRETERS = frozenset(f"{_SHELLS} {_LANGUAGES} {_STARTERS}".split())
_MANY_IN_ONE = frozenset({"busybox", "toybox"})
"""Programs that are `ls` and `cat` too, by the name under which they are started."""
_VERSION = re.compile(r"[-.]?\d[\d.]*\w?(?:-[\w-]+)?\Z")


def is_interpreter(name: str, path: str = "") -> bool:
    """Check a program by its name, with or without a version, and by the file that its path leads to."""
    real = os.path.basename(os.path.realpath(path)) if path else ""
    return _is_listed(name) or (_is_listed(real) and real not in _MANY_IN_ONE)


def _is_listed(name: str) -> bool:
    plain = name.lower().removesuffix(".exe")
    return bool({plain, _VERSION.sub("", plain)} & INTERPRETERS)


def refusal(name: str) -> str:
    """Say why a program may not run."""
    return f"{name!r} runs whatever it is given, which needs `skills.allow_scripts = true`"
