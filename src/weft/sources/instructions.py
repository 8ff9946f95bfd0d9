"""Who the assistant is and how it behaves: files of the workspace, or what the caller says."""

from __future__ import annotations

from dataclasses import replace

from weft.sources.base import Request, nothing, piece
from weft.types.escape import inert
from weft.types.recipe import Layer
from weft.types.section import Offer, Stability


async def offer(request: Request, layer: Layer) -> Offer:
    """The caller's base instructions, then the files; the recipe's texts stand in for what is missing.

    The caller's and the recipe's words are taken as they are; tags in a file are made harmless.
    """
    files = await request.read(layer, *layer.files)
    found = {name: inert((file.text or "").strip()) for name, file in zip(layer.files, files, strict=False)}
    warnings = tuple(file.warning for file in files if file.warning)
    base = (request.base_instructions or "").strip()
    texts = [base] if base else []
    names = ["base instructions"] if base else []
    if any(found.values()):
        for name in layer.files:
            text = found.get(name) or ("" if base else layer.missing.get(name, ""))
            if text:
                texts.append(text)
                names.append(name if found.get(name) else f"default for {name}")
    elif not base and layer.fallback:
        texts, names = [layer.fallback.strip()], ["default"]
    if not texts:
        return nothing(layer, warnings=warnings)
    about = piece(layer, "", title=" + ".join(names), why="who the assistant is", stability=Stability.STATIC)
    section = replace(about, text="\n\n".join(texts) + layer.suffix)
    return Offer(layer=layer.source, pieces=(section,), warnings=warnings)
