"""An audit of what is remembered. Pure: texts in, findings out.

No finding is certain: it is a sentence for a person, who decides, with the command that mends it. None ever
quotes a secret.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Literal, get_args

from weft.types.escape import one_line
from weft.types.injection import orders_in
from weft.types.memory import Remembered
from weft.types.secret import SHORTEST_SECRET, fingerprint, masked, secrets_in
from weft.types.section import Origin
from weft.types.tokenize import is_unspaced, pairs, words

Kind = Literal[
    "secret",
    "instruction",
    "outside",
    "contradiction",
    "stale",
    "duplicate",
    "near_duplicate",
    "near_limit",
]
SHORTEST_TEXT, SHORTEST_LINE, FEWEST_WORDS = 8, 20, 6
MAX_COMPARED = 256
"""The most texts with a rare word in common that a text is compared with, so that an audit stays linear."""
STALE_AFTER, PAST_AFTER = timedelta(days=30), timedelta(days=7)
_REMOVE = {"block": "delete", "fact": "forget", "note": "unarchive", "summary": "forget-summary"}

# Keys of facts that mean the same, one meaning a row.
_ROWS = """city, location, town, residence, place of residence, lives in, living in, lives
name, first name, given name, full name
job, occupation, profession, work, works as, job title
birthday, birth date, birthdate, date of birth, dob, born, born on
spouse, partner, wife, husband
email, mail, e mail, email address, mail address, e mail address
phone, telephone, mobile, cell, phone number, telephone number, mobile phone, mobile number, cell phone
landline, home phone, home telephone, home phone number
employer, company, works at, works for"""
_MEANING = {key: row.split(", ")[0] for row in _ROWS.splitlines() for key in row.split(", ")}
_NOISE = frozenset("user users s the a my his her their is current home favourite favorite".split())
_RELATIVE = re.compile(r"""(?xi)\b(?:(?<!usa[ ])today|tonight|tomorrow|yesterday|currently|right[ ]now
    |these[ ]days|at[ ]the[ ]moment|(?:this|next|last|coming)[ ](?:(?:mon|tues|wednes|thurs|fri|satur|sun)day
    |week|weekend|month|morning|afternoon|evening|night)|in[ ](?:\d+|a|two|three|a[ ]few)[ ](?:day|week)s?
    |heute|hoy|hoje|aujourd.hui|demain|oggi|domani|vandaag)\b""")
_HABIT = re.compile(r"(?i)\b(?:every|each|daily|usually|always)\b")
_LASTING = re.compile(r"(?i)birth|anniversar|(?<![a-z])(?:born|since|dob)(?![a-z])")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = rf"\b(?P<m>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATES = (
    re.compile(r"(?a)(?<!\d)(?P<y>\d{4})[-/](?P<m>\d\d?)[-/](?P<d>\d\d?)(?!\d)"),
    re.compile(rf"(?ai)(?<!\d)(?P<d>\d\d?)(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTH},?\s(?P<y>\d{{4}})(?!\d)"),
    re.compile(rf"(?ai){_MONTH}\s(?P<d>\d\d?)(?:st|nd|rd|th)?,?\s(?P<y>\d{{4}})(?!\d)"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to mend: a sentence with the problem and its place, and the command that mends it."""

    kind: Kind
    what: str
    mend: str
    where: tuple[Remembered, ...]


