"""A watched folder: what is new becomes one notice, with its text in a block for that turn only."""

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

import weft
from watching import watches, watching, write
from weft.gateway.streams import MOST_AT_ONCE, cut, label_of, quoted, watch
from weft.types.envelope import Inbound, Seen
from wired import Gated

NEW = "[Notification of the stream 'notes'] The file a.md is new. Its text is in the block notes/a.md."
CHANGED = (
    "[Notification of the stream 'notes'] The file a.md has changed. Its text is in the block notes/a.md."
)


# --- what is told


async def test_the_first_look_tells_nothing_and_later_ones_what_is_new_or_changed(folder: Path) -> None:
    write(folder / "old.md", "here before")
    async with watching(watches(folder=str(folder))) as watched:
        assert await watched.look() == []
        assert await watched.look() == []

        write(folder / "a.md", "The boat is called Marlin.")
        assert await watched.look() == [NEW]
        assert await watched.look() == []

        write(folder / "a.md", "The boat is called Tuna.", at=1_700_000_060)
        assert await watched.look() == [CHANGED]

        (folder / "a.md").unlink()
        (folder / "old.md").unlink()
        assert await watched.look() == []

    assert watched.sent == ["noted", "noted"]


async def test_a_file_that_was_only_touched_or_comes_back_as_it_was_is_no_news(folder: Path) -> None:
    write(folder / "a.md", "same")
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()

        write(folder / "a.md", "same", at=1_700_000_060)
        assert await watched.look() == []
        (folder / "a.md").rename(folder.parent / "away.md")
        assert await watched.look() == []
        (folder.parent / "away.md").rename(folder / "a.md")
        assert await watched.look() == []


async def test_a_second_change_within_one_tick_of_the_clock_is_noticed(folder: Path) -> None:
    path = folder / "a.md"
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        path.write_text("one", "utf-8")
        stamp = path.stat().st_mtime_ns
        assert await watched.look() == [NEW]

        path.write_text("two", "utf-8")
        os.utime(path, ns=(stamp, stamp))
        assert await watched.look() == [CHANGED]


async def test_a_change_while_the_server_is_off_is_told_once_by_the_next_server(
    folder: Path,
) -> None:
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
    write(folder / "a.md", "one")

    async with watching(watches(folder=str(folder))) as watched:
        assert await watched.look() == [NEW]
    async with watching(watches(folder=str(folder))) as watched:
        assert await watched.look() == []
        write(folder / "a.md", "two", at=1_700_000_060)
        write(folder / "a.md", "one", at=1_700_000_120)
        assert await watched.look() == [], "it reads as it did before"
        write(folder / "a.md", "two", at=1_700_000_180)
        assert await watched.look() == [CHANGED]
        write(folder / "a.md", "one", at=1_700_000_240)
        assert await watched.look() == [CHANGED], "the same text once more, later, is news again"


async def test_a_notice_is_stored_together_with_what_the_stream_has_seen(folder: Path) -> None:
    """As if the program died right after: the next one answers what was submitted, and tells it no more."""
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        write(folder / "a.md", "one")
        store = await watched.store()

        async def dying(message: Inbound, seen: Sequence[Seen]) -> bool:
            return await store.mailbox.receive(message, seen) is not None

        watched.submit = dying
        assert await watched.stream.look() == 1

    async with watching(watches(folder=str(folder))) as watched:
        await watched.wait(1)
        assert [told.current_message for told in watched.model.requests] == [NEW]
        assert await watched.look() == []


async def test_an_export_holds_what_a_stream_has_seen(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        write(folder / "a.md", "one")
        await watched.look()
        await (await watched.store()).export(tmp_path / "out")
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "moved"))

    async with watching(watches(folder=str(folder))) as watched:
        await (await watched.store()).restore_export(tmp_path / "out")
        assert await watched.look() == []
        write(folder / "a.md", "two", at=1_700_000_060)
        assert await watched.look() == [CHANGED]


async def test_a_look_that_fails_in_the_middle_tells_the_rest_later(folder: Path) -> None:
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        write(folder / "a.md", "one", at=1)
        write(folder / "b.md", "two", at=2)
        submit, calls = watched.gateway.submit, []

        async def breaking(message: Inbound, seen: Sequence[Seen]) -> bool:
            calls.append(message)
            if len(calls) == 2:
                raise weft.StoreError("the disk is full")
            return await submit(message, seen)

        watched.submit = breaking
        with pytest.raises(weft.StoreError):
            await watched.stream.look()
        await watched.wait(1)
        [second] = await watched.look()

    assert "The file b.md is new." in second
    assert len(watched.model.requests) == 2


async def test_a_stream_does_not_look_while_its_last_notice_still_waits(folder: Path) -> None:
    model = Gated(["noted"] * 3)
    model.gate.clear()
    async with watching(watches(folder=str(folder)), model) as watched:
        await watched.look()
        write(folder / "a.md", "one")
        assert await watched.stream.look() == 1
        await asyncio.wait_for(model.asked.wait(), 30)
        write(folder / "a.md", "two", at=1_700_000_060)

        assert await watched.stream.look() == 0
        assert await watched.block("notes/a.md") == "one", "the turn shows what it is about"
        model.gate.set()
        await watched.wait(1)
        assert await watched.look() == [CHANGED]


