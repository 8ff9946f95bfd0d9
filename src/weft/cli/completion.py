"""`weft completion`: a script by which a shell completes commands and options."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from weft.cli.main import app as weft

app = typer.Typer(add_completion=False)

_BASH = """\
_weft() {{
    local at=weft words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in {paths}) at="$at $word" ;; esac
    done
    case "$at" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _weft weft"""

_ZSH = """\
#compdef weft
_weft() {{
    local at=weft word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$at $word" in ({paths}) at="$at $word" ;; esac
    done
    case "$at" in
{cases}
    esac
    _files
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
compdef _weft weft"""

_FISH = """\
function __weft_at
    set -l at weft
    for word in (commandline -opc)[2..-1]
        contains -- "$at $word" {paths}; and set at "$at $word"
    end
    test "$at" = "$argv[1]"
end
{cases}"""


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
    words = dict(_words(typer.main.get_command(weft), "weft"))
    deeper = [path for path in words if path != "weft"]
    if shell is Shell.FISH:
        paths = " ".join(f"'{path}'" for path in deeper)
        cases = [f'complete -c weft -n "__weft_at \'{path}\'" -a "{some}"' for path, some in words.items()]
        typer.echo(_FISH.format(paths=paths, cases="\n".join(cases)))
        return
    paths = "|".join(f'"{path}"' for path in deeper)
    form = '        ("{}") compadd -- {} ;;' if shell is Shell.ZSH else '        "{}") words="{}" ;;'
    script = _ZSH if shell is Shell.ZSH else _BASH
    typer.echo(
        script.format(paths=paths, cases="\n".join(form.format(path, some) for path, some in words.items()))
    )


def _words(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path of a command with its subcommands and options, and then those of its subcommands."""
    context = command.make_context(path, [], resilient_parsing=True)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    options = [name for param in command.get_params(context) for name in param.opts if name.startswith("-")]
    yield path, " ".join((*names, *options))
    for name in names:
        yield from _words(command.get_command(context, name), f"{path} {name}")
