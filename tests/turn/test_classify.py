"""Classify and route: which model answers."""

from dataclasses import replace

import pytest

import weft
from weft.config import load_config
from weft.providers.model_settings import ModelSettings
from weft.turn.classify import Route, RouteSettings, classify, route

ON = RouteSettings(enabled=True, classifier_model="tiny", direct_model="quick", steps_model="deep")


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        ("DIRECT", ()),
        ("1. Look it up\n2) Write it down", ("Look it up", "Write it down")),
        ("\n 1. One thing\n\n", ("One thing",)),
        ("Sure! Here is a list:\n1. Look", ()),
        ("1. Look\nDIRECT", ()),
        ("", ()),
        ("I think directly.", ()),
        ("1.", ()),
        ("\n".join(f"{n}. step" for n in range(1, 22)), ()),
    ],
)
async def test_only_a_numbered_list_means_steps(answer: str, steps: tuple[str, ...]) -> None:
    assert await classify(weft.ScriptedProvider([answer]), "hi") == steps


async def test_routing_asks_no_model_unless_it_is_switched_on() -> None:
    provider = weft.ScriptedProvider()

    assert await route(provider, "hi", RouteSettings()) == Route()
    assert provider.requests == []


async def test_one_answer_goes_to_one_model_and_steps_to_another() -> None:
    provider = weft.ScriptedProvider(["DIRECT", "1. Look\n2. Write"])

    assert (await route(provider, "hi", ON)).model == "quick"
    deep = await route(provider, "plan my trip", ON)

    assert deep == Route(model="deep", steps=("Look", "Write"))
    assert deep.why == "the message was routed to deep: it takes 2 steps"
    assert [request.model for request in provider.requests] == ["tiny", "tiny"]
    assert provider.requests[0].history == ()


async def test_a_call_that_fails_means_direct() -> None:
    assert await classify(weft.ScriptedProvider([weft.ProviderError("busy")]), "hi") == ()


async def test_a_route_to_a_small_model_builds_for_its_window() -> None:
    provider = weft.ScriptedProvider(["DIRECT", "Hello."])
    app = await weft.connect(
        replace(
            load_config(),
            route=replace(ON, direct_model="tiny"),
            models={"tiny": ModelSettings(window=8_192)},
        ),
        provider=provider,
    )

    reply = await app.ask("hi", session="s")

    assert reply.receipt is not None
    assert reply.receipt.limit < 8192
    await app.close()


async def test_the_learned_token_ratio_of_a_model_counts_when_a_message_is_routed_to_it() -> None:
    provider = weft.ScriptedProvider(["DIRECT", "Hello.", "DIRECT", "Hello."])
    route_to = replace(ON, direct_model="llama3")
    app = await weft.connect(replace(load_config(), route=route_to), provider=provider)
    plain = (await app.ask("hi", session="s")).receipt
    store = await app.store.get()
    turn = await store.turns.begin((await store.sessions.find_or_create("a", "b", "c")).id, "x")
    await store.turns.finish(turn, weft.Receipt(model="llama3", counter="exact", ratio=3.0))

    learned = (await app.ask("hi", session="s")).receipt

    assert plain is not None
    assert learned is not None
    assert learned.limit < plain.limit * 0.6
    await app.close()
