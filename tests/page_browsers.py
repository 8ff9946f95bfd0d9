"""The pages over an assistant in this process, and people who use them with tokens of their own."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from crossing import PEOPLE, World
from http_server import listening
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.pages.desk import PageSettings

SETTINGS = HttpChannelSettings(requests_per_minute=0)
HTML = {"accept": "text/html"}


class Browser:
    """A browser that signed in, with the proof that its pages carry."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client, self.proof = client, ""

    async def sign_in(self, token: str) -> None:
        self.proof = await self._proof("/sign-in")
        await self.client.post("/sign-in", data={"token": token, "proof": self.proof})
        self.proof = await self._proof("/recipes")

    async def _proof(self, place: str) -> str:
        found = re.search(r'name="proof" content="(\w+)"', (await self.client.get(place)).text)
        assert found
        return found[1]

    async def send(self, method: str, path: str, values: dict[str, Any]) -> tuple[int, str]:
        """Send a form, or ask for a page. Of a stream only what comes at once is read."""
        headers = {"x-weft-proof": self.proof} if method == "POST" else {}
        body = "json" if path in ("/talk/say", "/talk/answer") else "data"
        more: dict[str, Any] = {body: values} if method == "POST" else {"params": values}
        if not path.endswith("/live"):
            answer = await self.client.request(method, path, headers=headers, **more)
            return answer.status_code, answer.text
        async with self.client.stream(method, path, **more) as stream:
            if stream.status_code != 200:
                return stream.status_code, ""
            return stream.status_code, await anext(stream.aiter_text())


@asynccontextmanager
async def browsers(lived: World, **pages: Any) -> AsyncIterator[dict[str, Browser]]:
    """Serve the pages to everybody, each signed in with a token of their own."""
    tokens = {person: await lived.store.auth.create_token(person, person) for person in PEOPLE}
    async with listening(make_app(lived.app, SETTINGS, pages=PageSettings(**pages))) as url:
        made = {
            person: Browser(httpx.AsyncClient(base_url=url, headers=HTML, timeout=30)) for person in PEOPLE
        }
        try:
            for person, one in made.items():
                await one.sign_in(tokens[person])
            yield made
        finally:
            for one in made.values():
                await one.client.aclose()
