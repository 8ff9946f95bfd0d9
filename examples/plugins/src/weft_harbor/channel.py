"""A channel: every file that is put into a folder is a message, and its answer is written beside it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.gateway.channel import Submit
from weft.types.envelope import Inbound, Outbound


class Folder:
    """`ada.txt` is a message of `ada`; the answer is in `ada.answer.txt`."""

    name = "harbor"

    def __init__(self, folder: Path, allowed: tuple[str, ...]) -> None:
        self._folder, self.allowed = folder, allowed
        self._stopped = asyncio.Event()

    async def run(self, submit: Submit) -> None:
        while not self._stopped.is_set():
            for path in sorted(self._folder.glob("*.txt")):
                sender, is_answer = path.name.split(".")[0], path.name.endswith(".answer.txt")
                if not is_answer:
                    text, number = path.read_text("utf-8"), str(path.stat().st_mtime_ns)
                    message = Inbound(
                        channel=self.name, conversation=sender, sender=sender, text=text, external_id=number
                    )
                    await submit(message)
                    path.unlink()  # it is safe in the inbox
            try:
                async with asyncio.timeout(0.1):
                    await self._stopped.wait()
            except TimeoutError:
                continue

    async def send(self, message: Outbound) -> None:
        (self._folder / f"{message.conversation}.answer.txt").write_text(message.text, "utf-8")

    async def typing(self, conversation: str) -> None:
        """Do nothing: a folder cannot show it."""

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        text = f"{question}\nWrite `{yes}` or `{no}`."
        await self.send(Outbound(channel=self.name, conversation=conversation, text=text))

    async def stop(self) -> None:
        self._stopped.set()

    async def close(self) -> None:
        """Nothing is open."""


def make(settings: Mapping[str, Any]) -> Folder:
    """Make the channel from `[plugins.harbor]`: `folder`, and `allowed` senders."""
    return Folder(Path(settings["folder"]).expanduser(), tuple(settings.get("allowed", ())))
