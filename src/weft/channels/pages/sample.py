"""A sample conversation for a first visit: a person who does not exist talks with a script."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import see_other
from weft.errors import PermissionDenied
from weft.memory.base import Store
from weft.providers.base import collected
from weft.providers.scripted import ScriptedProvider
from weft.types.limits import ModelInfo
from weft.types.message import ToolCall
from weft.types.person import agent_of
from weft.types.reply import Reply
from weft.types.request import Caller, TurnRequest

CHANNEL, SENDER = "sample", "ada"
"""A channel of its own, over which nobody writes: no app's user can be this person."""
PERSON = f"{CHANNEL}:{SENDER}"
_TITLE = "Sample: Ada plans a trip"
_TALK = (
    (
        "Hi! I am Ada, and I am planning a trip to Porto in May.",
        "Porto in May is lovely. How long will you stay?",
    ),
    ("Five days. Always answer in short sentences, please.", "Five days is enough. I will be brief."),
    ("Remember that the boat on the Douro leaves at nine.", "Noted: nine o'clock."),
    ("What should I pack?", "A light jacket. Good shoes. **Your passport.**"),
    ("I am allergic to nuts, and I never eat fish.", "I keep that in mind."),
    ("When does the boat leave?", "At nine, from the quay."),
    ("And where did I want to go again?", "To Porto, in May, for five days."),
)
_REMEMBERED = {2: ("memory_append", {"label": "notes", "text": "The boat on the Douro leaves at nine."})}
_FACTS = {3: ("trip", "Porto, in May, five days"), 5: ("allergy", "nuts")}


class SamplePages:
    """The owner adds the sample and takes it away; it shares nothing with anybody's memory."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [("/sample", "POST", self.add), ("/sample/remove", "POST", self.remove)]

    async def add(self, request: Request) -> Response:
        """Make the sample, as real turns whose answers are written beforehand."""
        self._check(request)
        store = await self._desk.open_store()
        await _remove(store)
        script = list[str | Reply | BaseException]()
        for at, (_, answer) in enumerate(_TALK):
            if at in _REMEMBERED:
                name, arguments = _REMEMBERED[at]
                call = ToolCall(id=f"sample-{at}", name=name, arguments=arguments)
                script.append(Reply(tool_calls=(call,), stop_reason="tool_calls"))
            script.append(answer)
        provider = ScriptedProvider(script, info=ModelInfo(id="a script", provider="scripted"))
        caller, session = Caller(agent_id="weft", channel=CHANNEL, sender_id=SENDER), ""
        for at, (text, _) in enumerate(_TALK):
            if at in _FACTS:
                await store.facts.set(PERSON, *_FACTS[at])
            asked = TurnRequest(text=text, session=session or SENDER, caller=caller)
            session = (await collected(self._desk.assistant.handle(asked, provider=provider))).session_id
        await store.sessions.rename(session, _TITLE)
        return see_other(f"/sessions/{session}")

    async def remove(self, request: Request) -> Response:
        """Take the sample away, with all that it made."""
        self._check(request)
        await _remove(await self._desk.open_store())
        return see_other("/")

    def _check(self, request: Request) -> None:
        if not self._desk.speaker(request).is_owner:
            raise PermissionDenied("Only the owner may add the sample.")


async def _remove(store: Store) -> None:
    for session in await store.sessions.list(limit=100, senders=[PERSON]):
        await store.sessions.delete(session.id)
    for block in await store.memory.list_blocks(agent_of(PERSON)):
        await store.memory.delete_block(agent_of(PERSON), block.label, is_system=True)
    for fact in await store.facts.list(PERSON):
        await store.facts.delete(PERSON, fact.key)
    for instruction in await store.instructions.list(PERSON):
        await store.instructions.remove(PERSON, instruction.id)
