"""The decision of a build: what is shown, in the epoch of its session where there is one, and its receipt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weft.context.epoch import FULL, EpochPlan, begun, continued, why_ended
from weft.context.model_tokens import plan_for_model
from weft.context.plan import Materials
from weft.context.receipt import account
from weft.context.render import render
from weft.context.roles import with_known_roles
from weft.context.stale import why_stale
from weft.offload import SMALL, offloaded
from weft.sources.base import BuildRequest
from weft.tokens import is_counted
from weft.turn.history import History, read_unfolded
from weft.types.context import Context
from weft.types.epoch import Epoch, EpochView, digest_of
from weft.types.memo import Memo
from weft.types.receipt import Receipt
from weft.types.recipe import FOLD_AT, FOLD_TO, Recipe
from weft.types.redacted import Redacted

_log = logging.getLogger(__name__)
_MUCH_MORE, _NOT_FULL, _AMPLE = 1.5, 0.9, 0.5
_MOST_FOLDS = 8
"""How many summaries are tried when folds are opened again."""
FIRST = "start: the first message of the session"


async def decide(request: BuildRequest, materials: Materials, history: History) -> Context:
    """Decide what is shown, account for it, and put it into its form.

    Raises:
        BudgetExceeded: what must be shown is too large, and the recipe does not send it even so.
    """
    if history.view is not None:
        return await _decide_in_epoch(request, materials, history)
    return await offloaded(size_of(materials), _decided, request, materials, history.notes)


def live_unless_stored(request: BuildRequest) -> BuildRequest:
    """Return a request whose history is in no store with a live recipe: it has no epochs."""
    if request.recipe.stability == "live" or request.has_epochs:
        return request
    return replace(request, recipe=_live(request.recipe))


def _without_epochs(recipe: Recipe) -> Recipe:
    history = replace(recipe.history, strategy="drop_oldest", fold_at=FOLD_AT, fold_to=FOLD_TO)
    return replace(recipe, stability="live", history=history)


_live = Memo[Recipe, Recipe](_without_epochs)


def size_of(materials: Materials) -> int:
    """Return how many characters must be counted, escaped and joined, or that they are more than a few."""
    size = len(materials.spec.message)
    for offer in materials.offers:
        size += sum([len(piece.text) for piece in offer.pieces])
    for entry in materials.tail.entries:
        size += len(entry.message.content)
        if size > SMALL:
            return size
    return size + sum(SMALL for tool in materials.spec.tools if not is_counted(tool))


def _decided(request: BuildRequest, materials: Materials, notes: Sequence[str]) -> Context:
    tail, changed = with_known_roles(materials.tail, request.recipe)
    decided, expected = plan_for_model(replace(materials, tail=tail))
    adapted = replace(request, model=decided.materials.spec.model)
    receipt = account(decided, warnings=(*_notes(adapted, changed), *notes))
    return render(decided, replace(receipt, expected=expected))


async def _decide_in_epoch(request: BuildRequest, materials: Materials, history: History) -> Context:
    size = size_of(materials)
    tail, changed = with_known_roles(materials.tail, request.recipe)
    decided = await _plan_in_epoch(request, replace(materials, tail=tail), history, size=size)
    adapted = replace(request, model=decided.plan.materials.spec.model)
    notes = (*_notes(adapted, changed), *history.notes)
    receipt = await offloaded(size, account, decided.plan, warnings=notes)
    context = await offloaded(size, render, decided.plan, receipt)
    step = decided.step(context, history.view.forgets if history.view else 0)
    receipt = replace(
        receipt,
        expected=decided.expected,
        epoch=step.epoch.number,
        epoch_why="" if step.epoch.id else step.epoch.why,
        fold_at=step.marks.due,
        fold_to=step.marks.low,
    )
    return replace(context, receipt=receipt, step=step, cache_key=digest_of(request.session_id))


async def _plan_in_epoch(
    request: BuildRequest, materials: Materials, history: History, *, size: int
) -> EpochPlan:
    """Plan a request in the running epoch of its session, or as the first of a new one.

    Raises:
        BudgetExceeded: what must be shown is too large.
    """
    view, recipe = history.view or EpochView(), request.recipe_digest
    why = _ended(view)
    if view.epoch is not None:
        why = why_ended(view.epoch, materials, recipe=recipe, now=request.now)
        if not why:
            going_on = await offloaded(size, continued, materials, view)
            why = FULL if going_on is None else why_stale(going_on, materials, view)
            if going_on is not None and not why:
                return going_on
    start = Epoch(number=view.count + 1, why=why, recipe=recipe, first=view.first)
    if view.epoch is not None or history.folds:
        opened = await _with_opened_folds(request, materials, history, start)
        if opened is not None:
            return opened
        newest = history.folds[-1] if history.folds else None
        materials = _behind(materials, await read_unfolded(request, newest))
    return await offloaded(size, begun, materials, start, view, is_full=why == FULL)


async def _with_opened_folds(
    request: BuildRequest, materials: Materials, history: History, start: Epoch
) -> EpochPlan | None:
    """Plan the first request of an epoch that shows folded messages word for word again.

    Folds are opened where what was folded leaves ample room, and as far as there is room with a model that
    reads much more than the last one. What was opened stays open until it is folded again. Returns None if
    the newest summary is shown as it is.
    """
    view, folds, ceiling = history.view or EpochView(), history.folds, request.limits.ceiling
    has_grown = bool(view.limit) and ceiling > view.limit * _MUCH_MORE
    if not folds or (not has_grown and start.why.startswith(("fold", "full", "stale"))):
        return None
    is_open = bool(view.count) and view.folded < folds[-1].last and ceiling >= view.limit
    share = _NOT_FULL if has_grown or is_open else _AMPLE
    for fold in (None, *folds[-_MOST_FOLDS:-1]):
        opened = _behind(materials, await read_unfolded(request, fold))
        tokens = sum(entry.tokens for entry in opened.tail.entries)
        last = fold.last if fold else 0
        if opened.tail.messages_before != last or tokens > ceiling * request.history_rule.fold_at * share:
            continue
        decided = await offloaded(size_of(opened), begun, opened, start, view, is_full=False)
        if decided.shows_all and decided.history_tokens <= decided.marks.high * share:
            return _told(decided, first=last + 1, last=view.folded)
    return None


def _behind(materials: Materials, history: History) -> Materials:
    """Return materials with the messages behind another summary."""
    tail, _ = with_known_roles(history.tail, materials.spec.recipe)
    return replace(materials, tail=tail, fold=history.fold)


def _told(decided: EpochPlan, *, first: int, last: int) -> EpochPlan:
    """Add to the reason of a new epoch which messages are no longer shown as a summary."""
    if first > last:
        return decided
    why = f"{decided.epoch.why}; there is room to show messages {first}-{last} word for word again"
    return replace(decided, epoch=replace(decided.epoch, why=why))


def _ended(view: EpochView) -> str:
    """Return why there is no running epoch."""
    if view.ended_why == "full":
        return FULL
    return f"{view.ended_why}: the last epoch ended with it" if view.ended_why else FIRST


def _notes(spec: BuildRequest, changed: int) -> Iterator[str]:
    """Yield what was adapted on the way, for the receipt."""
    yield from spec.notes
    if changed:
        yield f"The recipe does not know the roles or calls of some messages: {changed} became plain text."
    model = spec.model
    if model is not None and model.note:
        yield model.note
    if model is not None and model.max_tokens and spec.limits.max_tokens == model.window != model.max_tokens:
        yield (
            f"{model.id} reads {model.max_tokens:,} of its own tokens. One of ours is about "
            f"{model.tokens_ratio:.2f} of them, so {model.window:,} of ours fit."
        )
    reserved, wanted = spec.limits.reserved_response_tokens, spec.wanted_limits.reserved_response_tokens
    if reserved < wanted:
        yield (
            f"The model reads {spec.limits.max_tokens} tokens, so {reserved} "
            f"are kept for its answer instead of {wanted}."
        )


def report(receipt: Receipt | None, files: Mapping[str, int]) -> None:
    """Log what was built: each layer with its files, the size, what lost its place, and what was recalled."""
    if receipt is None:
        return
    if _log.isEnabledFor(logging.INFO):
        _report_parts(receipt, files)
    if receipt.over_limit:
        _log.warning("the context has %d tokens and the limit is %d", receipt.total_tokens, receipt.limit)


def _report_parts(receipt: Receipt, files: Mapping[str, int]) -> None:
    by_layer = receipt.by_layer
    for layer, tokens in by_layer.items():
        if layer in files and layer not in ("history", "message"):
            extra = {"layer": layer, "file_count": files[layer], "tokens": tokens}
            _log.debug("layer %s: %d files, %d tokens", layer, files[layer], tokens, extra=extra)
    _log.info(
        "context built: %d of %d tokens",
        receipt.total_tokens,
        receipt.limit,
        extra={"recipe": receipt.recipe, "layers": by_layer},
    )
    for item in receipt.dropped:
        _log.info(
            "left out %s, %d tokens: %s",
            Redacted(item.title),
            item.tokens,
            Redacted(item.reason),
            extra={"layer": item.layer, "tokens": item.tokens},
        )
    for item in receipt.kept:
        if item.source == "recall":
            _log.info("recalled %s, %d tokens", Redacted(item.title), item.tokens)
