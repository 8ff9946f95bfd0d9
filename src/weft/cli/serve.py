"""`weft serve`: the assistant that stays on."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.logs import log_to_stderr
from weft.cli.options import PERSON, ModelName, ProviderName, RecipeName, Workspace, run, settings
from weft.compose import connect, make_channels, make_folder, make_servers
from weft.config import Config, LogFormat, LogLevel
from weft.errors import ConfigError, ProviderError, StoreError, did_you_mean
from weft.gateway.assistant import Assistant
from weft.gateway.background import delete_old, fire_tasks, learn_from_idle
from weft.gateway.channel import Channel, Server
from weft.gateway.dispatcher import Dispatcher
from weft.gateway.engine import Engine
from weft.gateway.streams import Stream, watch
from weft.private_files import private_opener
from weft.providers.base import describe

app = typer.Typer(add_completion=False)

_SWITCH_SECONDS, _NEW_OBJECTS = 0.0005, 20_000
_GRACE_SECONDS = 10.0
"""How long the rest may take to end after `gateway.stop_seconds`: clients take answers, the store closes."""

UNIT = """[Unit]
Description=Weft, an assistant that stays on
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={command} serve
Restart=on-failure
RestartSec=5
TimeoutStopSec=180
NoNewPrivileges=true
{environment}
[Install]
WantedBy=default.target
"""


@app.command()
def serve(
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    workspace: Workspace = None,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Where HTTP listens.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Its port; 0: a free one.")
    ] = None,
    log_level: Annotated[
        LogLevel | None, typer.Option("--log-level", help="How much to log to stderr.")
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option("--log-format", help="Lines for people, or JSON for programs.")
    ] = None,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a systemd unit for this, and stop.")
    ] = False,
) -> None:
    """Stay on: answer on all channels of the settings, tell tasks, learn from what was said."""
    if print_unit:
        home = os.environ.get("WEFT_HOME")
        environment = f"Environment=WEFT_HOME={home}\n" if home else ""
        typer.echo(UNIT.format(command=_this_program(), environment=environment), nl=False)
        return
    config = settings(recipe=recipe, provider=provider, model=model, workspace=workspace)
    http = replace(
        config.http, host=host or config.http.host, port=config.http.port if port is None else port
    )
    logs = replace(config.logs, level=log_level or config.logs.level, format=log_format or config.logs.format)
    config = replace(config, http=http, logs=logs)
    log_to_stderr(config.logs)
    # The store's threads hand back short pieces of work, which should not wait 5 ms for a busy loop.
    sys.setswitchinterval(_SWITCH_SECONDS)
    deadline = Deadline(config.gateway.stop_seconds + _GRACE_SECONDS)
    with only_one(config), deadline:
        run(_serve(config, deadline))


def _this_program() -> str:
    """Return the command of this program with its whole path, as systemd wants it."""
    program = Path(sys.argv[0]).resolve()
    return f"{sys.executable} -m weft" if program.name == "__main__.py" else str(program)


class Deadline:
    """The time in which a server ends once it was told to, whatever does not listen: a thread, a tool.

    What is stored is safe, and the next start settles the turns that were left behind.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._leave)
        self._timer.daemon = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def begin(self) -> None:
        self._timer.start()

    def _leave(self) -> None:
        _say("something did not end in time and was left behind")
        sys.stderr.flush()
        os._exit(1)


async def _serve(config: Config, deadline: Deadline) -> None:
    assistant = await connect(config)
    try:
        channels, servers = make_channels(config), make_servers(config)
        if not channels and not servers and not config.streams:
            raise ConfigError("There is nothing to serve: set `telegram.token` or `http.enabled`.")
        _check_streams(config, channels)
        spare_collector()
        await _stay_on(config, assistant, channels, servers, deadline)
    finally:
        await assistant.close()


