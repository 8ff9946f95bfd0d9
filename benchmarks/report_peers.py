"""The sections of `docs/explanation/benchmarks.md` that compare Weft with other libraries."""

from __future__ import annotations

from typing import Any

from charts import Bar, chart
from report_tables import Page, ms, named, share

_WEFT_OF = {"list": "Weft, from a list", "database": "Weft, from the database"}
_WEFT_SEARCH = {"words": "Weft, by words", "meaning": "Weft, by meaning"}


def trim_section(page: Page, data: dict[str, Any]) -> None:
    page.heading(
        "History trimming",
        f"A history with tool calls is cut to {data['budget']:,} tokens, for the next question. All count "
        "with the same o200k vocabulary. *First* is a history that was never counted; for a database, a file "
        "that was just opened. *Next turn* is one exchange later; for a database it includes storing the "
        "exchange durably. *Valid* is the share of results in which each tool call has its results, the "
        "first message is the user's and the budget holds.",
        "`python benchmarks/trim.py`",
    )
    for size in dict.fromkeys(row["messages"] for row in data["rows"]):
        rows = [_trim_row(page, row, data["rows"]) for row in data["rows"] if row["messages"] == size]
        titles = (f"{size:,} messages", "first", "next turn", "slowest", "valid", "tokens kept")
        page.table((*titles, "Weft, first", "Weft, next turn"), rows)
    largest = max(row["messages"] for row in data["rows"])
    bars = [
        Bar(row["name"], row["next_ms"], ms(row["next_ms"]))
        for row in data["rows"]
        if row["messages"] == largest and row["next_ms"] is not None
    ]
    title = f"Trimming {largest:,} messages to {data['budget']:,} tokens, next turn"
    note = "Milliseconds, logarithmic; shorter is better. A database stores the exchange, too."
    page.chart("benchmarks-trim.svg", title, chart(title, note, bars, is_log=True))
    page.text(*_trim_notes(data["rows"]))


