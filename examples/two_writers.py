"""Two programs write to one memory block at the same time, and nothing is lost.

Most assistants keep their memory in a file: they read it, think for a while, and write it back whole. If two
do that at once, the second one erases what the first one learned. Run this and see what happens here:

    python examples/two_writers.py
"""

import asyncio
import multiprocessing
import tempfile
from pathlib import Path

import weft

WRITERS, LINES = 4, 50


async def write(path: str, writer: int) -> None:
    """Open the same file as the others, and add lines with a pause between reading and writing."""
    async with await weft.open(path) as store:
        for number in range(LINES):
            known = await store.memory.get_rendered_content("iris", "notes")
            await asyncio.sleep(0.001)  # "thinking" about what was read, while others write
            assert known is not None
            await store.memory.append_to_block("iris", "notes", f"writer {writer} line {number}\n")


def run(path: str, writer: int) -> None:
    asyncio.run(write(path, writer))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "weft.db")
        async with await weft.open(path) as store:
            await store.memory.create_block("iris", "notes", char_limit=1_000_000)
        processes = [multiprocessing.Process(target=run, args=(path, n)) for n in range(WRITERS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        async with await weft.open(path) as store:
            text = await store.memory.get_rendered_content("iris", "notes") or ""
    wanted = {f"writer {writer} line {number}" for writer in range(WRITERS) for number in range(LINES)}
    lost = wanted - set(text.splitlines())
    print(f"{WRITERS} programs wrote {len(wanted)} lines at the same time; {len(lost)} were lost.")
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    asyncio.run(main())
