"""What conversations cost: tokens, the part that came from the cache, and money, by session.

Money needs `input_price` and `output_price` of the model in the settings. Try it on your own database:

    python examples/cost_report.py ~/.local/share/weft/weft.db
"""

import asyncio
import sys
from pathlib import Path

import weft


async def main(path: Path) -> None:
    print(f"{'turns':>5} {'read':>9} {'cached':>9} {'written':>9} {'money':>8}  conversation")
    async with await weft.open(path) as store:
        for session in await store.sessions.list():
            turns = await store.turns.page(session.id, limit=1000)
            receipts = [await store.turns.find(turn.id) for turn in turns]
            costs = [(each.usage, each.cost or 0) for each in receipts if each and each.usage]
            if not costs:
                continue
            read = sum(usage.input_tokens for usage, _ in costs)
            cached = sum(usage.cached_tokens for usage, _ in costs)
            written = sum(usage.output_tokens for usage, _ in costs)
            money = sum(cost for _, cost in costs)
            title = session.title or session.id
            print(f"{len(costs):>5} {read:>9,} {cached:>9,} {written:>9,} {money:>8.4f}  {title}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).expanduser()))
