"""What must hold for every recipe, every history and every budget."""

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given, settings

import weft
from weft.context.plan import Materials, plan
from weft.context.receipt import account
from weft.context.render import render
from weft.context.roles import with_known_roles
from weft.tokens import COUNTERS
from weft.types.build import BuildSpec
from weft.types.escape import without_tags
from weft.types.section import Keep, Offer, Piece, Withheld
from weft.types.session import Tail

from samples import tail_of

RECIPES = st.sampled_from(("chai", "miniclaw", "omega", "pattern", "weft"))
TEXT = st.text(max_size=60) | st.text("ab \n<[]|:/", max_size=200)


@st.composite
def histories(draw: st.DrawFn) -> list[weft.Message]:
    """Whatever a log may hold: lone results, calls without results, results out of order, odd roles."""
    messages: list[weft.Message] = []
    for at in range(draw(st.integers(0, 14))):
        role = draw(st.sampled_from(("user", "user", "assistant", "assistant", "tool", "system")))
        call_ids = draw(st.lists(st.sampled_from("abcd"), max_size=3)) if role == "assistant" else []
        messages.append(
            weft.Message(
                role=role,
                content=f"{draw(TEXT)}{at}",
                tool_calls=tuple(weft.ToolCall(id=f"{call}{at}", name="t") for call in call_ids),
                tool_call_id=draw(st.sampled_from("abcd")) + str(draw(st.integers(0, 14)))
                if role == "tool"
                else None,
            )
        )
    return messages


@st.composite
def materials(draw: st.DrawFn) -> Materials:
    recipe = weft.Recipe.load(draw(RECIPES)).replace(max_context_tokens=draw(st.integers(20, 1500)))
    recipe = recipe.replace(overflow="send", reserved_response_tokens=draw(st.integers(0, 15)))
    offers = []
    for layer in recipe.layers:
        if layer.source in ("history", "message"):
            offers.append(Offer())
            continue
        texts = draw(st.lists(TEXT, max_size=4))
        pieces = tuple(Piece(title=str(n), text=f"x{text}") for n, text in enumerate(texts))
        joined = draw(st.booleans())
        offers.append(
            Offer(
                pieces=pieces,
                intro="Title:\n" if joined else None,
                join="\n" if joined else None,
                worth=tuple(float(draw(st.integers(0, 9))) for _ in pieces) if draw(st.booleans()) else (),
                withheld=(Withheld(title="w", tokens=3, reason="r"),) if draw(st.booleans()) else (),
            )
        )
    history = tail_of(draw(histories()), count=recipe.tokens)
    tools = (weft.ToolDefinition(name="t", parameters={"type": "object"}),) * draw(st.integers(0, 1))
    return Materials(
        spec=BuildSpec(recipe=recipe, message=draw(TEXT.filter(str.strip)), tools=tools),
        offers=tuple(offers),
        tail=with_known_roles(history, replace(recipe, unknown_role="user"))[0],
    )


def _built(made: Materials) -> weft.Context:
    decided = plan(made)
    return render(decided, account(decided))


def _must(made: Materials) -> int:
    """What the parts that never give way cost on their own."""
    alone = replace(
        made,
        tail=Tail() if made.spec.recipe.history.strategy != "none" else made.tail,
        offers=tuple(
            offer if layer.keep == Keep.ALWAYS else Offer()
            for layer, offer in zip(made.spec.recipe.layers, made.offers, strict=True)
        ),
    )
    return plan(alone).total


@settings(max_examples=400, deadline=None)
@given(materials())
def test_a_context_is_never_over_budget_unless_what_must_be_shown_is(made: Materials) -> None:
    receipt = _built(made).receipt

    assert receipt is not None
    assert receipt.total_tokens <= receipt.limit or _must(made) > receipt.limit


@settings(max_examples=300, deadline=None)
@given(materials())
def test_what_is_shown_keeps_its_order_and_the_message_is_last(made: Materials) -> None:
    context = _built(made)

    sources = [layer.source for layer in made.spec.recipe.layers]
    shown = [sources.index(section.layer) for section in context.sections]
    contents = [entry.message.content for entry in made.tail.entries]
    assert shown == sorted(shown)
    assert contents[len(contents) - len(context.history) :] == [m.content for m in context.history]
    assert context.to_messages()[-1].role == "user"
    assert context.current_message == made.spec.message


