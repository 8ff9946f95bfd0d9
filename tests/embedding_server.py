"""A server of embeddings on loopback, as Ollama and OpenAI's protocol have it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TOPICS = ("boat ship vessel", "tea coffee drink", "rain storm weather", "guitar piano music")


def vector_of(text: str, length: int = 4) -> list[float]:
    """Return a direction for each topic that a text names."""
    words = text.lower().replace(".", " ").replace("?", " ").split()
    topics = [0.01 + sum(word in topic.split() for word in words) for topic in TOPICS]
    return [*topics, *([0.0] * length)][:length]


class EmbeddingServer:
    """Answers at `/api/embed`, `/api/tags` and `/v1/embeddings`.

    `failure` makes it answer wrongly: `500`, `shape` or `lengths`. After `most` requests it waits for
    `go_on`, and sets `waits`.
    """

    def __init__(self, *, failure: str = "", length: int = 4, most: int = 10**9) -> None:
        self.failure, self.length, self.most = failure, length, most
        self.texts: list[str] = []
        self.keys: list[str] = []
        self.requests = 0
        self.waits, self.go_on = threading.Event(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                models = [{"name": "llama3.2:latest"}, {"name": "nomic-embed-text:latest"}, {"name": None}]
                self._answer(200, {"models": models})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.keys.append(self.headers.get("authorization", ""))
                self._answer(*server.answer(self.path, body))

            def _answer(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.requests += 1
        if self.requests > self.most:
            self.waits.set()
            self.go_on.wait(60)
        if self.failure == "500":
            return 500, {"error": "out of memory"}
        self.texts += body["input"]
        vectors = [vector_of(text, self.length) for text in body["input"]]
        if self.failure == "lengths":
            vectors = [vector[: 1 + at] for at, vector in enumerate(vectors)]
        if self.failure == "shape":
            return 200, {"embedding": vectors}
        if path == "/api/embed":
            return 200, {"embeddings": vectors}
        rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        return 200, {"data": rows[::-1]}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
