"""The model's own tokens: what a plan costs in them, which depends on the scripts that are shown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from weft.context.plan import ContextPlan, Materials, plan
from weft.tokens import calls_json, count, tool_json
from weft.types.limits import ModelInfo
from weft.types.message import Message
from weft.types.receipt import Expectation
from weft.types.script import Script, writing_of

_NEARLY_ALL = 0.8
"""A request teaches something about a script that holds at least this share of its tokens."""


@dataclass(slots=True)
class ModelCost:
    """The tokens of texts by script: ours, and those that a model is believed to need for them."""

    model: ModelInfo
    is_exact: bool = True
    ours: dict[Script, float] = field(default_factory=lambda: defaultdict(float))
    theirs: dict[Script, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def tokens(self) -> float:
        """How many of its tokens the model needs."""
        return sum(self.theirs.values())

    @property
    def ratio(self) -> float:
        """How many of its tokens one of ours is."""
        return self.tokens / (sum(self.ours.values()) or 1)

    @property
    def highest_ratio(self) -> float:
        """The ratio of the most expensive script."""
        return max((self.theirs[script] / ours for script, ours in self.ours.items() if ours), default=0.0)

    def add(self, text: str, tokens: int) -> None:
        """Add a text that we count as so many tokens."""
        if text.isascii():
            self.ours["plain"] += tokens
            self.theirs["plain"] += tokens * self.model.ratio_of("plain")
            return
        writing = writing_of(text)
        # An estimate by characters says little of other scripts, so that these are counted.
        weight = tokens if self.is_exact or writing.is_plain else max(tokens, count(text))
        size = len(text) * writing.bytes_per_char
        for script, share in writing.shares.items():
            least = self.model.least_tokens(script, size * share)
            self.ours[script] += tokens * share
            self.theirs[script] += max(weight * share * self.model.ratio_of(script), least)

    def add_messages(self, messages: list[tuple[str, int]]) -> None:
        """Add the texts of a conversation.

        Short messages of a language such as German often have no letter beyond ASCII. Where longer ones show
        that this is the language, plain ones are believed to be in it too.
        """
        conversation = ModelCost(self.model, self.is_exact)
        for text, tokens in messages:
            conversation.add(text, tokens)
        ours, theirs = conversation.ours, conversation.theirs
        if 2 * ours["latin"] >= ours["plain"] > 0:
            plain = ours.pop("plain")
            theirs["latin"] += max(theirs.pop("plain"), plain * self.model.ratio_of("latin"))
            ours["latin"] += plain
        for script in ours:
            self.ours[script] += ours[script]
            self.theirs[script] += theirs[script]

    def expectation(self) -> Expectation:
        """Return what is believed of the model's tokens, for the receipt."""
        total = sum(self.ours.values())
        plain: Script = "plain"
        script = max(self.ours, key=lambda each: self.ours[each], default=plain)
        window = (self.model.max_tokens or 0) if self.model.takes_window else 0
        if self.ours[script] < _NEARLY_ALL * total:
            return Expectation(ratio=round(self.ratio, 3), sent_window=window)
        own = self.theirs[script] / (self.ours[script] or 1)
        return Expectation(
            ratio=round(self.ratio, 3), script=script, script_ratio=round(own, 3), sent_window=window
        )


def plan_for_model(materials: Materials) -> tuple[ContextPlan, Expectation | None]:
    """Decide what is shown, within what the model reads of the scripts in which that is written.

    A first plan counts as in plain text. If what it shows costs the model more, it is made again with the
    ratio of that. What is left may cost more yet, so the last plan takes the ratio of the most expensive
    script.

    Raises:
        BudgetExceeded: what must be shown is too large, and the recipe does not send it even so.
    """
    decided, model = plan(materials), materials.spec.model
    if model is None:
        return decided, None
    for is_last in (False, False, False, True):
        cost, spec = _cost(decided, model), decided.materials.spec
        ratio = cost.highest_ratio if is_last else cost.ratio
        if spec.model is None or cost.ratio <= spec.model.tokens_ratio:
            break
        stricter = replace(spec, model=replace(model, tokens_ratio=ratio))
        if stricter.limits == spec.limits:
            break  # the window is not what binds
        if decided.total <= stricter.limits.ceiling:
            decided = replace(decided, materials=replace(decided.materials, spec=stricter))
            break
        decided = plan(replace(materials, spec=stricter))
    else:
        cost = _cost(decided, model)
    return decided, cost.expectation()


def _cost(decided: ContextPlan, model: ModelInfo) -> ModelCost:
    """Add up what a plan shows."""
    materials, window = decided.materials, decided.window
    cost = ModelCost(model, is_exact=not materials.counter.chars_per_token)
    for tool, tokens in zip(materials.spec.tools, materials.tool_tokens, strict=True):
        cost.add(tool_json(tool), tokens)
    for section in decided.sections:
        cost.add(section.text, section.tokens)
    start = window.cuts[decided.cut]
    messages = [
        (_text(entry.message), entry.tokens)
        for at, entry in enumerate(window.tail.entries[start:], start)
        if at not in window.excluded
    ]
    if materials.summary:
        messages.append((materials.summary.content, materials.summary_tokens))
    messages.append((materials.sent_message, materials.message_tokens))
    cost.add_messages(messages)
    cost.add("", materials.picture_tokens + decided.framing_tokens)
    return cost


def _text(message: Message) -> str:
    return message.content or (calls_json(message) if message.tool_calls else "")
