"""Keys come from the environment or from where the settings say, and are never shown."""

from pathlib import Path

import pytest

import weft
from weft.config import load_config
from weft.providers.access import Keys, key_of, key_place
from weft.wire import VENDORS

ANTHROPIC, OLLAMA = VENDORS["anthropic"], VENDORS["ollama"]


def test_the_environment_comes_before_the_settings() -> None:
    keys = {"anthropic": "from the file"}

    assert key_of(ANTHROPIC, keys, {"ANTHROPIC_API_KEY": "from outside"}) == "from outside"
    assert key_of(ANTHROPIC, keys, {}) == "from the file"
    assert key_place(ANTHROPIC, keys, {"ANTHROPIC_API_KEY": "k"}) == "ANTHROPIC_API_KEY"
    assert key_place(ANTHROPIC, keys, {}) == "`keys.anthropic`"


def test_a_vendor_that_needs_no_key_has_none() -> None:
    assert (key_of(OLLAMA, {}, {}), key_place(OLLAMA, {}, {})) == ("", "")


def test_both_dialects_of_openai_have_one_key() -> None:
    assert key_of(VENDORS["openai_responses"], {"openai": "k"}, {}) == "k"


def test_which_setting_is_wrong_is_said_by_its_name() -> None:
    settings: list[Keys] = [{}, {"openai": "file:/no/such/file"}]
    for keys in settings:
        with pytest.raises(weft.ConfigError, match=r"`keys\.openai`"):
            key_of(VENDORS["openai_responses"], keys, {})


def test_space_around_a_variable_does_not_count() -> None:
    assert key_of(ANTHROPIC, {}, {"ANTHROPIC_API_KEY": "sk-1\r\n"}) == "sk-1"
    assert key_place(ANTHROPIC, {}, {"ANTHROPIC_API_KEY": " "}) == ""


def test_a_key_can_be_in_a_file_a_command_or_another_variable(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n", "utf-8")

    for setting, key in (
        (f"file:{tmp_path}/key", "from a file"),
        ("command:printf 'from a command\\nmore'", "from a command"),
        ("env:MY_KEY", "from a variable"),
    ):
        assert key_of(ANTHROPIC, {"anthropic": setting}, {"MY_KEY": "from a variable"}) == key


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("", "set ANTHROPIC_API_KEY in the environment, or `keys.anthropic` in the config file"),
        ("env:NOT_SET", "anthropic needs a key"),
        ("file:/no/such/file", "The file of `keys.anthropic` cannot be read"),
        ("file:/dev/null", "leads to an empty key"),
        ("file:", "The file of `keys.anthropic` cannot be read"),
        ("command:", "The command of `keys.anthropic` failed"),
        ("sk-caf\u00e9", "The key of anthropic holds a character that no key has"),
        ("sk-two\nlines", "The key of anthropic holds a character that no key has"),
        ("command:false", "The command of `keys.anthropic` failed: try it in a terminal"),
        ("command:no-such-program", "The command of `keys.anthropic` failed"),
        ("command:'", "The command of `keys.anthropic` failed"),
    ],
)
def test_a_key_that_cannot_be_had_is_one_sentence(setting: str, words: str) -> None:
    with pytest.raises(weft.ConfigError, match=words):
        key_of(ANTHROPIC, {"anthropic": setting}, {})


def test_settings_do_not_show_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[keys]\nanthropic = "sk-ant-hidden"\n', "utf-8")

    config = load_config(file)

    assert config.keys["anthropic"] == "sk-ant-hidden"
    assert "hidden" not in repr(config)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("antropic", "did you mean 'anthropic'?"),
        ("ollama", "known are anthropic, gemini, openai, openrouter."),
        ("openai_responses", "known are anthropic, gemini, openai, openrouter."),
    ],
)
def test_a_key_of_nobody_gets_a_suggestion(tmp_path: Path, name: str, hint: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[keys]\n{name} = "sk-hidden"\n', "utf-8")

    with pytest.raises(weft.ConfigError) as caught:
        load_config(file)

    assert str(caught.value) == f"{file}.keys has an unknown key {name!r}: {hint}"


def test_a_key_is_text(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[keys]\nanthropic = 7\n", "utf-8")

    with pytest.raises(weft.ConfigError, match=r"\.keys\.anthropic must be text, not a whole number"):
        load_config(file)
