"""Recognition of standing instructions in a person's own words, by rules and without a model.

A sentence counts if it is addressed to the assistant and sets a lasting rule ("always answer in Spanish").
Facts about people, questions, quotes, stories and orders for one time do not count; a request in the form of
a question does ("could you always answer in Spanish?"). A sentence that could be
either is left out: a rule that nobody gave is worse than one that must be said again.
`instruction_patterns.py` and `instruction_exclusions.py` have the patterns of six languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import normalize

from weft.types.escape import without_fenced
from weft.types.instruction_exclusions import LIST_HEADING, MATERIAL, QUESTION, REPORTED
from weft.types.instruction_patterns import LANGUAGES, TRIGGERS, compiled
from weft.types.lazy_pattern import lazy_pattern

MAX_READ_CHARS = 4_000
"""Only so much of a message is read: people give rules in a few words, and long texts are pasted."""
MAX_CHARS = 300
"""A longer sentence is not an instruction."""
MAX_PER_MESSAGE = 10
_MASK = "\x00"
_QUOTES = lazy_pattern(
    '"[^"\n]{0,300}"|“[^”\n]{0,300}[”“]|„[^“”\n]{0,300}[“”]|«[^»\n]{0,300}»|「[^」\n]{0,300}」'
    "|『[^』\n]{0,300}』|‘[^’\n]{1,300}’(?!\\w)|`[^`\n]{1,300}`|(?<!\\w)'[^'\n]{1,300}'(?!\\w)"
)
_MAIL = lazy_pattern(
    r"^(?:from|to|subject|sent|von|an|betreff|gesendet|para|asunto|enviado|objet|envoyé"
    r"|发件人|收件人|主题|差出人|宛先|件名)[ \t]?[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = lazy_pattern(r"[ \t]*(?:[-*•–·]|\d{1,2}[.)])[ \t]+")
_END = lazy_pattern(r"[.!?…]+[)\]]*(?=\s|$)|[。！？]+")
_ABBREVIATION = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|st|no|approx|z\. ?b|d\. ?h|bzw|usw|ca|nr|p\. ?ej|sr|sra|ud|uds"
    r"|p\. ?ex|mme|m)|\b\w)\.$",
    re.IGNORECASE,
)


def standing_instructions(own_words: str) -> tuple[str, ...]:
    """Return the sentences of a message that set a lasting rule, verbatim, each once.

    `own_words` is what the person wrote themselves. Fences, quoted lines and mails in it are not read.
    """
    text = normalize("NFC", own_words[:MAX_READ_CHARS])
    if not compiled(TRIGGERS).search(text) or _MAIL.search(text):
        return ()
    text = without_fenced(text)
    sentences: dict[str, None] = {}
    for sentence, masked in _sentences(text):
        if _is_instruction(masked):
            sentences[sentence] = None
        elif compiled(MATERIAL).match(masked):
            break  # what follows is the text to work on
    return tuple(sentences)[:MAX_PER_MESSAGE]


def _is_instruction(masked: str) -> bool:
    if len(masked) > MAX_CHARS or compiled(REPORTED).search(masked):
        return False
    is_question = compiled(QUESTION).search(masked) is not None
    return any(language.matches(masked, is_question=is_question) for language in LANGUAGES)


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text, each with a copy of the same length in which quotes are masked.

    Quoted lines are left out, and so are lines that a line with a colon at its end introduces.
    """
    masked = _QUOTES.sub(lambda match: _MASK * len(match[0]), text.replace("’", "'"))
    at, is_introduced = 0, False
    for line in masked.splitlines(keepends=True):
        start, at = at, at + len(line)
        bare = line.strip()
        if not bare:
            is_introduced = False
        elif bare.endswith((":", "：")):
            if compiled(MATERIAL).match(bare):
                return
            is_introduced = compiled(LIST_HEADING).match(bare) is None
        elif not is_introduced and not bare.startswith((">", "|", "#")):
            bullet = _BULLET.match(line)
            for first, last in _spans(line, bullet.end() if bullet else 0):
                yield text[start + first : start + last], line[first:last]


def _spans(line: str, first: int) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a line begin and end, without the spaces around them."""
    ends = [match.end() for match in _END.finditer(line, first) if not _is_abbreviation(line, match.end())]
    for end in (*ends, len(line)):
        part = line[first:end]
        if part.strip():
            begin = first + len(part) - len(part.lstrip())
            yield begin, begin + len(part.strip())
        first = end


def _is_abbreviation(line: str, end: int) -> bool:
    return _ABBREVIATION.search(line, max(0, end - 10), end) is not None
