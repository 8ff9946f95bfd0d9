"""Files that a person attaches to a message: texts are quoted in it, pictures go beside it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.errors import ConfigError
from weft.tools.files import is_secret
from weft.types.escape import fenced, one_line
from weft.types.request import TurnRequest

_NAMED = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""The first bytes of the kinds of pictures that models take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with a message. It is a text, or a picture as a part of the message."""

    name: str
    size_bytes: int
    text: str = ""
    part: Mapping[str, Any] | None = None


def read_attachment(path: str, *, max_bytes: int) -> Attachment:
    """Read a file that is to be attached.

    Raises:
        ConfigError: it is missing, too large, or neither text nor a picture.
    """
    file = Path(path).expanduser()
    try:
        if file.is_dir():
            raise ConfigError(f"{path!r} is a folder: attach the files in it that you need.")
        if not file.is_file():
            raise ConfigError(f"There is no file {path!r} to attach: check the path.")
        with file.open("rb") as opened:
            data = opened.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path!r} cannot be attached: {reason}.") from error
    return attachment_of(file.name, data, max_bytes=max_bytes, path=path)


def attachment_of(name: str, data: bytes, *, max_bytes: int, path: str = "") -> Attachment:
    """Return a file that is to be attached, by what is in it. An error calls it by its `path`.

    Raises:
        ConfigError: it is too large, or neither text nor a picture.
    """
    path = path or name
    if len(data) > max_bytes:
        raise ConfigError(
            f"{path!r} is too large to attach: shorten it to {max_bytes:,} bytes, "
            "or raise `context.max_attachment_bytes`."
        )
    media = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "")
    if media and (media != "image/webp" or data[8:12] == b"WEBP"):
        part = {"type": "image", "media_type": media, "data": b64encode(data).decode()}
        return Attachment(name=name, size_bytes=len(data), part=part)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ConfigError(f"{path!r} is neither UTF-8 text nor a picture: attach another file.")
    return Attachment(name=name, size_bytes=len(data), text=text)


def with_attachments(request: TurnRequest, files: Sequence[Attachment]) -> TurnRequest:
    """Return the request with the files: texts after its words, pictures as parts, all in the receipt.

    What the files say is not what the person says: the request names them as text from outside.
    """
    if not files:
        return request
    quoted = [fenced(file.text, file.name) for file in files if file.part is None]
    return replace(
        request,
        text="\n\n".join((request.text, *quoted)),
        words=request.own_words,
        outside=(*request.outside, *(f"file {one_line(file.name)}" for file in files)),
        parts=(*request.parts, *(file.part for file in files if file.part is not None)),
        notes=(*request.notes, *(f"attached {file.name}, {file.size_bytes:,} bytes" for file in files)),
    )


def named_files(text: str) -> list[str]:
    """Return the paths of the files that a message names as `@path` and that exist, each once."""
    paths = list[str]()
    for quoted, word in _NAMED.findall(text):
        candidates = [quoted] if quoted else [word, word.rstrip(".,;:!?)")]
        paths += [path for path in candidates if _is_file(path)][:1]
    return [path for path in dict.fromkeys(paths) if not is_private(path)]


def is_private(path: str) -> bool:
    """Return whether a file is hidden or holds keys. A text that somebody pastes must not attach it."""
    place = Path(path).expanduser()
    return any(is_secret(part) for part in (*place.parts, *place.resolve().parts) if part not in (".", ".."))


def private_files(text: str) -> list[str]:
    """Return the private files that a message names as `@path`."""
    return [word for word in _named_words(text) if _is_file(word) and is_private(word)]


def missing_files(text: str) -> list[str]:
    """Return what looks like the path of a file in a message, as `@folder/name`, and does not exist."""
    words = _named_words(text)
    return [word for word in words if ("/" in word or Path(word).suffix) and not _is_file(word)]


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _named_words(text: str) -> list[str]:
    """Return what stands behind each `@` of a message, without the punctuation of its sentence."""
    return [quoted or word.rstrip(".,;:!?)") for quoted, word in _NAMED.findall(text)]