@settings(max_examples=300, deadline=None)
@given(materials())
def test_what_is_protected_is_always_there(made: Materials) -> None:
    context = _built(made)

    shown = "\n".join(section.text for section in context.sections)
    for layer, offer in zip(made.spec.recipe.layers, made.offers, strict=True):
        if layer.keep == Keep.ALWAYS:
            assert all(piece.text in shown for piece in offer.pieces)


@settings(max_examples=400, deadline=None)
@given(materials())
def test_no_window_begins_between_a_call_and_its_result(made: Materials) -> None:
    context = _built(made)

    all_messages = [entry.message for entry in made.tail.entries]
    cut = len(all_messages) - len(context.history)
    open_before: dict[str, int] = {}
    for at, message in enumerate(all_messages):
        for call in message.tool_calls:
            open_before[call.id] = at
        made_at = open_before.get(message.tool_call_id or "")
        if message.role == "tool" and made_at is not None:
            assert (made_at < cut) == (at < cut)


@settings(max_examples=300, deadline=None)
@given(materials())
def test_the_receipt_adds_up_to_its_parts_and_names_every_drop(made: Materials) -> None:
    context = _built(made)

    receipt = context.receipt
    assert receipt is not None
    visible = [item for item in receipt.items if item.kept]
    assert receipt.total_tokens == sum(item.tokens for item in visible) == sum(receipt.by_layer.values())
    assert sum(s.tokens for s in context.sections) == sum(
        item.tokens for item in visible if item.layer not in ("history", "message", "tools", "framing")
    )
    shown = sum(len(pieces) for pieces in plan(made).visible)
    dropped = [item for item in receipt.items if not item.kept and item.layer != "history"]
    expected = sum(len(offer.pieces) + len(offer.withheld) for offer in made.offers) - shown
    assert len(dropped) == expected
    stretches = [item.span for item in receipt.items if item.layer == "history"]
    covered = sorted(n for first, last in stretches for n in range(first, last + 1))
    assert covered == list(range(1, len(made.tail.entries) + 1))
    assert all(item.reason for item in receipt.items if not item.kept)


@settings(max_examples=200, deadline=None)
@given(materials())
def test_in_the_recipes_that_count_characters_the_total_is_the_sum_over_messages(made: Materials) -> None:
    spec = replace(made.spec, recipe=made.spec.recipe.replace(tokens="chars/4"), tools=())
    made = replace(made, spec=spec, tail=Tail())

    context = _built(made)

    assert context.receipt is not None
    assert context.receipt.total_tokens == sum(len(m.content) // 4 for m in context.to_messages())


@settings(max_examples=200, deadline=None)
@given(materials())
def test_a_context_and_its_receipt_survive_json(made: Materials) -> None:
    context = _built(made)

    loaded = weft.Context.from_json(context.to_json(receipt=True))

    assert loaded == context
    assert loaded.receipt == context.receipt
    assert weft.Context.from_json(context.to_json()) == context


@settings(max_examples=300, deadline=None)
@given(materials())
def test_nothing_gives_way_where_everything_fits(made: Materials) -> None:
    wide = weft.ContextConfig(default_limits=replace(made.spec.limits, max_tokens=10**9))
    everything = plan(replace(made, spec=replace(made.spec, config=wide)))

    total = max(everything.total, 1)
    tight = replace(made.spec.limits, max_tokens=total, reserved_response_tokens=0)
    decided = plan(replace(made, spec=replace(made.spec, config=weft.ContextConfig(default_limits=tight))))

    assert decided.visible == everything.visible
    assert decided.cut == everything.cut


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(("<block:x>", "</context:y>", "words ", "<")), min_size=1).map("".join))
def test_a_message_is_never_priced_below_what_is_sent(text: str) -> None:
    for count in COUNTERS.values():
        message = weft.Message(role="user", content=text)

        assert count.message(message) >= count.text(without_tags(text))
