"""What a `tools.json` may say, and the one sentence about what it may not."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from skill_programs import described
from weft.errors import ToolError
from weft.tools.descriptor import Argument, Descriptor, Execution, Resolve, parse
from weft.types.message import ToolDefinition

WHOLE = """{
  "tools": [
    {
      "name": "add_note",
      "description": "Add a note.",
      "parameters": {"type": "object", "properties": {"title": {"type": "string", "x-own": 1}}}
    },
    {"name": "list_notes"}
  ],
  "allowlist": {"notes": ["add", "list"], "cat": [""]},
  "execution": [
    {
      "tool": "add_note", "binary": "notes", "subcommand": "add",
      "args": [
        {"param": "title", "kind": "positional", "resolveCommand": {"script": "title", "args": ["$param"]}},
        {"param": "body", "kind": "flag", "flag": "content", "normalizeNewlines": true},
        {"param": "replace", "kind": "flagifboolean", "flagIfTrue": "--overwrite", "flagIfFalse": "--append"},
        {"param": "day", "resolveCommand": {"binary": "notes", "subcommand": "day", "args": ["--on=$param"]}}
      ]
    },
    {"tool": "list_notes", "binary": "notes", "subcommand": "list"}
  ]
}
"""


def refused(text: str | dict[str, Any]) -> str:
    with pytest.raises(ToolError) as caught:
        parse(text if isinstance(text, str) else json.dumps(text, indent=1), path="/skills/n/tools.json")
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert WHOLE.count(old) == 1
    return WHOLE.replace(old, new)


def test_a_descriptor_says_what_its_file_says() -> None:
    found = parse(WHOLE, path="tools.json")

    assert [tool.name for tool in found.tools] == ["add_note", "list_notes"]
    assert found.tools[0].description == "Add a note."
    assert found.tools[0].parameters["properties"] == {"title": {"type": "string", "x-own": 1}}
    assert found.allowlist == {"notes": frozenset({"add", "list"}), "cat": frozenset({""})}
    assert found.execution["list_notes"] == Execution(tool="list_notes", binary="notes", subcommand="list")
    assert found.execution["add_note"].args == (
        Argument(param="title", resolve=Resolve(script="title", args=("$param",))),
        Argument(param="body", kind="flag", flag="content", normalize_newlines=True),
        Argument(param="replace", kind="flagifboolean", flag_if_true="--overwrite", flag_if_false="--append"),
        Argument(param="day", resolve=Resolve(binary="notes", subcommand="day", args=("--on=$param",))),
    )


def test_a_tool_may_do_without_a_description_and_parameters() -> None:
    (_, tool) = parse(WHOLE, path="tools.json").tools

    assert tool == ToolDefinition(name="list_notes", parameters={"type": "object", "properties": {}})


def test_an_empty_object_is_a_descriptor_without_tools() -> None:
    assert parse("{}", path="tools.json") == Descriptor()


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "near"),
    [
        ('"allowlist": {', '"alowlist": {', 10, "alowlist", "allowlist"),
        ('"description"', '"descripton"', 5, "tools[0].descripton", "description"),
        ('"subcommand": "list"}', '"subcomand": "list"}', 21, "execution[1].subcomand", "subcommand"),
        ('"normalizeNewlines"', '"normaliseNewlines"', 16, "execution[0].args[1].normaliseNewlines", "norm"),
        ('{"script"', '{"scirpt"', 15, "execution[0].args[0].resolveCommand.scirpt", "script"),
    ],
)
def test_an_unknown_key_is_refused_at_every_level_with_its_line(
    old: str, new: str, line: int, key: str, near: str
) -> None:
    said = refused(changed(old, new))

    assert said.startswith(
        f"/skills/n/tools.json, line {line}, key {key!r}: this key is not known here: did you mean '{near}"
    )


def test_the_line_is_that_of_the_wrong_key_and_not_of_its_namesakes() -> None:
    text = '{"tools": [\n{"name": "kind", "parameters": {"knid": 1}}],\n"execution": [{"tool": "kind",\n'
    text += '"binary": "knid", "subcommand": "\\"knid\\":",\n"args": [{"param": "knid"},\n{"knid": 1}]}]}'

    assert refused(text).startswith("/skills/n/tools.json, line 6, key 'execution[0].args[1].knid'")


def test_a_key_that_stands_twice_is_refused_where_it_stands_again() -> None:
    said = refused('{"tools": [],\n"allowlist": {},\n"tools": []}')

    assert said == (
        "/skills/n/tools.json, line 3, key 'tools': this key stands here for the second time: remove one."
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{\n\n'tools': []}", 3),
        ('{"tools": [],\n}', 2),
        ('{"tools": []\n', 2),
        ('{"tools": []}\n\n{}', 3),
        ("[File]", 1),
    ],
)
def test_what_is_not_json_is_refused_with_the_line_of_the_error(text: str, line: int) -> None:
    assert refused(text).startswith(f"/skills/n/tools.json, line {line}, is not JSON: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{"name": "list_notes"}', '{"name": ""}', "line 8, key 'tools[1].name': this is empty"),
        ('{"name": "list_notes"}', '{"name": " "}', "line 8, key 'tools[1].name': this is empty"),
        ('{"name": "list_notes"}', "{}", "line 8, key 'tools[1].name': this key is missing"),
        ('{"name": "list_notes"}', '{"name": 7}', "line 8, key 'tools[1].name': this must be text"),
        ('{"name": "list_notes"}', "null", "line 8, key 'tools[1]': this must be an object"),
        ('{"name": "list_notes"}', '{"name": "add_note"}', "line 8, key 'tools[1].name': 'add_note' stands"),
        ('{"name": "list_notes"}', '{"name": "other"}', "line 8, key 'tools[1].name': the tool 'other'"),
        ('"tool": "list_notes"', '"tool": "lst"', "line 8, key 'tools[1].name': the tool 'list_notes'"),
        ('"tool": "list_notes"', '"tool": "add_note"', "key 'execution[1].tool': 'add_note' stands"),
        ('["add", "list"]', '"add"', "line 10, key 'allowlist.notes': this must be a list"),
        ('["add", "list"]', "[1]", "line 10, key 'allowlist.notes[0]': this must be text"),
        ('"kind": "positional"', '"kind": "flagIfBoolean"', "'execution[0].args[0].kind': 'flagIfBoolean'"),
        ('"flag": "content"', '"flag": "a b"', "line 16, key 'execution[0].args[1].flag': 'a b' is not"),
        ('"flag": "content"', '"flag": "--a="', "line 16, key 'execution[0].args[1].flag': '--a=' is not"),
        ('"flag": "content"', '"flag": "--"', "line 16, key 'execution[0].args[1].flag': '--' is not"),
        ('"normalizeNewlines": true', '"normalizeNewlines": 1', "this must be true or false"),
        ('"subcommand": "add"', '"subcommand": "a\\u0000"', "subcommand': this holds a character"),
        ('"subcommand": "add"', '"subcommand": "\\ud800"', "subcommand': this holds a character"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_in_one_sentence_with_its_place(old: str, new: str, said: str) -> None:
    found = refused(changed(old, new))

    assert said in found
    assert "\n" not in found


def test_an_execution_for_an_unknown_tool_leads_to_the_known_ones() -> None:
    data = described()
    data["execution"].append({"tool": "ad_note", "binary": "notes", "subcommand": "add"})

    assert "key 'execution[1].tool': there is no tool 'ad_note': did you mean 'add_note'?" in refused(data)


@pytest.mark.parametrize("binary", ["/bin/sh", "./notes", "../notes", "a\\b", "-notes", "", ".", "..", "a b"])
def test_a_binary_is_a_name_and_neither_a_path_nor_an_option(binary: str) -> None:
    assert "key 'execution[0].binary': " in refused(described(binary=binary, allowlist={}))
    assert "key 'allowlist." in refused({"allowlist": {binary: []}})
    resolve = {"binary": binary, "subcommand": "x"}
    args = [{"param": "a", "resolveCommand": resolve}]
    assert "key 'execution[0].args[0].resolveCommand.binary': " in refused(described(args))


@pytest.mark.parametrize("script", ["../x.sh", "/x.sh", "a/b.sh", "a\\b.sh", "..", "-c", ".hidden"])
def test_a_script_is_the_name_of_a_file_and_not_a_path(script: str) -> None:
    args = [{"param": "a", "resolveCommand": {"script": script}}]

    assert "key 'execution[0].args[0].resolveCommand.script': " in refused(described(args))


@pytest.mark.parametrize(
    "resolve",
    [{"script": "a", "binary": "b", "subcommand": "c"}, {"args": []}, {"binary": "b"}, {"script": ""}],
)
def test_a_value_is_resolved_either_by_a_script_or_by_a_binary_with_its_subcommand(
    resolve: dict[str, Any],
) -> None:
    assert "resolveCommand" in refused(described([{"param": "a", "resolveCommand": resolve}]))


@pytest.mark.parametrize("word", ["-$param", "--$param", "--on$param", "--$param=1", "-ab$param"])
def test_a_value_may_not_choose_the_option_of_the_command_that_resolves_it(word: str) -> None:
    args = [{"param": "day", "resolveCommand": {"script": "day", "args": ["ok", word]}}]

    said = refused(described(args))

    assert f"resolveCommand.args[1]': in {word!r} the value would choose the option" in said


@pytest.mark.parametrize(
    "word", ["$param", "a-$param", "--on=$param", "-d$param", "--$name=$param", "--$names"]
)
def test_a_value_may_stand_behind_an_option_that_the_file_names(word: str) -> None:
    args = [{"param": "day", "resolveCommand": {"script": "day", "args": [word]}}]

    parsed = parse(json.dumps(described(args)), path="tools.json").execution["add_note"].args[0]

    assert parsed.resolve == Resolve(script="day", args=(word,))


def test_a_file_over_a_megabyte_is_refused() -> None:
    assert refused(WHOLE + " " * 1_000_000) == (
        f"/skills/n/tools.json has {len(WHOLE) + 1_000_000} bytes and 1000000 are allowed: make it shorter."
    )


@pytest.mark.parametrize("text", ["[" * 200_000, '{"tools":' * 100_000, '[{"a":' * 150_000])
def test_a_file_that_is_nested_without_end_is_refused(text: str) -> None:
    said = refused(text)

    assert said.startswith("/skills/n/tools.json")


def test_a_deep_value_that_can_just_be_read_is_no_obstacle_to_naming_the_line() -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400

    said = refused(f'{{"tools": [{{"name": "a", "parameters": {deep}}}],\n"x": 1}}')

    assert said.startswith("/skills/n/tools.json, line 2, key 'x': ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["tools", "allowlist", "execution", "name", "tool", "binary", "args", "param"])
        | st.text(),
        inner,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON.map(json.dumps) | st.text())
def test_whatever_a_file_holds_it_is_parsed_or_refused_in_one_sentence(text: str) -> None:
    try:
        said = str(parse(text, path="tools.json"))
    except ToolError as error:
        said = str(error)

    assert said.startswith(("tools.json", "Descriptor("))
    assert "\n" not in said
