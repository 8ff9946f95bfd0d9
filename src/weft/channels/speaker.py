"""Who speaks over HTTP: the owner, or the person whose token a request carries."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from weft.channels.bind import bearer_token, is_same
from weft.errors import PermissionDenied
from weft.gateway.assistant import Assistant
from weft.memory.base import Store
from weft.types.delivery import TOKEN_START
from weft.types.person import OWNER_NAME
from weft.types.request import Caller
from weft.types.session import Session

CHANNEL = "http"
SPEAKER = "weft.speaker"
"""The key under which a request's scope has its `Speaker`."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The person that a request speaks for, and who they are over HTTP.

    The owner's program may speak for others, whom it names.
    """

    person: str = OWNER_NAME
    own_sender: str = OWNER_NAME

    @property
    def is_owner(self) -> bool:
        return self.person == OWNER_NAME

    def sender(self, name: str) -> str:
        """Return the id of the sender that a request names; the speaker's own without a name.

        Raises:
            PermissionDenied: a person's token names somebody else.
        """
        if name and name not in (self.person, self.own_sender) and not self.is_owner:
            raise PermissionDenied(f"This token speaks for {self.person!r} only: leave `sender` out.")
        return name if name and self.is_owner else self.own_sender

    def caller(self, name: str = "") -> Caller:
        """Return the caller that a request names, who is not identified yet."""
        return Caller(agent_id="weft", channel=CHANNEL, sender_id=self.sender(name))


def speaker_of(request: Request) -> Speaker:
    """Return who speaks, as the guard noted it. Without a guard nobody is the owner."""
    speaker = request.scope.get(SPEAKER)
    if not isinstance(speaker, Speaker):
        raise PermissionDenied("Nobody speaks here: this server needs a token.")
    return speaker


async def is_own(store: Store, speaker: Speaker, session: Session) -> bool:
    """Return whether a session is the speaker's own. The owner may see every one."""
    if speaker.is_owner:
        return True
    return await store.people.find(f"{session.channel}:{session.sender}") == speaker.person


class Tokens:
    """The tokens of a server: the owner's of the settings, and those of people in the store."""

    def __init__(self, assistant: Assistant, owner_token: str = "") -> None:
        self._assistant, self._owner_token = assistant, owner_token

    async def authenticate(self, authorization: str) -> Speaker | None:
        """Return who speaks, or None if a token is needed and the right one is missing.

        While there is no token at all, whoever reaches the server is the owner: only this machine does.
        """
        token = bearer_token(authorization)
        speaker, is_needed = await self._find(token)
        is_ours = token.startswith(TOKEN_START)  # it was revoked; an app without a token sends any other text
        return speaker if speaker is not None or is_needed or is_ours else Speaker()

    async def find(self, token: str) -> Speaker | None:
        """Return the person whose token this is."""
        return (await self._find(token))[0] if token else None

    async def _find(self, token: str) -> tuple[Speaker | None, bool]:
        """Return the person of a token, and whether this server needs one at all."""
        if self._owner_token and token and is_same(token, self._owner_token):
            return Speaker(), True
        store = await self._assistant.store.find()
        if store is None:
            return None, bool(self._owner_token)
        sender, is_needed = await store.auth.find_token(token)
        if sender is not None:
            return Speaker(await store.people.find(f"{CHANNEL}:{sender}"), sender), True
        return None, is_needed or bool(self._owner_token)
