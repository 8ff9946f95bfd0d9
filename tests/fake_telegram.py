"""A Bot API on loopback that behaves like the real one: long polling, offsets, limits, errors."""

import json
import threading
import time
from collections.abc import Callable
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

TOKEN = "42:secret-token"  # noqa: S105


class FakeTelegram:
    """What people write goes in by `write`; what the bot says is in `sent`, in its order.

    `trouble` is asked before each call and may give an answer in its place: a status and a body.
    """

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []
        self.actions: list[dict[str, str]] = []
        self.files: list[dict[str, str]] = []
        self.rested: list[str] = []
        self.trouble: Callable[[str, dict[str, str]], tuple[int, dict[str, Any]] | None] = lambda *_: None
        self._updates: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._number = 0
        self.confirmed = 0

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                data = self.rfile.read(length)
                if len(data) < length:
                    return  # it was killed while it sent
                fields = fields_of(self.headers.get("content-type", ""), data)
                status, body = fake._answer(self.path, fields)
                told = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(told)))
                    self.send_header("content-type", "application/json")
                    self.end_headers()
                    self.wfile.write(told)
                except OSError:
                    return  # it was killed while it waited

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that was killed is no error of the server."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def write(self, text: str, *, sender: int = 7, chat: int = 7, **more: Any) -> int:
        """Somebody writes; the number of the update."""
        return self.update(message=message(text, sender, chat, **more))

    def press(self, data: str, *, sender: int = 7, chat: int = 7) -> int:
        """Somebody presses a button of the bot's last message."""
        who = {"id": sender, "is_bot": False, "first_name": "Ada", "last_name": f"No {sender}"}
        place = {"message_id": 1, "date": 1_794_800_000, "chat": {"id": chat, "type": "private"}}
        pressed = {"id": f"q{data}", "from": who, "message": place, "chat_instance": "1", "data": data}
        return self.update(callback_query=pressed)

    def update(self, **content: Any) -> int:
        with self._changed:
            self._number += 1
            self._updates.append({"update_id": self._number, **content})
            self._changed.notify_all()
            return self._number

    def wait(self, count: int, seconds: float = 60.0) -> list[str]:
        """The first so many things that the bot said."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sent) >= count, seconds), self.sent
            return [one["text"] for one in self.sent]

    def wait_for(self, enough: Callable[[list[str]], bool], seconds: float = 60.0) -> None:
        """Until what the bot said is enough."""

        def said() -> bool:
            return enough([one["text"] for one in self.sent])

        with self._changed:
            assert self._changed.wait_for(said, seconds), self.sent

    def wait_confirmed(self, number: int, seconds: float = 60.0) -> None:
        """Until the bot has told that it has that update."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.confirmed >= number, seconds)

    def _answer(self, path: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        _, token, method = path.split("/")
        if token != f"bot{TOKEN}":
            return 401, error(401, "Unauthorized")
        if (trouble := self.trouble(method, fields)) is not None:
            return trouble
        if method == "getUpdates":
            return 200, {"ok": True, "result": self._poll(fields)}
        if method == "sendDocument":
            with self._changed:
                self.files.append(fields)
                self._changed.notify_all()
            return 200, {"ok": True, "result": {"message_id": 1}}
        if method == "sendMessage":
            return self._take(fields)
        if method == "answerCallbackQuery":
            self.rested.append(fields["callback_query_id"])
            return 200, {"ok": True, "result": True}
        if method == "sendChatAction":
            self.actions.append(fields)
            return 200, {"ok": True, "result": True}
        if method == "getMe":
            me = {"id": 42, "is_bot": True, "first_name": "Weft", "username": "weft_bot"}
            return 200, {"ok": True, "result": me}
        return 404, error(404, f"Not Found: {method}")

    def _poll(self, fields: dict[str, str]) -> list[dict[str, Any]]:
        """Updates from the offset on; those before it are confirmed and gone. Waits if there are none."""
        offset, ends = int(fields.get("offset") or 0), time.monotonic() + int(fields.get("timeout") or 0)
        with self._changed:
            self.confirmed = max(self.confirmed, offset - 1)
            self._changed.notify_all()
            self._updates = [one for one in self._updates if one["update_id"] >= offset]
            while not self._updates and (left := ends - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._updates[:100]

    def _take(self, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        text = fields.get("text", "")
        if fields.get("parse_mode") == "HTML" and "unparsable" in text:
            return 400, error(400, "Bad Request: can't parse entities: unexpected end tag")
        if len(text.encode("utf-16-le")) // 2 > 4096 and fields.get("parse_mode") is None:
            return 400, error(400, "Bad Request: message is too long")
        with self._changed:
            self.sent.append(fields)
            self._changed.notify_all()
        sent = {
            "message_id": len(self.sent),
            "date": 1,
            "chat": {"id": int(fields["chat_id"]), "type": "private"},
        }
        return 200, {"ok": True, "result": sent}


def message(text: str, sender: int, chat: int, **more: Any) -> dict[str, Any]:
    who = {"id": sender, "is_bot": False, "first_name": "Ada", "last_name": f"No {sender}"}
    said = {"text": text} if text else {}
    place = {"id": chat, "type": "private"}
    return {"message_id": 1, "date": 1_794_800_000, "chat": place, "from": who, **said, **more}


def error(code: int, description: str, **parameters: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return told | ({"parameters": parameters} if parameters else {})


def fields_of(kind: str, data: bytes) -> dict[str, str]:
    """Read the fields of a form, and the text of its files."""
    if not kind.startswith("multipart/"):
        return {key: value[0] for key, value in parse_qs(data.decode()).items()}
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + data)
    parts: list[Any] = list(form.walk())[1:]
    names = [str(part.get_param("name", header="content-disposition")) for part in parts]
    texts = [part.get_payload(decode=True).decode() for part in parts]
    return dict(zip(names, texts, strict=True))
