"""A source: the newest lines of the harbor's notice board, for a layer of a recipe."""

from dataclasses import dataclass

import weft


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """The keys that a layer with this source may have."""

    board: str = "board.txt"
    max_lines: int = 3

    def __post_init__(self) -> None:
        if self.max_lines < 1:
            raise ValueError("`max_lines` must be at least 1")


async def notices(request: weft.BuildRequest, options: BoardOptions) -> list[str]:
    """Offer the newest lines of a file in the workspace, each as a piece that can give way."""
    files = await request.read(options.board)
    lines = (files[0].text or "").splitlines() if files else []
    return lines[-options.max_lines :]