def audit(remembered: Sequence[Remembered], now: datetime) -> list[Finding]:
    """Return all findings, the worst first; the order of the input does not matter."""
    items = sorted(set(remembered), key=lambda item: (_time(item.at), repr(item)))
    groups: dict[tuple[str, str], list[Remembered]] = defaultdict(list)
    holders: dict[str, list[Remembered]] = defaultdict(list)
    known: dict[str, set[str]] = defaultdict(set)
    for item in items:
        groups[item.kind, item.owner].append(item)
        for secret in secrets_of(item):
            holders[secret].append(item)
        # A secret can be longer beside its name; neither form is ever quoted.
        for secret in {*secrets_of(item), *secrets_in(item.text), *secrets_in(item.name)}:
            known[secret[:SHORTEST_SECRET]].add(secret)
    voice = _Voice(known)
    findings = [_secret(secret, items, voice) for secret, items in holders.items()]
    for item in items:
        findings += [*_instruction(item, voice), *_outside(item, voice)]
        findings += [*_stale(item, now, voice), *_near_limit(item, voice)]
    for group in groups.values():
        findings += [*_contradictions(group, voice), *_duplicates(group, voice)]
    rank = get_args(Kind).index
    return sorted(findings, key=lambda f: (rank(f.kind), f.where[0].owner, f.where[0].name, f.what, f.mend))


@dataclass(frozen=True, slots=True)
class _Voice:
    """The wording of findings, in sentences and in commands, without ever quoting a secret."""

    known: Mapping[str, set[str]]  # by their first characters, so that a name is looked through only once

    def secrets(self, text: str) -> list[str]:
        """Return the known secrets in a text, the longest first."""
        heads = {text[at : at + SHORTEST_SECRET] for at in range(len(text))} if self.known else set()
        secrets = [secret for head in heads for secret in self.known.get(head, ()) if secret in text]
        return sorted(secrets, key=lambda secret: (-len(secret), secret))

    def quoted(self, text: str, most: int = 80) -> str:
        for secret in self.secrets(text):
            text = text.replace(secret, masked(secret))
        line = one_line(text)
        return repr(line if len(line) <= most else f"{line[:most]}…")

    def place(self, item: Remembered) -> str:
        return f"{item.kind} {self.quoted(item.name)} of {self.quoted(item.owner)}"

    def command(self, verb: str, *arguments: str, agent: str | None = None) -> str:
        """Return a command line; if it would quote a secret, the one that purges that secret."""
        for secret in self.secrets("\0".join([*arguments, agent or ""])):
            return f"weft memory purge {fingerprint(secret)}"
        option = [] if agent is None else [f"--agent={agent}"] if agent[:1] == "-" else ["--agent", agent]
        if any(argument.startswith("-") for argument in arguments):
            return shlex.join(["weft", "memory", verb, *option, "--", *arguments])
        return shlex.join(["weft", "memory", verb, *arguments, *option])

    def removal(self, item: Remembered, verbs: Mapping[str, str] = _REMOVE) -> str:
        if item.kind == "fact":
            return self.command(verbs["fact"], item.owner, item.name)
        if item.kind == "task":
            return shlex.join(["weft", "tasks", "cancel", item.name[:8], "--for", item.owner])
        if item.kind == "instruction":
            return shlex.join(["weft", "instructions", "remove", item.name, "--person", item.owner])
        return self.command(verbs[item.kind], item.name, agent=None if item.kind == "summary" else item.owner)


def secrets_of(item: Remembered) -> list[str]:
    """Return the secrets in a text and its name: the key `wifi password` reveals what its value is."""
    return secrets_in(f"{item.owner}\n{item.name}: {item.text}")


def _secret(secret: str, holders: Sequence[Remembered], voice: _Voice) -> Finding:
    where = tuple(sorted(holders, key=lambda item: (item.owner, item.name, repr(item))))
    places = ", the ".join(voice.place(item) for item in where[:3])
    more = f" and {len(where) - 3:,} more" if len(where) > 3 else ""
    what = f"What looks like a secret, {masked(secret)!r}, is in the {places}{more}."
    return Finding(kind="secret", what=what, mend=f"weft memory purge {fingerprint(secret)}", where=where)


def _instruction(item: Remembered, voice: _Voice) -> Iterator[Finding]:
    if item.origin == Origin.OPERATOR:
        return
    what = orders_in(item.text, named=item.name)
    if what:
        what = f"The {voice.place(item)}, written by {voice.quoted(item.origin)}, {what}."
        mend = voice.removal(item, {**_REMOVE, "block": "undo"})
        yield Finding(kind="instruction", what=what, mend=mend, where=(item,))


