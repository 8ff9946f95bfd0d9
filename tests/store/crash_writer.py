"""A program that writes and tells what was acknowledged, until it is killed. Used by the crash test."""

import asyncio
import sys

import weft


async def main(path: str, name: str) -> None:
    async with await weft.open(path) as store:
        session = await store.sessions.find_or_create("crash", name, "42")
        if await store.memory.get_block("iris", name) is None:
            await store.memory.create_block("iris", name, char_limit=10_000_000)
        print(f"session {session.id}", flush=True)
        number = 0
        while True:
            number += 1
            asked = weft.Message(role="user", content=f"question {number}")
            answered = weft.Message(role="assistant", content=f"answer {number}")
            await store.messages.append(session.id, asked, answered)
            print(f"turn {number}", flush=True)
            await store.facts.set("crash:42", f"{name} key", f"value {number}")
            print(f"fact {number}", flush=True)
            await store.memory.append_to_block("iris", name, f"line {number}\n")
            print(f"block {number}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
