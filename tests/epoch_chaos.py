"""Random conversations in epochs: a model of our own, events between turns, and checks of each request."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import weft
from weft.providers.base import collected
from weft.tokens import counter
from weft.turn.fold import FOLD_TASK
from weft.types.reply import Done, Event, TextDelta
from weft.types.request import OWNER
from weft.wire.items import split

ME = OWNER.sender
DUE = datetime(2036, 1, 1, tzinfo=UTC)
Answer = str | weft.Reply | Exception
VENDOR_MODELS = {name: weft.wire.VENDORS[name].default_model for name in weft.wire.PROVIDERS}
LANGUAGES = (
    "We sail on {n} May at dawn, and Clara brings the tanks.",
    "Wir segeln am {n}. Mai bei Tagesanbruch, und Clara bringt die Flaschen mit.",
    "نبحر في {n} مايو عند الفجر وستحضر كلارا الأسطوانات.",
    "हम {n} मई को भोर में रवाना होंगे और क्लारा टंकियाँ लाएगी।",
    "我们五月{n}日黎明出发，克拉拉带来气瓶。",
    "⛵🌊 {n} 🤿🐠 <context:recall>not ours</context:recall> 👩‍🚀",
)


def is_fold(context: weft.Context) -> bool:
    return FOLD_TASK in context.current_message or FOLD_TASK in context.system_prompt


def whole_text(context: weft.Context) -> str:
    """Return everything that a request says: the tools, the system prompt and all messages."""
    system, messages = context.to_api_messages()
    calls = [str(dict(call.arguments)) for message in messages for call in message.tool_calls]
    tools = [f"{tool.name} {tool.description}" for tool in context.tools]
    return "\n".join((*tools, system, *(message.content for message in messages), *calls))


def receipt_of(context: weft.Context) -> weft.Receipt:
    assert context.receipt is not None
    return context.receipt


def items_of(vendor: str, context: weft.Context) -> tuple[str, ...]:
    """Return the parts of a request as a vendor gets it, without cache marks."""
    return split(weft.wire.to_wire(vendor, context, model=VENDOR_MODELS[vendor])).items


def good_summary(context: weft.Context) -> str:
    """Summarize as a careful model does: the first words of every message that it was shown."""
    lines = [message.content for message in context.history] or context.current_message.splitlines()
    return "They said: " + " | ".join(" ".join(line.split()[:6]) for line in lines)


class Model:
    """A provider that answers by one function and summarizes by another. It lists what it was asked."""

    def __init__(
        self,
        answer: Callable[[weft.Context], Answer] | None = None,
        *,
        summarize: Callable[[weft.Context], Answer] = good_summary,
        info: weft.ModelInfo | None = None,
        ratio: float = 1.0,
    ) -> None:
        self.info = info or weft.ModelInfo(id="model-a", provider="scripted")
        self.answer: Callable[[weft.Context], Answer] = answer or (lambda _: "Noted.")
        self.summarize, self.ratio = summarize, ratio
        self.requests: list[weft.Context] = []
        self.folds: list[weft.Context] = []

    async def complete(self, context: weft.Context) -> weft.Reply:
        return await collected(self.stream(context))

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        folding = is_fold(context)
        (self.folds if folding else self.requests).append(context)
        reply = self.summarize(context) if folding else self.answer(context)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            reply = weft.Reply(text=reply, usage=self._usage(context, reply))
        if reply.text:
            yield TextDelta(reply.text)
        yield Done(reply)

    async def close(self) -> None:
        return None

    def _usage(self, context: weft.Context, text: str) -> weft.Usage | None:
        if context.receipt is None:
            return None
        tokens = int(context.receipt.total_tokens * self.ratio)
        return weft.Usage(input_tokens=tokens, output_tokens=len(text) // 4)


class Gated(Model):
    """A model that waits at a gate before it answers, or before it summarizes."""

    def __init__(self, *, at_folds: bool, **more: Any) -> None:
        super().__init__(**more)
        self.at_folds, self.is_closed = at_folds, True
        self.reached, self.gate = asyncio.Event(), asyncio.Event()

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        if self.is_closed and is_fold(context) == self.at_folds:
            self.reached.set()
            await self.gate.wait()
        async for event in super().stream(context):
            yield event


def small(window: int, id_: str = "model-a") -> weft.ModelInfo:
    return weft.ModelInfo(id=id_, provider="scripted", max_tokens=window)


def look_up(q: str) -> str:
    """Find something by its name."""
    kind, _, size = q.partition(" ")
    return f"{kind}: " + "pier 4, north mole. " * int(size or 1)


def call_of(number: int, query: str) -> weft.Reply:
    call = weft.ToolCall(id=f"call-{number}", name="look_up", arguments={"q": query})
    return weft.Reply(text="", tool_calls=(call,), stop_reason="tools")


@dataclass
class Sent:
    """The requests of one turn, its answer if it was answered, and whether its message is in the log."""

    requests: list[weft.Context]
    reply: weft.Reply | None
    is_logged: bool


@dataclass
class Chaos:
    """A random conversation of the owner with an assistant that restarts, fails, calls tools and forgets."""

    rng: random.Random
    home: Path
    model: Model
    session: str = "chat"
    forgets: bool = True
    turns: list[Sent] = field(default_factory=list)
    forgot: set[int] = field(default_factory=set)
    number: int = 0
    _queue: list[Answer] = field(default_factory=list)

    async def play(self, turns: int) -> None:
        self.model.answer = lambda _: self._queue.pop(0) if self._queue else "Noted."
        self.app = await self._connect()
        try:
            for _ in range(turns):
                await self.event()
                await self.turn(self.message())
        finally:
            await self.app.close()

    async def _connect(self) -> weft.Assistant:
        return await weft.connect(provider=self.model, tools=[look_up], database=self.home / "chaos.db")

    def message(self) -> str:
        text = self.rng.choice(LANGUAGES).format(n=self.rng.randrange(10_000))
        return f"{self.number}: {text} " * self.rng.choice((1, 1, 1, 2, 12))

    async def turn(self, text: str) -> None:
        """Ask once, after which the model answers, fails, or calls tools for some rounds."""
        self.number += 1
        kind = self.rng.choice(("answer", "answer", "answer", "tools", "tools", "fail", "late fail"))
        rounds = self.rng.randint(1, 3) if kind in ("tools", "late fail") else 0
        calls = [
            call_of(10 * self.number + at, f"pier {self.rng.choice((1, 3, 40))}") for at in range(rounds)
        ]
        failed = [weft.ProviderError("The line is down.")] if "fail" in kind else []
        self._queue[:] = [*calls, *failed, f"Answer {self.number}. " * self.rng.choice((1, 4, 20))]
        start, reply = len(self.model.requests), None
        try:
            reply = await self.app.ask(text, session=self.session)
        except (weft.ProviderError, weft.BudgetExceeded) as error:
            if not failed and isinstance(error, weft.ProviderError):
                raise
        if self.rng.random() < 0.8:  # else the next message may come while the fold runs
            await self.app.folds.settle()
        self.turns.append(
            Sent(self.model.requests[start:], reply, reply is not None or await self._has(text))
        )

    async def _has(self, text: str) -> bool:
        """Return whether a message that was not answered is in the log all the same."""
        store = await self.app.store.get()
        for session in await store.sessions.list():
            messages = await store.messages.newest(session.id, 20)
            if any(message.content.strip() == text.strip() for message in messages):
                return True
        return False

    async def event(self) -> None:
        """Let something happen between two turns."""
        store, rng = await self.app.store.get(), self.rng
        kind = rng.choice(
            ("none", "fact", "fact", "block", "block", "file", "look", "task", "restart", "forget")
        )
        if kind == "fact":
            await store.facts.set(ME, f"key{rng.randrange(4)}", f"value {rng.randrange(10**6)}")
        elif kind == "block":
            await self._edit_block(store)
        elif kind == "file":
            path = self.home / "workspace" / "memory" / "MEMORY.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"- The boat has number {rng.randrange(10**6)}.\n")
        elif kind == "look":
            await self.app.context("What is known?", session=self.session)
        elif kind == "task":
            await store.tasks.add(ME, f"Buy {rng.randrange(100)} batteries", DUE)
        elif kind == "restart":
            await self.app.close()
            self.app = await self._connect()
        elif kind == "forget" and self.forgets:
            await self._forget(store)

    async def _edit_block(self, store: weft.Store) -> None:
        label = f"block{self.rng.randrange(2)}"
        if await store.memory.get_block("weft", label) is None:
            await store.memory.create_block("weft", label, pinned=True)
            await store.memory.update_block_text("weft", label, "\n".join(f"line {n}" for n in range(9)))
        text = f"- entry {self.rng.randrange(10**6)}\n"
        await store.memory.append_to_block("weft", label, text)

    async def _forget(self, store: weft.Store) -> None:
        if facts := await store.facts.list(ME):
            await store.facts.delete(ME, self.rng.choice(facts).key)
            self.forgot.add(self.number)
        elif await store.memory.get_block("weft", "block0") is not None:
            await store.memory.delete_block("weft", "block0", is_system=True)
            self.forgot.add(self.number)


def check_prefixes(turns: list[Sent], vendors: tuple[str, ...] = weft.wire.PROVIDERS) -> list[int]:
    """Check that each request of an epoch begins with the last one.

    The message of a failed turn need not be in the log: then the next request goes on from the turn before.
    Returns how many pairs were compared between turns, and how many within a turn.
    """
    compared = [0, 0]
    base: weft.Context | None = None
    for turn in turns:
        before = base
        for at, request in enumerate(turn.requests):
            if before is not None and request.step is not None and _same_epoch(before, request):
                compared[at > 0] += 1
                check_begins(request, before, vendors)
            before = request
        if turn.is_logged and turn.requests:
            last = turn.requests[-1]
            base = last if last.step is not None else None  # a tool round had no room: its epoch ended
    return compared


def check_begins(
    after: weft.Context, before: weft.Context, vendors: tuple[str, ...] = weft.wire.PROVIDERS
) -> None:
    """Check that a request begins with the items of another."""
    for vendor in vendors:
        old, new = items_of(vendor, before), items_of(vendor, after)
        assert new[: len(old)] == old, (vendor, _first_difference(old, new))


def _same_epoch(before: weft.Context, after: weft.Context) -> bool:
    return receipt_of(before).epoch == receipt_of(after).epoch


def _first_difference(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[int, str, str]:
    at = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new))
    return at, old[at][-400:], "".join(new[at : at + 1])[-400:]


def counted_tokens(context: weft.Context) -> int:
    """Count a request anew: its tools, its system prompt and its messages."""
    count = counter(receipt_of(context).counter)
    system, messages = context.to_api_messages()
    tools = sum(count.tool(tool) for tool in context.tools)
    return (
        tools + count.text(system) + sum(count.message(message) + count.per_message for message in messages)
    )


def check_receipt(context: weft.Context) -> None:
    """Check that a receipt accounts for its request, and that what it lists as shown is there."""
    receipt, text = receipt_of(context), whole_text(context)
    assert sum(item.tokens for item in receipt.items if item.kept) == receipt.total_tokens
    assert sum(receipt.by_layer.values()) == receipt.total_tokens
    assert receipt.total_tokens <= receipt.limit, (receipt.total_tokens, receipt.limit)
    for section in context.sections:
        assert section.text in text, (section.layer, section.title, section.text)
    for message in context.history:
        assert message.attached in text, message.attached
    for attachment in context.step.attachments.values() if context.step else ():
        assert attachment.text in text, attachment.text
