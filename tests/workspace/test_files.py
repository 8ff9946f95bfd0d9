"""Reading the files of a workspace: together, once, and never a crash."""

import asyncio
import os
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

import weft
from weft.types.recipe import Reload
from weft.workspace import files
from weft.workspace.files import CAP_BYTES, LARGE_BYTES, FileAt, FileReader, FileText, file_at, open_workspace

LONG_AGO = 1_000_000_000


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Patched:
    """A module as the reader sees it, with a few functions of our own; nobody else sees them."""

    def __init__(self, module: ModuleType, **own: object) -> None:
        self.__dict__.update(own)
        self._module = module

    def __getattr__(self, name: str) -> object:
        return getattr(self._module, name)


def write(path: Path, content: str | bytes, *, at: int | None = LONG_AGO) -> Path:
    """A file that was last changed at a given time; None: now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    if at is not None:
        os.utime(path, (at, at))
    return path


async def read_one(root: Path, name: str, reader: FileReader | None = None) -> FileText:
    [found] = await (reader or FileReader()).read([file_at(root, name)])
    return found


# --- reading


async def test_files_come_back_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / name, f"text of {name}")

    found = await FileReader().read([file_at(tmp_path, name) for name in "cab"])

    assert [file.text for file in found] == ["text of c", "text of a", "text of b"]
    assert [file.warning for file in found] == ["", "", ""]


async def test_changed_files_are_read_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read waits for the other: one after the other would never get past the barrier."""
    barrier = threading.Barrier(2, timeout=10)

    def open_together(path: str, flags: int) -> int:
        barrier.wait()
        return os.open(path, flags)

    for name in "ab":
        write(tmp_path / name, name)
    monkeypatch.setattr(files, "os", Patched(os, open=open_together))

    found = await FileReader().read([file_at(tmp_path, name) for name in "ab"])

    assert [file.text for file in found] == ["a", "b"]


async def test_the_same_file_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "a", "text")
    reader = FileReader()

    found = await reader.read([file_at(tmp_path, "a"), file_at(tmp_path, "a")])

    assert [file.text for file in found] == ["text", "text"]
    assert reader.reads == 1


async def test_no_files_asked_for_are_no_files_read() -> None:
    assert await FileReader().read([]) == []


async def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    write(tmp_path / "a", b"\xef\xbb\xbfhello")

    assert (await read_one(tmp_path, "a")).text == "hello"


async def test_an_empty_file_is_empty_text_and_no_warning(tmp_path: Path) -> None:
    write(tmp_path / "a", "")

    assert await read_one(tmp_path, "a") == FileText(str(tmp_path / "a"), "")


# --- remembering


@pytest.fixture
def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read long after they were written, so that what was read of them can be trusted."""
    hour_ns = 3600 * 10**9
    monkeypatch.setattr(files, "time", Patched(time, time_ns=lambda: time.time_ns() + hour_ns))


@pytest.mark.usefixtures("an_hour_later")
async def test_an_unchanged_file_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    reader = FileReader()

    first, second = await read_one(tmp_path, "a", reader), await read_one(tmp_path, "a", reader)

    assert first is second
    assert reader.reads == 1


@pytest.mark.usefixtures("an_hour_later")
async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    reader = FileReader()
    await read_one(tmp_path, "a", reader)

    write(tmp_path / "a", "two", at=LONG_AGO + 1)

    assert (await read_one(tmp_path, "a", reader)).text == "two"


@pytest.mark.usefixtures("an_hour_later")
async def test_a_file_that_appears_or_goes_is_noticed(tmp_path: Path) -> None:
    reader = FileReader()
    assert (await read_one(tmp_path, "a", reader)).missing

    path = write(tmp_path / "a", "here")
    assert (await read_one(tmp_path, "a", reader)).text == "here"

    path.unlink()
    assert (await read_one(tmp_path, "a", reader)).missing


@pytest.mark.usefixtures("an_hour_later")
async def test_a_file_that_another_takes_the_place_of_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    reader = FileReader()
    await read_one(tmp_path, "a", reader)

    write(tmp_path / "b", "two").rename(tmp_path / "a")

    assert (await read_one(tmp_path, "a", reader)).text == "two"


@pytest.fixture
def coarse_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose time stamps do not move between two writes."""
    seen: dict[str, os.stat_result] = {}

    def stat(path: str) -> os.stat_result:
        return seen.setdefault(path, os.stat(path))

    monkeypatch.setattr(files, "os", Patched(os, stat=stat))


