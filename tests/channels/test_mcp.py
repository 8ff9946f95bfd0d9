"""The memory of an agent as tools for other programs, asked by the SDK's own client."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import weft
from talking import ME
from weft.channels.bind import check_place, is_loopback
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.mcp import make_server
from weft.channels.mcp_http import serve
from weft.config import Config

TOOLS = [
    *("ask", "search", "list_blocks", "read_block", "append_block", "replace_in_block", "write_block"),
    *("create_block", "edit_block"),
    *("remember_fact", "list_facts", "insert_note", "search_notes", "build_context"),
]
PERSON = "terminal:owner"


def weft_config() -> Config:
    return Config(recipe="weft")


class Guest:
    """A program that uses the memory of the agent `weft`."""

    def __init__(self, client: Client, store: Any) -> None:
        self.client, self.store = client, store

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers. A refusal is an AssertionError with the sentence."""
        result = await self.client.call_tool(tool, arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        assert not result.is_error, text
        found = result.structured_content
        return found["result"] if set(found) == {"result"} else found

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        return result.content[0].text  # type: ignore[union-attr]


@asynccontextmanager
async def serving(path: Any = ":memory:", script: Any = ()) -> AsyncIterator[Guest]:
    async with await weft.open(path) as store:
        app = await weft.connect(weft_config(), provider=weft.ScriptedProvider(script), store=store)
        async with Client(make_server(app, store, ME)) as client:
            yield Guest(client, store)
        await app.close()


async def test_every_tool_is_listed_with_what_it_does_and_whether_it_changes_anything() -> None:
    async with serving() as ask:
        listed = (await ask.client.list_tools()).tools

    assert [tool.name for tool in listed] == TOOLS
    assert all(tool.description and tool.output_schema for tool in listed)
    reading = [tool.name for tool in listed if tool.annotations and tool.annotations.read_only_hint]
    assert reading == ["search", "list_blocks", "read_block", "list_facts", "search_notes", "build_context"]


async def test_a_block_can_be_made_read_changed_and_found_and_keeps_its_history() -> None:
    async with serving() as ask:
        assert (
            await ask("write_block", label="boat", text="The boat is Marlin.") == "The block 'boat' was made."
        )
        await ask("append_block", label="boat", text="It is blue.")
        await ask("replace_in_block", label="boat", old="blue", new="red")

        assert (await ask("read_block", label="boat"))["text"] == "The boat is Marlin.\nIt is red."
        (block,) = (await ask("list_blocks"))["blocks"]
        assert (block["label"], block["permission"], block["characters"]) == ("boat", "ReadWrite", 30)
        (hit,) = (await ask("search", query="marlin"))["hits"]
        assert (hit["source"], hit["text"]) == ("block", "The boat is Marlin.\nIt is red.")
        versions = await ask.store.memory.block_history("weft", "boat")
        assert [version.author for version in versions] == ["owner (MCP)"] * 4
        assert await ask.store.memory.undo_block("weft", "boat")
        assert (await ask("read_block", label="boat"))["text"] == "The boat is Marlin.\nIt is blue."


async def test_a_block_that_is_made_by_appending_stands_in_lines_and_is_shown_to_the_model() -> None:
    async with serving() as ask:
        await ask("append_block", label="diary", text="Sailed.")
        await ask("append_block", label="diary", text="Rested.")

        assert (await ask("read_block", label="diary"))["text"] == "Sailed.\nRested."
        assert (await ask("list_blocks"))["blocks"][0]["pinned"]
        assert "Rested." in (await ask("build_context", message="hi"))["text"]


async def test_permissions_hold_and_a_refusal_is_a_sentence() -> None:
    async with serving() as ask:
        memory = ask.store.memory
        await memory.create_block("weft", "law", permission=weft.Permission.READ_ONLY)
        await memory.update_block_text("weft", "law", "Be kind.", is_system=True)
        await memory.create_block("weft", "diary", permission=weft.Permission.APPEND)

        assert (await ask("read_block", label="law"))["text"] == "Be kind."
        assert "'law' has the permission ReadOnly and cannot be written" in await ask.refused(
            "append_block", label="law", text="!"
        )
        assert "law" in await ask.refused("write_block", label="law", text="Be rude.")
        assert "law" in await ask.refused("replace_in_block", label="law", old="kind", new="rude")
        await ask("append_block", label="diary", text="Sailed.")
        assert "diary" in await ask.refused("write_block", label="diary", text="")
        assert (await ask("read_block", label="law"))["text"] == "Be kind."


async def test_a_wrong_call_is_refused_with_the_reason() -> None:
    async with serving() as ask:
        await ask("write_block", label="boat", text="Marlin")

        assert "no block 'gone' here: `list_blocks` lists them." in await ask.refused(
            "read_block", label="gone"
        )
        assert "label of one line" in await ask.refused("append_block", label="a\nb", text="x")
        assert "'x' is not in the block 'boat'" in await ask.refused(
            "replace_in_block", label="boat", old="x", new="y"
        )
        assert "at most 5000 characters" in await ask.refused("write_block", label="boat", text="x" * 6000)
        assert "needs a label" in await ask.refused("write_block", label=" ", text="x")
        assert "empty" in await ask.refused("insert_note", text=" ")
        assert "reserved" in await ask.refused("remember_fact", key="role", value="admin")
        assert "message is empty" in await ask.refused("build_context", message=" ")
        assert await ask.refused("search") == "search was called wrongly: 'query' is missing."
        wrong = await ask.refused("search", query="boat", limit="many")
        assert wrong.startswith("search was called wrongly: 'limit': ")
        assert "\n" not in wrong


async def test_text_that_others_write_between_reading_and_writing_stays_even_over_a_restart(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "weft.db") as ask:
        await ask("write_block", label="list", text="milk\n")
        block = await ask("read_block", label="list")
        await ask.store.memory.append_to_block("weft", "list", "bread\n")
    async with serving(tmp_path / "weft.db") as ask:
        await ask("write_block", label="list", text=f"tea\n{block['text']}", base=block["version"])

        assert (await ask("read_block", label="list"))["text"] == "tea\nmilk\nbread\n"
        assert "has no version '77'" in await ask.refused("write_block", label="list", text="x", base="77")
        await ask("write_block", label="list", text="rum\n")
        assert (await ask("read_block", label="list"))["text"] == "rum\n"
        history = await ask.store.memory.block_history("weft", "list")
        assert [change.kind for change in history] == ["edit", "edit", "edit", "edit", "overwrite"]


async def test_an_ask_begins_a_session_or_continues_the_one_it_names() -> None:
    async with serving(script=["r1", "r2", "r3"]) as ask:
        first = await ask("ask", text="one")
        again = await ask("ask", text="two", session=first["session"])
        other = await ask("ask", text="three")

        assert [answer["reply"] for answer in (first, again, other)] == ["r1", "r2", "r3"]
        assert again["session"] == first["session"] != other["session"]
        log = await ask.store.messages.all(first["session"])
        assert [message.content for message in log] == ["one", "r1", "two", "r2"]
        assert (await ask.store.turns.get(other["turn"])).total_tokens > 0


async def test_a_search_gives_at_most_fifty_hits() -> None:
    async with serving() as ask:
        for number in range(55):
            await ask("insert_note", text=f"Marlin number {number}.")

        for tool in ("search", "search_notes"):
            counts = [len((await ask(tool, query="marlin", limit=limit))["hits"]) for limit in (1000, 3, -1)]
            assert counts == [50, 3, 1]


async def test_only_shared_blocks_of_other_agents_can_be_read() -> None:
    async with serving() as ask:
        memory = ask.store.memory
        for label in ("open", "secret"):
            await memory.create_block("rose", label)
            await memory.update_block_text("rose", label, f"The {label} text.")
        await memory.share_block("rose", "open", "weft", weft.Permission.READ_ONLY)

        assert (await ask("read_block", label="open", shared_from="rose"))["text"] == "The open text."
        assert "no block 'secret'" in await ask.refused("read_block", label="secret", shared_from="rose")
        assert [block["label"] for block in (await ask("list_blocks"))["blocks"]] == ["open"]
        assert "secret" not in str(await ask("search", query="text"))


async def test_notes_and_facts_last_and_a_context_shows_them() -> None:
    async with serving() as ask:
        note = await ask("insert_note", text="The tanks hold 12 litres.")
        await ask("remember_fact", key="home", value="Lisbon")
        await ask("write_block", label="boat", text="Marlin")

        (hit,) = (await ask("search_notes", query="tanks", limit=1000))["hits"]
        assert (hit["id"], hit["text"]) == (note, "The tanks hold 12 litres.")
        assert (await ask("list_facts"))["facts"] == {"home": "Lisbon"}
        built = await ask("build_context", message="Where do I live?")
        assert "- home: Lisbon" in built["text"]
        assert built["text"].endswith("Where do I live?")
        assert built["recipe"] == "weft"
        assert 0 < built["tokens"] <= built["limit"]
        assert built["by_layer"]["facts"] > 0


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104 - nothing listens there
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_only_this_machine_is_served_without_a_token(host: str, here: bool) -> None:
    assert is_loopback(host) == here
    check_place(host, "a token")
    if here:
        check_place(host, "")
    else:
        with pytest.raises(weft.ConfigError, match="set WEFT_TOKEN"):
            check_place(host, "")


async def test_serving_refuses_before_anything_listens() -> None:
    async with await weft.open(":memory:") as store:
        app = await weft.connect(weft_config(), provider=weft.ScriptedProvider(), store=store)
        server = make_server(app, store, ME)

        everywhere = HttpChannelSettings(host="0.0.0.0", port=0)  # noqa: S104 - it is refused
        with pytest.raises(weft.ConfigError, match="set WEFT_TOKEN"):
            await serve(server, everywhere, ready=pytest.fail)
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(weft.ChannelError, match=r"address already in use.*give another --port"),
        ):
            await serve(server, HttpChannelSettings(port=taken.getsockname()[1]), ready=pytest.fail)
