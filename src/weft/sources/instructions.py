"""Who the assistant is and how it behaves: files of the workspace, or what the caller says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.sources.base import BuildRequest, Options, title_of
from weft.types.recipe import Reload
from weft.types.section import Offer, Origin, Piece, Stability


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsOptions(Options):
    files: tuple[str, ...] = ()
    owner_files: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    fallback: str = ""
    suffix: str = ""
    reload: Reload | None = None


async def offer(request: BuildRequest, options: InstructionsOptions) -> Offer:
    """Offer the caller's base instructions, then the files; the recipe's texts replace missing ones.

    `owner_files` are about the owner, and shown in their own conversations only.
    """
    names = (*options.files, *(options.owner_files if request.is_for_owner else ()))
    files = await request.read(*names, reload=options.reload)
    contents = {name: (file.text or "").strip() for name, file in zip(names, files, strict=False)}
    base = (request.base_instructions or "").strip()
    texts = [("base instructions", base)] if base else []
    if any(contents.values()):
        for name in names:
            if text := contents.get(name):
                texts.append((name, text))
            elif not base and (text := options.missing.get(name, "")):
                texts.append((f"default for {name}", text))
    elif not base and options.fallback:
        texts.append(("default", options.fallback.strip()))
    section = Piece(
        text="\n\n".join(text for _, text in texts) + options.suffix,
        id="instructions",
        title=title_of(" + ".join(name for name, _ in texts)),
        why="who the assistant is",
        stability=Stability.STATIC,
        origin=Origin.OPERATOR,
    )
    warnings = tuple(file.warning for file in files if file.warning)
    number = sum(file.text is not None for file in files)
    return Offer(
        pieces=(section,) if texts else (),
        join=None,
        warnings=warnings,
        files=number,
        existing=frozenset((section.id,)),
    )
