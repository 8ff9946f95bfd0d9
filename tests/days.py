"""A home for a whole day: commands that a person runs, a server that stays on, and a vendor on loopback."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

import weft
from programs import environ, run_weft, start_server
from weft.testing import LoopbackVendor

Script = Sequence[str | weft.Reply]
WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Home:
    """A home whose programs ask one vendor. `HOME` is the folder above, where other systems have theirs."""

    path: Path
    vendor: LoopbackVendor
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def environ(self) -> dict[str, str]:
        around = {"OLLAMA_HOST": "127.0.0.1:1", "NO_COLOR": "1", "HOME": str(self.path.parent)}
        chosen = {"WEFT_PROVIDER": self.vendor.vendor.name, "WEFT_MODEL": "gpt-4o"}
        return environ(self.path) | around | chosen | self.vendor.environ | dict(self.variables)

    @property
    def payloads(self) -> list[Any]:
        """What the vendor was asked, as it came over the wire."""
        return [request.payload for request in self.vendor.requests]

    def run(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        done = run_weft(self.environ, *words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done

    def chat(self, *lines: str, words: Sequence[str] = ()) -> list[str]:
        """Say some lines in one `weft chat`. Returns what was answered."""
        done = self.run("chat", *words, stdin="".join(f"{line}\n" for line in lines))
        return [line for line in done.stdout.splitlines() if line]

    def wait_asked(self, count: int) -> None:
        """Wait until the vendor was asked so often."""
        wait_until(lambda: len(self.vendor.requests) >= count)

    @contextmanager
    def serving(self, *words: str) -> Iterator["Server"]:
        """Run `weft serve` on a free port until the end of the block."""
        child = start_server(self.environ, "--port", "0", *words)
        server = Server(child)
        try:
            server.wait_open()
            yield server
        finally:
            server.end()


class Server:
    """A running `weft serve`. A thread reads what it logs, so that it never waits for a reader."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child, self._lines, self.url = child, list[str](), ""
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            self._lines.append(line)
            if "HTTP is open at" in line:
                self.url = line.split()[-1]

    def wait_open(self) -> None:
        wait_until(lambda: bool(self.url) or not self._reader.is_alive())
        assert self.url, self._lines

    def post(self, path: str, **body: Any) -> Any:
        answer = httpx.post(f"{self.url}{path}", json=body, timeout=WAIT_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def request(self, method: str, path: str, **body: Any) -> Any:
        """Send a request that must succeed. Returns its JSON."""
        answer = httpx.request(method, f"{self.url}{path}", json=body or None, timeout=WAIT_SECONDS)
        assert answer.is_success, answer.text
        return answer.json()

    def refused(self, path: str, **body: Any) -> int:
        return httpx.post(f"{self.url}{path}", json=body, timeout=WAIT_SECONDS).status_code

    def say(self, text: str, session: str = "", sender: str = "") -> Any:
        """Have a turn over HTTP. Returns `{turn, session, reply}`."""
        chosen = {key: value for key, value in (("session", session), ("sender", sender)) if value}
        return self.post("/api/turns", text=text, **chosen)

    def stop(self) -> list[str]:
        """End it as Ctrl-C does. Returns the lines of its log."""
        self._child.send_signal(signal.SIGINT)
        assert self._child.wait(WAIT_SECONDS) == 0, self._lines
        self._reader.join(WAIT_SECONDS)
        return self._lines

    def end(self) -> None:
        """Kill it if it still runs, and close the pipe."""
        self._child.kill()
        self._child.wait()
        self._reader.join(WAIT_SECONDS)
        assert self._child.stderr is not None
        self._child.stderr.close()


def wait_until(condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Wait for a condition that another process fulfils, within bounds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def calls(name: str, id_: str = "call_1", **arguments: Any) -> weft.Reply:
    """Return a reply that calls one tool."""
    return weft.Reply(
        tool_calls=(weft.ToolCall(id=id_, name=name, arguments=arguments),), stop_reason="tools"
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def said(payload: Any) -> list[tuple[str, str]]:
    """Return role and text of each message of a request to OpenAI, the system message too."""
    return [(message["role"], text_of(message.get("content") or "")) for message in payload["messages"]]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def system_of(payload: Any) -> str:
    """Return the one system message of a request to OpenAI."""
    [text] = [text for role, text in said(payload) if role == "system"]
    return text


def tools_of(payload: Any) -> list[str]:
    return [tool["function"]["name"] for tool in payload.get("tools", [])]


def results(payload: Any) -> list[str]:
    """Return the texts of the tool results in a request to OpenAI."""
    return [text for role, text in said(payload) if role == "tool"]
