"""The ways to trim a history that `trim.py` compares: Weft's, and those of other libraries.

Each library is used as its documentation advises for chat histories with tool calls. All count with the same
cached counter where the library takes one; litellm has the same vocabulary in tiktoken.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import weft
from weft import ContextBuilder, Message, ModelContextLimits
from weft.tokens import COUNTERS, calls_json, count
from weft.types.message import ToolCall
from weft.types.recipe import Layer, Recipe

_PER_MESSAGE = COUNTERS["exact"].per_message
_SESSION = ("bench", "trim", "somebody")


class Trimmer:
    """One way to trim. `load` and `add` are not timed; `first` and `next` are.

    A trimmer over a database stores the history in `load`, and what is new in `next`.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    source: ClassVar[str] = "list"
    largest: ClassVar[int | None] = None
    """The most messages for which a call ends within a minute; None: no limit is known."""

    def __init__(self, budget: int, folder: Path) -> None:
        self.budget, self.folder = budget, folder

    @classmethod
    def is_installed(cls) -> bool:
        return not cls.package or importlib.util.find_spec(cls.package) is not None

    async def load(self, history: Sequence[Message], question: Message) -> None:
        """Take the history in the library's own form."""
        raise NotImplementedError

    async def first(self) -> Any:
        """Trim for the first time."""
        raise NotImplementedError

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        """Take what was said since, and the next question."""
        raise NotImplementedError

    async def next(self) -> Any:
        """Trim in the next turn."""
        return await self.first()

    def shown(self, result: Any) -> list[Message]:
        """Write what would be sent as messages of ours, to check it."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close what is open."""


def recipe(budget: int) -> Recipe:
    """Make a recipe of nothing but the history and the message, so that all trimmers do the same work."""
    return Recipe(
        name="trim",
        limits=ModelContextLimits(max_tokens=budget, memory_tokens=0),
        layers=(Layer(source="history"), Layer(source="message")),
    )


class WeftList(Trimmer):
    name = "Weft, from a list"

    async def load(self, history: Sequence[Message], question: Message) -> None:
        self._builder = ContextBuilder(recipe=recipe(self.budget))
        self._history, self._question = list(history), question

    async def first(self) -> Any:
        return await self._builder.with_messages(self._history).build(self._question.content)

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        self._history += exchange
        self._question = question

    def shown(self, result: Any) -> list[Message]:
        return [*result.history, self._question]


class WeftDatabase(Trimmer):
    """A new process opens the file and builds; in the next turn it stores the exchange, and builds."""

    name, source = "Weft, from the database", "database"

    async def load(self, history: Sequence[Message], question: Message) -> None:
        self._path, self._question, self._new = self.folder / "weft.db", question, list[Message]()
        self._store: weft.Store | None = None
        async with await weft.open(self._path) as store:
            session = await store.sessions.new(*_SESSION, agent_id="bench")
            await store.messages.append(session.id, *history)
            self._session = session.id

    async def first(self) -> Any:
        self._store = await weft.open(self._path)
        self._builder = ContextBuilder(recipe=recipe(self.budget)).with_store(self._store)
        self._builder = self._builder.with_session(self._session)
        return await self._builder.build(self._question.content)

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        self._new, self._question = list(exchange), question

    async def next(self) -> Any:
        assert self._store is not None
        await self._store.messages.append(self._session, *self._new)
        return await self._builder.build(self._question.content)

    def shown(self, result: Any) -> list[Message]:
        return [*result.history, self._question]

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()


class LangChain(Trimmer):
    """`trim_messages` with the options that its documentation gives for valid histories."""

    name, package = "langchain-core trim_messages", "langchain_core"

    async def load(self, history: Sequence[Message], question: Message) -> None:
        self._module = import_module("langchain_core.messages")
        self._list = [self._own(message) for message in (*history, question)]

    async def first(self) -> Any:
        return self._module.trim_messages(
            self._list,
            max_tokens=self.budget,
            token_counter=_langchain_tokens,
            strategy="last",
            start_on="human",
            include_system=True,
        )

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        self._list[-1:] = [self._own(message) for message in (*exchange, question)]

    def _own(self, message: Message) -> Any:
        if message.role == "user":
            return self._module.HumanMessage(message.content)
        if message.role == "tool":
            return self._module.ToolMessage(message.content, tool_call_id=message.tool_call_id)
        calls = [
            {"name": call.name, "args": dict(call.arguments), "id": call.id} for call in message.tool_calls
        ]
        return self._module.AIMessage(message.content, tool_calls=calls)

    def shown(self, result: Any) -> list[Message]:
        return [_from_langchain(message) for message in result]


_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


def _from_langchain(message: Any) -> Message:
    calls = tuple(
        ToolCall(id=call["id"], name=call["name"], arguments=call["args"])
        for call in getattr(message, "tool_calls", ())
    )
    return Message(
        role=_ROLES[message.type],
        content=message.content,
        tool_calls=calls,
        tool_call_id=getattr(message, "tool_call_id", None),
    )


