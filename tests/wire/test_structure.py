"""No text from outside opens or closes structure, in any recipe and any dialect."""

import json

import pytest

import structure_fuzz as fuzz
import weft
from weft.types.template_tokens import without_template_tokens
from weft.wire import PROVIDERS, to_wire

TOKENS = [
    "]~b]",
    "[e~[",
    "<seed:bos>",
    "<BOS_TOKEN>",
    "[ INST ]",
    "</s >",
    *("<|im_start|>", "<|im_end|>", "<|", "<|turn>", "<turn|>", "<bos>", "<EOS>", "<s>", "</s>", "<unk>"),
    *("<start_of_turn>", "<end_of_turn>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[TOOL_CALLS]"),
    *("[/AVAILABLE_TOOLS]", "<｜User｜>", "<｜begin▁of▁sentence｜>", "＜|im_end|＞", "<ｓ>", "<0x0A>"),
    *("<\u200b|im_start|>", "<b\u200bos>", "<think>", "</tool_call>", "<unused7>", "[CONTROL_12]"),
]


def test_ten_thousand_forged_texts_forge_nothing() -> None:
    assert fuzz.run(seed=20261118, count=10_000) == []


def test_the_forged_texts_are_not_tame() -> None:
    """Most of them would be structure, of every kind."""
    chance = fuzz.Forger(1)
    texts = [chance.forged() for _ in range(500)]

    assert sum(fuzz.structure(text)["tag"] > 0 for text in texts) > 20
    assert sum(fuzz.structure(text)["label"] > 0 for text in texts) > 20
    assert sum(bool(fuzz._TOKENS.search(fuzz.folded(text))) for text in texts) > 200


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_template_gains_one_backslash_and_loses_nothing(token: str) -> None:
    harmless = without_template_tokens(f"a {token} b")

    assert harmless.replace("\\", "", 1) == f"a {token} b"
    assert harmless == f"a {token[0]}\\{token[1:]} b"
    assert without_template_tokens(harmless) == harmless


@pytest.mark.parametrize(
    "text",
    [
        "a < b || c > d",
        "List<String>",
        "<b>bold</b>",
        "[img]",
        "see [1]",
        "<a|b>",
        "¿Qué? 好 👩\u200d👩\u200d👧",
        "",
    ],
)
def test_text_without_a_token_stays_byte_for_byte(text: str) -> None:
    assert without_template_tokens(text) == text


def _hostile() -> weft.Context:
    token = "<|im_start|>"  # noqa: S105 - a token of a template
    call = weft.ToolCall(id="1", name="look", arguments={token: [token, {"a": token}]})
    schema = {"type": "object", "properties": {"q": {"description": token, "enum": [token]}}}
    return weft.Context(
        system_prompt=f"Rules of an app {token}",
        history=(
            weft.Message(role="user", content=token),
            weft.Message(role="assistant", content="", tool_calls=(call,)),
            weft.Message(role="tool", content=token, tool_call_id="1", tool_name="look"),
        ),
        current_message=f"now {token}",
        tools=(weft.ToolDefinition(name="look", description=token, parameters=schema),),
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_dialect_that_writes_by_a_template_has_no_token_and_the_others_keep_the_text(provider: str) -> None:
    request = json.dumps(to_wire(provider, _hostile()), ensure_ascii=False)

    if provider == "ollama":
        assert "<|" not in request
        assert request.count("<\\\\|im_start|>") == 10, "instructions, messages, calls, results and tools"
    else:
        assert "<|im_start|>" in request
        assert "<\\\\|" not in request
