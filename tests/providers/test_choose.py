"""Which provider answers when nobody said so."""

import socket
from collections.abc import Iterator

import pytest

import weft
from weft.compose import choose_provider
from weft.config import Config
from weft.providers.choose import Choice, Surroundings, choose, ollama_runs
from weft.providers.keys import KeySettings
from weft.providers.vendors import VENDORS

ALL = ("anthropic", "openai", "openrouter", "gemini", "ollama", "local", "scripted")


def around(
    *, keys: dict[str, str] | None = None, ollama: bool = False, lacks: str | None = None
) -> Surroundings:
    return Surroundings(names=ALL, keys=keys or {}, ollama_runs=lambda: ollama, embedded_lacks=lambda: lacks)


def test_the_one_that_was_asked_for_answers_whatever_else_is_there() -> None:
    choice = choose("scripted", around(keys={"openai": "OPENAI_API_KEY"}, ollama=True))

    assert choice == Choice(provider="scripted", why="it was asked for")


def test_where_one_was_asked_for_the_machine_is_not_even_looked_at() -> None:
    def never() -> bool:
        raise AssertionError

    quiet = Surroundings(names=ALL, keys={}, ollama_runs=never, embedded_lacks=lambda: None)

    assert choose("local", quiet).provider == "local"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loca", "There is no provider 'loca': did you mean 'local'?"),
        ("zzz", "There is no provider 'zzz': known are"),
    ],
)
def test_one_that_does_not_exist_is_a_wrong_setting(name: str, said: str) -> None:
    with pytest.raises(weft.ConfigError) as caught:
        choose(name, around())

    assert str(caught.value).startswith(said)


def test_a_key_chooses_its_vendor_and_the_reason_says_where_it_is() -> None:
    choice = choose(None, around(keys={"gemini": "`keys.gemini`"}, ollama=True))

    assert choice == Choice(provider="gemini", why="`keys.gemini` is set")


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openrouter", "gemini"])
def test_a_key_in_the_environment_chooses_its_vendor(vendor: str) -> None:
    variable = VENDORS[vendor].key

    assert choose_provider(Config(), {variable: "k"}) == Choice(provider=vendor, why=f"{variable} is set")


def test_a_key_in_the_settings_chooses_its_vendor() -> None:
    config = Config(keys=KeySettings(openai="sk-hidden"))

    assert choose_provider(config, {}) == Choice(provider="openai", why="`keys.openai` is set")


def test_of_several_keys_the_first_in_the_order_decides() -> None:
    environ = {"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

    assert choose_provider(Config(), environ).provider == "anthropic"


def test_an_empty_key_is_no_key() -> None:
    assert (
        choose_provider(Config(provider=None), {"OPENAI_API_KEY": "", "OLLAMA_HOST": "127.0.0.1:9"}).provider
        == "local"
    )


def test_a_key_comes_before_ollama_and_ollama_before_the_embedded_model() -> None:
    assert choose(None, around(ollama=True)) == Choice(provider="ollama", why="Ollama is running")
    assert choose(None, around()).provider == "local"
    assert choose("", around()).provider == "local"


def test_if_nothing_can_answer_the_error_says_what_is_missing() -> None:
    with pytest.raises(
        weft.ProviderError, match=r"^No model can be reached, and it has no weights: `install`\.$"
    ):
        choose(None, around(lacks="it has no weights: `install`"))


# --- is Ollama there


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


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
