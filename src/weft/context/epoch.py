"""Epochs, decided purely: whether a request goes on with the frozen prefix, and what a new epoch freezes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from weft.context.attach import (
    attached_items,
    attachment_of,
    changed_statics,
    first_capped,
    freeze,
    frozen_items,
    once_apart,
    statics_of,
)
from weft.context.model_tokens import plan_for_model
from weft.context.pace import attached_in, depth_of, marks_of, pace_of
from weft.context.plan import ContextPlan, Materials
from weft.errors import BudgetExceeded
from weft.tokens import Counter
from weft.types.build import BuildSpec
from weft.types.context import Context
from weft.types.epoch import Attachment, Epoch, EpochStep, EpochView, Ledger, Marks
from weft.types.instruction import ENDED
from weft.types.message import ToolDefinition
from weft.types.plural import counted
from weft.types.receipt import Expectation
from weft.types.recipe import HistoryRule
from weft.types.section import ONCE, Place
from weft.types.session import Entry, Tail

FULL = "full: the history had no more room"
_SHORT = 400
_MASKED = "[Shortened: this result of an earlier exchange had {length} characters.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """A plan inside an epoch, the epoch, and what it would attach to the message."""

    plan: ContextPlan
    epoch: Epoch
    attachment: Attachment
    marks: Marks
    hidden: frozenset[tuple[str, str]] = frozenset()
    outside: tuple[str, ...] = ()
    notice: str = ""
    expected: Expectation | None = None

    @property
    def shows_all(self) -> bool:
        """Whether every message behind the summary is shown word for word."""
        return self.epoch.first == self.epoch.folded + 1 and not self.epoch.masked

    @property
    def history_tokens(self) -> int:
        return _history_cost(self.plan)

    def step(self, context: Context, forgets: int) -> EpochStep:
        """Return what the turn adds to its epoch once its context is rendered.

        What this turn alone shows is not sent again.
        """
        lasting = tuple(section for section in context.sections if not section.id.startswith(ONCE))
        attachment = replace(self.attachment, text=replace(context, sections=lasting).turn_text)
        new = Ledger({item.key: (item, 1) for item in attachment.seen}).outside
        return EpochStep(
            epoch=self.epoch,
            attachments={0: attachment},
            marks=self.marks,
            hidden=self.hidden - {item.key for item in attachment.seen},
            notice=self.notice,
            outside=tuple(dict.fromkeys((*self.outside, *new))),
            forgets=forgets,
        )


def why_ended(epoch: Epoch, materials: Materials, *, recipe: str, now: datetime) -> str:
    """Return why an epoch does not go on with this request; empty if it does.

    `recipe` is the hash of the recipe now. Where the provider's cache has gone cold, a new epoch is free.
    """
    spec = materials.spec
    model = (spec.model.provider, spec.model.id) if spec.model else ("", "")
    if epoch.recipe != recipe:
        return "recipe: it was changed"
    if epoch.asked_at is not None and spec.model is not None and spec.model.cache_seconds:
        idle = (now - epoch.asked_at).total_seconds()
        if idle > spec.model.cache_seconds:
            return f"cold: the provider's cache is gone after {idle / 60:,.0f} minutes"
    if (epoch.provider, epoch.model) != model:
        return f"model: {model[1] or 'none'} in place of {epoch.model or 'none'}"
    if changed := _changed_tools(epoch.tools, spec.tools):
        return f"tools: {', '.join(changed)}"
    if layers := changed_statics(epoch, spec.recipe, materials.offers):
        return f"files: {', '.join(layers)}"
    return ""


def _changed_tools(frozen: Sequence[ToolDefinition], now: Sequence[ToolDefinition]) -> list[str]:
    """Name the tools that differ from those that were frozen."""
    before = {tool.name: tool for tool in frozen}
    after = {tool.name: tool for tool in now}
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def with_attachments(
    tail: Tail, attachments: Mapping[int, Attachment], counter: Counter, *, masked: int = 0
) -> Tail:
    """Return a history as it was sent: messages with what was attached to them, results as shortened."""
    entries = list(tail.entries)
    for number, attachment in attachments.items():
        at = number - tail.messages_before - 1
        if not 0 <= at < len(entries):
            continue
        message = replace(entries[at].message, attached=attachment.text)
        if attachment.content is not None:
            message = replace(message, content=attachment.content)
            entries[at] = Entry(message, counter.message(message))
        else:
            entries[at] = Entry(message, entries[at].tokens + counter.attached(attachment.text))
    return _masked(replace(tail, entries=entries), masked, counter)


def _masked(tail: Tail, until: int, counter: Counter) -> Tail:
    """Shorten the results of tools up to a message's number."""
    entries = list(tail.entries)
    for at in range(min(len(entries), until - tail.messages_before)):
        message = entries[at].message
        if message.role == "tool" and len(message.content) > 2 * _SHORT:
            note = _MASKED.format(length=len(message.content))
            short = replace(message, content=f"{message.content[:_SHORT]}\n{note}")
            entries[at] = Entry(short, counter.message(short))
    return replace(tail, entries=entries)


