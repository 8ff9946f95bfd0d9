"""The pages of recipes: their layers, limits, a preview with tokens, and two of them side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import see_other
from weft.channels.pages.recipe_draft import check_name, draft_text, rows_of
from weft.errors import ConfigError, PermissionDenied, did_you_mean
from weft.private_files import make_private_folder, write_private
from weft.types.context import Context
from weft.types.recipe import Recipe, packaged, packaged_text, read_recipe_text
from weft.types.request import TurnRequest
from weft.types.section import Keep
from weft.web.context_bar import context_bar, used_bar
from weft.wire import VENDORS, to_wire

SAMPLE = "What did we say about the trip to Porto?"
_OWNER_ONLY = "Only the owner may change recipes."
_NEW = "a conversation that only a preview has"


class RecipePages:
    """The pages of recipes. Everybody may look at Weft's, with their own memory; the owner may save more."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/recipes", "GET", self.list),
            ("/recipes/edit", "GET", self.show),
            ("/recipes/preview", "POST", self.preview),
            ("/recipes/save", "POST", self.save),
            ("/recipes/compare", "GET", self.compare),
        ]

    async def list(self, request: Request) -> Response:
        """List the recipes that come with Weft, and those that were saved here."""
        own = await self._own(request)
        return await self._desk.html(
            request,
            "recipes",
            title="Recipes",
            recipes=[Recipe.load(name) for name in packaged()],
            own=list(own),
            used=self._desk.assistant.engine.builder.recipe.name,
            sample=SAMPLE,
        )

    async def show(self, request: Request) -> Response:
        """Show a recipe with its layers, which can be moved, switched off and limited."""
        name = request.query_params.get("name", "weft")
        recipe, text = await self._load(request, name)
        return await self._desk.html(
            request,
            "recipe",
            title=recipe.name,
            recipe=recipe,
            name=name,
            text=text,
            rows=rows_of(recipe),
            keeps=[*Keep],
            gives_way=[recipe.layers[at].source for at in recipe.order_of_giving_way()],
            is_own=name not in packaged(),
            sample=SAMPLE,
        )

    async def preview(self, request: Request) -> Response:
        """Build the context of a sample message with a draft. Nothing is saved, and no model is asked."""
        form = await self._desk.form(request)
        base, _ = await self._load(request, form.get("base", ""))
        async with _draft(base, form) as path:
            context = await self._build(request, str(path), form.get("message", ""))
        return await self._built(request, context)

    async def save(self, request: Request) -> Response:
        """Save a draft as a TOML file of the owner's own."""
        if not self._desk.speaker(request).is_owner:
            raise PermissionDenied(_OWNER_ONLY)
        form = await self._desk.form(request)
        base, _ = await self._load(request, form.get("base", ""))
        name = check_name(form.get("name", "").strip(), packaged())
        text = draft_text(base, form, name=name)
        if self._desk.settings.recipes is None:
            raise ConfigError("This server has no folder for recipes.")
        await asyncio.to_thread(_save, self._desk.settings.recipes / f"{name}.toml", text)
        return see_other(f"/recipes/edit?name={name}")

    async def compare(self, request: Request) -> Response:
        """Build the context of one message with two recipes, side by side."""
        query = request.query_params
        message = query.get("text", "").strip() or SAMPLE
        names = [query.get("a", "weft"), query.get("b", "omega")]
        built = [await self._build(request, await self._place(request, name), message) for name in names]
        own = await self._own(request)
        receipts = [context.receipt for context in built if context.receipt]
        return await self._desk.html(
            request,
            "compare",
            title="Two recipes",
            message=message,
            names=names,
            choices=[*packaged(), *own],
            built=[
                (name, context, receipt, context_bar(receipt, 0), used_bar(receipt))
                for name, context, receipt in zip(names, built, receipts, strict=True)
            ],
            layers=list(dict.fromkeys(layer for receipt in receipts for layer in receipt.by_layer)),
        )

    async def _built(self, request: Request, context: Context) -> Response:
        """Show a context that was built to look at it."""
        receipt = context.receipt
        assert receipt is not None  # noqa: S101 - what a builder makes has one
        return await self._desk.html(
            request,
            "preview",
            title="Preview",
            context=context,
            receipt=receipt,
            bar=context_bar(receipt, 0),
            used=used_bar(receipt),
            requests=[(name, _request(name, context)) for name in VENDORS],
        )

    async def _build(self, request: Request, recipe: str, message: str) -> Context:
        caller = self._desk.speaker(request).caller()
        asked = TurnRequest(text=message.strip() or SAMPLE, caller=caller, recipe=recipe, session=_NEW)
        return await self._desk.assistant.preview(asked)

    async def _own(self, request: Request) -> Mapping[str, Path]:
        """Return the recipes that were saved here, by their names. They are the owner's: some name files."""
        folder = self._desk.settings.recipes
        if folder is None or not self._desk.speaker(request).is_owner:
            return {}
        return await asyncio.to_thread(_saved, folder)

    async def _place(self, request: Request, name: str) -> str:
        """Return what loads a recipe: its name, or the path of its file."""
        if name in packaged():
            return name
        own = await self._own(request)
        if name not in own:
            raise ConfigError(f"There is no recipe {name!r}: {did_you_mean(name, (*packaged(), *own))}")
        return str(own[name])

    async def _load(self, request: Request, name: str) -> tuple[Recipe, str]:
        place = await self._place(request, name)
        if name in packaged():
            return Recipe.load(name), packaged_text(name)
        return await asyncio.to_thread(lambda: (Recipe.load(place), read_recipe_text(Path(place))))


@asynccontextmanager
async def _draft(base: Recipe, form: Mapping[str, str]) -> AsyncIterator[Path]:
    """Write a draft to a file for as long as it is looked at, so that it is read as a saved one will be."""
    text = draft_text(base, form, name="draft")
    with TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / "draft.toml"
        await asyncio.to_thread(path.write_text, text, "utf-8")
        yield path


def _request(provider: str, context: Context) -> str:
    """Write what a vendor would get, as JSON."""
    payload = to_wire(provider, context, model=VENDORS[provider].default_model)
    return json.dumps(payload, ensure_ascii=False, indent=2)


def _saved(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.is_file()}


def _save(path: Path, text: str) -> None:
    make_private_folder(path.parent)
    write_private(path, text)
