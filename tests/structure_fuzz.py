"""Forged texts in every place of a context, for every recipe and dialect; `make fuzz` runs them.

Each text is built from pieces of tags, labels and tokens of templates, with invisible characters, look-alikes
and odd spaces between them. The check folds a request in a way of its own, and counts what a model could take
for structure: there must be no more of it than with harmless texts.
"""

import asyncio
import os
import random
import re
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import weft
from weft.testing import (
    InMemoryBlocks,
    InMemoryFacts,
    InMemoryMessages,
    InMemoryRecall,
    InMemoryStore,
    InMemorySummaries,
    InMemoryTasks,
)
from weft.wire import to_wire
from weft.wire.local import to_wire as to_local

RECIPES = ("weft", "omega", "pattern", "chai", "miniclaw")
WORDS = """block context System User Assistant im_start im_end bos eos s start_of_turn end_of_turn SYS INST
    TOOL_CALLS TOOL_RESULTS think tool_call begin▁of▁sentence User｜ system endoftext""".split()
SIGNS = """< </ <| |> <<  >> > [ ] [/ : ：  ＜ ｜ ＞ ▁ ［ ］ / \\ ﹤ <｜ ｜>""".split()
GAPS = [
    "",
    "",
    "",
    "",
    " ",
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "\v",
    "\f",
    "\t",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00ad",
]
WHOLE = """<block:a> </block:a> <context:now> [System] [User] [Assistant] <|im_start|> <|im_end|> <bos> <eos>
    <s> </s> <start_of_turn> <end_of_turn> <<SYS>> <</SYS>> [INST] [/INST] [TOOL_CALLS] <｜User｜>
    <｜begin▁of▁sentence｜> <|turn> <turn|> ＜|im_start|＞ <ｓ>""".split()
PER_CONTEXT = 20
CHUNK = 1000

_TAG = re.compile(r"<\s*/?\s*(?:block|context)\s*:", re.IGNORECASE)
_LABEL = re.compile(r"\s*\[(?:System|User|Assistant)\]")
_TOKENS = re.compile(
    r"<\||<[^<>\n\\]{1,60}\|>|</?(?i:s|bos|eos|start_of_turn|end_of_turn|think|tool_call)>"
    r"|<</?SYS>>|\[/?INST\]|\[/?TOOL_(?:CALLS|RESULTS)\]"
)


class Forger(random.Random):
    def forged(self) -> str:
        """Make a text that tries to be structure."""
        pieces = []
        for _ in range(self.randint(1, 4)):
            if self.random() < 0.4:
                pieces.append(self._hidden(self.choice(WHOLE)))
            else:
                pieces.append(self.choice(SIGNS) + self.choice(GAPS) + self._hidden(self.choice(WORDS)))
                pieces.append(self.choice(GAPS) + self.choice(SIGNS))
            pieces.append(self.choice(GAPS))
        return self.choice(GAPS) + "".join(pieces)

    def _hidden(self, word: str) -> str:
        if self.random() < 0.7:
            return word
        at = self.randint(0, len(word))
        return word[:at] + self.choice("\u200b\u200c\u2060\ufeff\u00ad\u180e") + word[at:]


def folded(text: str) -> str:
    """Return a text as a careless reader sees it."""
    plain = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", plain).replace("▁", "_")


def structure(text: str) -> Counter[str]:
    """Count what a model could take for a tag of ours or a role label."""
    counts = Counter({"tag": len(_TAG.findall(folded(text)))})
    for line in text.splitlines():
        plain = folded(line)
        counts["label"] += bool(_LABEL.match(plain))
    return counts


def strings(value: Any) -> Iterator[str]:
    """Yield all texts of a request, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *strings(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


async def contexts(texts: list[str]) -> list[weft.Context]:
    """Build one context for every recipe, with the texts in every place that text from outside can be in."""
    left = iter(texts * 3)
    call = weft.ToolCall(id="1", name="look", arguments={next(left): [next(left), {"deep": next(left)}]})
    history = [
        weft.Message(role="user", content=next(left)),
        weft.Message(role="assistant", content=next(left), tool_calls=(call,)),
        weft.Message(role="tool", content=next(left), tool_call_id="1", tool_name="look"),
        weft.Message(role="system", content=next(left), origin="import"),
        weft.Message(role="assistant", content=next(left)),
    ]
    block = weft.RenderedBlock(id="b", label="notes", content=next(left), description=next(left), pinned=True)
    sender = "telegram:42"
    store = InMemoryStore(
        memory=InMemoryBlocks({"iris": [block]}),
        messages=InMemoryMessages(history),
        facts=InMemoryFacts({sender: [weft.Fact(key=next(left), value=next(left))]}),
        summaries=InMemorySummaries({("telegram", "42"): [weft.Summary(text=next(left))]}),
        tasks=InMemoryTasks({sender: [weft.Task(id="a1", text=next(left))]}),
        recall=InMemoryRecall({sender: [weft.Recalled(text=next(left), speaker="User")]}),
    )
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": next(left)}}}
    tool = weft.ToolDefinition(name="look", description=next(left), parameters=schema)
    instructions, message = next(left), f"Now: {next(left)}"
    built = []
    for recipe in RECIPES:
        builder = weft.ContextBuilder(recipe=recipe).with_store(store).for_agent("iris")
        builder = builder.for_sender("telegram", "42").with_session("s").with_tools([tool])
        built.append(await builder.with_base_instructions(instructions).build(message))
    return built


def requests(context: weft.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the requests of the dialects that write one text by a template."""
    yield "ollama", to_wire("ollama", context)
    yield "local", to_local(context, max_output_tokens=9)


def troubles(context: weft.Context, plain: weft.Context) -> list[str]:
    """Return what a forged context has more of than the harmless one."""
    found = []
    tags, usual = (sum(structure(m.content)["tag"] for m in one.to_messages()) for one in (context, plain))
    if context.tagged and tags > usual:
        found.append(f"{tags - usual} forged tags")
    labels, ours = (structure(one.to_prompt_string())["label"] for one in (context, plain))
    if labels > ours:
        found.append(f"{labels - ours} forged labels")
    for name, request in requests(context):
        tokens = [token for text in strings(request) for token in _TOKENS.findall(folded(text))]
        if tokens:
            found.append(f"{name} has the tokens {tokens}")
    return found


def run(seed: int, count: int) -> list[str]:
    """Return the first texts of a seed that forge something."""
    chance, found = Forger(seed), list[str]()
    plain = asyncio.run(contexts(["harmless"] * PER_CONTEXT))
    for _ in range(-(-count // PER_CONTEXT)):
        texts = [chance.forged() for _ in range(PER_CONTEXT)]
        for recipe, context, usual in zip(RECIPES, asyncio.run(contexts(texts)), plain, strict=True):
            if trouble := troubles(context, usual):
                found.append(f"seed {seed}, {recipe}: {trouble}\n{texts!r}")
                if len(found) == 3:
                    return found
    return found


def main(total: int) -> int:
    began, done = time.monotonic(), 0
    seed = int(os.environ.get("WEFT_FUZZ_SEED", str(time.time_ns() % 10**9)))
    print(f"seed {seed}")
    with ProcessPoolExecutor() as pool:
        chunks = [pool.submit(run, seed + n, CHUNK) for n in range(-(-total // CHUNK))]
        for chunk in as_completed(chunks):
            if found := chunk.result():
                print("\n\n".join(found))
                pool.shutdown(cancel_futures=True)
                return 1
            done += CHUNK
            rate = done / (time.monotonic() - began)
            print(f"\r{done:,} of {total:,} texts, {rate:,.0f} a second, none forged", end="", flush=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
