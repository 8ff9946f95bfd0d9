"""A person who talks to an assistant at its one desk, and goes on in the session that it answers in."""

from collections.abc import Sequence
from dataclasses import dataclass

import weft
from weft.providers.base import collected

ME = weft.Caller(agent_id="weft", channel="terminal", sender_id="owner")


@dataclass
class Talk:
    app: weft.Assistant
    caller: weft.Caller = ME
    session: str = "chat"

    async def say(self, text: str) -> str:
        """Return the answer to a message or to a command."""
        request = weft.TurnRequest(text=text, caller=self.caller, session=self.session, commands=True)
        reply = await collected(self.app.handle(request))
        self.session = reply.session_id
        return reply.text

    async def newest(self, n: int = 10) -> Sequence[weft.Message]:
        return await (await self.app.store.get()).messages.newest(self.session, n)
