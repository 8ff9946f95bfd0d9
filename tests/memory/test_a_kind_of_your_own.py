"""A sixth kind of memory block, from one file outside of the package."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import weft
from weft.memory.schemas.base import _kinds
from weft.types.schema import BlockSchema, schema_from_dict, schema_to_dict

FILE = Path(__file__).parents[2] / "examples" / "plugins" / "tally_block.py"


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the file, and forget the kind afterwards."""
    spec = importlib.util.spec_from_file_location("tally_block", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tally_block", module)
    spec.loader.exec_module(module)
    yield module
    del BlockSchema.KINDS["tally"], _kinds[module.TallySchema]


async def votes(memory: Any, tally: ModuleType, label: str = "drinks") -> Any:
    document = await memory.get_block("iris", label)
    return document.using(tally.TallyEditor)


async def test_it_is_made_edited_by_many_rendered_and_read_back(tmp_path: Path, tally: ModuleType) -> None:
    schema = tally.TallySchema(options=("tea", "rum"))
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "drinks", schema=schema, pinned=True)
        mine, theirs = await votes(one.memory, tally), await votes(two.memory, tally)
        mine.vote("tea")
        theirs.vote("rum", 2)
        await one.memory.persist_block("iris", "drinks")
        await two.memory.persist_block("iris", "drinks")

    async with await weft.open(tmp_path / "w.db") as store:
        assert await store.memory.get_rendered_content("iris", "drinks") == "rum: 2\ntea: 1"
        context = await weft.ContextBuilder(recipe="weft").with_store(store).for_agent("iris").build("Hi")
        assert "rum: 2\ntea: 1" in context.system_prompt
        assert await store.memory.undo_block("iris", "drinks") is True
        assert await store.memory.get_rendered_content("iris", "drinks") == "tea: 1\nrum: 0"


async def test_it_is_exported_and_imported(tmp_path: Path, tally: ModuleType) -> None:
    async with await weft.open(tmp_path / "w.db") as store:
        await store.memory.create_block("iris", "drinks", schema=tally.TallySchema(options=("tea",)))
        (await votes(store.memory, tally)).vote("tea", 3)
        await store.memory.persist_block("iris", "drinks")
        await store.export(tmp_path / "out")

    async with await weft.open(tmp_path / "again.db") as store:
        await store.restore_export(tmp_path / "out")
        assert await store.memory.get_rendered_content("iris", "drinks") == "tea: 3"


async def test_permissions_limits_and_wrong_operations_hold_for_it_too(tally: ModuleType) -> None:
    schema = tally.TallySchema(options=("tea", "rum"))
    async with await weft.open(":memory:") as store:
        memory = store.memory
        await memory.create_block("iris", "drinks", schema=schema, char_limit=13)
        await memory.create_block("iris", "shut", schema=schema, permission=weft.Permission.READ_ONLY)
        await memory.create_block("iris", "notes")

        document = await memory.get_block("iris", "drinks")
        assert document is not None
        with pytest.raises(weft.StoreError, match=r"'drinks' is a tally: use using\(TallyEditor\).vote\."):
            document.set_text("x")
        with pytest.raises(weft.StoreError, match="'notes' is a text: use set_text"):
            (await votes(memory, tally, "notes")).vote("tea")
        with pytest.raises(weft.LimitExceeded):
            (await votes(memory, tally)).vote("tea", 1000)
        with pytest.raises(weft.PermissionDenied):
            (await votes(memory, tally, "shut")).vote("tea")


async def test_it_can_be_a_section_and_an_item(tally: ModuleType) -> None:
    schema = tally.TallySchema(options=("tea", "rum"))
    sections = (
        weft.CompositeSection(name="drinks", schema=schema),
        weft.CompositeSection(name="rounds", schema=weft.ListSchema(item_schema=schema)),
    )
    composite = weft.CompositeSchema(sections=sections)
    assert schema_from_dict(schema_to_dict(composite)) == composite
    async with await weft.open(":memory:") as store:
        await store.memory.create_block("iris", "party", schema=composite)
        document = await store.memory.get_block("iris", "party")
        assert document is not None
        document.using(tally.TallyEditor).vote("rum", section="drinks")
        document.push_item({"tea": 2}, section="rounds")
        with pytest.raises(weft.StoreError, match="must be votes for tea, rum"):
            document.push_item({"gin": 2}, section="rounds")

        assert document.render() == "=== drinks ===\n\nrum: 1\ntea: 0\n\n=== rounds ===\n\n1. rum: 0, tea: 2"


def test_the_example_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(FILE)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "rum: 2\ntea: 1\n"), done.stderr


async def test_a_program_that_does_not_know_the_kind_says_so(tmp_path: Path) -> None:
    with pytest.raises(weft.StoreError, match="cannot be of the kind 'tally': known are composite, list"):
        schema_from_dict({"kind": "tally", "options": ["tea"]})