def continued(materials: Materials, view: EpochView) -> EpochPlan | None:
    """Plan a request that begins with the bytes of the one before. None, if there is no room for that."""
    epoch = view.epoch
    if epoch is None or materials.tail.messages_before != epoch.first - 1:
        return None
    tail = with_attachments(materials.tail, view.attachments, materials.counter, masked=epoch.masked)
    ledger = Ledger.of(epoch, view.attachments.items())
    shown = replace(materials, tail=tail, tail_starts_epoch=True)
    attached, turns = attached_in(materials.tail, view, materials.counter)
    frozen = freeze(once_apart(shown), epoch, ledger, attached=attached, turns=turns)
    try:
        decided, expected = plan_for_model(frozen.materials)
    except BudgetExceeded:
        return None
    rule = materials.spec.history_rule
    room = _room(decided)
    pace = pace_of(materials.tail, view, materials.counter, room=room)
    marks = marks_of(rule, room, pace, turn=_turn_cost(decided))
    if decided.materials.fold is None and materials.fold is not None:
        return None  # there is no more room for the summary
    if decided.over > 0 or (_is_crowded(decided) and _history_cost(decided) > marks.low):
        return None
    if rule.max_messages is not None and len(tail.entries) > rule.max_messages:
        return None
    attachment = attachment_of(frozen, decided)
    return EpochPlan(
        plan=decided,
        epoch=epoch,
        attachment=attachment,
        marks=marks,
        hidden=ledger.hidden,
        outside=ledger.outside,
        expected=expected,
    )


def _room(decided: ContextPlan) -> int:
    """Return the tokens that are left for the history beside everything else of a request."""
    ceiling = decided.materials.spec.limits.ceiling
    return ceiling - (decided.total - _history_cost(decided))


def _history_cost(decided: ContextPlan) -> int:
    return decided.window.costs[decided.cut] + decided.materials.summary_tokens


def _turn_cost(decided: ContextPlan) -> int:
    """Return the price of the message and of what goes with it."""
    attached = (section.tokens for section in decided.sections if section.place == Place.MESSAGE)
    return decided.materials.message_tokens + decided.materials.picture_tokens + sum(attached)


def _is_crowded(decided: ContextPlan) -> bool:
    """Check whether something lost its place for want of room, and not for a limit of its layer."""
    pairs = zip(decided.materials.offers, decided.visible, decided.excluded, strict=True)
    return any(len(offer.pieces) > len(visible) + len(excluded) for offer, visible, excluded in pairs)