def _trim_row(page: Page, row: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    if row["first_ms"] is None:
        return (row["name"], row["note"], "", "", "", "", "", "")
    figures = (
        row["name"],
        ms(row["first_ms"]),
        ms(row["next_ms"]),
        ms(row["worst_ms"]),
        share(row["valid"], row["checked"]),
        f"{row['kept_tokens']:,.0f}",
    )
    if row["name"] in _WEFT_OF.values():
        return (*figures, "", "")
    ours = named(rows, _WEFT_OF[row["source"]], messages=row["messages"])
    size = f"{row['messages']:,} messages"
    first = page.verdict("trimming first", row["name"], ours["first_ms"], row["first_ms"], of=size)
    following = page.verdict("trimming next", row["name"], ours["next_ms"], row["next_ms"], of=size)
    return (*figures, first, following)


def _trim_notes(rows: list[dict[str, Any]]) -> list[str]:
    """Say what was wrong with results that were not valid, and how long storing took."""
    notes = []
    for row in rows:
        if row["checked"] and row["valid"] < row["checked"]:
            counts = {
                "with calls and results together": row["together"],
                "that begin with the user": row["user_first"],
                "within the budget": row["within"],
                "with all texts whole": row["whole"],
            }
            parts = ", ".join(f"{share(count, row['checked'])} {what}" for what, count in counts.items())
            notes.append(f"{row['name']}, {row['messages']:,} messages, {row['checked']} results: {parts}.")
    stored = [
        f"{row['name']} {ms(row['load_ms'])} ({row['messages']:,})"
        for row in rows
        if row["load_ms"] is not None
    ]
    notes.append(
        "litellm's time has two levels: when more than three tokens are left and the next message does not "
        "fit, it tries every older message, too."
    )
    notes.append(f"Storing the whole history before, in one call: {', '.join(stored)}.")
    return notes


def search_section(page: Page, data: dict[str, Any]) -> None:
    page.heading(
        "Store and search",
        "The same texts of random words (questions of 20, answers of 95) and the same queries of one to four "
        "words, ten hits each. *Stored* is in batches of 1,000 and includes embedding where a search is by "
        "meaning (wordllama for all). *One more* is storing one message, durably, and a "
        "search that can find it.",
        "`python benchmarks/peer_search.py`",
    )
    for size in dict.fromkeys(row["messages"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["messages"] == size]
        titles = (f"{size:,} messages", "stored", "one more", "search p50", "p95", "disk each")
        verdicts = ("Weft, stored", "Weft, one more", "Weft, search")
        page.table((*titles, *verdicts), [_search_row(page, row, rows) for row in rows])
    largest = max(row["messages"] for row in data["rows"])
    bars = [
        Bar(row["name"], row["search_p50_ms"], ms(row["search_p50_ms"]))
        for row in data["rows"]
        if row["messages"] == largest and row["search_p50_ms"] is not None
    ]
    title = f"One search of {largest:,} messages"
    note = "Milliseconds, logarithmic; shorter is better."
    page.chart("benchmarks-search.svg", title, chart(title, note, bars, is_log=True))
    page.text(
        "Weft's store is also the conversation: it has sessions, token sums, authors, owners and times of "
        "each message, and two indexes, one for searches and one for recall. FTS5 here is a table of texts. "
        "bm25s has no way to add a text, so *one more* makes its index anew. mem0 runs without a network and "
        "without a model (`infer=False`), with an embedder of ours in place of its client; it is compared "
        "with a small log: in a trial its search took ten times as long with 8,000 messages as with 1,000."
    )


def _search_row(page: Page, row: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    if row["search_p50_ms"] is None:
        return (row["name"], row["note"], *[""] * 7)
    figures = (
        row["name"],
        f"{row['stored_per_second']:,.0f}/s",
        ms(row["add_ms"]),
        ms(row["search_p50_ms"]),
        ms(row["search_p95_ms"]),
        f"{row['bytes_per_message']:,.0f} B",
    )
    ours = named(rows, _WEFT_SEARCH.get(row["kind"], ""))
    if row["name"].startswith("Weft") or not ours:
        return (*figures, "", "", "")
    size = f"{row['messages']:,} messages"
    rates = (1 / ours["stored_per_second"], 1 / row["stored_per_second"])
    return (
        *figures,
        page.verdict("storing", row["name"], *rates, of=size),
        page.verdict("adding to", row["name"], ours["add_ms"], row["add_ms"], of=size),
        page.verdict("searching", row["name"], ours["search_p50_ms"], row["search_p50_ms"], of=size),
    )


def quality_section(page: Page, data: dict[str, Any] | None) -> None:
    if data is None:
        page.heading(
            "Retrieval quality",
            "Left out of this run: no conversations were given. `make bench DATA=PATH` measures it with "
            "conversations in the shape of LoCoMo.",
        )
        return
    count = data["conversations"]
    page.heading(
        "Retrieval quality",
        f"Questions with known evidence over {count} long conversations in the shape of LoCoMo. R@10 is the "
        "percentage of the evidence among the first ten lines, R@1k among the lines that fit 1,000 tokens; "
        "all@10: all of it is there. Weft asks as a turn does, with no embedder and no model. The "
        "others search the same lines with their dates and speakers. Weft was developed on these "
        "conversations, so expect a smaller lead on others; `benchmarks/fit_recall.py` leaves some out.",
        "`python benchmarks/quality.py PATH`",
    )
    for variant, title in (("turns", "whole turns"), ("sentences", "one sentence a message")):
        rows = [_quality_row(page, title, row, data[variant]) for row in data[variant]]
        measures = list(data[variant][0]["measures"] or {})
        page.table((title, *measures, "p50", "Weft, R@10", "Weft, time"), rows)
    bars = [
        Bar(row["name"], row["measures"]["R@10"], f"{row['measures']['R@10']:.1f} %")
        for row in data["turns"]
        if row["measures"]
    ]
    title = "Evidence among the first ten lines (R@10)"
    page.chart("benchmarks-quality.svg", title, chart(title, "Percent; longer is better.", bars))


def _quality_row(
    page: Page, variant: str, row: dict[str, Any], rows: list[dict[str, Any]]
) -> tuple[str, ...]:
    if not row["measures"]:
        return (row["name"], row["note"], *[""] * 9)
    figures = (row["name"], *(f"{value:.1f}" for value in row["measures"].values()), ms(row["p50_ms"]))
    if row["name"] == "Weft":
        return (*figures, "", "")
    ours = named(rows, "Weft")
    gain = ours["measures"]["R@10"] - row["measures"]["R@10"]
    verdict = f"{gain:+.1f} points"
    if gain < 0:
        what = f"**R@10, {variant}**, against {row['name']}, {-gain:.1f} points"
        verdict = f"**{verdict}**, because {page.note(('R@10', row['name']), what)}"
    return (*figures, verdict, page.verdict("asking", row["name"], ours["p50_ms"], row["p50_ms"], of=variant))


def startup_section(page: Page, data: dict[str, Any]) -> None:
    starts = {row["what"]: row for row in data["starts"]}
    page.heading(
        "Start-up and install",
        "Fresh processes in turns, and fresh installations with all dependencies. `import weft` loads the "
        "builder too, because the bare import loads nothing.",
        "`python benchmarks/startup.py`",
    )
    ours = starts["import weft"]
    rows = []
    for row in data["starts"]:
        if row["p50_ms"] is None:
            rows.append((row["what"], row["note"], "", ""))
            continue
        is_peer = row["what"].startswith("import ") and row is not ours
        verdict = page.verdict("import", row["what"], ours["own_ms"], row["own_ms"]) if is_peer else ""
        rows.append((f"`{row['what']}`", ms(row["p50_ms"]), ms(row["own_ms"]), verdict))
    page.table(("start", "p50", "without Python", "`import weft`"), rows)
    bars = [
        Bar(row["what"], row["p50_ms"], ms(row["p50_ms"]))
        for row in data["starts"]
        if row["p50_ms"] is not None
    ]
    title = "Until a fresh process has started"
    page.chart("benchmarks-startup.svg", title, chart(title, "Milliseconds; shorter is better.", bars))
    if data["weights"]:
        titles = ("package", "version", "size", "packages", "Weft, size", "Weft, packages")
        page.table(titles, _weights(page, data["weights"]))


def _weights(page: Page, weights: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    weft = next(row for row in weights if row["package"] == "weft")
    rows: list[tuple[str, ...]] = []
    for row in weights:
        if row["mb"] is None:
            rows.append((row["package"], row["version"], row["note"], "", "", ""))
            continue
        verdicts = ("", "")
        if row is not weft:
            verdicts = (
                page.verdict("installed size", row["package"], weft["mb"], row["mb"]),
                page.verdict("installed packages", row["package"], weft["packages"], row["packages"]),
            )
        figures = (row["package"], row["version"], f"{row['mb']:.0f} MB", str(row["packages"]))
        rows.append((*figures, *verdicts))
    return rows


def updates_section(page: Page, data: list[dict[str, Any]]) -> None:
    page.heading(
        "Lost updates",
        "Two processes add lines to one memory at the same time. Each reads it, thinks for about 5 ms, and "
        "writes. The time is of reading and writing one line, without thinking.",
        "`python benchmarks/lost_updates.py`",
    )
    rows = []
    for row in data:
        lost = row["written"] - row["survived"]
        verdict = ""
        if row["way"].startswith("file"):
            ours = next(one for one in data if one["way"].startswith("Weft: append"))
            verdict = page.verdict("writing a line", row["way"], ours["write_ms"], row["write_ms"])
        rows.append(
            (
                row["way"],
                str(row["written"]),
                f"{lost} ({share(lost, row['written'])})",
                ms(row["write_ms"]),
                verdict,
            )
        )
    page.table(("way", "written", "lost", "a line", "Weft, time"), rows)
