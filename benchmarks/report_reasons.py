"""Why Weft is behind in a row, by topic and peer: most from profiles, the others from reading the code."""

from __future__ import annotations

_STORING = (
    "Weft looks at each text for days, times, numbers, places and reasons (a third of the time, `dates_in` "
    "and `cues_of`), fills two indexes, and counts tokens"
)
_VECTORS = (
    "Weft stores the message in two indexes with patterns and token counts before it embeds it, and reads it "
    "back to embed it"
)
_READS = (
    "Weft reads the text, author and owner of 640 close vectors before it ranks them (two thirds of the time "
    "in a small log, and no more in a large one)"
)
_RECALL = (
    "recall weighs neighbors, episodes, speakers and dates of each line in Python, where the others add up "
    "scores of words or vectors in C"
)
_SEARCHING = (
    "the owner of a text is a part of the query to the index, each hit is checked again, and unsaved blocks "
    "are looked for first"
)
_READY = (
    "bm25s has the score of every word in every text ready in memory; it pays when a text is added, because "
    "its whole index is made anew"
)
_VOCABULARY = (
    "48 MB are the vocabularies of `rs_bpe`, so that tokens are counted exactly without a network; it also "
    "has a database, documents with versions, and a program for the terminal"
)
_DURABLE = (
    "a block is a document with all its versions, in a transaction that is on disk when it returns; the file "
    "is not flushed to disk"
)

_TURN = "recall is three quarters of such a build and more"

REASONS: dict[tuple[str, str], str] = {
    ("storing", "FTS5, bare SQL"): _STORING,
    ("storing", "bm25s"): f"{_STORING}; bm25s makes its index in memory, all at once",
    ("storing", "sqlite-vec, exact"): _VECTORS,
    ("storing", "sqlite-vec, bits and rescoring"): _VECTORS,
    (
        "adding to",
        "FTS5, bare SQL",
    ): "Weft fills two indexes, counts tokens, and keeps the sums of the session",
    ("adding to", "sqlite-vec, exact"): _READS,
    ("adding to", "sqlite-vec, bits and rescoring"): _READS,
    ("adding to", "mem0, infer=False"): _READS,
    ("searching", "FTS5, bare SQL"): _SEARCHING,
    ("searching", "bm25s"): _READY,
    ("searching", "sqlite-vec, exact"): _READS,
    ("searching", "sqlite-vec, bits and rescoring"): _READS,
    ("searching", "mem0, infer=False"): _READS,
    ("asking", "FTS5"): _RECALL,
    ("asking", "bm25s"): _RECALL,
    ("asking", "wordllama"): _RECALL,
    ("asking", "FTS5 + wordllama, rank fusion"): _RECALL,
    ("asking", "bm25s + wordllama, rank fusion"): _RECALL,
    ("installed size", "langchain-core"): _VOCABULARY,
    ("installed size", "pydantic-ai-slim"): _VOCABULARY,
    ("installed packages", "pydantic-ai-slim"): (
        "Weft has a database, documents with versions, tasks and a program for the terminal; the slim "
        "package has a client for no vendor and none of those"
    ),
    ("build in a list", "its goal"): (
        "a build looks at each of 100 skills and ranks 200 entries of a memory file, whatever the history"
    ),
    ("build in an epoch", "its goal"): _TURN,
    ("build without recall", "its goal"): (
        "it reads a dozen tables, and plans, prices and accounts for 200 messages one by one in Python"
    ),
    ("serve", "its goal"): (
        "a turn needs several times the processor time of the handler, and turns that overlap wait for one "
        "interpreter: it plans and prices the request, searches what was said, and stores the message, the "
        "answer, the receipt and the request in two commits, where the handler stores one row in one"
    ),
    ("startup", "its goal"): "the machine was busy, and the goal is for an idle one",
    ("heartbeat", "its goal"): "the machine was busy, and the goal is for an idle one",
    ("writing a line", "file: read, change, overwrite"): _DURABLE,
    ("writing a line", "file: opened for appending"): _DURABLE,
}