@pytest.mark.usefixtures("coarse_clock")
async def test_a_change_of_the_same_size_under_the_same_time_stamp_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "a", "one", at=None)
    reader = FileReader()
    await read_one(tmp_path, "a", reader)

    write(tmp_path / "a", "two", at=None)

    assert (await read_one(tmp_path, "a", reader)).text == "two"


@pytest.mark.usefixtures("coarse_clock")
async def test_such_a_change_is_noticed_in_a_file_that_was_just_copied_with_its_old_time(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a", "one", at=LONG_AGO)
    reader = FileReader()
    await read_one(tmp_path, "a", reader)

    write(tmp_path / "a", "two", at=LONG_AGO)

    assert (await read_one(tmp_path, "a", reader)).text == "two"


@pytest.mark.parametrize(
    ("passed", "reload", "expected"),
    [
        (0.0, "per_turn", "two"),
        (0.0, "startup", "one"),
        (9999.0, "startup", "one"),
        (0.0, "ttl", "one"),
        (29.9, "ttl", "one"),
        (30.0, "ttl", "two"),
    ],
)
async def test_the_reload_rule_says_when_a_change_is_seen(
    tmp_path: Path, passed: float, reload: Reload, expected: str
) -> None:
    clock = Clock()
    reader = FileReader(monotonic=clock)
    place = [file_at(write(tmp_path / "a", "one").parent, "a")]
    await reader.read(place, reload=reload)

    write(tmp_path / "a", "two", at=LONG_AGO + 1)
    clock.now += passed

    assert [file.text for file in await reader.read(place, reload=reload)] == [expected]


@pytest.mark.usefixtures("an_hour_later")
async def test_a_look_that_finds_no_change_starts_the_time_anew(tmp_path: Path) -> None:
    clock = Clock()
    reader = FileReader(monotonic=clock)
    place = [file_at(write(tmp_path / "a", "one").parent, "a")]
    await reader.read(place, reload="ttl", ttl_seconds=10)
    clock.now += 10
    await reader.read(place, reload="ttl", ttl_seconds=10)
    write(tmp_path / "a", "two", at=LONG_AGO + 1)
    clock.now += 9

    found = await reader.read(place, reload="ttl", ttl_seconds=10)

    assert [file.text for file in found] == ["one"]
    assert reader.reads == 1


async def test_a_file_missing_at_startup_stays_missing_until_told_to_forget(tmp_path: Path) -> None:
    reader = FileReader()
    place = [file_at(tmp_path, "a")]
    await reader.read(place, reload="startup")
    write(tmp_path / "a", "here")

    kept = await reader.read(place, reload="startup")
    reader.forget()
    found = await reader.read(place, reload="startup")

    assert (kept[0].missing, found[0].text) == (True, "here")


@pytest.mark.usefixtures("an_hour_later")
async def test_what_one_folder_may_read_is_not_given_to_another_that_may_not(tmp_path: Path) -> None:
    write(tmp_path / "outside.md", "not for skills")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "link.md").symlink_to(tmp_path / "outside.md")
    os.utime(tmp_path / "outside.md", (LONG_AGO, LONG_AGO))
    reader = FileReader()

    wide = await read_one(tmp_path, "skills/link.md", reader)
    narrow = await read_one(tmp_path / "skills", "link.md", reader)

    assert wide.text == "not for skills"
    assert narrow.text is None


