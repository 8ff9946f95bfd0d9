"""`weft token`, `weft mcp --person` and `weft memory share`: each program speaks for one person."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from programs import environ, run_weft, start_server


@pytest.fixture
def server(home: Path) -> Iterator[str]:
    (home / "config.toml").write_text('provider = "scripted"\n')
    child = start_server(environ(home), "--port", "0")
    try:
        assert child.stderr is not None
        line = next(line for line in child.stderr if "HTTP is open" in line)
        yield line.split()[-1]
    finally:
        child.terminate()
        child.communicate(timeout=60)


def get(url: str, path: str, token: str = "") -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.get(f"{url}{path}", headers=headers)


def test_a_token_speaks_for_one_person_from_the_moment_it_is_made_until_it_is_revoked(
    server: str, home: Path
) -> None:
    variables = environ(home)
    assert get(server, "/api/blocks").status_code == 200, "on this machine, whoever asks is the owner"
    run_weft(variables, "memory", "edit", "secret", "the owner's own")

    token = run_weft(variables, "token", "add", "ada").stdout.strip()
    mine = run_weft(variables, "token", "add", "owner", "--name", "phone").stdout.strip()

    assert get(server, "/api/blocks").status_code == 401
    assert "the owner's own" in get(server, "/api/blocks", mine).text
    blocks = get(server, "/api/blocks", token)
    assert (blocks.status_code, "the owner's own" in blocks.text) == (200, False)
    assert get(server, "/api/blocks?sender=owner", token).status_code == 403
    listed = json.loads(run_weft(variables, "token", "list", "--json").stdout)
    assert [(one["name"], one["person"]) for one in listed] == [("ada", "ada"), ("phone", "owner")]
    assert token not in str(listed)
    assert token.encode() not in (home / "weft.db").read_bytes() + (home / "weft.db-wal").read_bytes()
    run_weft(variables, "people", "rename", "ada", "lovelace")
    assert [one["person"] for one in json.loads(run_weft(variables, "token", "list", "--json").stdout)] == [
        "lovelace",
        "owner",
    ]
    assert get(server, "/api/blocks?sender=lovelace", token).status_code == 200
    assert run_weft(variables, "token", "revoke", "ada").returncode == 0
    assert get(server, "/api/blocks", token).status_code == 401
    again = run_weft(variables, "token", "add", "owner", "--name", "phone")
    assert (again.returncode, "There is a token 'phone' already" in again.stderr) == (2, True)
    wrong = run_weft(variables, "token", "revoke", "phon")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "weft: There is no token 'phon': did you mean 'phone'?\n",
    )


async def test_an_mcp_server_speaks_for_the_person_who_is_named_at_its_start(home: Path) -> None:
    variables = environ(home)
    run_weft(variables, "memory", "edit", "secret", "the owner's own")
    args = ["-m", "weft", "mcp", "--person", "ada"]
    params = StdioServerParameters(command=sys.executable, args=args, env=variables)
    async with Client(params) as client:
        await client.call_tool("append_block", {"label": "notes", "text": "Ada was here"})
        await client.call_tool("remember_fact", {"key": "city", "value": "Faro"})
        shown = await client.call_tool("list_blocks", {})

    assert "secret" not in str(shown.content)
    assert run_weft(variables, "memory", "show", "notes", "--agent", "weft/ada").stdout == "Ada was here\n"
    assert run_weft(variables, "memory", "facts", "mcp:ada").stdout == "city: Faro\n"
    assert "city" not in run_weft(variables, "memory", "facts", "terminal:owner").stdout


def test_a_block_is_shared_with_a_person_by_their_name_and_the_list_shows_with_whom(home: Path) -> None:
    variables = environ(home)
    run_weft(variables, "memory", "edit", "plan", "Sail in May.")
    run_weft(variables, "people", "link", "telegram:7", "ada")

    by_name = run_weft(variables, "memory", "share", "plan", "ada", "--permission", "ReadWrite")
    by_sender = run_weft(variables, "memory", "share", "plan", "telegram:7", "--permission", "Append")
    unknown = run_weft(variables, "memory", "share", "plan", "helper")

    assert by_name.stdout == "plan is shared with ada: ReadWrite.\n"
    assert by_sender.stdout == "plan is shared with ada: Append.\n"
    assert unknown.stdout.splitlines() == [
        "plan is shared with helper: ReadOnly.",
        "No person is called that, so an agent of that name may use it.",
    ]
    [plan] = json.loads(run_weft(variables, "memory", "list", "--json").stdout)
    assert plan["shared_with"] == {"ada": "Append", "helper": "ReadOnly"}
    assert "shared with helper (ReadOnly), ada (Append)" in run_weft(variables, "memory", "list").stdout
    [theirs] = json.loads(run_weft(variables, "memory", "list", "--json", "--agent", "weft/ada").stdout)
    assert (theirs["label"], theirs["shared_from"]) == ("plan", "weft")
    assert (
        run_weft(variables, "memory", "unshare", "plan", "ada").stdout
        == "plan is no longer shared with ada.\n"
    )
    assert run_weft(variables, "memory", "list", "--json", "--agent", "weft/ada").stdout == "[]\n"


def test_a_revoked_token_is_refused_even_if_there_is_no_other(server: str, home: Path) -> None:
    variables = environ(home)
    token = run_weft(variables, "token", "add", "ada").stdout.strip()
    done = run_weft(variables, "token", "revoke", "ada")

    assert get(server, "/api/blocks", token).status_code == 401
    assert get(server, "/api/blocks", "any-text-of-an-app").status_code == 200
    assert "It was the last one: on this machine, whoever asks the server is you again." in done.stdout


def test_a_name_that_is_used_again_is_another_person(server: str, home: Path) -> None:
    variables = environ(home)
    first = run_weft(variables, "token", "add", "alice", "--name", "old").stdout.strip()
    headers = {"authorization": f"Bearer {first}"}
    httpx.post(f"{server}/api/blocks", json={"label": "diary"}, headers=headers)
    run_weft(variables, "people", "rename", "alice", "carol")
    second = run_weft(variables, "token", "add", "alice", "--name", "new").stdout.strip()

    assert "diary" in get(server, "/api/blocks", first).text
    assert "diary" not in get(server, "/api/blocks", second).text
    listed = json.loads(run_weft(variables, "token", "list", "--json").stdout)
    assert {one["name"]: one["person"] for one in listed} == {"old": "carol", "new": "alice"}


def test_a_share_that_was_made_before_the_person_was_known_can_be_ended(home: Path) -> None:
    variables = environ(home)
    run_weft(variables, "memory", "edit", "garden", "roses")
    run_weft(variables, "memory", "share", "garden", "bob", "--permission", "ReadWrite")
    run_weft(variables, "token", "add", "bob")
    run_weft(variables, "memory", "share", "garden", "bob")
    run_weft(variables, "memory", "unshare", "garden", "bob")

    [garden] = json.loads(run_weft(variables, "memory", "list", "--json").stdout)
    assert garden["shared_with"] == {}
