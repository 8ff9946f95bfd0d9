"""A source of your own: the layer `agenda` shows the next appointments of a file.

It builds a context and prints it. No model is asked:

    python examples/agenda_source.py
"""

import asyncio
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import weft

RECIPE = Path(__file__).parent / "recipes" / "secretary.toml"
AGENDA = """2026-11-17 09:00 Harbor office
2026-11-18 14:00 Lunch with Clara
2026-11-19 08:00 Dive at pier 4
2026-11-25 10:00 Dentist
"""


@dataclass(frozen=True, kw_only=True)
class AgendaOptions:
    """The keys of the layer. Weft reports an unknown key, or a wrong value, with its place in the recipe."""

    file: str = "agenda.txt"
    days: int = 7


async def agenda(request: weft.BuildRequest, options: AgendaOptions) -> list[str]:
    """Offer one piece for each appointment that comes soon. Each can give way on its own."""
    files = await request.read(options.file)
    lines = (files[0].text or "").splitlines() if files else []
    now = request.now.replace(tzinfo=None)
    ahead = [(datetime.fromisoformat(line[:16]) - now, line) for line in lines]
    return [line for left, line in ahead if 0 <= left.total_seconds() < options.days * 86_400]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "agenda.txt").write_text(AGENDA, "utf-8")
        builder = weft.ContextBuilder(recipe=weft.Recipe.load(RECIPE)).with_source("agenda", agenda)
        builder = builder.with_workspace(folder).at(datetime(2026, 11, 18, 9, tzinfo=UTC))
        context = await builder.build("What do I have to pack?")
    print(context.to_prompt_string())
    print(context.receipt.by_layer)


if __name__ == "__main__":
    asyncio.run(main())
