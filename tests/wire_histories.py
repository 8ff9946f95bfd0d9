"""Histories as a log can hold them after years of crashes, imports and changes of provider."""

import hypothesis.strategies as st

import weft

IDS = st.sampled_from(["a", "b", "c", "call-1", "toolu_01", "functions.look:0", "x" * 80, "", "ü", "\ud800"])
NAMES = st.sampled_from(["look", "read_skill", "mcp__sea__find", "bad name!", "", "n" * 90, "\0"])
ODD = ["", " ", "\n\t", "Hi", "好 🐠", "\ud800 half", "nul \0", "x" * 300, "<block:a>"]
TEXT = st.sampled_from(ODD) | st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CALLS = st.builds(weft.ToolCall, id=IDS, name=NAMES, arguments=st.dictionaries(TEXT, VALUES, max_size=2))
PARTS = st.sampled_from(
    [{"type": "image", "media_type": "image/png", "data": "aGk="}, {"type": "image"}, {"type": "sound"}, {}]
)
THINKING = {"type": "thinking", "thinking": "t", "signature": "s"}
REASONING = {"type": "reasoning", "id": "r", "summary": []}
SIGNED = st.sampled_from(
    [
        {},
        {"provider": "anthropic", "model": "claude-sonnet-5", "thinking": [THINKING]},
        {"provider": "gemini", "model": "gemini-3-flash", "calls": {"a": {"thoughtSignature": "s"}}},
        {"provider": "openai_responses", "model": "gpt-5.6", "reasoning": [REASONING]},
    ]
)
MESSAGES = st.builds(
    weft.Message,
    role=st.sampled_from(["user", "assistant", "system", "tool", "narrator", ""]),
    content=TEXT,
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    parts=st.lists(PARTS, max_size=1).map(tuple),
    provider_data=SIGNED,
) | st.builds(
    weft.Message,
    role=st.just("tool"),
    content=TEXT,
    tool_call_id=st.none() | IDS,
    tool_name=st.none() | NAMES,
)
HISTORIES = st.lists(MESSAGES, max_size=10)
SCHEMAS = [{}, {"type": "object"}, {"type": "string"}, {"type": "object", "properties": {"a": {}}}]
TOOLS = st.lists(
    st.builds(
        weft.ToolDefinition,
        name=NAMES,
        description=st.none() | TEXT,
        parameters=st.sampled_from(SCHEMAS),
    ),
    max_size=3,
)