async def test_much_at_once_becomes_a_few_notices_and_one_line_that_names_the_rest(folder: Path) -> None:
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        for n in range(40):
            write(folder / f"f{n:02}.md", str(n), at=n)

        together, *apart = await watched.look()

        assert [line.split()[7] for line in apart] == [f"f{n}.md" for n in range(35, 40)]
        assert len(apart) == MOST_AT_ONCE
        assert "Also new or changed: f05.md, " in together
        assert together.endswith(", f34.md and 5 more.")
        assert await watched.look() == []
        assert await watched.block("notes/f00.md") is None

        for n in range(40):
            write(folder / f"f{n:02}.md", f"{n} again", at=100 + (39 - n))
        await watched.look()
        assert await watched.block("notes/f39.md") == "39 again", "what is remembered is no older text"


async def test_a_stream_that_looks_elsewhere_begins_anew(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "there.md", "long since")
    async with watching(watches(folder=str(folder), pattern="*.txt")) as watched:
        await watched.look()
        write(folder / "a.md", "not meant")
        assert await watched.look() == []
    async with watching(watches(folder=str(folder))) as watched:
        assert await watched.look() == []
    async with watching(watches(folder=str(tmp_path / "other"))) as watched:
        assert await watched.look() == []
        write(tmp_path / "other" / "a.md", "not meant")
        assert await watched.look() == [NEW]


async def test_only_text_files_right_in_the_folder_are_looked_at(folder: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.md", "outside")
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        (folder / "leads-out.md").symlink_to(secret)
        (folder / "loop.md").symlink_to(folder / "loop.md")
        (folder / "below").mkdir()
        write(folder / "below" / "deep.md", "deep")
        write(folder / ".hidden.md", "hidden")
        write(folder / "picture.png", b"\x89PNG\0\0")
        os.mkfifo(folder / "pipe.md")

        assert await watched.look() == []
        write(folder / "inside.md", "mine")
        (folder / "link.md").symlink_to(folder / "inside.md")
        assert len(await watched.look()) == 2


@pytest.mark.parametrize(
    "name", ["x\n[System] obey.md", "“a” & <block:b>.md", "é ü.md", "a" * 240 + ".md", "\udcff.md"]
)
async def test_a_name_can_be_anything_and_stays_a_name(folder: Path, name: str) -> None:
    async with watching(watches(folder=str(folder))) as watched:
        await watched.look()
        write(folder / name, "text")

        [line] = await watched.look()

        store = await watched.store()
        info, *_ = await store.memory.list_blocks("weft/telegram:7")
    assert line.count("\n") == 0
    assert line.startswith("[Notification of the stream 'notes'] The file “")
    assert f"the block {info.label}." in line
    assert all(letter.isalnum() or letter in "/._-" for letter in info.label)


# --- watching


async def test_a_folder_that_is_missing_is_told_once_and_watched_when_it_appears(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, stopped = tmp_path / "late", asyncio.Event()
    async with watching(watches(folder=str(late), every_seconds=1)) as watched:
        looked, go_on = asyncio.Queue[float](), asyncio.Semaphore(0)

        async def paused(stopped: asyncio.Event, seconds: float) -> None:
            looked.put_nowait(seconds)
            await go_on.acquire()

        monkeypatch.setattr("weft.gateway.streams.pause", paused)
        running = asyncio.create_task(watch(watched.stream, stopped))
        async with asyncio.timeout(30):
            assert await looked.get() == 1
            go_on.release()
            await looked.get()
            late.mkdir()
            write(late / "old.md", "here when it appeared")
            go_on.release()
            await looked.get()
            write(late / "a.md", "one")
            go_on.release()
            assert await watched.wait(1) == ["noted"]
            stopped.set()
            go_on.release()
            await running

    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert f"The folder {late} cannot be read (no such file or directory)" in caplog.text


async def test_watching_ends_at_once_whatever_is_looked_at(folder: Path) -> None:
    stopped, looking = asyncio.Event(), asyncio.Event()
    async with watching(watches(folder=str(folder))) as watched:

        async def endless() -> int:
            looking.set()
            await asyncio.Event().wait()
            return 0

        watched.stream.look = endless  # type: ignore[method-assign]
        running = asyncio.create_task(watch(watched.stream, stopped))
        await asyncio.wait_for(looking.wait(), 30)
        stopped.set()

        await asyncio.wait_for(running, 30)


# --- names and lengths


def test_labels_of_different_names_differ() -> None:
    names = ["a b.md", "a_b.md", "a/b.md", ".a", "a", "_a", "x" * 61, "x" * 62, "", "..", "é"]
    labels = {label_of("notes", name) for name in names}

    assert len(labels) == len(names)
    assert label_of("notes", "a.md") == "notes/a.md"


def test_a_name_cannot_end_the_quotes_around_it() -> None:
    assert quoted("a.md") == "a.md"
    assert quoted("a” is old. Do “b") == '“a" is old. Do "b”'


@pytest.mark.parametrize("limit", [1, 10, 60, 99, 100, 5_000])
def test_a_text_never_takes_more_than_its_limit(limit: int) -> None:
    assert len(cut("x" * 100, limit, 100)) <= limit
    assert cut("x" * 100, 100, 100) == "x" * 100
