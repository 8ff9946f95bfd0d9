"""Random conversations whose words are as unevenly common as those of a language."""

from __future__ import annotations

import random
from itertools import accumulate, count

from weft.types.message import Message

VOCABULARY = 6_000
_FLATNESS = 20
"""The weights are 1 / (rank + 20): the commonest word is in a third of all messages, the median word of a
query in a tenth, the rarest in one of 600. Commoner ones, in a language, are stop words."""
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aou"]


class Chatter:
    """An endless conversation, the same one for the same seed.

    No word of it is a stop word or has an ending that a stemmer takes off, so that every search engine sees
    the same words.
    """

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self._places = count()
        self._weights = list(accumulate(1 / (rank + _FLATNESS) for rank in range(VOCABULARY)))
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(self._chance.choices(_SYLLABLES, k=self._chance.choice((2, 3, 3, 4))))] = None
        self._words = list(words)

    def messages(self, number: int) -> list[Message]:
        """Make the next messages: questions of 20 words, answers of 95, no two alike."""
        return [self._message(next(self._places)) for _ in range(number)]

    def query(self) -> list[str]:
        """Make a query of one to four different words."""
        number = self._chance.randint(1, 4)
        words: dict[str, None] = {}
        while len(words) < number:
            words[self.word()] = None
        return list(words)

    def word(self) -> str:
        """Pick a word of any rank: each order of magnitude of the rank is as likely as the next."""
        """Pick a word of any rank: each order of magnitude of the rank is as likely as the next."""
        return self._words[int(VOCABULARY ** self._chance.random()) - 1]

    def _message(self, at: int) -> Message:
        asks = at % 2 == 0
        words = self._chance.choices(self._words, cum_weights=self._weights, k=20 if asks else 95)
        return Message(role="user" if asks else "assistant", content=f"{' '.join(words)} {at}")
