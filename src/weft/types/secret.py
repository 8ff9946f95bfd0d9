"""Keys, tokens and passwords in texts: finding them, and speaking of them without saying them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from weft.types.lazy_pattern import lazy_pattern

SHORTEST_SECRET = 6
_SHOWN = 300
_SEARCHED = 12_000
"""How much of a text is searched where only a little of it is shown: a secret at its edge must be whole."""
_LONGEST_PEM = 9_000

# Keys that tell by their first letters what they are. No letter may stand before (`task-...` is none), but
# `bot` stands before a key of Telegram in an address.
_TOKEN = lazy_pattern(r"""(?xa)(?<![0-9])[0-9]{6,12}:AA[\w-]{20,} | (?<![A-Za-z0-9])(?:AIza[\w-]{30,}
    | sk-(?:ant|proj|or)-[\w-]{16,} | sk-(?:[a-z0-9]{2,10}-){0,2}\w{16,}[\w-]* | [rs]k_(?:live|test)_\w{16,}
    | (?:gh[oprsu]|github_pat|gsk|hf)_\w{16,} | glpat-[\w-]{16,} | xox[abeoprs]-[\w-]{10,}
    | (?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9a-z]) | (?:npm_|pypi-)[\w-]{30,} | eyJ[\w-]{8,}\.[\w-]{6,}\.[\w-]*)""")
_FEW = 8
_WORD_AT_START = lazy_pattern(r"\A\S*")
# The mix that makes a key: neither `sk-xxxxxxxxxxxxxxxx` nor `hf_some_long_identifier` has it.
_MIX = lazy_pattern(r"(?s)(?!.*([xX0])\1{5})(?:.*[0-9A-Z]|.*[a-z]{16})")
# Up to its end, or as far as it looks like one: a key cut short is still a key.
_PEM = lazy_pattern(r"(?a)-----BEGIN ([A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?)-----")
_PEM_BODY = lazy_pattern(r"(?a)(?:\s{0,8}[\w+/=]{16,}+)++")
_LOGIN = lazy_pattern(r"://([^\s/?#@:]{0,200}:([^\s/?#]{1,200}))@")
# The value is looked at, not taken, because it may be the name of the next: `password: token: ...`.
_NAMED = lazy_pattern(r"""(?xi)(?:(pass(?:word|wd|phrase|code)|secret|token|(?:api|access|private)[_ -]?key
    |contrase.a|senha|mot[ ]de[ ]passe|passwort|kennwort|wachtwoord)["'`*]{0,2}
    (?:\s{0,3}[:=]{1,2}>?|\sis:?(?=\s))[\s"'`*]{0,5}|bearer[ ])(?=([^\s"'`]{6,400}))""")
# What stands where a secret would: a reference, a path, a call, a row of stars, words of a manual.
_NO_SECRET = lazy_pattern(r"""(?xis)\$(?:\w+|[{(].*) | [~/.<{\[].* | \w+://.* | [\w.]+\(.* | [*x•#_.-]+
    | (?:os\.|env[.:]|process\.|your|change|example|redacted|hidden|removed|1password|none|null).*""")


def secrets_in(text: str) -> list[str]:
    """Find the keys, tokens and passwords in a text, each once."""
    secrets = dict.fromkeys(text[start:end] for start, end in _spans(text))
    return [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]


def _spans(text: str) -> list[tuple[int, int]]:
    """Find the places of secrets in a text, in order; none overlaps another."""
    spans = [match.span() for match in _TOKEN.finditer(text) if _MIX.match(match[0])]
    spans += _pem_spans(text)
    spans += [match.span(1) for match in _LOGIN.finditer(text) if not _NO_SECRET.fullmatch(match[2])]
    for match in _NAMED.finditer(text):
        value = match[2].rstrip(".,;:)]}>")
        if _is_password(value, named=(match[1] or "").lower()):
            spans.append((match.start(2), match.start(2) + len(value)))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _pem_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find private keys. A text is searched for the end of each kind of key once, however many begin."""
    searched: dict[str, int] = {}
    after = 0
    for begin in _PEM.finditer(text):
        if begin.start() < after:
            continue
        mark, limit = f"-----END {begin[1]}-----", begin.end() + _LONGEST_PEM
        at = text.find(mark, max(begin.end() + 1, searched.get(mark, 0)), limit + len(mark))
        if at >= 0:
            after = at + len(mark)
        else:
            searched[mark] = min(limit, len(text))
            body = _PEM_BODY.match(text, begin.end())
            after = body.end() if body else begin.end()
        if after > begin.end():
            yield begin.start(), after


def without_secrets(text: str) -> str:
    """Replace the secrets in a text with stars, wherever each of them stands."""
    secrets = secrets_in(text)
    if len(secrets) > _FEW:
        return _without_many(text, secrets)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _without_many(text: str, secrets: Sequence[str]) -> str:
    """Replace many secrets in one pass: by their first letters, then the longest that fits."""
    lengths: dict[str, set[int]] = {}
    for secret in secrets:
        lengths.setdefault(secret[:SHORTEST_SECRET], set()).add(len(secret))
    longest_first = {head: sorted(each, reverse=True) for head, each in lengths.items()}
    known, parts, start, at = frozenset(secrets), list[str](), 0, 0
    while at < len(text):
        choices = longest_first.get(text[at : at + SHORTEST_SECRET], ())
        length = next((each for each in choices if text[at : at + each] in known), 0)
        if length:
            parts += text[start:at], "***"
            start = at = at + length
        else:
            at += 1
    return "".join((*parts, text[start:]))


def brief(text: str, *, tail: bool = False) -> str:
    """Shorten a text from outside for a sentence: on one line, without secrets, its start or its end.

    It is cut first. A word that the cut goes through is left out, since it may be half of a secret.
    """
    if len(text) > _SEARCHED:
        text = _end(text[-_SEARCHED - 2 * _LONGEST_PEM :]) if tail else _without_last_word(text[:_SEARCHED])
    flat = " ".join(without_secrets(text).split())
    return (flat[-_SHOWN:] if tail else flat[:_SHOWN]).rstrip(".")


def _end(text: str) -> str:
    """Return the end of a text, from a word on, without secrets: not even one whose start is cut off."""
    cut, parts = max(len(text) - _SEARCHED, 0), list[str]()
    for start, end in _spans(text):
        if end > cut:
            parts += text[cut : max(start, cut)], "***"
            cut = end
    return _WORD_AT_START.sub("", "".join((*parts, text[cut:])), count=1)


def _without_last_word(text: str) -> str:
    end = next((at for at in range(len(text), 0, -1) if text[at - 1].isspace()), len(text))
    return text[:end]


def fingerprint(secret: str) -> str:
    """Return a name for a secret from which it cannot be read."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def masked(secret: str) -> str:
    """Return enough of a secret to recognize it; of a short one, nothing."""
    return f"{secret[:3]}***{secret[-2:]}" if len(secret) >= 12 else "***"


def _is_password(value: str, *, named: str) -> bool:
    """Return whether a text is no word: letters with digits, or small and large ones with a sign."""
    if len(value) < SHORTEST_SECRET or _NO_SECRET.fullmatch(value):
        return False
    if value.isdigit():
        return named.startswith("pass")
    lower, upper, digit = (any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdigit))
    signs = not set("!@#$%^&*+=~?|").isdisjoint(value)
    return (digit and (lower or upper)) or (lower and upper and signs and len(value) >= 8)