def _outside(item: Remembered, voice: _Voice) -> Iterator[Finding]:
    """Yield what was written in a turn that had read text of strangers."""
    if item.asked_by:
        what = f"The {voice.place(item)} was written by weft, asked by {voice.quoted(item.asked_by)}."
        mend = voice.removal(item, {**_REMOVE, "block": "undo"})
        yield Finding(kind="outside", what=what, mend=mend, where=(item,))


def _contradictions(group: Sequence[Remembered], voice: _Voice) -> Iterator[Finding]:
    """Yield each fact that differs from the newest fact of the same meaning."""
    facts = [item for item in group if item.kind == "fact"]
    newest = {_meaning(item.name): item for item in facts}
    for older in facts:
        newer = newest[_meaning(older.name)]
        one, other = ("".join(item.text.casefold().split()) for item in (older, newer))
        if one not in other and other not in one:
            said = f"{voice.quoted(older.text, 40)} and newer {voice.quoted(newer.text, 40)}"
            what = f"The {voice.place(older)} and the {voice.place(newer)} disagree, {said}."
            yield Finding(kind="contradiction", what=what, mend=voice.removal(older), where=(older, newer))


def _meaning(key: str) -> str:
    """Return the meaning of a fact's key: `userLocation` is the city, a favorite city is another one."""
    every = words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key))
    rest = " ".join(word for word in every if word not in _NOISE) or " ".join(every) or key
    meaning = _MEANING.get(" ".join(every)) or _MEANING.get(rest)
    if meaning is None:
        return rest
    return meaning if {"favourite", "favorite"}.isdisjoint(every) else f"favourite {meaning}"


def _stale(item: Remembered, now: datetime, voice: _Voice) -> Iterator[Finding]:
    """Yield a finding for a fact about a day that was near, or still to come, when it was written."""
    if item.kind != "fact" or item.at is None or _LASTING.search(f"{item.name} {item.text}"):
        return
    days, what = _dates(f"{item.name} {item.text}"), ""
    relative = _RELATIVE.search(item.text)
    if days and max(days) > item.at.date() and now.date() - max(days) > PAST_AFTER:
        what = f"speaks of {max(days)}, which is past"
    elif relative and not _HABIT.search(item.text) and _time(now) - _time(item.at) > STALE_AFTER:
        what = f"says {voice.quoted(relative[0])}, and was written on {item.at.date()}"
    if what:
        what = f"The {voice.place(item)} {what}."
        yield Finding(kind="stale", what=what, mend=voice.removal(item), where=(item,))


def _dates(text: str) -> list[date]:
    dates = []
    for match in (match for form in _DATES for match in form.finditer(text)):
        month = match["m"].lower()[:3]
        number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
        try:
            dates.append(date(int(match["y"]), number, int(match["d"])))
        except ValueError:  # the 31st of February is no date
            continue
    return dates


def _duplicates(group: Sequence[Remembered], voice: _Voice) -> Iterator[Finding]:
    """Yield what the texts of one owner have in common, the oldest first."""
    if group[0].kind in ("summary", "task"):
        return
    first: dict[tuple[str, str], Remembered] = {}
    for item in group:
        text = _same(item.text)
        short = len(text) < SHORTEST_TEXT
        if not text or (short and item.kind != "fact"):
            continue
        oldest = first.setdefault((text, _meaning(item.name) if short else ""), item)
        if oldest is not item:
            what = f"The {voice.place(item)} says the same as the {voice.place(oldest)}."
            yield Finding(kind="duplicate", what=what, mend=voice.removal(item), where=(oldest, item))
    unique = list(first.values())
    yield from _repeated_lines(unique, voice)
    for older, newer in _alike(unique):
        what = f"The {voice.place(older)} says nearly the same as the newer {voice.place(newer)}."
        yield Finding(kind="near_duplicate", what=what, mend=voice.removal(older), where=(older, newer))


