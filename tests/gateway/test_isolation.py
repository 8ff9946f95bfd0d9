"""Two people, the same words, at the same time: nothing of the one ever reaches the other."""

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.config import Config, Paths

WORDS = ("remember the marlin", "my task tomorrow", "what did I say before?", "the boat, the sea")
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "eve"]),
        st.sampled_from(["say", "fact", "task", "new"]),
        st.sampled_from(WORDS),
    ),
    min_size=4,
    max_size=14,
)


class Echo(weft.ScriptedProvider):
    """Answers with the message, so that what was said is in both sides of the log."""

    async def stream(self, context: weft.Context):  # type: ignore[no-untyped-def]
        self.requests.append(context)
        yield weft.Done(weft.Reply(text=f"You say: {context.current_message}"))


@settings(max_examples=25, deadline=None)
@given(ACTS, st.sampled_from(["weft", "omega"]))
def test_nothing_of_one_person_is_shown_to_the_other(acts: list[tuple[str, str, str]], recipe: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live(Path(folder), acts, recipe))


async def _live(folder: Path, acts: list[tuple[str, str, str]], recipe: str) -> None:
    provider = Echo()
    paths = Paths(config_dir=folder, data_dir=folder)
    app = await weft.connect(replace(Config(), recipe=recipe, paths=paths), provider=provider)
    store = await app.store.get()
    sessions = {"ada": 0, "eve": 0}

    async def act(number: int, who: str, kind: str, words: str) -> None:
        caller = weft.Caller(agent_id="weft", channel="telegram", sender_id=who, conversation=who)
        secret = f"secret-of-{who}-{number}"
        if kind == "fact":
            await store.facts.set(caller.sender, f"key{number}", f"{words} {secret}")
        elif kind == "task":
            due = datetime.now(UTC) + timedelta(days=number + 1)
            await store.tasks.add(caller.sender, f"{words} {secret}", due)
        else:
            sessions[who] += kind == "new"
            await app.ask(f"{words} {secret}", session=f"{who}-{sessions[who]}", caller=caller)

    for first in range(0, len(acts), 2):  # two things at the same time
        await asyncio.gather(*(act(first + n, *given_) for n, given_ in enumerate(acts[first : first + 2])))
    for who in sessions:
        caller = weft.Caller(agent_id="weft", channel="telegram", sender_id=who, conversation=who)
        await app.ask(f"remember everything, tasks too, for {who}", session=f"{who}-last", caller=caller)
        facts = [
            f"secret-of-{who}-{n}"
            for n, (owner, kind, _) in enumerate(acts)
            if (owner, kind) == (who, "fact")
        ]
        prompt = provider.requests[-1].to_prompt_string()
        assert [fact for fact in facts if fact not in prompt] == [], "each sees what is known of them"
    await app.close()

    for request in provider.requests:
        other = "eve" if "ada" in request.current_message else "ada"
        assert f"secret-of-{other}" not in request.to_prompt_string()
