"""The least that a server with a store can do, on the stack of `weft serve`: store a message and answer.

`serve.py` starts it; its argument is the delay of an answer in seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import weft
from weft.channels.bind import listen


class Body(BaseModel):
    text: str
    session: str = ""
    sender: str = ""


async def main(delay_seconds: float) -> None:
    """Serve on a free port of this machine until the process is told to end."""
    async with await weft.open(Path(os.environ["WEFT_HOME"]) / "bare.db") as store:
        session = await store.sessions.new("bare", "bare", "bare")
        app = FastAPI()

        @app.post("/api/turns")
        async def turn(body: Body) -> dict[str, str]:
            await store.messages.append(session.id, weft.Message(role="user", content=body.text))
            await asyncio.sleep(delay_seconds)
            return {"session": session.id, "reply": body.text}

        listening = listen("127.0.0.1", 0)
        sys.stderr.write(f"open at http://127.0.0.1:{listening.getsockname()[1]} \n")
        sys.stderr.flush()
        config = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False)
        await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