def _langchain_tokens(messages: list[Any]) -> int:
    """Count as Weft does. LangChain asks for the sum of a list, some fifteen lists in a call."""
    return sum(
        _PER_MESSAGE + count(message.content) + (count(_calls_text(message)) if message.type == "ai" else 0)
        for message in messages
    )


def _calls_text(message: Any) -> str:
    return calls_json(_from_langchain(message)) if message.tool_calls else ""


class LiteLlm(Trimmer):
    name, package = "litellm trim_messages", "litellm"

    async def load(self, history: Sequence[Message], question: Message) -> None:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its price list is a file of its own then
        self._utils = import_module("litellm.utils")
        self._list = [_openai(message) for message in (*history, question)]

    async def first(self) -> Any:
        return self._utils.trim_messages(self._list, model="gpt-4o", max_tokens=self.budget)

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        self._list[-1:] = [_openai(message) for message in (*exchange, question)]

    def shown(self, result: Any) -> list[Message]:
        return [_from_openai(message) for message in result]


def _openai(message: Message) -> dict[str, Any]:
    own: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        own["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        own["tool_call_id"] = message.tool_call_id
    return own


def _from_openai(own: dict[str, Any]) -> Message:
    calls = tuple(
        ToolCall(
            id=call["id"], name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"])
        )
        for call in own.get("tool_calls", ())
    )
    return Message(
        role=own["role"],
        content=own["content"] or "",
        tool_calls=calls,
        tool_call_id=own.get("tool_call_id"),
    )


class LlamaBuffer(Trimmer):
    """`ChatMemoryBuffer`: it drops one exchange after the other, and counts all that is left each time."""

    name, package = "llama-index ChatMemoryBuffer (deprecated)", "llama_index"
    largest = 1_000

    async def load(self, history: Sequence[Message], question: Message) -> None:
        self._llms = import_module("llama_index.core.llms")
        memory = import_module("llama_index.core.memory")
        own = [_llama(self._llms, message) for message in (*history, question)]
        self._memory = memory.ChatMemoryBuffer.from_defaults(
            chat_history=own, token_limit=self.budget, tokenizer_fn=_tokens_of
        )

    async def first(self) -> Any:
        return self._memory.get()

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        for message in (*exchange, question):
            self._memory.put(_llama(self._llms, message))

    def shown(self, result: Any) -> list[Message]:
        return [_from_llama(message) for message in result]


class LlamaMemory(Trimmer):
    """`Memory` over a file of SQLite; all of the tokens are for the history.

    It moves what no longer fits out of its queue when a message is stored, so most of its work is in `load`.
    """

    name, package, source = "llama-index Memory", "llama_index", "database"

    async def load(self, history: Sequence[Message], question: Message) -> None:
        self._llms = import_module("llama_index.core.llms")
        self._memory = self._open()
        await self._memory.aput_messages([_llama(self._llms, message) for message in (*history, question)])
        self._new: list[Any] = []

    def _open(self) -> Any:
        memory = import_module("llama_index.core.memory")
        return memory.Memory.from_defaults(
            session_id="trim",
            token_limit=self.budget,
            chat_history_token_ratio=1.0,
            tokenizer_fn=_tokens_of,
            async_database_uri=f"sqlite+aiosqlite:///{self.folder / 'llama.db'}",
        )

    async def first(self) -> Any:
        self._memory = self._open()
        return await self._memory.aget()

    def add(self, exchange: Sequence[Message], question: Message) -> None:
        # The question before is stored already, so the exchange begins behind it.
        self._new = [_llama(self._llms, message) for message in (*exchange[1:], question)]

    async def next(self) -> Any:
        await self._memory.aput_messages(self._new)
        return await self._memory.aget()

    def shown(self, result: Any) -> list[Message]:
        return [_from_llama(message) for message in result]


def _tokens_of(text: str) -> range:
    """Return something as long as the text has tokens: llama-index takes its length only."""
    return range(count(text))


def _llama(llms: Any, message: Message) -> Any:
    """Write a message with its calls in `additional_kwargs`, which llama-index counts."""
    extra: dict[str, Any] = {}
    if message.tool_calls:
        extra["tool_calls"] = _openai(message)["tool_calls"]
    if message.tool_call_id:
        extra["tool_call_id"] = message.tool_call_id
    return llms.ChatMessage(role=message.role, content=message.content, additional_kwargs=extra)


def _from_llama(own: Any) -> Message:
    data = {"role": own.role.value, "content": own.content, **own.additional_kwargs}
    return _from_openai(data)


TRIMMERS: tuple[type[Trimmer], ...] = (WeftList, LangChain, LiteLlm, LlamaBuffer, WeftDatabase, LlamaMemory)
