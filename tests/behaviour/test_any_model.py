"""Any model: windows, own addresses and model names, as a person meets them at the command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import environ, run_weft, start_server
from weft.config import Config
from weft.models import make_provider
from weft.providers.http import HttpProvider
from weft.testing import LoopbackVendor, Refusal
from weft.wire import violations

LISTED = {"data": [{"id": "qwen3-32b", "max_model_len": 40_960}, {"id": "tiny", "max_model_len": 2_048}]}
SHOWN = {"model_info": {"general.architecture": "llama", "llama.context_length": 16_384}}


def run(home: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    around = {"OLLAMA_HOST": "127.0.0.1:1", "NO_COLOR": "1", **(env or {})}
    return run_weft(environ(home, **around), *words)


def receipt(home: Path, *words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = run(home, "context", "--explain", "--json", *words, env=env)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["receipt"]
    return answer


def settings(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text, "utf-8")


@pytest.mark.parametrize("path", ["/v1/models", "/api/v0/models", "/props"])
def test_the_window_of_an_unknown_model_comes_from_its_server(tmp_path: Path, path: str) -> None:
    pages: dict[str, Any] = {
        "/v1/models": {"data": [{"id": "qwen3-32b", "max_model_len": 40_960}]},
        "/api/v0/models": {"data": [{"id": "qwen3-32b", "max_context_length": 40_960}]},
        "/props": {"default_generation_settings": {"n_ctx": 40_960}},
    }
    listing = pages["/v1/models"] if path == "/v1/models" else {"data": [{"id": "qwen3-32b"}]}
    with LoopbackVendor("openai", pages={"/v1/models": listing, path: pages[path]}) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        built = receipt(tmp_path, "-m", "qwen3-32b", "hi", env=env)

    assert (built["window"], built["address"]) == (40_960, f"{server.url}/v1")
    assert not any("assumed" in note for note in built["warnings"])


def test_a_server_is_asked_for_a_window_once_and_the_answer_is_remembered(tmp_path: Path) -> None:
    pages = {"/v1/models": {"data": [{"id": "qwen3-32b", "max_model_len": 40_960}]}}
    with LoopbackVendor("openai", ["One."], pages=pages) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        run(tmp_path, "ask", "-m", "qwen3-32b", "hi", env=env)
        server.pages.clear()
        again = receipt(tmp_path, "-m", "qwen3-32b", "hi", env=env)

    assert again["window"] == 40_960


def test_a_window_that_nobody_names_is_an_assumption_and_called_one(tmp_path: Path) -> None:
    with LoopbackVendor("openai") as server:
        built = receipt(tmp_path, "-m", "qwen3-32b", "hi", env={"OPENAI_BASE_URL": f"{server.url}/v1"})

    assert built["window"] == 32_768
    assert "The window of 'qwen3-32b' is not known: 32,768 tokens are assumed." in " ".join(built["warnings"])


def test_a_window_is_set_in_the_settings_or_on_the_command_line(tmp_path: Path) -> None:
    settings(tmp_path, '[models."qwen3-32b"]\nwindow = 100000\n[context]\nmax_tokens = 90000\n')
    with LoopbackVendor("openai", pages={"/v1/models": LISTED}) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        by_table = receipt(tmp_path, "-m", "qwen3-32b", "hi", env=env)
        by_option = receipt(tmp_path, "-m", "qwen3-32b", "--window", "9000", "hi", env=env)

    assert by_table["window"] == 100_000
    assert by_table["limit"] > 60_000  # what the settings ask for, less the room for the answer
    assert by_option["window"] == 9_000
    assert run(tmp_path, "ask", "--window", "12", "hi").returncode == 2


def test_a_server_that_refuses_for_length_corrects_the_window_and_is_asked_again(tmp_path: Path) -> None:
    too_long = Refusal(400, "This model's maximum context length is 4096 tokens. Shorten the prompt.")
    long = "word " * 6_000
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "SOUL.md").write_text("Be calm.", "utf-8")
    with LoopbackVendor("openai", ["one", too_long, "Shorter, then."]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        code = (
            "import asyncio, weft\n"
            "async def main():\n"
            "    app = await weft.connect(database=':memory:', provider='openai')\n"
            f"    await app.ask({long!r}, session='s')\n"
            "    reply = await app.ask('And now?', session='s')\n"
            "    print(reply.text, reply.receipt.window, reply.receipt.limit)\n"
            "    print(*reply.receipt.warnings)\n"
            "    await app.close()\n"
            "asyncio.run(main())\n"
        )
        around = {**os.environ, "WEFT_HOME": str(tmp_path), "WEFT_MODEL": "qwen3-32b", **env}
        done = subprocess.run(
            [sys.executable, "-c", code], env=around, capture_output=True, text=True, check=False, timeout=60
        )

    assert done.stdout.startswith("Shorter, then. 4096"), done.stderr
    assert "The server reads 4,096 tokens and not 32,768" in done.stdout
    sizes = [len(str(request.payload)) for request in server.requests]
    assert sizes[2] < 20_000 < sizes[1]


def test_ollama_gets_one_number_for_every_request_of_a_model(tmp_path: Path) -> None:
    pages = {"/api/tags": {"models": [{"name": "gemma3:4b"}]}, "/api/show": SHOWN}
    replies = ["Hello.", "A long answer. " * 200, "Done."]
    with LoopbackVendor("ollama", replies, pages=pages) as server:
        env = {"OLLAMA_HOST": server.url}
        for words in ("hi", "a much longer question " * 400, "and now?"):
            done = run(tmp_path, "ask", words, env=env)
            assert done.returncode == 0, done.stderr

    payloads = [request.payload for request in server.requests]
    assert [payload["options"]["num_ctx"] for payload in payloads] == [16_384] * 3
    assert {payload["model"] for payload in payloads} == {"gemma3:4b"}  # the only one that is installed
    assert violations("ollama", payloads[0]) == []


def test_ollama_names_the_installed_models_when_the_wanted_one_is_not_there(tmp_path: Path) -> None:
    pages = {"/api/tags": {"models": [{"name": "gemma3:4b"}, {"name": "qwen3:8b"}]}}
    gone = Refusal(404, "model 'llama9' not found")
    with LoopbackVendor("ollama", [gone], pages=pages) as server:
        env = {"OLLAMA_HOST": server.url}
        unnamed = run(tmp_path, "ask", "hi", env=env)
        wrong = run(tmp_path, "ask", "-m", "llama9", "hi", env=env)

    assert unnamed.stderr == "weft: ollama has several models: name one with -m (gemma3:4b, qwen3:8b).\n"
    assert wrong.returncode == 1
    assert wrong.stderr.endswith("model 'llama9' not found. It has gemma3:4b, qwen3:8b.\n")


def test_a_provider_of_ones_own_needs_a_table_and_no_key(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["From the shelf.", "Again."], pages={"/v1/models": LISTED}) as server:
        settings(
            tmp_path,
            f'[providers.lmstudio]\nkind = "openai"\nurl = "{server.url}/v1"\n'
            '[providers.gone]\nkind = "openai"\nurl = "http://127.0.0.1:1/v1"\n',
        )
        done = run(tmp_path, "ask", "-m", "lmstudio:qwen3-32b", "--receipt", "hi")
        listing = run(tmp_path, "models")
        as_json = run(tmp_path, "models", "--json")

    assert (done.returncode, done.stdout) == (0, "From the shelf.\n"), done.stderr
    assert f"asked lmstudio (qwen3-32b) at {server.url}/v1: it was asked for" in done.stderr
    (request,) = server.requests
    assert (request.payload["model"], "authorization" in request.headers) == ("qwen3-32b", False)
    assert listing.returncode == 0
    assert "lmstudio:qwen3-32b  reads 40,960 tokens" in listing.stdout
    assert "gone at http://127.0.0.1:1/v1 cannot be used: it cannot be reached" in listing.stdout
    rows = {row["provider"]: row for row in json.loads(as_json.stdout)}
    assert rows["lmstudio"]["models"][1] == {"id": "tiny", "window": 2_048}
    assert rows["gone"]["problem"]


def test_a_model_whose_name_has_a_colon_belongs_to_the_provider_that_answers(tmp_path: Path) -> None:
    with LoopbackVendor(
        "ollama", ["Hello."], pages={"/api/show": SHOWN, "/api/tags": {"models": []}}
    ) as server:
        run(tmp_path, "ask", "-p", "ollama", "-m", "gemma3:4b", "hi", env={"OLLAMA_HOST": server.url})

    assert server.requests[0].payload["model"] == "gemma3:4b"


def test_only_an_address_in_the_environment_is_used_and_the_only_model_taken(tmp_path: Path) -> None:
    with LoopbackVendor("openai", ["Hello."], pages={"/v1/models": {"data": [{"id": "alone"}]}}) as server:
        done = run(tmp_path, "ask", "--receipt", "hi", env={"OPENAI_BASE_URL": f"{server.url}/v1"})

    assert done.returncode == 0, done.stderr
    assert f"asked openai (alone) at {server.url}/v1: OPENAI_BASE_URL is set" in done.stderr


def test_a_server_and_status_name_the_model_that_is_really_asked(tmp_path: Path) -> None:
    with LoopbackVendor("openai", pages={"/v1/models": {"data": [{"id": "alone"}]}}) as vendor:
        env = {"OPENAI_BASE_URL": f"{vendor.url}/v1", "OLLAMA_HOST": "127.0.0.1:1"}
        status = run_weft(environ(tmp_path, **env), "chat", stdin="/status\n").stdout
        server = start_server(environ(tmp_path, **env), "--port", "0")
        assert server.stderr is not None
        said = next(line for line in server.stderr if "answers" in line)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)

    assert f"openai answers with `alone` at {vendor.url}/v1: OPENAI_BASE_URL is set" in status
    assert said == f"weft: openai answers (alone at {vendor.url}/v1): OPENAI_BASE_URL is set\n"


async def test_a_server_that_was_not_running_is_asked_again_for_its_model() -> None:
    provider = make_provider("openai", Config(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert isinstance(provider, HttpProvider)
    before = await provider.describe()
    with LoopbackVendor("openai", pages={"/v1/models": {"data": [{"id": "alone"}]}}) as vendor:
        provider._url = f"{vendor.url}/v1"
        after = await provider.describe()
    await provider.close()

    assert (before.id == "alone", after.id) == (False, "alone")


def test_an_address_without_its_usual_end_is_diagnosed(tmp_path: Path) -> None:
    with LoopbackVendor("openai", [Refusal(404, "not found")]) as server:
        done = run(tmp_path, "ask", "-m", "x", "hi", env={"OPENAI_BASE_URL": server.url})

    assert done.stderr.endswith(f"Its address may have to end with /v1: {server.url}/v1.\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[providers.openai]\nurl = "http://x"\n', "cannot have a provider named 'openai'"),
        ('[providers.mine]\nkind = "opnai"\nurl = "http://x"\n', "did you mean 'openai'"),
        ('[providers.mine]\nurl = "ftp://x"\n', "url must begin with http:// or https://"),
        ("[providers.mine]\n", "lacks the key 'url'"),
        ('[models."x"]\nwindow = 3\n', "a model reads at least 1024 tokens"),
    ],
)
def test_a_wrong_table_is_one_sentence_with_exit_code_2(tmp_path: Path, text: str, sentence: str) -> None:
    settings(tmp_path, text)
    done = run(tmp_path, "ask", "hi")

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert sentence in done.stderr


def test_doctor_really_asks(tmp_path: Path) -> None:
    with LoopbackVendor("openai", pages={"/v1/models": LISTED}) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        well = run(tmp_path, "doctor", env=env).stdout
        wrong = run(tmp_path, "doctor", env=env | {"WEFT_MODEL": "qwen3-23b"}).stdout
    gone = run(tmp_path, "doctor", env={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k"})

    assert f"openai at {server.url}/v1 answers in " in well
    assert "ms with 2 models: OPENAI_API_KEY is set" in well
    assert "has no model 'qwen3-23b'" in wrong
    assert "did you mean 'qwen3-32b'" in wrong
    assert "openai at http://127.0.0.1:1/v1 cannot be used: it cannot be reached" in gone.stdout


def test_doctor_and_models_say_what_is_wrong_with_a_server_that_answers(tmp_path: Path) -> None:
    pages = {"/v1/models": LISTED}
    closed = {"/v1/models": Refusal(401, "no such key")}
    with LoopbackVendor("openai", pages=pages) as server, LoopbackVendor("openai", pages=closed) as keyed:
        without_end = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        address = run(tmp_path, "doctor", env=without_end).stdout
        refused = {"OPENAI_BASE_URL": f"{keyed.url}/v1", "OPENAI_API_KEY": "wrong"}
        key, listing = (run(tmp_path, command, env=refused).stdout for command in ("doctor", "models"))

    assert f"Its address may have to end with /v1: {server.url}/v1" in address
    problem = f"openai at {keyed.url}/v1 cannot be used: openai did not accept the key: check OPENAI_API_KEY"
    assert problem in key
    assert problem in listing
    assert "does not answer" not in key + listing


async def test_a_program_asks_the_model_that_its_context_was_built_for() -> None:
    model = weft.ModelInfo(id="claude-haiku-4-5", provider="anthropic", max_tokens=200_000)
    context = await weft.ContextBuilder().with_model_info(model).build("hi")

    assert weft.wire.to_wire("anthropic", context)["model"] == "claude-haiku-4-5"
    assert context.model == "claude-haiku-4-5"
    assert context.receipt is not None
    assert context.receipt.model == "claude-haiku-4-5"


def test_settings_hold_for_the_only_model_of_a_server_though_nobody_named_it(tmp_path: Path) -> None:
    tags = {"models": [{"name": "qwen3-32b", "model": "qwen3-32b"}]}
    settings(tmp_path, '[models."qwen3-32b"]\nwindow = 36000\n')
    with LoopbackVendor("ollama", ["Hi."] * 3, pages={"/api/tags": tags}) as server:
        for words in (["-p", "ollama"], ["-m", "ollama:qwen3-32b"], ["-p", "ollama", "--window", "60000"]):
            assert run(tmp_path, "ask", *words, "hi", env=server.environ).returncode == 0

    assert [request.payload["options"]["num_ctx"] for request in server.requests] == [36000, 36000, 60000]


def test_the_window_of_a_model_that_nobody_named_is_remembered_too(tmp_path: Path) -> None:
    tags = {"models": [{"name": "qwen3-32b", "model": "qwen3-32b"}]}
    with LoopbackVendor("ollama", ["Hi."] * 2, pages={"/api/tags": tags, "/api/show": SHOWN}) as server:
        run(tmp_path, "ask", "-p", "ollama", "hi", env=server.environ)
        del server.pages["/api/show"]
        run(tmp_path, "ask", "-p", "ollama", "hi", env=server.environ)

    assert [request.payload["options"]["num_ctx"] for request in server.requests] == [16_384, 16_384]


@pytest.mark.parametrize("words", [["-p", "openai"], ["-m", "openai:tiny"]])
def test_a_window_that_a_refusal_corrected_is_known_after_a_restart(tmp_path: Path, words: list[str]) -> None:
    too_long = Refusal(400, "This model's maximum context length is 8192 tokens.")
    with LoopbackVendor(
        "openai", [too_long, "Hi."], pages={"/v1/models": {"data": [{"id": "tiny"}]}}
    ) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        assert run(tmp_path, "ask", *words, "hi", env=env).returncode == 0
        again = receipt(tmp_path, *words, "hi", env=env)

    assert (again["model"], again["window"]) == ("tiny", 8192)


def test_a_look_at_the_context_names_the_model_the_window_and_the_address_that_would_be_asked(
    tmp_path: Path,
) -> None:
    with LoopbackVendor("openai", ["Hi."], pages={"/v1/models": {"data": [{"id": "zed"}]}}) as server:
        settings(
            tmp_path,
            f'[providers.lmstudio]\nurl = "{server.url}/v1"\n[models."zed"]\nwindow = 50000\n',
        )
        looks = [receipt(tmp_path, *words, "hi") for words in (["-p", "lmstudio"], ["-m", "lmstudio:zed"])]
        asked = run(tmp_path, "ask", "-p", "lmstudio", "--receipt", "hi").stderr

    for look in looks:
        assert (look["model"], look["window"], look["address"]) == ("zed", 50_000, f"{server.url}/v1")
        assert look["provider_reason"] == "it was asked for"
    assert f"asked lmstudio (zed) at {server.url}/v1: it was asked for" in asked


def test_a_look_at_the_context_of_a_vendor_needs_no_key(tmp_path: Path) -> None:
    look = receipt(tmp_path, "-p", "anthropic", "hi")

    assert (look["provider"], look["model"]) == ("anthropic", "claude-sonnet-5")