# --- large files


async def test_a_file_at_the_limit_is_not_large(tmp_path: Path) -> None:
    write(tmp_path / "a", b"x" * LARGE_BYTES)

    found = await read_one(tmp_path, "a")

    assert (len(found.text or ""), found.warning) == (LARGE_BYTES, "")


@pytest.mark.parametrize("size", [LARGE_BYTES + 1, CAP_BYTES])
async def test_a_large_file_is_read_whole_and_says_so(tmp_path: Path, size: int) -> None:
    write(tmp_path / "a", b"x" * size)

    found = await read_one(tmp_path, "a")

    assert len(found.text or "") == size
    assert found.warning == f"{tmp_path / 'a'} is large: all of its {size} bytes were read."


async def test_a_large_file_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(handle: int, size: int) -> bytes:
        asked.append(size)
        return os.read(handle, size)

    write(tmp_path / "a", b"x" * (LARGE_BYTES + 1))
    monkeypatch.setattr(files, "os", Patched(os, read=counted))

    await read_one(tmp_path, "a")

    assert len(asked) >= 4
    assert max(asked) <= files.CHUNK_BYTES


async def test_a_file_over_the_cap_is_cut_at_a_lines_end_with_a_notice(tmp_path: Path) -> None:
    line = b"twelve bytes"
    size = write(tmp_path / "a", (line + b"\n") * (CAP_BYTES // 13 + 10)).stat().st_size

    found = await read_one(tmp_path, "a")

    text = found.text or ""
    shown, _, notice = text.rpartition("\n")
    assert shown.endswith("\ntwelve bytes")
    assert notice == f"[The file goes on: {len(shown)} of {size} bytes are shown.]"
    assert found.warning == f"{tmp_path / 'a'} is large: {len(shown)} of {size} bytes were read."
    assert CAP_BYTES - 20 < len(shown) <= CAP_BYTES


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
async def test_a_file_of_one_long_line_is_never_cut_inside_a_character(tmp_path: Path, shift: int) -> None:
    write(tmp_path / "a", "x" * shift + "🐙" * (CAP_BYTES // 4 + 10))

    found = await read_one(tmp_path, "a")

    shown, _, notice = (found.text or "").rpartition("\n")
    assert set(shown) <= {"x", "🐙"}
    assert len(shown) >= CAP_BYTES // 4 - 1
    assert notice.startswith(f"[The file goes on: {len(shown.encode())} of ")


async def test_a_short_first_line_is_not_all_that_is_shown_of_a_long_second_one(tmp_path: Path) -> None:
    write(tmp_path / "a", b"# Title\n" + b"x" * (CAP_BYTES + 10))

    found = await read_one(tmp_path, "a")

    assert len(found.text or "") > CAP_BYTES // 2


async def test_a_replacement_character_that_was_in_the_file_is_not_taken_away(tmp_path: Path) -> None:
    write(tmp_path / "a", "odd \ufffd\n".encode() * (CAP_BYTES // 8 + 10))

    found = await read_one(tmp_path, "a")

    assert (found.text or "").rpartition("\n")[0].endswith("odd \ufffd")


# --- what cannot be shown


@pytest.mark.parametrize("content", [b"\0", b"text\0more", b"x" * 300_000 + b"\0", "text".encode("utf-16")])
async def test_a_file_that_is_not_text_is_left_out_with_a_warning(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "a", content)

    found = await read_one(tmp_path, "a")

    assert (found.text, found.missing) == (None, False)
    assert found.warning == f"{tmp_path / 'a'} is not text and was left out."


async def test_bytes_that_are_not_utf8_are_shown_as_such_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path / "a", b"caf\xe9 noir")

    found = await read_one(tmp_path, "a")

    assert found.text == "caf\ufffd noir"
    assert "is not UTF-8" in found.warning


async def test_a_missing_file_is_missing_and_says_so(tmp_path: Path) -> None:
    found = await read_one(tmp_path, "no/such/file")

    assert found == FileText(
        f"{tmp_path}/no/such/file", None, f"{tmp_path}/no/such/file is missing.", missing=True
    )


async def test_a_pipe_in_place_of_a_file_does_not_hold_up_the_reading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")

    found = await asyncio.wait_for(read_one(tmp_path, "a"), timeout=10)

    assert found.text is None
    assert "not a regular file" in found.warning


async def test_a_folder_in_place_of_a_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    found = await read_one(tmp_path, "a")

    assert (found.text, found.missing) == (None, False)
    assert "could not be read (not a regular file)" in found.warning


async def test_a_file_in_place_of_a_folder_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a", "a file")

    found = await read_one(tmp_path, "a/b")

    assert found.text is None
    assert "could not be read (not a directory)" in found.warning


async def test_a_file_that_may_not_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    write(tmp_path / "a", "secret")
    monkeypatch.setattr(files, "os", Patched(os, open=refuse))

    found = await read_one(tmp_path, "a")

    assert (found.text, found.missing) == (None, False)
    assert found.warning == f"{tmp_path / 'a'} could not be read (permission denied) and was left out."


@pytest.mark.parametrize("target", ["a", "b"])
async def test_links_in_a_circle_are_left_out(tmp_path: Path, target: str) -> None:
    (tmp_path / "a").symlink_to(tmp_path / target)
    if target == "b":
        (tmp_path / "b").symlink_to(tmp_path / "a")

    found = await read_one(tmp_path, "a")

    assert found.text is None
    assert str(tmp_path / "a") in found.warning


@pytest.mark.parametrize(
    "name", ["link", "folder/inner.md", "../outside/inner.md", "sub/../../outside/inner.md"]
)
async def test_no_name_and_no_link_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    outside = write(tmp_path / "outside" / "inner.md", "secret")
    (root / "link").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)

    found = await read_one(root, name)

    assert found.text is None
    assert found.warning.endswith("leads out of its folder and was not read.")


async def test_an_absolute_name_and_a_folder_of_like_name_are_outside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    neighbour = write(tmp_path / "root-two" / "a", "secret")

    for name in (str(neighbour), "../root-two/a"):
        assert (await read_one(root, name)).text is None


async def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real.md", "text")
    (tmp_path / "link.md").symlink_to("real.md")

    assert (await read_one(tmp_path, "link.md")).text == "text"


@pytest.mark.parametrize("name", ["nul\0name", "x" * 300, "lone\ud800surrogate", ".", ""])
async def test_a_name_that_no_file_can_have_is_left_out(tmp_path: Path, name: str) -> None:
    reader = FileReader()

    for _ in range(2):
        found = await read_one(tmp_path, name, reader)

        assert found.text is None
        assert found.warning


async def test_every_warning_is_logged_with_its_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = await read_one(tmp_path, "missing.md")

    assert [record.getMessage() for record in caplog.records] == [found.warning]
    assert [getattr(record, "path", None) for record in caplog.records] == [str(tmp_path / "missing.md")]


# --- the workspace itself


def test_a_workspace_is_its_real_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path))

    real = (tmp_path / "real").resolve()
    assert open_workspace(tmp_path / "link") == real
    assert open_workspace("~/real") == real


@pytest.mark.parametrize("path", ["missing", "nul\0name", "~nobody-of-that-name/x", "loop", "x" * 300])
def test_a_workspace_that_is_not_there_is_an_error_with_a_remedy(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")

    with pytest.raises(weft.WorkspaceError, match="weft init"):
        open_workspace(path)


def test_a_file_is_not_a_workspace(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "text")

    with pytest.raises(weft.WorkspaceError, match="is not a directory"):
        open_workspace(path)


def test_a_place_is_a_folder_a_name_and_the_two_as_one_path(tmp_path: Path) -> None:
    assert file_at(tmp_path, "a/b") == FileAt(str(tmp_path), "a/b", f"{tmp_path}/a/b")
