"""Documents against a model: any edits, on two replicas that merge, reload and undo."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from weft.errors import LimitExceeded, PermissionDenied, StoreError, WeftError
from weft.memory.document import BlockDoc, Document
from weft.memory.permission import Rights
from weft.memory.schemas.log import stamped
from weft.memory.schemas.registry import content_of, measure, render
from weft.types.memory import Permission
from weft.types.schema import (
    BlockSchema,
    CompositeSchema,
    CompositeSection,
    FieldDef,
    ListSchema,
    LogSchema,
    MapSchema,
    TextSchema,
    Viewport,
)

from samples import NOW

LIMIT, MAX_ITEMS, SHOWN = 60, 4, 3
FIELDS = MapSchema(
    fields=(
        FieldDef(name="name", required=True),
        FieldDef(name="age", type="number"),
        FieldDef(name="on", type="boolean", default=True),
        FieldDef(name="tags", type="list"),
        FieldDef(name="score", type="counter"),
        FieldDef(name="seal", read_only=True),
    )
)
SCHEMAS: dict[str, BlockSchema] = {
    "text": TextSchema(viewport=Viewport(start_line=2, display_lines=1)),
    "map": FIELDS,
    "list": ListSchema(max_items=MAX_ITEMS),
    "log": LogSchema(display_limit=SHOWN),
    "composite": CompositeSchema(
        sections=(
            CompositeSection(name="notes", schema=TextSchema()),
            CompositeSection(name="stats", schema=FIELDS),
            CompositeSection(name="todo", schema=ListSchema(max_items=2)),
            CompositeSection(name="seal", schema=TextSchema(), read_only=True),
        )
    ),
}

words = st.text(alphabet="ab é😀\n", max_size=8)
values = st.one_of(words, st.integers(-9, 9), st.booleans(), st.none(), st.lists(words, max_size=2))
places = st.integers(-1, 5)
Op = tuple[str, tuple[Any, ...]]


def op(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Op]:
    return st.tuples(st.just(name), st.tuples(*arguments))


names = st.sampled_from([field.name for field in FIELDS.fields])
OPS = st.one_of(
    op("set_text", words),
    op("append_text", words),
    op("replace_text", words, words),
    op("set_field", names, values),
    op("append_to_list_field", names, values),
    op("increment_counter", names, st.integers(-9, 9)),
    op("push_item", values),
    op("insert_item", places, values),
    op("delete_item", places),
    op("append_log_entry", st.dictionaries(st.sampled_from(["timestamp", "m", "n"]), words, max_size=2)),
)
APPENDING = {"append_text", "append_to_list_field", "push_item", "insert_item", "append_log_entry"}
sections = st.sampled_from(["notes", "stats", "todo", "seal", "absent"])


class Refused(Exception):
    """The model does not do this."""


def _text(held: str, name: str, given_: tuple[Any, ...]) -> str:
    if name == "set_text":
        return str(given_[0])
    if name == "append_text":
        return held + str(given_[0])
    if name != "replace_text" or not given_[0]:
        raise Refused
    return held.replace(given_[0], given_[1], 1)


def _fits(kind: str, value: Any) -> bool:
    if kind in ("number", "counter"):
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"text": str, "boolean": bool, "list": list}[kind])


def _fields(held: dict[str, Any], name: str, given_: tuple[Any, ...]) -> dict[str, Any]:
    field = next((f for f in FIELDS.fields if f.name == given_[0]), None)
    if field is None or name not in ("set_field", "append_to_list_field", "increment_counter"):
        raise Refused
    key, value, new = field.name, given_[1], dict(held)
    if name == "append_to_list_field" and field.type == "list":
        new[key] = [*held.get(key, []), value]
    elif name == "increment_counter" and field.type == "counter":
        new[key] = held.get(key, 0) + value
    elif (
        name == "set_field" and value is None and not field.required and field.type not in ("list", "counter")
    ):
        new.pop(key, None)
        if field.default is not None:
            new[key] = field.default
    elif name == "set_field" and _fits(field.type, value):
        new[key] = value
    else:
        raise Refused
    return new


def _items(held: list[Any], name: str, given_: tuple[Any, ...], most: int) -> list[Any]:
    if name == "push_item":
        name, given_ = "insert_item", (len(held), given_[0])
    if name == "insert_item" and 0 <= given_[0] <= len(held) < most:
        return [*held[: given_[0]], given_[1], *held[given_[0] :]]
    if name == "delete_item" and 0 <= given_[0] < len(held):
        return [*held[: given_[0]], *held[given_[0] + 1 :]]
    raise Refused


def model(schema: BlockSchema, held: Any, name: str, given_: tuple[Any, ...]) -> Any:
    """What the content becomes, or Refused."""
    if isinstance(schema, TextSchema):
        return _text(held, name, given_)
    if isinstance(schema, MapSchema):
        return _fields(held, name, given_)
    if isinstance(schema, ListSchema):
        return _items(held, name, given_, schema.max_items or 0)
    if isinstance(schema, LogSchema) and name == "append_log_entry":
        return [stamped(given_[0], NOW), *held]
    raise Refused


def empty(schema: BlockSchema) -> Any:
    if isinstance(schema, CompositeSchema):
        return {section.name: empty(section.schema) for section in schema.sections}
    if isinstance(schema, MapSchema):
        return {field.name: field.default for field in schema.fields if field.default is not None}
    return "" if isinstance(schema, TextSchema) else []


def has_read_only(name: str, given_: tuple[Any, ...], section: str | None) -> bool:
    in_map = name in ("set_field", "append_to_list_field", "increment_counter")
    return section == "seal" or (in_map and given_[0] == "seal")


def sync(one: BlockDoc, two: BlockDoc) -> None:
    to_one, to_two = two.export_since(one.version()), one.export_since(two.version())
    one.import_updates([to_one])
    two.import_updates([to_two])
    assert one.version() == two.version()


class Replicas(RuleBasedStateMachine):
    """Edits one after the other must do what the model does; edits at the same time must converge."""

    @initialize(kind=st.sampled_from(sorted(SCHEMAS)), permission=st.sampled_from(Permission))
    def start(self, kind: str, permission: Permission) -> None:
        self.schema, self.permission = SCHEMAS[kind], permission
        self.blocks = [BlockDoc(schema=self.schema, label="x", char_limit=LIMIT) for _ in range(2)]
        self.expected = empty(self.schema)
        self.undoable: tuple[bytes, bytes, Any, Any] | None = None

    def call(self, which: int, edit: Op, section: str | None, *, is_system: bool, consented: bool) -> Any:
        document = Document(self.blocks[which], Rights(self.permission, consented))
        more = {} if section is None else {"section": section}
        return getattr(document, edit[0])(*edit[1], is_system=is_system, **more)

    def refusal(self, which: int, edit: Op, section: str | None, **how: bool) -> WeftError | None:
        try:
            self.call(which, edit, section, **how)
        except (PermissionDenied, StoreError) as error:
            return error
        return None

    def would_be(self, edit: Op, section: str | None) -> Any:
        if not isinstance(self.schema, CompositeSchema):
            return model(self.schema, self.expected, *edit)
        inner = next((part.schema for part in self.schema.sections if part.name == section), None)
        if inner is None or section is None:
            raise Refused
        return {**self.expected, section: model(inner, self.expected[section], *edit)}

    def allowed(self, name: str, *, is_system: bool, consented: bool) -> bool:
        if is_system or self.permission in (Permission.READ_WRITE, Permission.ADMIN):
            return True
        if self.permission is Permission.APPEND:
            return name in APPENDING
        return consented and self.permission in (Permission.PARTNER, Permission.HUMAN)

    @rule(
        which=st.sampled_from([0, 1]),
        edit=OPS,
        section=sections,
        is_system=st.booleans(),
        consented=st.booleans(),
    )
    def edit(self, which: int, edit: Op, section: str, is_system: bool, consented: bool) -> None:
        inside = section if isinstance(self.schema, CompositeSchema) else None
        block, before = self.blocks[which], copy.deepcopy(self.expected)
        start, version = block.frontiers(), block.version()
        size = measure(self.schema, self.expected)
        refusal = self.refusal(which, edit, inside, is_system=is_system, consented=consented)
        if refusal is not None:
            assert block.version() == version, "a refused edit wrote something"
            if not self.allowed(edit[0], is_system=is_system, consented=consented):
                assert isinstance(refusal, PermissionDenied)
            elif isinstance(refusal, PermissionDenied):
                assert has_read_only(edit[0], edit[1], inside)
                assert not is_system
            elif isinstance(refusal, LimitExceeded) and refusal.unit == "characters":
                assert measure(self.schema, self.would_be(edit, inside)) > max(LIMIT, size)
            else:
                self.assert_refused(edit, inside)
            return
        self.expected = self.would_be(edit, inside)
        assert self.allowed(edit[0], is_system=is_system, consented=consented)
        assert is_system or not has_read_only(edit[0], edit[1], inside)
        assert measure(self.schema, self.expected) <= max(LIMIT, size)
        sync(*self.blocks)
        self.undoable = (start, block.frontiers(), before, copy.deepcopy(self.expected))

    def assert_refused(self, edit: Op, section: str | None) -> None:
        try:
            self.would_be(edit, section)
        except Refused:
            return
        raise AssertionError(f"{edit} should have worked")

    @rule(mine=OPS, theirs=OPS, section=sections)
    def edit_both_at_once(self, mine: Op, theirs: Op, section: str) -> None:
        inside = section if isinstance(self.schema, CompositeSchema) else None
        for which, edit in enumerate((mine, theirs)):
            self.refusal(which, edit, inside, is_system=True, consented=False)
        sync(*self.blocks)
        self.adopt()

    def adopt(self) -> None:
        """Take what a merge made for granted, for the edits to come."""
        self.expected, self.undoable = content_of(self.blocks[0]), None
        if isinstance(self.schema, LogSchema):
            self.expected = self.blocks[0].newest("entries", 10_000)

    @rule(which=st.sampled_from([0, 1]))
    def reload(self, which: int) -> None:
        old = self.blocks[which]
        self.blocks[which] = BlockDoc.load(
            schema=self.schema, label="x", char_limit=LIMIT, updates=[old.snapshot()]
        )
        assert self.blocks[which].version() == old.version()

    @precondition(lambda self: self.undoable is not None)
    @rule(which=st.sampled_from([0, 1]), again=st.booleans())
    def undo(self, which: int, again: bool) -> None:
        assert self.undoable is not None
        start, end, before, after = self.undoable
        self.undoable, block = None, self.blocks[which]
        for wanted in (before, after) if again else (before,):
            at = block.frontiers()
            block.reverse(start, end)
            start, end = at, block.frontiers()
            self.expected = wanted
            assert render(self.schema, content_of(block)) == render(self.schema, wanted)
        sync(*self.blocks)

    @invariant()
    def both_replicas_show_what_the_model_shows(self) -> None:
        if not hasattr(self, "blocks"):
            return
        wanted = render(self.schema, self.expected)
        assert [Document(block).render() for block in self.blocks] == [wanted, wanted]


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(
    max_examples=120, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)

quick = settings(max_examples=60, deadline=None)


def replicas(schema: BlockSchema, start: Callable[[Document], None] | None = None) -> list[Document]:
    blocks = [BlockDoc(schema=schema, label="x") for _ in range(3)]
    if start is not None:
        start(Document(blocks[0]))
        for other in blocks[1:]:
            other.import_updates([blocks[0].snapshot()])
    return [Document(block) for block in blocks]


def exchange(documents: list[Document], order: list[int]) -> str:
    """Give everybody everything, in the order given; what they all show."""
    blocks = [document._block for document in documents]
    updates = [block.snapshot() for block in blocks]
    for block in blocks:
        for which in order:
            block.import_updates([updates[which]])
    shown = {document.render() for document in documents}
    assert len(shown) == 1
    return shown.pop()


orders = st.permutations([0, 1, 2])
each = st.lists(st.tuples(st.integers(0, 2), words), max_size=12)


@quick
@given(edits=each, order=orders)
def test_texts_appended_at_the_same_time_are_all_there_and_whole(
    edits: list[tuple[int, str]], order: list[int]
) -> None:
    documents = replicas(TextSchema(), lambda document: document.set_text("start|"))
    for which, text in edits:
        documents[which].append_text(f"<{text}>")

    shown = exchange(documents, order)

    assert Counter(shown) == Counter("start|" + "".join(f"<{text}>" for _, text in edits))
    for who in range(3):
        assert "".join(f"<{text}>" for which, text in edits if which == who) in shown


@quick
@given(edits=each, order=orders)
def test_items_pushed_at_the_same_time_are_all_there(edits: list[tuple[int, str]], order: list[int]) -> None:
    documents = replicas(ListSchema())
    for which, text in edits:
        documents[which].push_item({"text": text})

    exchange(documents, order)

    held = documents[0]._block.items("items")
    assert Counter(item["text"] for item in held) == Counter(text for _, text in edits)


@quick
@given(edits=each, order=orders)
def test_log_entries_of_the_same_time_are_all_there(edits: list[tuple[int, str]], order: list[int]) -> None:
    documents = replicas(LogSchema(display_limit=2))
    for which, text in edits:
        documents[which].append_log_entry({"m": text})

    exchange(documents, order)

    assert Counter(entry["m"] for entry in documents[1].log_entries(999)) == Counter(
        text for _, text in edits
    )


@quick
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(-99, 99)), max_size=12), order=orders)
def test_counters_add_up_and_list_fields_lose_nothing(steps: list[tuple[int, int]], order: list[int]) -> None:
    documents = replicas(FIELDS)
    for which, by in steps:
        documents[which].increment_counter("score", by)
        documents[which].append_to_list_field("tags", by)

    exchange(documents, order)

    content = content_of(documents[2]._block)
    assert content.get("score", 0) == sum(by for _, by in steps)
    assert Counter(content.get("tags", [])) == Counter(by for _, by in steps)


@quick
@given(first=words, second=words, undone=st.sampled_from([0, 1]), where=st.sampled_from([0, 1]))
def test_undo_takes_back_its_own_edit_and_no_later_one(
    first: str, second: str, undone: int, where: int
) -> None:
    documents = replicas(TextSchema(), lambda document: document.set_text("start"))
    one, two = documents[0]._block, documents[1]._block
    spans = []
    for text in (f"<{first}>", f"[{second}]"):
        before = one.frontiers()
        documents[0].append_text(text)
        spans.append((before, one.frontiers()))
    sync(one, two)
    documents[1].append_text("!")
    sync(one, two)

    assert (one, two)[where].reverse(*spans[undone]) is True
    sync(one, two)

    kept = [f"<{first}>", f"[{second}]"][1 - undone]
    assert [one.text(), two.text()] == [f"start{kept}!"] * 2


@quick
@given(texts=st.lists(words, min_size=1, max_size=8), cut=st.integers(0, 8))
def test_a_document_is_any_snapshot_of_it_and_the_updates_since(texts: list[str], cut: int) -> None:
    block = BlockDoc(schema=TextSchema(), label="x")
    saved, version = [], block.version()
    for at, text in enumerate(texts):
        Document(block).set_text(text)
        saved.append(block.snapshot() if at == cut else block.export_since(version))
        version = block.version()

    kept = saved[cut:] if cut < len(saved) else saved

    assert BlockDoc.load(schema=TextSchema(), label="x", updates=kept).text() == texts[-1]
