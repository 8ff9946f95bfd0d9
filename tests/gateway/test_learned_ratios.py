"""What a provider reports about one script is learned for that script alone, and outlives the process."""

from pathlib import Path

import weft
from scripts import SAMPLES

INFO = weft.ModelInfo(
    id="small", provider="ollama", max_tokens=100_000, ratios={"devanagari": 2.0}, takes_window=True
)


def reported(tokens: int) -> weft.Reply:
    return weft.Reply(text="ok", usage=weft.Usage(input_tokens=tokens, output_tokens=1))


async def asked(path: Path, text: str, tokens: int, session: str) -> weft.Receipt:
    provider = weft.ScriptedProvider([reported(tokens)], info=INFO)
    async with await weft.open(path) as store:
        app = await weft.connect(provider=provider, store=store)
        receipt = (await app.ask(text, session=session)).receipt
        await app.close()
    assert receipt is not None
    return receipt


async def test_a_report_about_hindi_changes_nothing_for_english(tmp_path: Path) -> None:
    path, hindi = tmp_path / "weft.db", SAMPLES["hindi"] * 150
    before = await asked(path, hindi, 0, "a")
    assert before.expected is not None
    assert (before.script, before.expected.script_ratio, before.expected.sent_window) == (
        "devanagari",
        2.0,
        100_000,
    )

    learned = await asked(path, hindi, 3 * before.total_tokens, "b")
    assert learned.ratio is not None
    assert learned.ratio > 2.4

    after = await asked(path, hindi, 0, "c")
    english = await asked(path, "hello", 0, "d")
    assert after.expected is not None
    assert english.expected is not None
    assert after.expected.script_ratio == learned.ratio
    assert english.expected.script_ratio == 1.0


async def test_a_mixture_is_attributed_to_no_script(tmp_path: Path) -> None:
    text = SAMPLES["hindi"] * 30 + SAMPLES["english"] * 40
    first = await asked(tmp_path / "weft.db", text, 0, "a")

    receipt = await asked(tmp_path / "weft.db", text, 3 * first.total_tokens, "b")

    assert (receipt.script, receipt.ratio) == ("", None)
    async with await weft.open(tmp_path / "weft.db") as store:
        assert await store.turns.find_ratios("small", "exact") == {}
