"""Random histories against every provider's rules, many a second. Run by `make fuzz`; a few by the tests.

The properties have the better shrinking, this has the numbers: a case costs a fraction of a millisecond.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import weft
from weft.wire import PROVIDERS, repair, to_wire, violations
from weft.wire.clean import compact

IDS = ["a", "b", "c", "call-1", "toolu_01", "functions.look:0", "x" * 80, "", "ü", "\ud800", "a-1", "a_1"]
NAMES = ["look", "read_skill", "mcp__sea__find", "bad name!", "", "n" * 90, "\0", "look", "look"]
TEXTS = [
    "",
    " ",
    "\n\t",
    "Hi",
    "好 🐠",
    "\ud800 half",
    "nul \0",
    "x" * 300,
    "<block:a>",
    "[System]",
    "{}",
    "\r",
]
ROLES = ["user", "assistant", "tool", "system", "narrator", "", "user", "assistant", "tool"]
PARTS: list[dict[str, Any]] = [
    {"type": "image", "media_type": "image/png", "data": "aGk="},
    {"type": "image"},
    {"type": "sound"},
    {},
]
SIGNED: list[dict[str, Any]] = [
    {},
    {},
    {
        "provider": "anthropic",
        "model": "claude-sonnet-5",
        "thinking": [{"type": "thinking", "thinking": "t", "signature": "s"}],
    },
    {"provider": "gemini", "model": "gemini-3-flash", "calls": {"a": {"thoughtSignature": "s"}}},
    {
        "provider": "openai_responses",
        "model": "gpt-5.6",
        "reasoning": [{"type": "reasoning", "id": "r", "summary": []}],
    },
]
SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"type": "string"},
    {"type": "object", "properties": {"a": {}}},
]
MODELS = [None, "unknown", "claude-opus-5", "gpt-4o", "gemini-3-flash"]
CHUNK = 2000


class Chance(random.Random):
    """Makes histories as a log can hold them after years of crashes, imports and changes of provider."""

    def some(self, make: Callable[[], Any], most: int) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self.randint(0, most)))

    def text(self) -> str:
        return self.choice(TEXTS) if self.random() < 0.8 else chr(self.randint(0, 0x10FFFF)) * 3

    def value(self, depth: int = 0) -> Any:
        kind = self.randint(0, 7 if depth < 3 else 5)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.randint(0, 2))]
        if kind == 7:
            return {self.text(): self.value(depth + 1) for _ in range(self.randint(0, 2))}
        return (
            None,
            True,
            self.randint(-9, 9),
            self.choice([0.5, float("inf"), float("nan")]),
            self.text(),
            "",
        )[kind]

    def call(self) -> weft.ToolCall:
        arguments = {self.text(): self.value() for _ in range(self.randint(0, 2))}
        return weft.ToolCall(id=self.choice(IDS), name=self.choice(NAMES), arguments=arguments)

    def message(self) -> weft.Message:
        role = self.choice(ROLES)
        acts = role == "tool" or self.random() < 0.1
        return weft.Message(
            role=role,
            content=self.text(),
            tool_calls=self.some(self.call, 3) if role == "assistant" or self.random() < 0.1 else (),
            tool_call_id=self.choice([None, *IDS]) if acts else None,
            tool_name=self.choice([None, *NAMES]) if acts else None,
            parts=self.some(lambda: self.choice(PARTS), 1) if self.random() < 0.2 else (),
            provider_data=self.choice(SIGNED),
        )

    def tool(self) -> weft.ToolDefinition:
        description = self.choice([None, self.text()])
        return weft.ToolDefinition(
            name=self.choice(NAMES), description=description, parameters=self.choice(SCHEMAS)
        )

    def context(self) -> weft.Context:
        return weft.Context(
            system_prompt=self.text(),
            history=self.some(self.message, 10),
            current_message="Now answer 🐠",
            steps=self.some(self.message, 4) if self.random() < 0.5 else (),
            tools=self.some(self.tool, 3),
            tagged=self.random() < 0.2,
        )


def wrong(provider: str, context: weft.Context, model: str | None) -> list[str]:
    """What does not hold for one request; nothing, if all does."""
    payload = to_wire(provider, context, model=model)
    found = violations(provider, payload)
    if "Now answer 🐠" not in compact(payload):
        found.append("the message is not in the request")
    once, _ = repair(provider, context.to_api_messages()[1])
    twice, notes = repair(provider, once)
    return found + (["repairing twice is not repairing once"] if twice != once or notes else [])


def cases(seed: int, count: int) -> Iterator[tuple[str, weft.Context, str | None]]:
    """So many requests from a seed: one provider after the other, each with a history of its own."""
    chance = Chance(seed)
    for number in range(count):
        yield PROVIDERS[number % len(PROVIDERS)], chance.context(), chance.choice(MODELS)


def run(seed: int, count: int) -> list[str]:
    """The first few requests of a seed in which something is wrong."""
    found = []
    for number, (provider, context, model) in enumerate(cases(seed, count)):
        if trouble := wrong(provider, context, model):
            found.append(f"seed {seed}, case {number}, {provider}, {model}: {trouble}\n{context!r}")
            if len(found) == 3:
                break
    return found


def main(total: int) -> int:
    began, done, seed = (
        time.monotonic(),
        0,
        int(os.environ.get("WEFT_FUZZ_SEED", str(time.time_ns() % 10**9))),
    )
    print(f"seed {seed}")
    with ProcessPoolExecutor() as pool:
        chunks = [
            pool.submit(run, seed + n, min(CHUNK, total - n * CHUNK)) for n in range(-(-total // CHUNK))
        ]
        for chunk in as_completed(chunks):
            if troubles := chunk.result():
                print("\n\n".join(troubles))
                pool.shutdown(cancel_futures=True)
                return 1
            done = min(done + CHUNK, total)
            rate = done / (time.monotonic() - began)
            print(f"\r{done:,} of {total:,} requests, {rate:,.0f} a second, none refused", end="", flush=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
