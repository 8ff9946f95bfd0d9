"""Times the store: writing, searching, blocks, and builds whose history is in the database.

Everything is on disk and durable when its call returns. What is compared takes turns.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
from rich.progress import Progress

import weft
from chatter import Chatter
from plain_search import SEARCH_GOAL, WARM_UP, PlainIndex, SearchBench, SearchRow, bare_connection
from timing import arguments, at_least, milliseconds, out, p50, table, workplace, write_json
from weft import ContextBuilder, Store

BUILD_GOAL = 1.5
LEAST, LARGE = 1_000, 1_000_000
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
    """Messages per second into a new file: one by one, 1,000 in each call, and many calls at once.

    `bare` is one by one too: a bare insert of the same texts into a table, with the same settings, by apsw.
    `of_bare` is our rate as a share of that. Both are of the median: a busy disk stalls now and then.
    """

    singly: float
    bare: float
    of_bare: float
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
    with closing(PlainIndex(folder / "plain.db")) as plain:
        async with await weft.open(path) as store:
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
    async with await weft.open(path) as store:
        session = await _session(store, "inserts")
        await store.messages.append(session, *chatter.messages(2))
        singly, bare = [], []
        with closing(bare_connection(path.with_name("bare.db"))) as db:
            db.execute("create table texts(id integer primary key, role text, content text, at real) strict")
            for message in progress.track(one_by_one, description="inserting one by one"):
                singly.append(await milliseconds(store.messages.append(session, message)))
                bare.append(await milliseconds(asyncio.to_thread(_bare_insert, db, message)))
        bulk = [
            await milliseconds(store.messages.append(session, *batch))
            for batch in progress.track(batches, description="inserting in bulk")
        ]
        appends = [store.messages.append(session, message) for message in at_once]
        concurrent_ms = await milliseconds(asyncio.gather(*appends))
    return Inserts(
        singly=1000 / p50(singly),
        bare=1000 / p50(bare),
        of_bare=p50(bare) / p50(singly),
        bulk=len(bulk) * _BATCH / sum(bulk) * 1000,
        concurrent=len(at_once) / concurrent_ms * 1000,
    )


def _bare_insert(db: apsw.Connection, message: weft.Message) -> None:
    row = (message.role, message.content, time.time())
    db.execute("insert into texts(role, content, at) values(?, ?, ?)", row)


async def _blocks(path: Path, effort: Effort, progress: Progress) -> Blocks:
    """Edit and load a new block each round beside the long one, at every distance from its last snapshot."""
    chatter = Chatter()
    edit_new, edit_long, load_new, load_long = [], [], [], []
    async with await weft.open(path) as store:
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
    async with await weft.open(path) as fresh:
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
        """Write until there are `messages` of them; only our writes are timed."""
        write_ms, text_bytes = 0.0, 0
        for done in progress.track(
            range(held, messages, _BATCH), description=f"writing {messages:,} messages"
        ):
            batch = self.chatter.messages(min(_BATCH, messages - done))
            text_bytes += sum(len(message.content) for message in batch)
            write_ms += await milliseconds(self.store.messages.append(self.session, *batch))
            await self.plain.add(batch)
        files = await asyncio.to_thread(lambda: list(self.path.parent.glob(f"{self.path.name}*")))
        return Size(
            messages=messages,
            grown_per_second=(messages - held) / write_ms * 1000,
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


def _sizes(text: str) -> set[int]:
    """Parse numbers with commas between them."""
    sizes = {int(part) for part in text.split(",")}
    if min(sizes) < LEAST:
        raise argparse.ArgumentTypeError(f"give whole numbers from {LEAST} on, such as 10000,100000")
    return sizes


def _show(report: StoreReport) -> None:
    _show_searches(report)
    inserts, blocks, builds = report.inserts, report.blocks, report.builds
    rows = table("what", "p50 or rate", "beside it")
    bare = f"bare insert {inserts.bare:,.0f}/s: {inserts.of_bare:.2f} of it"
    rows.add_row("inserts, one by one, durable", f"{inserts.singly:,.0f}/s", bare)
    rows.add_row(
        "inserts, 1,000 in a call", f"{inserts.bulk:,.0f}/s", f"{inserts.bulk / inserts.singly:.0f}x"
    )
    many = f"{inserts.concurrent / inserts.singly:.0f}x"
    rows.add_row("inserts, many calls at once", f"{inserts.concurrent:,.0f}/s", many)
    long = f"with {blocks.edits:,} edits"
    rows.add_row(
        "edit of a block, durable", f"{blocks.edit_new_ms:.2f} ms", f"{long} {blocks.edit_long_ms:.2f} ms"
    )
    rows.add_row(
        "load of a block, fresh store", f"{blocks.load_new_ms:.2f} ms", f"{long} {blocks.load_long_ms:.2f} ms"
    )
    long = f"of {builds.long_messages:,} {builds.long_p50_ms:.2f} ms"
    rows.add_row(f"build, session of {builds.short_messages:,}", f"{builds.short_p50_ms:.2f} ms", long)
    out.print()
    out.print(rows)
    out.print()
    for row in report.searches:
        out.print(
            f"search of {row.messages:,} / plain FTS5: {row.ratio:.2f} (goal at most {SEARCH_GOAL}); "
            f"without the thread in plain: {row.ratio_to_raw_inside:.2f}; "
            f"to lean SQL: {row.ratio_to_lean:.2f}; same hits: {row.agreement:.0%}"
        )
    out.print(
        f"build from {builds.long_messages:,} messages / from {builds.short_messages:,}: "
        f"{builds.ratio:.2f} (goal at most {BUILD_GOAL})"
    )
    out.print(
        f"Warm-up: {WARM_UP} queries at each size, one build of each session, one append. One agent owns all "
        "messages that are searched; builds recall nothing; lean SQL picks the best ten before it reads them."
    )


def _show_searches(report: StoreReport) -> None:
    titles = ("messages", "written", "file/message", "text/message")
    rows = table(*titles, "search p50", "p95", "plain p50", "p95", "lean p50")
    for size, row in zip(report.sizes, report.searches, strict=True):
        times = (row.ours_p50_ms, row.ours_p95_ms, row.raw_p50_ms, row.raw_p95_ms, row.lean_p50_ms)
        rows.add_row(
            f"{size.messages:,}",
            f"{size.grown_per_second:,.0f}/s",
            f"{size.file_bytes_per_message:,.0f} B",
            f"{size.text_bytes_per_message:,.0f} B",
            *(f"{figure:.2f} ms" for figure in times),
        )
    out.print(rows)


def main() -> None:
    parser = arguments("Time writing, searching beside plain full-text search, block edits, and builds.")
    sizes = "sizes of the log to search, with commas between them"
    parser.add_argument("--messages", type=_sizes, default="10000,100000", metavar="N,N", help=sizes)
    parser.add_argument("--large", action="store_true", help="search a million messages, too")
    parser.add_argument("--rounds", type=at_least(5), default=100, help="repetitions of each measurement")
    parser.add_argument("--edits", type=at_least(1), default=1_000, help="edits of the long block")
    options = parser.parse_args()
    messages = tuple(sorted(options.messages | ({LARGE} if options.large else set())))
    effort = Effort(messages=messages, rounds=options.rounds, edits=options.edits)
    with workplace() as (folder, progress):
        report = asyncio.run(measure_store(folder, effort, progress))
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
