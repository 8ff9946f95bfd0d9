"""Two programs write to one memory block at the same time, and nothing is lost.

Most assistants keep their memory in a file: they read it, think for a while, and write it back whole. If two
do that at once, the second one erases what the first one learned. Here four programs do just that to one
block, and every line is there in the end, because each says which version its text is a change of:

    python examples/two_writers.py
"""

import asyncio
import multiprocessing
import tempfile
from pathlib import Path

import weft

WRITERS, LINES = 4, 50


async def write(path: str, writer: int) -> None:
    """Read the whole text, think about it while others write, and write the whole text back."""
    async with await weft.open(path) as store:
        for number in range(LINES):
            document = await store.memory.get_block("iris", "notes")
            text = f"{document.render()}writer {writer} line {number}\n"
            await asyncio.sleep(0.001)
            await store.memory.update_block_text("iris", "notes", text, base=document.version)


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
