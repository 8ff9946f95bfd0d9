"""Which provider answers when nobody said so."""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import weft
from weft.providers.access import Keys
from weft.providers.choose import Choice, choose, ollama_runs
from weft.providers.local import LocalSettings
from weft.wire import VENDORS

NO_MODEL = LocalSettings(model_path="no/such/file")


def decide(
    explicit: str | None = None,
    *,
    keys: Keys | None = None,
    environ: Mapping[str, str] | None = None,
    ollama: int = 9,
    local: LocalSettings | None = None,
) -> Choice:
    """Choose on a machine on which only these things are there. Nothing listens at port 9."""
    around = {"OLLAMA_HOST": f"127.0.0.1:{ollama}", **(environ or {})}
    return choose(explicit, keys or {}, local or LocalSettings(), around)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def weights(tmp_path: Path) -> LocalSettings:
    (tmp_path / "tiny.gguf").touch()
    return LocalSettings(model_path=str(tmp_path / "tiny.gguf"))


def test_the_one_that_was_asked_for_answers_whatever_else_is_there(listening: int) -> None:
    choice = decide("scripted", keys={"openai": "k"}, environ={"GEMINI_API_KEY": "k"}, ollama=listening)

    assert choice == Choice(provider="scripted", why="it was asked for")


def test_where_one_was_asked_for_the_machine_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> socket.socket:
        raise AssertionError

    monkeypatch.setattr(socket, "create_connection", never)

    assert decide("local", local=NO_MODEL).provider == "local"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loca", "There is no provider 'loca': did you mean 'local'?"),
        ("zzz", "There is no provider 'zzz': known are anthropic, claude_code, gemini, local, ollama,"),
    ],
)
def test_one_that_does_not_exist_is_a_wrong_setting(name: str, said: str) -> None:
    with pytest.raises(weft.ConfigError) as caught:
        decide(name)

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openrouter", "gemini"])
def test_a_key_in_the_environment_chooses_its_vendor(vendor: str, listening: int) -> None:
    variable = VENDORS[vendor].key_variable

    choice = decide(environ={variable: "k"}, ollama=listening)

    assert choice == Choice(provider=vendor, why=f"{variable} is set")


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openrouter", "gemini"])
def test_a_key_in_the_settings_chooses_its_vendor_and_the_reason_says_where_it_is(
    vendor: str, listening: int
) -> None:
    choice = decide(keys={vendor: "sk-hidden"}, ollama=listening)

    assert choice == Choice(provider=vendor, why=f"`keys.{vendor}` is set")


def test_of_several_keys_the_first_in_the_order_decides() -> None:
    environ = {"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

    assert decide(environ=environ).provider == "anthropic"


def test_an_empty_key_is_no_key(weights: LocalSettings) -> None:
    assert decide(environ={"OPENAI_API_KEY": ""}, local=weights).provider == "local"


def test_a_key_comes_before_ollama_and_ollama_before_the_embedded_model(
    listening: int, weights: LocalSettings
) -> None:
    assert decide(ollama=listening, local=weights) == Choice(provider="ollama", why="Ollama is running")
    assert decide(local=weights).provider == "local"
    assert decide("", local=weights).provider == "local"


def test_if_nothing_can_answer_the_error_says_what_is_missing() -> None:
    with pytest.raises(weft.ProviderError) as caught:
        decide(local=NO_MODEL)

    reason = "there is no model file at 'no/such/file': set `local.model_path` to one"
    sentence = str(caught.value)
    assert sentence.startswith("No model can be reached. Set a key (ANTHROPIC_API_KEY, ")
    assert sentence.endswith(f"start Ollama, or use the embedded model: {reason}.")


# --- is Ollama there


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:{}",
        "http://127.0.0.1:{}",
        "http://127.0.0.1:{}/",
        ":{}",
        "localhost:{}",
        "http://127.0.0.1:{}/api",
    ],
)
def test_a_listening_ollama_is_found_however_its_address_is_written(address: str, listening: int) -> None:
    assert ollama_runs({"OLLAMA_HOST": address.format(listening)}) is True


@pytest.mark.parametrize("address", ["[::1]:5", "http://[::1]:5", "http://[::1]:5/"])
def test_an_address_of_the_newer_kind_is_understood(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def refuse(address: tuple[str, int], timeout: float) -> socket.socket:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)

    assert ollama_runs({"OLLAMA_HOST": address}) is False
    assert asked == [("::1", 5)]


def test_where_nothing_listens_there_is_no_ollama(closed_port: int) -> None:
    assert ollama_runs({"OLLAMA_HOST": f"127.0.0.1:{closed_port}"}) is False


@pytest.mark.parametrize("address", ["127.0.0.1:words", "127.0.0.1:-1", "x" * 300 + ":1", "[::1", ":::"])
def test_an_address_that_makes_no_sense_is_no_ollama_and_no_error(address: str) -> None:
    assert ollama_runs({"OLLAMA_HOST": address}) is False