def _repeated_lines(group: Sequence[Remembered], voice: _Voice) -> Iterator[Finding]:
    """Yield lines that blocks repeat, each once for each block; headings are left out."""
    seen: dict[str, Remembered] = {}
    for block in (item for item in group if item.kind == "block"):
        lines = block.text.splitlines()
        texts = [_same(line) for line in lines]
        counts, around = Counter(texts), f"\n{block.text}\n"
        for text, line in dict(zip(texts, lines, strict=True)).items():
            if len(text) < SHORTEST_LINE or text.startswith(("#", "===")) or not words(text):
                continue
            oldest = seen.setdefault(text, block)
            if oldest is block and counts[text] == 1:
                continue
            place = "twice in it" if oldest is block else f"also in the {voice.place(oldest)}"
            what = f"A line of the {voice.place(block)} is {place}, {voice.quoted(line, 60)}."
            # The first occurrence is what is replaced: it must not be a part of a longer line.
            at = around.find(line)
            whole = {around[at - 1], around[at + len(line)]} <= {"\n", "\r"}
            change = (line, "") if whole else (f"\n{line}\n", "\n")
            mend = voice.command("replace", block.name, *change, agent=block.owner)
            where = (block,) if oldest is block else (oldest, block)
            yield Finding(kind="duplicate", what=what, mend=mend, where=where)


def _alike(group: Sequence[Remembered]) -> Iterator[tuple[Remembered, Remembered]]:
    """Yield pairs of an older and a newer text that share four words in five, and all numbers.

    Such texts share some of the rarest fifth of their words, and more of them the longer they are. So only
    texts that share rare words are compared, and a text that is like a newer one is compared with no other.
    """
    bags = [(item, bag) for item in reversed(group) if len(bag := _bag(item.text)) >= FEWEST_WORDS]
    counts = Counter(word for _, bag in bags for word in bag)
    index: dict[tuple[frozenset[str], str], list[int]] = defaultdict(list)
    for at, (item, bag) in enumerate(bags):
        size = len(bag)
        rarest = sorted(bag, key=lambda word: (counts[word], word))[: size // 5 + min(2 + size // 20, 4)]
        numbers = frozenset(word for word in bag if not word.isalpha())
        places = [index[numbers, word] for word in rarest]
        near = Counter(chain.from_iterable(place[:MAX_COMPARED] for place in places))
        fewest = min(2 + size // 25, 4)  # the other may be a fifth shorter, and have one less
        for other in (bags[other] for other, shared in near.items() if shared >= fewest):
            if 9 * len(bag & other[1]) >= 4 * (size + len(other[1])):  # s >= 4/5 (a + b - s)
                yield item, other[0]
                break
        else:
            for place in places:
                place.append(at)


def _bag(text: str) -> frozenset[str]:
    """Return the words of a text; for scripts without spaces, the pairs of characters."""
    if text.isascii():
        return frozenset(words(text))
    return frozenset(part for word in words(text) for part in (pairs(word) if is_unspaced(word) else [word]))


def _near_limit(item: Remembered, voice: _Voice) -> Iterator[Finding]:
    if item.origin in (Origin.IMPORT, Origin.WEB):
        return  # the text of a stream is cut to fit
    used, limit = len(item.text), item.limit or 0
    if item.kind == "block" and limit > 0 and 10 * used >= 9 * limit:
        what = f"The {voice.place(item)} is {100 * used // limit} % full, {used:,} of {limit:,} characters."
        mend = voice.command("limit", item.name, str(2 * limit), agent=item.owner)
        yield Finding(kind="near_limit", what=what, mend=mend, where=(item,))


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


def _time(at: datetime | None) -> datetime:
    """Return a comparable time: one without a zone is in UTC, and None is before all others."""
    return at if at and at.tzinfo else (at or datetime.min).replace(tzinfo=UTC)
