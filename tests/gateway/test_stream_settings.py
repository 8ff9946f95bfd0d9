"""Streams in the settings: what is wrong is one sentence with a remedy."""

from pathlib import Path

import pytest

import weft
from weft.config import Config, load_config

WHOM = 'channel = "telegram"\nconversation = "7"\nsender = "7"\n'


def load(tmp_path: Path, *streams: str) -> Config:
    file = tmp_path / "config.toml"
    file.write_text("".join(f"[[streams]]\n{stream}\n" for stream in streams), "utf-8")
    return load_config(file, environ={"WEFT_HOME": str(tmp_path)})


def test_a_folder_and_a_feed_have_their_own_usual_times(tmp_path: Path) -> None:
    folder, feed, own = load(
        tmp_path,
        f'name = "notes"\nfolder = "~/notes"\npattern = "*.md"\nblocks = ["rules"]\n{WHOM}',
        f'name = "news"\nfeed = "https://me:pw@example.org/feed.xml?key=hunter2"\n{WHOM}',
        f'name = "own"\nfolder = "/tmp"\nevery_seconds = 5\n{WHOM}',
    ).streams

    assert (folder.seconds, feed.seconds, own.seconds) == (60, 900, 5)
    assert (folder.pattern, folder.blocks) == ("*.md", ("rules",))
    assert folder.place == "the folder ~/notes (*.md)"
    assert feed.place == "the feed https://example.org/feed.xml"
    assert "hunter2" not in repr(feed)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (f'nmae = "a"\nfolder = "b"\n{WHOM}', r"unknown key 'nmae': did you mean 'name'\?"),
        (f'name = "a"\nfolder = "b"\nevery_second = 1\n{WHOM}', "did you mean 'every_seconds'"),
        (f'folder = "b"\n{WHOM}', "lacks the key 'name': add it"),
        ('name = "a"\nfolder = "b"', "lacks the key 'channel': add it"),
        (f'name = "a"\n{WHOM}', "has neither a folder nor a feed: give it exactly one"),
        (f'name = "a"\nfolder = ""\n{WHOM}', "has neither a folder nor a feed"),
        (f'name = "a"\nfolder = "b"\nfeed = "http://c"\n{WHOM}', "has both a folder and a feed: give it"),
        (f'name = "a"\nfeed = "ftp://c"\n{WHOM}', "begins with http:// or https://: give its whole address"),
        (f'name = "a"\nfeed = "http://"\n{WHOM}', "give its whole address"),
        (f'name = "a"\nfeed = "http://[::1"\n{WHOM}', "give its whole address"),
        (f'name = "a"\nfeed = "http://c:99999999"\n{WHOM}', "give its whole address"),
        (f'name = "a"\nfeed = "http://c"\npattern = "*"\n{WHOM}', "is a feed .* leave `pattern` out"),
        (f'name = "a"\nfolder = "b"\npattern = "*/c"\n{WHOM}', "right in its folder: give a `pattern`"),
        (f'name = "a"\nfolder = "b"\npattern = ""\n{WHOM}', "give a `pattern`"),
        (f'name = "a"\nfolder = "b"\nevery_seconds = 0\n{WHOM}', "number from 1 up"),
        (f'name = "a"\nfolder = "b"\nevery_seconds = nan\n{WHOM}', "number from 1 up"),
        (f'name = "A b"\nfolder = "b"\n{WHOM}', "'A b' needs another name: take"),
        (f'name = ""\nfolder = "b"\n{WHOM}', "needs another name"),
        (f'name = "a"\nfolder = "b"\n{WHOM}'.replace('sender = "7"', 'sender = " "'), "give its `sender`"),
        (f'name = "a"\nfolder = "b"\n{WHOM}'.replace('sender = "7"', "sender = 7"), "must be text"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_reason(tmp_path: Path, stream: str, words: str) -> None:
    with pytest.raises(weft.ConfigError, match=words):
        load(tmp_path, stream)


def test_two_streams_have_two_names(tmp_path: Path) -> None:
    stream = f'name = "a"\nfolder = "b"\n{WHOM}'

    with pytest.raises(weft.ConfigError, match="two streams 'a': give each a name of its own"):
        load(tmp_path, stream, stream)


def test_a_table_in_place_of_a_list_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[streams]\nname = "a"\n', "utf-8")

    with pytest.raises(weft.ConfigError, match="streams must be a list"):
        load_config(tmp_path / "config.toml", environ={})
