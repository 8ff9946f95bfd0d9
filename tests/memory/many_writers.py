"""One of many writers on one block: read it, wait for the word to go on, edit it, tell.

Arguments: the file, the kind of block, the writer's number, how many edits, and `pause` to wait for a line
on standard input between the reading and the first writing.
"""

import asyncio
import sys

import weft


async def main(path: str, kind: str, writer: int, edits: int, pause: bool) -> None:
    async with await weft.open(path) as store:
        document = await store.memory.get_block("iris", kind)
        assert document is not None
        print("read", flush=True)
        if pause:
            sys.stdin.readline()
        for number in range(edits):
            word = f"w{writer}n{number}"
            if kind == "whole":  # what others do: read all, think, write all
                read = await store.memory.get_block("iris", kind)
                assert read is not None
                text = f"{read.render()}{word}\n"
                await asyncio.sleep(0)
                await store.memory.update_block_text("iris", kind, text, base=read.version)
                continue
            if kind == "text":
                await store.memory.append_to_block("iris", kind, f"{word}\n")
                continue
            if kind == "list":
                document.push_item(word)
            else:
                document.increment_counter("count")
            await store.memory.persist_block("iris", kind)
    print("done", flush=True)


if __name__ == "__main__":
    file, kind, writer, edits, *rest = sys.argv[1:]
    asyncio.run(main(file, kind, int(writer), int(edits), bool(rest)))
