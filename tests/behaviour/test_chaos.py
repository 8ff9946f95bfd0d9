"""`weft serve` is killed at random while twenty people write: nothing is lost, nothing is answered twice."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from fake_telegram import TOKEN, FakeTelegram
from programs import environ

PEOPLE, MESSAGES = 20, 3
ROUNDS = int(os.environ.get("WEFT_CHAOS_ROUNDS", "4"))


def configure(home: Path, fake: FakeTelegram) -> None:
    replies = ", ".join(['"echo {message}"'] * 400)
    people = ", ".join(f'"{person}"' for person in range(PEOPLE))
    (home / "config.toml").write_text(
        f'provider = "scripted"\n[scripted]\nreplies = [{replies}]\ndelay_seconds = 0.02\n'
        f'[telegram]\napi_url = "{fake.url}"\nallowed = [{people}]\npoll_seconds = 2\n'
        "[learn]\nenabled = false\n[http]\nenabled = false\n",
        "utf-8",
    )


def start(home: Path) -> "subprocess.Popen[bytes]":
    command, variables = [sys.executable, "-m", "weft", "serve"], environ(home, TELEGRAM_BOT_TOKEN=TOKEN)
    return subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL)


def test_every_message_is_answered_once_or_reported_whenever_the_program_is_killed(tmp_path: Path) -> None:
    chance = random.Random(20261116)
    with FakeTelegram() as fake:
        configure(tmp_path, fake)
        written = [(person, f"m{person}-{n}") for n in range(MESSAGES) for person in range(PEOPLE)]
        for person, text in written:
            fake.write(text, sender=person, chat=person)
        for _ in range(ROUNDS):
            child = start(tmp_path)
            already = len(fake.sent)
            fake.wait(min(already + chance.randint(1, 12), len(written)))
            child.kill()
            child.wait()
        child = start(tmp_path)
        fake.wait_for(lambda _: not missing(fake, written))
        child.kill()
        child.wait()

        answers = Counter(
            (one["chat_id"], one["text"]) for one in fake.sent if one["text"].startswith("echo")
        )

    assert [answer for answer, count in answers.items() if count > 1] == []
    assert missing(fake, written) == []


def missing(fake: FakeTelegram, written: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """What was neither answered nor reported, in the place where it was written.

    A report of an answer that may not have arrived does not say which: it covers one.
    """
    told: dict[int, list[str]] = {}
    for one in list(fake.sent):
        told.setdefault(int(one["chat_id"]), []).append(one["text"])
    lost: dict[int, list[str]] = {}
    for person, text in written:
        texts = told.get(person, [])
        if f"echo {text}" not in texts and not any(f"“{text}”" in other for other in texts):
            lost.setdefault(person, []).append(text)
    doubts = {person: sum("while I was sending" in one for one in texts) for person, texts in told.items()}
    return [(person, text) for person, texts in lost.items() for text in texts[doubts.get(person, 0) :]]
