r"""Tokens of chat templates in texts. Pure.

Ollama and the embedded model write a request as one text, by the template of the model. A token of the
template inside of a message, such as `<|im_start|>`, would begin another message there. A backslash behind
its first sign makes it plain text: `<\|im_start|>`. Nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from weft.types.escape import OVERLAP, WINDOW, spliced
from weft.types.invisible import place_in_text, seen
from weft.types.lazy_pattern import lazy_pattern

_TAGS = """s bos eos pad unk mask sep cls sop eop eod eom eot gmask smask
    start_of_turn end_of_turn start_of_image end_of_image image_soft_token begin_of_text end_of_text
    begin_of_sentence end_of_sentence im_start im_end system user assistant
    tools tool_call tool_calls tool_response tool_responses tool_result tool_results
    function_call function_calls think thinking bos_token eos_token pad_token unk_token
    fim_prefix fim_middle fim_suffix fim_pad arg_key arg_value seed:bos seed:eos seed:think""".split()
_BRACKETS = """TOOL_CALLS TOOL_RESULTS TOOL_CONTENT AVAILABLE_TOOLS SYSTEM_PROMPT MODEL_SETTINGS ARGS CALL_ID
    IMG IMG_BREAK IMG_END AUDIO BEGIN_AUDIO TRANSCRIBE PREFIX MIDDLE SUFFIX THINK BOS EOS PAD UNK CLS SEP MASK
    gMASK sMASK""".split()
_LONGEST = 64

TEMPLATE_TOKEN = lazy_pattern(
    rf"""
      <(?=\|)                                           # <|im_start|> and <|turn>, whatever follows
    | <(?=[^<>\n\\]{{1,{_LONGEST}}}\|>)                 # <turn|>
    | <(?=\s{{0,3}}/?\s{{0,3}}(?i:{"|".join(_TAGS)})\s{{0,3}}>)   # <s>, </s >, <start_of_turn>
    | <(?=(?i:unused|extra_id_|reserved_|reserved_special_token_)\d{{1,6}}>|0x[0-9A-Fa-f]{{2}}>)
    | <(?=<\s*+/?\s*+(?i:SYS)\s*+>>)                    # <<SYS>>
    | \[(?=\s{{0,3}}/?\s{{0,3}}(?:(?i:INST)|{"|".join(_BRACKETS)}|CONTROL_\d{{1,6}})\s{{0,3}}\])
    | \](?=~[a-z!]{{1,3}}[\[\]])|\[(?=e~\[)                   # ]~b] and [e~[ of MiniMax
    """,
    re.VERBOSE,
)
"""The first sign of a token, in a text as a reader sees it."""

PLAIN_TOKEN = re.compile(
    rf"<(?=\|[^<>\n\\]{{1,{_LONGEST}}}\|>)|<(?=<\s*+/?\s*+(?i:SYS)\s*+>>)|\[(?=/?(?i:INST)\])"
)
"""The same of those tokens that no honest text has: `<s>` and `<think>` are also HTML or somebody's XML."""


def without_template_tokens(text: str, pattern: re.Pattern[str] = TEMPLATE_TOKEN) -> str:
    """Put a backslash behind the first sign of each token of a chat template. All other text stays."""
    return spliced(text, ((place, place, "\\") for place in _places(text, pattern)))


def _places(text: str, pattern: re.Pattern[str]) -> Iterator[int]:
    """Yield the places behind the first signs of tokens. A long text is looked at in windows."""
    for start in range(0, len(text) or 1, WINDOW):
        visible, hidden = seen(text[start : start + WINDOW + OVERLAP])
        for match in pattern.finditer(visible):
            place = place_in_text(match.start(), hidden)
            if place < WINDOW:
                yield start + place + 1


def data_without_template_tokens(value: Any) -> Any:
    """Do the same in all texts of JSON data, keys among them."""
    if isinstance(value, str):
        return without_template_tokens(value)
    if isinstance(value, dict):
        return {
            without_template_tokens(key): data_without_template_tokens(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [data_without_template_tokens(item) for item in value]
    return value
