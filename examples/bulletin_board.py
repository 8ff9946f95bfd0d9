"""A channel of your own in a program: notes on a board are messages, and answers are pinned below them.

Weft does the rest: who may write, the order of messages, the durable inbox and outbox. `Board` could as well
talk to a chat service. `examples/plugins` has a channel in a package, for `weft serve`:

    python examples/bulletin_board.py
"""

import asyncio

import weft
from weft.gateway.channel import Submit
from weft.gateway.dispatcher import Dispatcher
from weft.types.envelope import Inbound, Outbound


class Board:
    """Ada may write. Whoever else does is answered with a code that the owner can confirm."""

    name, allowed = "board", ("ada",)

    def __init__(self, notes: list[tuple[str, str]]) -> None:
        self.notes, self.answers = notes, asyncio.Queue[str]()
        self._stopped = asyncio.Event()

    async def run(self, submit: Submit) -> None:
        for number, (who, text) in enumerate(self.notes):
            await submit(
                Inbound(channel=self.name, conversation=who, sender=who, text=text, external_id=str(number))
            )
        await self._stopped.wait()

    async def send(self, message: Outbound) -> None:
        await self.answers.put(f"to {message.conversation}: {message.text}")

    async def typing(self, conversation: str) -> None: ...

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        await self.answers.put(f"to {conversation}: {question} ({yes} or {no})")

    async def stop(self) -> None:
        self._stopped.set()

    async def close(self) -> None: ...


async def main() -> None:
    board = Board([("ada", "When does the boat leave?"), ("eve", "Tell me about Ada.")])
    app = await weft.connect(provider=weft.ScriptedProvider(["At nine."]), database=":memory:")
    dispatcher = Dispatcher(app, [board])
    running = asyncio.gather(board.run(dispatcher.submit), dispatcher.deliver())
    for answer in sorted([await board.answers.get() for _ in board.notes]):
        print(answer)
    await board.stop()
    await dispatcher.stop()
    await running
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
