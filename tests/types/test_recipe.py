"""A recipe is data: what can be written in one, and what is said of what cannot."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.sources.catalogue import check_sources
from weft.types.recipe import Layer, packaged, packaged_text, parse
from weft.types.section import Keep, Place
from weft.types.session import SessionRule

PLAIN = """
name = "small"

[limits]
max_tokens = 1000

[history]
max_messages = 10

[[layers]]
source = "recall"
limit = 5

[[layers]]
source = "history"
share = 0.5

[[layers]]
source = "message"
"""
NAMES = ("chai", "miniclaw", "omega", "pattern", "weft")


def refusal(text: str) -> str:
    with pytest.raises(weft.ConfigError) as caught:
        check_sources(parse(text, where="small.toml"))
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_packaged_recipe_loads_by_its_name(name: str) -> None:
    recipe = weft.Recipe.load(name)

    assert recipe.name == name
    assert recipe == parse(packaged_text(name), where=name)


def test_the_packaged_recipes_are_these_five() -> None:
    assert packaged() == NAMES


def test_a_recipe_of_ones_own_loads_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(PLAIN, "utf-8")

    recipe = weft.Recipe.load(path)

    assert (recipe.name, recipe.limits.max_tokens, len(recipe.layers)) == ("small", 1000, 3)
    assert weft.Recipe.load(str(path)) == recipe


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("omga", "There is no recipe 'omga': did you mean 'omega'?"),
        ("zzz", "There is no recipe 'zzz': known are chai, miniclaw, omega, pattern, weft."),
        ("", "There is no recipe '': known are chai, miniclaw, omega, pattern, weft."),
    ],
)
def test_an_unknown_name_leads_to_the_known_ones(source: str, said: str) -> None:
    with pytest.raises(weft.ConfigError) as caught:
        weft.Recipe.load(source)

    assert str(caught.value) == said


@pytest.mark.parametrize(
    "source", ["missing.toml", "bad\0name.toml", "bad\0name", "x" * 300, "y" * 300 + ".toml"]
)
def test_a_path_that_cannot_be_read_is_a_configuration_error(source: str) -> None:
    with pytest.raises(weft.ConfigError):
        weft.Recipe.load(source)


def test_a_folder_or_bytes_in_place_of_a_recipe_are_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe name")

    for name in ("folder.toml", "bytes.toml"):
        with pytest.raises(weft.ConfigError, match=name):
            weft.Recipe.load(tmp_path / name)


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('name = "small"', "name =", "small.toml is not valid TOML: "),
        ('name = "small"', "", "small.toml lacks the key 'name': add it."),
        ('name = "small"', "name = 5", "small.toml.name must be text, not a whole number."),
        ('name = "small"', 'nam = "x"', "small.toml has an unknown key 'nam': did you mean 'name'?"),
        (
            'name = "small"',
            'name = "s"\nform = "part"',
            "small.toml.form cannot be 'part': did you mean 'parts'?",
        ),
        (
            'name = "small"',
            'name = "s"\ntokens = "exakt"',
            "small.toml.tokens cannot be 'exakt': did you mean 'exact'?",
        ),
        (
            'name = "small"',
            'name = "s"\ngive_way = ["recal"]',
            "recipe 's' names 'recal' in `give_way`: did you mean 'recall'?",
        ),
        (
            "max_tokens = 1000",
            "max_token = 1000",
            "small.toml.limits has an unknown key 'max_token': did you mean 'max_tokens'?",
        ),
        ("max_tokens = 1000", "max_tokens = 0", "`max_tokens` is 0: it must be above zero."),
        (
            "max_tokens = 1000",
            "max_tokens = 10\nreserved_response_tokens = 10",
            "`reserved_response_tokens` is 10 of 10 tokens: it must leave room for a request.",
        ),
        ("max_messages = 10", "max_messages = -1", "recipe 'small' has a limit below zero: "),
        ("max_messages = 10", "max_tokens = -1", "recipe 'small' has a limit below zero: "),
        ("max_messages = 10", "keep_recent = -1", "recipe 'small' has a limit below zero: "),
        ("max_messages = 10", 'unit = "batch"', "small.toml.history.unit cannot be 'batch': "),
        ("limit = 5", "limit = -1", "small.toml.layers[0] (recall): `limit` is -1: use zero for none, "),
        ("limit = 5", "max_chars = -1", "small.toml.layers[0] (recall): `max_chars` is -1: "),
        ("limit = 5", "max_tokens = -1", "recipe 'small' has a limit below zero: "),
        ("max_tokens = 1000", "max_tokens = 1000\nmemory_tokens = -1", ""),
        ("max_tokens = 1000", "max_tokens = 1000\nhistory_tokens = -1", ""),
        ("limit = 5", 'limit = "five"', "small.toml.layers[0].limit must be a whole number, not text."),
        (
            "limit = 5",
            'keep = "always"\nmax_tokens = 9',
            "recipe 'small' keeps 'recall' always, so `max_tokens` ",
        ),
        (
            "limit = 5",
            'mode = "full"',
            "small.toml.layers[0] (recall) has an unknown key 'mode': known are around, enough, grouped, "
            "keep, least, limit, max_chars, ",
        ),
        (
            "limit = 5",
            'keep = "allways"',
            "small.toml.layers[0].keep cannot be 'allways': did you mean 'always'?",
        ),
        (
            'source = "recall"',
            'source = "recal"',
            "small.toml.layers[0].source cannot be 'recal', which no installed package has in "
            "`weft.sources`: did you mean 'recall'?",
        ),
        ('source = "recall"', "source = 5", "small.toml.layers[0].source must be text, not a whole number."),
        ('source = "recall"', 'source = ["recall"]', "small.toml.layers[0].source must be text, not a list."),
        ('source = "recall"', "", "small.toml.layers[0] lacks the key 'source': add it."),
        ("share = 0.5", 'keep = "always"', "small.toml.layers[1] (history) has an unknown key 'keep': "),
        ("share = 0.5", "limit = 5", "small.toml.layers[1] (history) has an unknown key 'limit': "),
        (
            'source = "message"',
            'source = "message"\nshare = 0.1',
            "small.toml.layers[2] (message) has an unknown key 'share': known are source.",
        ),
        (
            'source = "recall"\nlimit = 5',
            'source = "blocks"\ntag = "x"',
            "small.toml.layers[0] (blocks) has an unknown key 'tag': ",
        ),
        (
            "limit = 5",
            'tag = "a b"',
            "recipe 'small' has the tag 'a b': a tag has letters, digits, - and _ only.",
        ),
        (
            'source = "recall"\nlimit = 5',
            'source = "history"',
            "recipe 'small' must have one 'history' layer, ",
        ),
        (
            'source = "history"\nshare = 0.5',
            'source = "facts"',
            "recipe 'small' must have one 'history' layer, ",
        ),
        ('source = "message"', 'source = "facts"', "recipe 'small' must have one 'history' layer, "),
        (
            "share = 0.5",
            "share = 1.5",
            "recipe 'small' has shares that add up to 1.5: they must lie between 0 and 1.",
        ),
        ("share = 0.5", "share = -0.5", "recipe 'small' has shares that add up to -0.5: "),
        ("share = 0.5", "share = nan", "recipe 'small' has shares that add up to nan: "),
        ("share = 0.5", "share = inf", "recipe 'small' has shares that add up to inf: "),
        ("share = 0.5", "share = true", "small.toml.layers[1].share must be a number, not true or false."),
    ],
)
def test_every_mistake_is_one_sentence_that_says_where_and_what(
    written: str, instead: str, said: str
) -> None:
    assert written in PLAIN

    sentence = refusal(PLAIN.replace(written, instead))

    assert sentence.startswith(said)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence


def test_layers_that_are_not_a_list_of_tables_are_refused() -> None:
    head = 'name = "x"\n'

    assert "layers must be a list" in refusal(f"{head}layers = 5\n[limits]\nmax_tokens = 5")
    assert "layers[0] must be a table" in refusal(f"{head}layers = [5]\n[limits]\nmax_tokens = 5")
    assert "lacks the key 'layers'" in refusal(f"{head}[limits]\nmax_tokens = 5")


def test_the_message_must_be_the_last_layer() -> None:
    moved = PLAIN.replace('source = "recall"\nlimit = 5', 'source = "message"').replace(
        '[[layers]]\nsource = "message"\n', "", 1
    )

    assert "one 'message' layer as its last" in refusal(moved + '\n[[layers]]\nsource = "facts"\n')


# --- replace


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"skills_mode": "full"}, "layers.skills.options.mode", "full"),
        ({"max_memory_entries": 3}, "layers.memory_file.options.max_entries", 3),
        ({"max_history_messages": 7}, "history.max_messages", 7),
        ({"max_context_tokens": 900}, "limits.max_tokens", 900),
        ({"memory_tokens": 90}, "limits.memory_tokens", 90),
        ({"history_tokens": 90}, "limits.history_tokens", 90),
        ({"reserved_response_tokens": 90}, "limits.reserved_response_tokens", 90),
        ({"workspace_path": Path("/somewhere")}, "workspace_path", "/somewhere"),
        ({"workspace_path": None}, "workspace_path", None),
        ({"one_shot": "Hello."}, "one_shot_prompt", "Hello."),
        ({"one_shot_prompt": "Hello."}, "one_shot_prompt", "Hello."),
        ({"give_way": ["skills"]}, "give_way", ("skills",)),
        ({"tokens": "chars/5", "reload": "ttl", "ttl_seconds": 5}, "ttl_seconds", 5.0),
    ],
)
def test_a_value_is_replaced_by_the_name_people_use_for_it(
    changes: dict[str, Any], path: str, expected: object
) -> None:
    recipe = weft.Recipe.load("miniclaw")

    value: Any = recipe.replace(**changes)

    for name in path.split("."):
        value = value if name != "layers" else {layer.source: layer for layer in value.layers}
        value = value.get(name, value) if isinstance(value, dict) else getattr(value, name)
    assert value == expected
    assert recipe == weft.Recipe.load("miniclaw")


def test_a_replaced_value_changes_nothing_else() -> None:
    recipe = weft.Recipe.load("miniclaw")

    changed = recipe.replace(max_history_messages=7)

    assert dataclasses.replace(changed, history=recipe.history) == recipe


def test_a_reserve_that_no_longer_fits_the_window_becomes_a_quarter_of_it() -> None:
    limits = weft.Recipe.load("pattern").replace(max_context_tokens=4000).limits

    assert (limits.max_tokens, limits.reserved_response_tokens) == (4000, 1000)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"max_context_token": 5},
            "A recipe has no value 'max_context_token': did you mean 'max_context_tokens'?",
        ),
        ({"skills_mode": "ful"}, "recipe 'miniclaw'.layers[3].mode cannot be 'ful': did you mean 'full'?"),
        (
            {"max_context_tokens": "many"},
            "recipe 'miniclaw'.limits.max_tokens must be a whole number, not text.",
        ),
        (
            {"max_context_tokens": None},
            "recipe 'miniclaw'.limits.max_tokens must be a whole number, not nothing.",
        ),
        (
            {"max_context_tokens": True},
            "recipe 'miniclaw'.limits.max_tokens must be a whole number, not true or false.",
        ),
        ({"max_context_tokens": -5}, "`max_tokens` is -5: it must be above zero."),
        ({"max_history_messages": -5}, "recipe 'miniclaw' has a limit below zero: "),
        ({"layers": ()}, "recipe 'miniclaw' must have one 'history' layer, "),
        ({"name": 5}, "recipe 'miniclaw'.name must be text, not a whole number."),
        ({"overflow": "drop"}, "recipe 'miniclaw'.overflow cannot be 'drop': "),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(weft.ConfigError) as caught:
        weft.ContextBuilder(recipe=weft.Recipe.load("miniclaw").replace(**changes))

    assert str(caught.value).startswith(said)


def test_a_layer_of_an_unknown_source_is_refused_in_a_replacement_as_in_a_file() -> None:
    recipe = weft.Recipe.load("miniclaw")

    with pytest.raises(weft.ConfigError, match="sumaries"):
        check_sources(recipe.replace(layers=(Layer(source="sumaries"), *recipe.layers)))


# --- what a recipe says of itself


def test_what_stands_after_the_history_goes_with_the_message() -> None:
    recipe = weft.Recipe.load("weft")

    placed = dict(zip((layer.source for layer in recipe.layers), recipe.places, strict=True))

    assert {source for source, place in placed.items() if place == Place.MESSAGE} == {
        *("bootstrap", "memory_file", "recall", "tasks", "activity", "message")
    }


@pytest.mark.parametrize(
    ("name", "tagged"),
    [("chai", False), ("miniclaw", False), ("omega", False), ("pattern", True), ("weft", True)],
)
def test_a_recipe_is_tagged_if_it_shows_blocks_or_tags(name: str, tagged: bool) -> None:
    assert weft.Recipe.load(name).tagged is tagged


def test_history_gives_way_first_then_what_is_kept_if_there_is_room_then_what_is_preferred() -> None:
    recipe = weft.Recipe.load("miniclaw")

    assert _giving_way(recipe) == ["history", "memory_file", "tool_docs", "skills"]
    assert _giving_way(recipe.replace(give_way=["skills"])) == [
        "skills",
        "history",
        "memory_file",
        "tool_docs",
    ]


def test_of_two_layers_of_one_source_each_gives_way_by_its_own_rank() -> None:
    layers = tuple(
        Layer(source=source, keep=keep)
        for source, keep in (
            ("memory_file", Keep.PREFERRED),
            ("facts", Keep.IF_ROOM),
            ("memory_file", Keep.IF_ROOM),
            ("history", Keep.PREFERRED),
            ("message", Keep.PREFERRED),
        )
    )

    recipe = weft.Recipe(name="x", limits=weft.ModelContextLimits(max_tokens=100), layers=layers)

    assert recipe.order_of_giving_way() == (3, 2, 1, 0)


def _giving_way(recipe: weft.Recipe) -> list[str]:
    return [recipe.layers[at].source for at in recipe.order_of_giving_way()]


def test_a_layer_that_must_be_shown_never_gives_way() -> None:
    for name in NAMES:
        recipe = weft.Recipe.load(name)
        always = {layer.source for layer in recipe.layers if layer.keep == Keep.ALWAYS}
        soft = {layer.source for layer in recipe.layers if layer.keep != Keep.ALWAYS}

        assert not (always - soft) & set(_giving_way(recipe))


def test_a_layer_is_found_by_its_source() -> None:
    recipe = weft.Recipe.load("miniclaw")

    skills = recipe.layer("skills")

    assert skills is not None
    assert skills.options["mode"] == recipe.option("skills", "mode") == "summary"
    assert (recipe.layer("recall"), recipe.option("recall", "limit")) == (None, None)


def test_the_one_shot_context_is_the_short_prompt_and_the_message() -> None:
    context = weft.Recipe.load("miniclaw").one_shot("hi")

    assert [(m.role, m.content) for m in context.to_messages()] == [
        ("system", "You are miniclaw, a helpful AI assistant."),
        ("user", "hi"),
    ]


def test_a_recipe_says_what_belongs_to_one_conversation() -> None:
    rules = {name: weft.Recipe.load(name).session for name in ("omega", "chai", "miniclaw", "weft")}

    assert rules["omega"] == SessionRule(ignore="conversation", idle_minutes=30)
    assert rules["chai"] == SessionRule(ignore="sender")
    assert rules["miniclaw"].id_for("telegram", "77", "42") == "telegram_77"
    assert rules["weft"] == SessionRule()


def test_nobody_waits_less_than_no_time() -> None:
    with pytest.raises(weft.ConfigError, match="below zero"):
        weft.Recipe.load("omega").replace(session=SessionRule(idle_minutes=-1))