def begun(materials: Materials, start: Epoch, view: EpochView, *, is_full: bool) -> EpochPlan:
    """Plan the first request of a new epoch, of which `start` has the number, the reason and the recipe.

    The history begins where it fits: behind the summary, or, where that is too much or the last epoch was
    full, so late that it is below the low mark, or deeper where `view` shows that it grows fast. A recipe
    may have old results of tools shortened first.

    Raises:
        BudgetExceeded: what must be shown is too large.
    """
    materials = once_apart(first_capped(materials, is_first=start.number == 1))
    spec, rule = materials.spec, materials.spec.history_rule
    whole = replace(materials, spec=_with_rule(spec, HistoryRule(roles=rule.roles)))
    decided, expected = plan_for_model(whole)
    room, masked = _room(decided), 0
    pace = pace_of(materials.tail, view, materials.counter, room=room)
    marks = marks_of(rule, room, pace, turn=_turn_cost(decided))
    depth = depth_of(marks, pace, summary=materials.summary_tokens)
    folded = materials.fold.last if materials.fold else 0
    is_whole = decided.cut == 0 and materials.tail.messages_before == folded
    most = depth if is_full else marks.due
    if not is_whole or _history_cost(decided) > most or _has_too_many(materials.tail, rule, is_full=is_full):
        if rule.strategy == "mask":
            masked = _last_exchange(materials.tail)
            materials = replace(materials, tail=_masked(materials.tail, masked, materials.counter))
        is_opened = start.why.startswith("unfold")
        limit = max((marks.high if is_opened else depth) - materials.summary_tokens, 0)
        count = None if rule.max_messages is None else int(rule.max_messages * rule.fold_to)
        cut = HistoryRule(max_tokens=limit, max_messages=count, roles=rule.roles)
        decided, expected = plan_for_model(replace(materials, spec=_with_rule(spec, cut)))
    model = spec.model
    epoch = replace(
        start,
        first=decided.window.tail.messages_before + decided.window.cuts[decided.cut] + 1,
        folded=folded,
        masked=masked,
        provider=model.provider if model else "",
        model=model.id if model else "",
        limit=decided.materials.spec.limits.ceiling,
        tools=spec.tools,
        sections=tuple(section for section in decided.sections if section.place == Place.SYSTEM),
        seen=frozen_items(materials, decided),
        statics=statics_of(spec.recipe, materials.offers),
    )
    attachment = Attachment(seen=attached_items(materials, decided))
    hidden = frozenset(item.key for item in epoch.seen if item.hidden)
    return EpochPlan(
        plan=decided,
        epoch=epoch,
        attachment=attachment,
        marks=marks,
        hidden=hidden,
        notice=_notice(epoch, materials, first_before=start.first),
        expected=expected,
    )


def _notice(epoch: Epoch, materials: Materials, *, first_before: int) -> str:
    """Say which messages are no longer shown word for word from now on, and what stands for them."""
    fold = materials.fold
    standing = sum(item.layer == "standing" and not item.id.startswith(ENDED) for item in epoch.seen)
    stay = "stays" if standing == 1 else "stay"
    rules = f" {counted(standing, 'standing instruction')} {stay} word for word." if standing else ""
    back = " Nothing is lost: `weft sessions unfold` shows them again."
    if epoch.why.startswith("fold") and fold is not None:
        return (
            f"Messages 1-{fold.last} are shown as a summary from now on: {fold.tokens_before:,} tokens "
            f"became {fold.tokens_after:,}.{rules}{back}"
        )
    first = (fold.last if fold else 0) + 1
    if epoch.first > max(first, first_before):
        return (
            f"Messages {first}-{epoch.first - 1} are not shown to the model from now on: there was no more "
            f"room, and there is no summary of them yet.{rules} They stay in the log and can be searched."
        )
    return ""


def _has_too_many(tail: Tail, rule: HistoryRule, *, is_full: bool) -> bool:
    if rule.max_messages is None:
        return False
    count = len(tail.entries) + tail.messages_before - tail.messages_folded
    return count > rule.max_messages * (rule.fold_to if is_full else 1)


def _last_exchange(tail: Tail) -> int:
    """Return the number of the last message before the newest exchange."""
    roles = [entry.message.role for entry in tail.entries]
    newest = max((at for at, role in enumerate(roles) if role == "user"), default=len(roles))
    return tail.messages_before + newest


def _with_rule(spec: BuildSpec, rule: HistoryRule) -> BuildSpec:
    recipe = replace(spec.recipe, history=rule, stability="live")
    config = replace(spec.config, compression_strategy=None, max_messages_cap=None)
    return replace(spec, recipe=recipe, config=config)


def fold_until(tail: Tail, room: int, counter: Counter) -> int:
    """Return the last message to fold, so that the messages after it fit a room.

    The cut is between whole exchanges. It is the message before the tail if all of the tail may stay.
    """
    spent, start = 0, len(tail.entries)
    for at in reversed(range(len(tail.entries))):
        spent += tail.entries[at].tokens + counter.per_message
        if spent > room:
            return tail.messages_before + start
        if tail.entries[at].message.role == "user":
            start = at
    return tail.messages_before
