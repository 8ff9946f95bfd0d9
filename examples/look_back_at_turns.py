"""Look back at turns: replay the exact bytes, find what changed between two requests, and ask why.

python examples/look_back_at_turns.py
"""

import asyncio

import weft
from weft.turn.inspect import compare, replays, view, why


async def main() -> None:
    model = weft.ScriptedProvider(["Hello.", "From pier 4.", "At nine."])
    async with await weft.open(":memory:") as store:
        app = await weft.connect(provider=model, store=store)
        reply = await app.ask("Hi!", session="boat")
        await store.facts.set("app:owner", "pier", "pier 4")
        await app.ask("Where does the boat leave?", session="boat")
        await app.ask("And when?", session="boat")

        first, second, third = [
            await view(store, turn) for turn in reversed(await store.turns.page(reply.session_id))
        ]
        for turn in (first, second, third):
            [replay] = replays(turn)
            print(f"turn {turn.info.number}: {replay.bytes} bytes, replay equal: {replay.equal}")
        change = compare(second, third)
        print(
            f"turn 3 begins with {change.shared_bytes} bytes of turn 2: {third.requests[0].share:.0%} of it"
        )
        for reason in await why(store, second, "pier"):
            print(f"pier in turn 2, shown: {reason.shown}, {reason.where}: {reason.reason}")


if __name__ == "__main__":
    asyncio.run(main())
