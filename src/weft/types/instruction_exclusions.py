"""The patterns of sentences that look like lasting rules and are none, in the same six languages.

`instruction_patterns.py` has those of the rules.
"""

from __future__ import annotations

QUESTION = r"^[¿]|[?？]|[吗呢么][。！!\s]*$|(?:ます|です|の)か[。\s]*$"
"""A sentence that asks something."""
REPORTED = (
    r"\b(?:said|says|told (?:me|us|him|her|them)|used to say|taught|wrote|shouted|yelled|saying goes|motto"
    r"|proverb|lyrics|slogan|dijo|decía|dijeron|dice (?:mi|el|la|que)|escribió|refrán|lema|sagte|sagt"
    r"|gesagt"
    r"|meinte|schrieb|sprichwort|a dit|disait|m'a dit|dit-il|dit-elle|proverbe|devise)\b"
    r"|[他她]们?说|说过|常说|俗话|座右铭|と言[いっわう]|って言|ことわざ|という(?:歌|言葉|本)"
)
"""A sentence that tells what somebody said."""
MATERIAL = (
    r"(?:please |can you |could you )?(?:translate|proofread|correct (?:this|the)|summari[sz]e|rewrite"
    r"|rephrase"
    r"|paraphrase|what (?:does|do|is)\b[^?]{0,80}\bmean|how do (?:i|you) (?:say|translate)|(?:write|draft"
    r"|compose) "
    r"(?:me )?an? "
    r"|(?:por favor,? )?(?:traduce|corrige|resume|reescribe|qué significa|¿qué significa|escríbe"
    r"(?:me)? una? "
    r"|escribe una? )|(?:bitte )?(?:übersetze?|korrigiere?|fasse? |was (?:bedeutet|heißt)|schreibe? "
    r"(?:mir )?"
    r"(?:ein|eine|einen) )|traduis|corrige|résume|reformule|que veut dire|écris(?:-moi)? une? "
    r"|(?:请)?(?:帮我)?(?:翻译|润色|总结|改写|校对|写一?[首篇个封段])|.{0,40}(?:是什么意思)"
    r"|.{0,40}(?:翻訳し|訳し|要約し|添削し|書き直し|の意味)|.{0,20}(?:詩|物語|小説|メール|手紙|文章)を書)"
)
"""A sentence that asks for work on a text: what follows it may be that text."""
LIST_HEADING = (
    r"(?:(?:some|my|these|the|a few|new) )?(?:rules?|instructions?)(?: for you)?\s?[:：]$"
    r"|(?:mis |unas |estas )?(?:reglas|instrucciones)(?: para ti)?\s?:$|(?:meine |ein paar |diese )?"
    r"(?:regeln|anweisungen)(?: für dich)?\s?:$|(?:mes |quelques |ces )?(?:règles|consignes)"
    r"(?: pour toi)?\s?:$"
    r"|(?:我的)?(?:规则|规矩|要求)\s?[:：]$|(?:私の)?(?:ルール|お願い)\s?[:：]$"
)
"""A line with a colon after which rules may stand; after any other the text of somebody else may."""
