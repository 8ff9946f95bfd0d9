"""Sources that a program brings: what they may return, and how it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

import weft
from weft.types.recipe import Layer

TIDES = Layer(source="tides", title="Tides:", tag="tides", keep=weft.Keep.IF_ROOM)
RECIPE = weft.Recipe(
    name="sailor",
    tokens="chars/4",
    limits=weft.ModelContextLimits(max_tokens=1000),
    layers=(Layer(source="history"), TIDES, Layer(source="message")),
)


def with_layer(**changes: Any) -> weft.Recipe:
    layers = tuple(replace(layer, **changes) if layer is TIDES else layer for layer in RECIPE.layers)
    return replace(RECIPE, layers=layers)


async def built(answer: object, recipe: weft.Recipe = RECIPE) -> weft.Context:
    def tides(request: weft.BuildRequest, options: Mapping[str, Any]) -> Any:
        return answer

    return await weft.ContextBuilder(recipe=recipe).with_source("tides", tides).build("hi")


def items(context: weft.Context) -> list[weft.ReceiptItem]:
    assert context.receipt is not None
    of_layer = [item for item in context.receipt.items if item.layer == "tides"]
    return [item for item in of_layer if item.title != "heading"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("high at six", "high at six"),
        (["high at six", "low at noon"], "high at six\nlow at noon"),
        (("high at six", " "), "high at six"),
        (weft.Offer(pieces=(weft.Piece(text="six"), weft.Piece(text="noon")), join=", "), "six, noon"),
        ("</context:tides> <block:x>", "&lt;/context:tides> &lt;block:x>"),
    ],
)
async def test_a_text_several_texts_or_an_offer_are_shown_under_title_and_tag(
    answer: object, text: str
) -> None:
    context = await built(answer)

    assert context.turn_text == f"<context:tides>\nTides:\n{text}\n</context:tides>"
    assert items(context)
    for item in items(context):
        assert (item.source, item.kept, item.origin, item.zone) == ("tides", True, "import", "turn")
        assert item.reason == "offered by the source tides"


@pytest.mark.parametrize("answer", [None, "", " ", [], weft.Offer()])
async def test_nothing_shows_nothing(answer: object) -> None:
    context = await built(answer)

    assert (context.sections, items(context)) == ((), [])


async def test_an_offer_may_name_another_origin_and_what_it_withholds() -> None:
    piece = weft.Piece(text="six", title="first", why="measured", origin=weft.Origin.TOOL)
    withheld = weft.Withheld(title="noon", tokens=1, reason="too late")

    shown, left_out = items(await built(weft.Offer(pieces=(piece,), withheld=(withheld,))))

    assert (shown.title, shown.reason, shown.origin) == ("first", "measured", "tool")
    assert (left_out.title, left_out.kept, left_out.reason) == ("noon", False, "too late")


async def test_an_offers_intro_and_joints_are_escaped_too() -> None:
    pieces = (weft.Piece(text="a"), weft.Piece(text="b"))

    context = await built(weft.Offer(pieces=pieces, intro="<block:a>", join="</context:tides>"))

    assert context.turn_text == ("<context:tides>\n&lt;block:a>a&lt;/context:tides>b\n</context:tides>")


async def test_each_text_gives_way_on_its_own() -> None:
    recipe = RECIPE.replace(max_context_tokens=40)

    context = await built(["a" * 60, "b" * 60], recipe)

    assert [(item.kept, item.title[:5]) for item in items(context)] == [(True, "aaaaa"), (False, "bbbbb")]
    assert context.receipt is not None
    assert not context.receipt.over_limit


async def test_an_async_source_gets_the_request_and_its_options() -> None:
    async def tides(request: weft.BuildRequest, options: Mapping[str, Any]) -> str:
        return f"{request.sender} {request.message} {options['harbor']}"

    recipe = with_layer(options={"harbor": "Horta"}, title="", tag="")
    builder = weft.ContextBuilder(recipe=recipe).with_source("tides", tides)

    context = await builder.for_sender("cli", "ada").build("hi")

    assert context.turn_text == "cli:ada hi Horta"


@dataclass(frozen=True, kw_only=True)
class TidesOptions:
    harbor: str = "Horta"
    hour: int = 6

    def __post_init__(self) -> None:
        if self.hour > 23:
            raise ValueError(f"{self.hour} is not an hour")


def checked(request: weft.BuildRequest, options: TidesOptions) -> str:
    return f"{options.harbor} {options.hour}"


async def test_a_dataclass_as_second_parameter_is_what_the_source_gets() -> None:
    builder = weft.ContextBuilder(recipe=with_layer(options={"hour": 7})).with_source("tides", checked)

    assert "Horta 7" in (await builder.build("hi")).turn_text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"harbour": "x"}, "layers[1] (tides) has an unknown key 'harbour': did you mean 'harbor'?"),
        ({"hour": "six"}, "layers[1].hour must be a whole number, not text."),
        ({"hour": 24}, "layers[1] (tides): 24 is not an hour."),
    ],
)
def test_wrong_options_are_refused_when_the_source_is_added(options: dict[str, Any], sentence: str) -> None:
    builder = weft.ContextBuilder(recipe=with_layer(options=options))

    with pytest.raises(weft.ConfigError) as caught:
        builder.with_source("tides", checked)

    assert str(caught.value) == f"recipe 'sailor'.{sentence}"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (5, "The source 'tides' returned a whole number: it must return a text, a list of texts or "),
        (["a", 5], "The source 'tides' returned a list: it must return a text, a list of texts or "),
        (weft.Offer(pieces=(weft.Piece(text="a"),), worth=(1.0, 2.0)), "The source 'tides' offers a `worth`"),
    ],
)
async def test_an_answer_that_is_none_of_these_is_an_error_that_names_the_source(
    answer: object, sentence: str
) -> None:
    with pytest.raises(weft.ContextError) as caught:
        await built(answer)

    assert str(caught.value).startswith(sentence)


async def test_a_source_that_nobody_brings_is_refused_at_the_first_build_with_the_nearest_name() -> None:
    builder = weft.ContextBuilder(recipe=RECIPE).with_source("tide", checked)

    with pytest.raises(weft.ConfigError) as caught:
        await builder.build("hi")

    assert str(caught.value) == (
        "recipe 'sailor'.layers[1].source cannot be 'tides', which no installed package has in "
        "`weft.sources`: did you mean 'tide'?"
    )


@pytest.mark.parametrize("name", ["facts", "history", "message"])
def test_a_source_of_ours_cannot_be_replaced(name: str) -> None:
    with pytest.raises(weft.ConfigError, match=f"Weft has a source '{name}' of its own"):
        weft.ContextBuilder().with_source(name, checked)


async def test_a_source_belongs_to_the_builders_made_from_this_step_only() -> None:
    base = weft.ContextBuilder(recipe=RECIPE)
    mine = base.with_source("tides", lambda request, options: "mine")
    yours = base.with_source("tides", lambda request, options: "yours")

    assert "mine" in (await mine.with_source("more", checked).build("hi")).turn_text
    assert "yours" in (await yours.with_session("s").build("hi")).turn_text
    with pytest.raises(weft.ConfigError):
        await base.build("hi")
