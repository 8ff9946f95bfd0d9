"""`weft completion`: a script by which a shell completes commands, options and values of a fixed set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer

from weft.cli.main import app as weft

app = typer.Typer(add_completion=False)

# Each script walks over the words before the cursor. `at` is the command so far, `n` counts its arguments,
# `slot` is what is at the cursor: the value of an option (`weft ask -p`) or an argument (`weft docs @0`).
_BASH = """\
_weft() {{
    local at=weft n=0 slot="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [ -n "$slot" ]; then slot=""; continue; fi
        case "$at $word" in
            {paths}) at="$at $word" n=0 ;;
            {valued}) slot="$at $word" ;;
            *" -"*) ;;
            *) n=$((n + 1)) ;;
        esac
    done
    word="${{COMP_WORDS[COMP_CWORD]}}"
    if [ -z "$slot" ]; then
        slot="$at @$n"
        case "$at" in
{commands}
        esac
    fi
    if [[ "$word" != -* ]]; then
        case "$slot" in
{values}
        esac
        case "$slot" in {files}) compopt -o default 2>/dev/null ;; esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _weft weft"""

_ZSH = """\
#compdef weft
_weft() {{
    local at=weft n=0 slot="" fits="" word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        if [[ -n "$slot" ]]; then slot=""; continue; fi
        case "$at $word" in
            ({paths}) at="$at $word" n=0 ;;
            ({valued}) slot="$at $word" ;;
            (*" -"*) ;;
            (*) n=$((n + 1)) ;;
        esac
    done
    if [[ -z "$slot" ]]; then
        slot="$at @$n"
        case "$at" in
{commands}
        esac
    fi
    if [[ "$words[CURRENT]" != -* ]]; then
        case "$slot" in
{values}
        esac
    fi
    compadd -- ${{=fits}} && return
    case "$slot" in ({files}) _files ;; esac
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
compdef _weft weft"""

_FISH = """\
function __weft_words
    set -l at weft
    set -l n 0
    set -l slot ''
    for word in (commandline -opc)[2..-1]
        if test -n "$slot"
            set slot ''
            continue
        end
        switch "$at $word"
            case {paths}
                set at "$at $word"
                set n 0
            case {valued}
                set slot "$at $word"
            case '* -*'
            case '*'
                set n (math $n + 1)
        end
    end
    set -l fits
    if test -z "$slot"
        set slot "$at @$n"
        switch "$at"
{commands}
        end
    end
    if not string match -q -- '-*' (commandline -ct)
        switch "$slot"
{values}
        end
    end
    if not string match -q -- (commandline -ct)'*' $fits
        switch "$slot"
            case {files}
                __fish_complete_path (commandline -ct)
        end
    end
    string join \\n -- $fits
end
complete -c weft -f -a "(__weft_words)\""""
_FORMS = {
    "bash": ("|", '"{}"{}', '            {}) words="{}" ;;'),
    "zsh": ("|", '"{}"{}', '            ({}) fits="{}" ;;'),
    "fish": (" ", "'{}{}'", "            case {}\n                set fits {}"),
}
"""How each shell joins patterns, writes one (its rest is a wildcard or nothing), and writes a case."""
_PATHS = re.compile(r"FILE|FOLDER|DIR|PATH")


class Shell(StrEnum):
    """A shell that a script is written for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Whose script to print.")]) -> None:
    """Print a script that completes commands and options in bash, zsh or fish.

    bash: add `source <(weft completion bash)` to ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: `weft completion fish > ~/.config/fish/completions/weft.fish`.
    """
    joint, pattern, case = _FORMS[shell]
    slots = list(_slots(typer.main.get_command(weft), "weft"))

    def one_of(chosen: Iterable[Slot]) -> str:
        return joint.join(pattern.format(slot.place.rstrip("*"), "*" * slot.is_open) for slot in chosen)

    def cases(chosen: Iterable[Slot]) -> str:
        by_words: dict[tuple[str, ...], list[Slot]] = {}
        for slot in chosen:
            by_words.setdefault(slot.words, []).append(slot)
        return "\n".join(case.format(one_of(same), " ".join(words)) for words, same in by_words.items())

    script = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}[shell]
    commands = [slot for slot in slots if slot.kind == "command"]
    typer.echo(
        script.format(
            paths=one_of(commands[1:]),
            valued=one_of(slot for slot in slots if slot.kind == "option"),
            commands=cases(commands),
            values=cases(
                slot for slot in slots if slot.kind != "command" and (slot.words or slot.takes_path)
            ),
            files=one_of(slot for slot in slots if slot.takes_path),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place in a command line, and the words that fit there.

    `place` is a command, a command with an option, or a command with the number of an argument behind an @.
    """

    place: str
    kind: Literal["command", "option", "argument"]
    words: tuple[str, ...] = ()
    takes_path: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it stands for all further arguments."""
        return self.place.endswith("*")


def _slots(command: Any, path: str) -> Iterator[Slot]:
    """Yield the slots of a command, and then those of its subcommands."""
    context = command.make_context(path, [], resilient_parsing=True)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    params = command.get_params(context)
    options = [param for param in params if param.param_type_name == "option"]
    flags = [name for param in options for name in (*param.opts, *param.secondary_opts)]
    yield Slot(place=path, kind="command", words=(*names, *flags))
    for param in options:
        for name in () if param.is_flag else param.opts:
            yield _filled(param, context, Slot(place=f"{path} {name}", kind="option"))
    for number, param in enumerate(param for param in params if param not in options):
        which = "*" if param.nargs < 0 else number
        yield _filled(param, context, Slot(place=f"{path} @{which}", kind="argument"))
    for name in names:
        yield from _slots(command.get_command(context, name), f"{path} {name}")


def _filled(param: Any, context: Any, slot: Slot) -> Slot:
    """Add what fits: the values that a parameter takes, and paths where its help names one."""
    items = param.shell_complete(context, "")
    words = tuple(item.value for item in items if item.type == "plain")
    return replace(slot, words=words, takes_path=bool(_PATHS.search(param.metavar or "")))
