"""Two people and the owner, each with a secret in every store, and everything that one could name."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import weft
from weft.config import load_config
from weft.memory.base import Store
from weft.types.person import agent_of
from weft.types.reply import Event
from weft.types.request import Caller, TurnRequest

PEOPLE = ("ada", "bob", "owner")
SENDERS = {"ada": ("telegram", "1"), "bob": ("telegram", "2"), "owner": ("terminal", "owner")}
DUE = datetime(2036, 1, 1, tzinfo=UTC)


def secret(person: str) -> str:
    return f"secret-of-{person}"


class Puppet(weft.ScriptedProvider):
    """A model that calls what it is told to, and then repeats the message."""

    def __init__(self) -> None:
        super().__init__([])
        self.orders: list[tuple[weft.ToolCall, ...]] = []

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        self.requests.append(context)
        if self.orders:
            calls = self.orders.pop(0)
            yield weft.Done(weft.Reply(text="", tool_calls=calls, stop_reason="tools"))
        else:
            yield weft.Done(weft.Reply(text=f"You say: {context.current_message}"))


@dataclass
class World:
    """An assistant that three people use. `ids` has, by kind, the names of everything that is stored."""

    app: weft.Assistant
    store: Store
    model: Puppet
    ids: dict[str, list[str]] = field(default_factory=dict)

    def caller(self, person: str) -> Caller:
        channel, sender_id = SENDERS[person]
        return Caller(agent_id="weft", channel=channel, sender_id=sender_id, conversation=f"chat-{person}")

    def named(self, kind: str, *person: str) -> list[str]:
        """Return the names of a kind: of these people, or all."""
        return [name for one in (person or PEOPLE) for name in self.ids[f"{kind} {one}"]]

    async def say(self, person: str, text: str, session: str = "", *, commands: bool = False) -> weft.Reply:
        request = TurnRequest(
            text=text,
            caller=self.caller(person),
            session=session or f"chat-{person}",
            commands=commands,
        )
        events = [event async for event in self.app.handle(request)]
        [done] = [event for event in events if isinstance(event, weft.Done)]
        return done.reply

    async def call(self, person: str, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
        """Let a person's model make calls in one turn, and return their results."""
        made = tuple(
            weft.ToolCall(id=f"c{at}", name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(calls)
        )
        self.model.orders.append(made)
        await self.say(person, "go")
        request = self.model.requests[-1]
        return [message.content for message in request.to_messages() if message.role == "tool"][-len(made) :]

    async def snapshot(self, person: str) -> str:
        """Return everything that is stored of a person, as text."""
        agent, (channel, sender_id) = agent_of(person), SENDERS[person]
        sender = f"{channel}:{sender_id}"
        memory = self.store.memory
        blocks = [
            (info.label, info.pinned, info.permission, await memory.get_rendered_content(agent, info.label))
            for info in await memory.list_blocks(agent)
        ]
        notes = [note.content for note in await memory.search_archival(agent, "secret note", 100)]
        facts = [(fact.key, fact.value) for fact in await self.store.facts.list(sender)]
        tasks = [(task.id, task.text, task.due) for task in await self.store.tasks.list(sender)]
        said = [
            message.content for message in await self.store.messages.all(self.ids[f"session {person}"][0])
        ]
        rules = [(rule.id, rule.text) for rule in await self.store.instructions.list(sender)]
        return json.dumps([blocks, sorted(notes), facts, rules, tasks, said], default=str)

    async def plant(self, person: str) -> None:
        """Store the person's secret in every store."""
        mark, agent, caller = secret(person), agent_of(person), self.caller(person)
        reply = await self.say(person, f"My {mark} is in a message of long ago", f"old-{person}")
        session = await self.store.sessions.get(reply.session_id)
        memory = self.store.memory
        await memory.create_block(agent, f"diary-{person}", pinned=True)
        await memory.append_to_block(agent, f"diary-{person}", f"{mark} in a block")
        await memory.append_to_block(agent, "notes", f"{mark} in the notes", own_line=True)
        note = await memory.insert_archival(agent, f"{mark} in a note")
        await self.store.facts.set(caller.sender, "hobby", f"{mark} in a fact")
        rule = await self.store.instructions.add(caller.sender, f"Always mention {mark}", pinned=True)
        task = await self.store.tasks.add(caller.sender, f"{mark} in a task", DUE)
        await self.store.summaries.add(caller.channel, caller.sender_id, f"{mark} in a summary")
        current = (await self.say(person, f"Do you remember my {mark}?")).session_id
        result = await self.store.turns.save_result(current, "tool", f"{mark} in a result")
        self.ids |= {
            f"session {person}": [session.id],
            f"turn {person}": list(await self.store.turns.list(session.id)),
            f"label {person}": [f"diary-{person}"],
            f"note {person}": [note],
            f"task {person}": [task],
            f"rule {person}": [rule.id],
            f"result {person}": [result],
            f"sender {person}": [caller.sender, f"http:{person}", person, agent],
        }


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """Open an assistant in the home of the environment, with everybody's secrets planted."""
    model = Puppet()
    app = await weft.connect(replace(load_config(), time_zone="UTC"), provider=model)
    try:
        store = await app.store.get()
        made = World(app, store, model)
        for person in ("ada", "bob"):
            await store.people.link(":".join(SENDERS[person]), person)
            await store.people.join(person, "http")
        for person in ("owner", "ada", "bob"):
            await made.plant(person)
        yield made
    finally:
        await app.close()


def arguments_of(tool: str, names: World, people: Sequence[str]) -> list[dict[str, Any]]:
    """Return calls of one of Weft's own tools with everything of some people that it could name."""
    labels = [
        *names.named("label", *people),
        *(f"{label}@{person}" for person in people for label in ("notes", "human", f"diary-{person}")),
        *(f"{agent}/{label}" for agent in names.named("sender", *people) for label in ("notes",)),
    ]
    words = [word for person in people for word in (secret(person), person, "secret", "hobby")]
    calls: dict[str, list[dict[str, Any]]] = {
        "memory_create": [{"label": f"new-{people[0]}", "text": "made"}],
        "memory_append": [{"label": label, "text": "HACKED"} for label in labels],
        "memory_edit": [{"label": label, "verb": "set", "value": "HACKED"} for label in labels],
        "memory_replace": [{"label": label, "old": "secret", "new": "HACKED"} for label in labels],
        "memory_rewrite": [{"label": label, "text": "HACKED"} for label in labels],
        "memory_history": [{"label": label} for label in labels],
        "archival_insert": [{"text": f"a note about {person}"} for person in people],
        "archival_search": [{"query": word, "limit": 20} for word in words],
        "conversation_search": [{"query": word, "limit": 20} for word in words],
        "remember_fact": [{"key": "hobby", "value": "HACKED"}],
        "forget_fact": [{"key": key} for key in ("hobby", *names.named("sender", *people))],
        "create_task": [{"text": f"a task for {person}"} for person in people],
        "list_tasks": [{}],
        "update_task": [{"id": task[:8], "text": "HACKED"} for task in names.named("task", *people)],
        "cancel_task": [{"id": task} for task in names.named("task", *people)],
        "read_result": [{"id": result} for result in names.named("result", *people)],
        "look_back": [{"first": 1, "last": 40}, *({"words": word} for word in words)],
    }
    return calls[tool]


def run(work: Any) -> Any:
    return asyncio.run(work)
