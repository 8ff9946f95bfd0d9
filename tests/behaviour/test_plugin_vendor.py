"""A seventh vendor from a package outside of ours: one file with one object."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import weft
import wire_fuzz as fuzz
from plugged import EXAMPLE, configure
from programs import run_weft
from weft.testing import LoopbackVendor, Refusal
from weft.wire import Vendor, from_wire, repair, to_wire, violations

ANSWER = {"model": "beam-2", "text": "At sea.", "calls": [], "tokens": [40, 6]}
EVENTS: tuple[Any, ...] = ({"text": "At "}, {"text": "sea."}, {"answer": ANSWER})
STREAM = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in EVENTS)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Vendor:
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    lighthouse: Vendor = import_module("weft_harbor.lighthouse").LIGHTHOUSE
    return lighthouse


@pytest.fixture
def server(vendor: Vendor) -> Iterator[LoopbackVendor]:
    busy = Refusal(429, "fog", retry_after_seconds=0)
    with LoopbackVendor(vendor, [busy, STREAM]) as server:
        yield server


def test_every_history_makes_a_request_that_the_vendor_accepts(vendor: Vendor) -> None:
    for _, context, _ in fuzz.cases(seed=3, count=500):
        assert violations(vendor, to_wire(vendor, context)) == []
        once, _ = repair(vendor, context.to_api_messages()[1])
        assert repair(vendor, once) == (once, [])


def test_a_vendor_brings_its_rules_its_answers_and_its_default_model(vendor: Vendor) -> None:
    payload = to_wire(vendor, weft.Context.new("Where?"))

    assert payload["model"] == "beam-2"
    assert violations(vendor, payload | {"turns": [{"who": "lamp"}]}) == [
        "the first turn is not the keeper's",
        "the last turn is not the keeper's",
    ]
    usage = weft.Usage(input_tokens=40, output_tokens=6)
    assert from_wire(vendor, ANSWER) == weft.Reply(text="At sea.", usage=usage, model="beam-2")


def test_a_vendor_answers_over_http_with_the_key_of_the_environment(
    server: LoopbackVendor, installed: dict[str, str]
) -> None:
    configure(installed, 'provider = "lighthouse"\n')

    done = run_weft(installed | server.environ, "ask", "--json", "Where is the boat?")

    reply = json.loads(done.stdout)
    assert (reply["text"], reply["model"]) == ("At sea.", "beam-2"), done.stderr
    assert reply["receipt"]["usage"]["output_tokens"] == 6
    assert [request.headers["x-lamp-key"] for request in server.requests] == ["loopback-key"] * 2
    assert {request.path for request in server.requests} == {"/v1/beam-2/shine"}


def test_the_key_of_a_vendor_can_be_in_the_settings(
    server: LoopbackVendor, installed: dict[str, str]
) -> None:
    configure(installed, 'provider = "lighthouse"\n[keys]\nlighthouse = "env:LAMP"\n')
    environ = installed | {"LIGHTHOUSE_BASE_URL": server.url, "LAMP": "from-settings"}

    done = run_weft(environ, "ask", "-m", "beam-9", "Where?")

    assert done.stdout.strip() == "At sea.", done.stderr
    assert server.requests[-1].headers["x-lamp-key"] == "from-settings"
    assert server.requests[-1].path == "/v1/beam-9/shine"


def test_the_request_of_a_vendor_is_shown_without_a_key(installed: dict[str, str]) -> None:
    done = run_weft(installed, "context", "-p", "lighthouse", "Where?")
    receipt = json.loads(
        run_weft(installed, "context", "-p", "lighthouse", "--json", "--explain", "?").stdout
    )

    payload = json.loads(done.stdout)
    assert payload["model"] == "beam-2"
    assert payload["turns"][-1]["text"].endswith("Where?")
    assert 8_192 < receipt["receipt"]["limit"] <= 16_000 / 1.25, "the window of its own row"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("", "lighthouse needs a key: set LIGHTHOUSE_API_KEY in the environment, or `keys.lighthouse` in"),
        ('[keys]\nlighthous = "k"', ".keys has an unknown key 'lighthous': did you mean 'lighthouse'?"),
    ],
)
def test_a_missing_or_misspelled_key_is_one_sentence(
    installed: dict[str, str], settings: str, sentence: str
) -> None:
    configure(installed, f'provider = "lighthouse"\n{settings}\n')

    done = run_weft(installed, "ask", "Where?")

    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_function_may_make_the_vendor_from_its_settings(
    server: LoopbackVendor, installed: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "site" / "beacon.py").write_text(
        "from dataclasses import replace\n"
        "from weft_harbor.lighthouse import LIGHTHOUSE\n"
        "def make(settings):\n"
        "    return replace(LIGHTHOUSE, name='beacon', address=settings['address'], key_variable='')\n",
        "utf-8",
    )
    info = tmp_path / "site" / "beacon-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beacon\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text("[weft.providers]\nbeacon = beacon:make\n", "utf-8")
    configure(installed, f'provider = "beacon"\n[plugins.beacon]\naddress = "{server.url}"\n')

    done = run_weft(installed, "ask", "Where?")

    assert done.stdout.strip() == "At sea.", done.stderr
