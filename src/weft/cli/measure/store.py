"""How fast the store is: writing, searching, blocks, and builds whose history is in the database.

Everything is on disk and durable when its call returns. What is compared takes turns.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from weft.cli.measure.chatter import Chatter
from weft.cli.measure.search import PlainIndex, SearchBench, SearchRow, plain_index
from weft.cli.measure.times import milliseconds, p50
from weft.compose import Store
from weft.compose import open as open_store
from weft.turn.build import ContextBuilder

BUILD_GOAL = 1.5
SHORT_SESSION = 1_000
_AGENT = "bench"
_BATCH = 1_000
_LONG_BLOCK_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: the sizes of the log, how often each thing is timed, edits of the long block."""

    messages: tuple[int, ...] = (10_000, 100_000)
    rounds: int = 100
    edits: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserts:
    """Messages per second into a new file: one by one, 1,000 in each call, and many calls at once."""

    singly: float
    bulk: float
    concurrent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Medians of a durable edit, and of a load by a store that was just opened.

    The new block has two edits, the long one `edits` and more. A load includes its first connection.
    """

    edits: int
    edit_new_ms: float
    edit_long_ms: float
    load_new_ms: float
    load_long_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A log of one size: messages per second while it grew to it, and how much of the disk each takes."""

    messages: int
    grown_per_second: float
    file_bytes_per_message: float
    text_bytes_per_message: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """Medians of a build for a short and a long session in the same file; nothing is recalled in either."""

    short_messages: int
    long_messages: int
    short_p50_ms: float
    long_p50_ms: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """All that one run measured."""

    inserts: Inserts
    blocks: Blocks
    sizes: tuple[Size, ...]
    searches: tuple[SearchRow, ...]
    builds: Builds


async def measure_store(folder: Path, effort: Effort, progress: Progress) -> StoreReport:
    """Measure everything, in files below the folder."""
    inserts = await _inserts(folder / "inserts.db", effort, progress)
    blocks = await _blocks(folder / "blocks.db", effort, progress)
    path, chatter = folder / "log.db", Chatter()
    async with plain_index(folder / "plain.db") as plain, await open_store(path) as store:
        log = _Log(store, path, plain, chatter, await _session(store, "long"))
        bench = SearchBench(store, _AGENT, plain, Chatter())
        sizes, searches, held = [], [], 0
        for messages in effort.messages:
            sizes.append(await log.grow(held, messages, progress))
            searches.append(await bench.measure(messages, effort.rounds, progress))
            held = messages
        builds = await _builds(log, held, effort, progress)
    return StoreReport(
        inserts=inserts, blocks=blocks, sizes=tuple(sizes), searches=tuple(searches), builds=builds
    )


async def _session(store: Store, conversation: str) -> str:
    return (await store.sessions.new("bench", conversation, "somebody", agent_id=_AGENT)).id


async def _inserts(path: Path, effort: Effort, progress: Progress) -> Inserts:
    chatter = Chatter()
    one_by_one = chatter.messages(3 * effort.rounds)
    batches = [chatter.messages(_BATCH) for _ in range(max(effort.rounds // 10, 1))]
    at_once = chatter.messages(20 * effort.rounds)
    async with await open_store(path) as store:
        session = await _session(store, "inserts")
        await store.messages.append(session, *chatter.messages(2))
        singly = [
            await milliseconds(store.messages.append(session, message))
            for message in progress.track(one_by_one, description="inserting one by one")
        ]
        bulk = [
            await milliseconds(store.messages.append(session, *batch))
            for batch in progress.track(batches, description="inserting in bulk")
        ]
        appends = [store.messages.append(session, message) for message in at_once]
        concurrent_ms = await milliseconds(asyncio.gather(*appends))
    return Inserts(
        singly=len(singly) / sum(singly) * 1000,
        bulk=len(bulk) * _BATCH / sum(bulk) * 1000,
        concurrent=len(at_once) / concurrent_ms * 1000,
    )


async def _blocks(path: Path, effort: Effort, progress: Progress) -> Blocks:
    """A new block each round beside the long one, which passes every distance from its last snapshot."""
    chatter = Chatter()
    edit_new, edit_long, load_new, load_long = [], [], [], []
    async with await open_store(path) as store:
        memory = store.memory
        await memory.create_block(_AGENT, "long", char_limit=_LONG_BLOCK_CHARS)
        for _ in progress.track(range(effort.edits), description="editing the long block"):
            await memory.append_to_block(_AGENT, "long", f"{chatter.word()}\n")
        for at in progress.track(range(effort.rounds), description="editing and loading blocks"):
            label = f"new-{at}"
            await memory.create_block(_AGENT, label)
            await memory.append_to_block(_AGENT, label, f"{chatter.word()}\n")
            text = f"{chatter.word()}\n"
            edit_new.append(await milliseconds(memory.append_to_block(_AGENT, label, text)))
            edit_long.append(await milliseconds(memory.append_to_block(_AGENT, "long", text)))
            load_new.append(await _load_milliseconds(path, label))
            load_long.append(await _load_milliseconds(path, "long"))
    return Blocks(
        edits=effort.edits,
        edit_new_ms=p50(edit_new),
        edit_long_ms=p50(edit_long),
        load_new_ms=p50(load_new),
        load_long_ms=p50(load_long),
    )


async def _load_milliseconds(path: Path, label: str) -> float:
    async with await open_store(path) as fresh:
        return await milliseconds(fresh.memory.get_block(_AGENT, label))


@dataclass(frozen=True, slots=True)
class _Log:
    """A log that grows, in our file and in the plain one."""

    store: Store
    path: Path
    plain: PlainIndex
    chatter: Chatter
    session: str

    async def grow(self, held: int, messages: int, progress: Progress) -> Size:
        """Write until there are so many messages; only the writing of ours is timed."""
        taken_ms, text_bytes = 0.0, 0
        for done in progress.track(
            range(held, messages, _BATCH), description=f"writing {messages:,} messages"
        ):
            batch = self.chatter.messages(min(_BATCH, messages - done))
            text_bytes += sum(len(message.content) for message in batch)
            taken_ms += await milliseconds(self.store.messages.append(self.session, *batch))
            await self.plain.add(batch)
        files = await asyncio.to_thread(lambda: list(self.path.parent.glob(f"{self.path.name}*")))
        return Size(
            messages=messages,
            grown_per_second=(messages - held) / taken_ms * 1000,
            file_bytes_per_message=sum(file.stat().st_size for file in files) / messages,
            text_bytes_per_message=text_bytes / (messages - held),
        )


async def _builds(log: _Log, held: int, effort: Effort, progress: Progress) -> Builds:
    short = await _session(log.store, "short")
    await log.store.messages.append(short, *log.chatter.messages(SHORT_SESSION))
    builder = ContextBuilder(recipe="weft").with_store(log.store)
    builders = {name: builder.with_session(name) for name in (short, log.session)}
    question = " ".join(log.chatter.query())
    times: dict[str, list[float]] = {short: [], log.session: []}
    for warm_up in builders.values():
        await warm_up.build(question)
    for at in progress.track(range(effort.rounds), description="building with history from the file"):
        for session in (short, log.session) if at % 2 else (log.session, short):
            times[session].append(await milliseconds(builders[session].build(question)))
    short_ms, long_ms = p50(times[short]), p50(times[log.session])
    return Builds(
        short_messages=SHORT_SESSION,
        long_messages=held,
        short_p50_ms=short_ms,
        long_p50_ms=long_ms,
        ratio=long_ms / short_ms,
    )