async def _stay_on(
    config: Config,
    assistant: Assistant,
    channels: list[Channel],
    servers: list[Server],
    deadline: Deadline | None = None,
) -> None:
    """Run every part until a signal comes or a part fails; then end in order, and in time."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    engine = assistant.engine
    # Nobody writes over the terminal here, but the owner reads notices in `weft chat`.
    assistant.allowed[PERSON.channel] = (PERSON.sender_id,)
    dispatcher = Dispatcher(assistant, channels)
    await dispatcher.resume()
    _say(await _who_answers(engine))
    work = [channel.run(dispatcher.submit) for channel in channels]
    for channel in channels:
        _say(f"{channel.name} is open")
    work += [
        dispatcher.deliver(),
        fire_tasks(
            assistant.store,
            dispatcher.look_again,
            stopped,
            acting=_readable(channels),
            min_repeat_seconds=config.tasks.min_repeat_seconds,
        ),
        learn_from_idle(engine, config.learn, stopped),
        delete_old(assistant.store, config.turns, stopped),
    ]
    for each in config.streams:
        work.append(watch(Stream(each, assistant.store, dispatcher.submit), stopped))
        whom = f"{each.channel}:{each.sender}"
        _say(f"the stream {each.name!r} watches {each.place} every {each.seconds:g} s for {whom}")
    blocks = [layer for layer in engine.builder.recipe.layers if layer.source == "blocks"]
    if config.streams and not any(layer.options.get("kind") == "working" for layer in blocks):
        _say("this recipe shows no working blocks: what a stream tells comes without its text")
    work += [server.run(assistant, stopped, _say) for server in servers]
    assistant.indexing.begin()
    parts = [asyncio.create_task(_part(each, stopped)) for each in work]
    _say("tasks fire when they are due")
    _say("idle conversations are learned from" if config.learn.enabled else "nothing is learned")
    await stopped.wait()
    if deadline is not None:
        deadline.begin()
    _say("stopping: running turns come to their end")
    for channel in channels:
        await channel.stop()
    await dispatcher.stop()
    for channel in channels:
        await channel.close()
    for ended in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended


def spare_collector() -> None:
    """Take what is loaded by now out of the garbage collector's sight: it stays until the end anyway.

    Looking through half a million objects of modules stops all threads for a tenth of a second, each time.
    A turn makes a few thousand objects, and most of them go without it: it looks for others less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _check_streams(config: Config, channels: list[Channel]) -> None:
    """Refuse a stream to a channel that nobody would read.

    Raises:
        ConfigError: a stream names a channel that is not open.
    """
    known = _readable(channels)
    for stream in config.streams:
        if stream.channel not in known:
            raise ConfigError(
                f"The stream {stream.name!r} goes to the channel {stream.channel!r}, which is not open: "
                f"{did_you_mean(stream.channel, known)}"
            )


def _readable(channels: list[Channel]) -> list[str]:
    """Return the channels where people read messages that they did not ask for."""
    return [*(channel.name for channel in channels), PERSON.channel]


async def _part(work: Awaitable[None], stopped: asyncio.Event) -> None:
    """Run one part of the server. If it fails, all parts end."""
    ended = False
    try:
        await work
        ended = True
    finally:
        if not ended:
            stopped.set()


async def _who_answers(engine: Engine) -> str:
    """Say which model is asked, and where. A server that has one model decides that itself."""
    try:
        info = await describe(engine.provider)
    except ProviderError as error:
        return f"{engine.choice.provider} cannot answer yet: {error}"
    place = f" at {info.address}" if info.address else ""
    return f"{engine.choice.provider} answers ({info.id}{place}): {engine.choice.why}"


def _say(line: str) -> None:
    typer.echo(f"weft: {line}", err=True)


@contextmanager
def only_one(config: Config) -> Iterator[None]:
    """Hold the lock of the one server of this home.

    Raises:
        ConfigError: another server runs.
        StoreError: the home cannot be written to.
    """
    home = config.paths.data_dir
    make_folder(home)
    try:
        lock = open(home / "serve.lock", "w", opener=private_opener)  # noqa: SIM115 - closed below
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(
            f"{home} cannot be written to ({reason}), and a server must keep what is said: "
            "check its permissions, or set WEFT_HOME."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"Another `weft serve` runs in {home}: stop it first, or set WEFT_HOME."
            ) from None
        yield
