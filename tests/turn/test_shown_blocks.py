"""A model that rewrites a block changes the version that it was shown in the turn's context."""

import weft
from weft.tools.builtin import memory_tools
from weft.turn.run import Turn, run_turn


async def test_what_others_write_while_the_model_thinks_survives_its_rewrite() -> None:
    async with await weft.open(":memory:") as store:
        await store.memory.create_block("iris", "notes", pinned=True)
        await store.memory.create_block("iris", "aside")
        await store.memory.append_to_block("iris", "notes", "milk\nbread\n")

        async def write_meanwhile() -> str:
            await store.memory.append_to_block("iris", "notes", "tea\n")
            return "done"

        def calls(*tools: tuple[str, dict[str, str]]) -> weft.Reply:
            made = [
                weft.ToolCall(id=f"c{n}", name=name, arguments=values)
                for n, (name, values) in enumerate(tools)
            ]
            return weft.Reply(text="", tool_calls=tuple(made), stop_reason="tools")

        script: list[str | weft.Reply] = [
            calls(("write_meanwhile", {})),
            calls(
                ("memory_rewrite", {"label": "notes", "text": "rye\nmilk\n"}),
                ("memory_rewrite", {"label": "aside", "text": "x"}),
            ),
            "Done.",
        ]
        provider = weft.ScriptedProvider(script)
        turn = Turn(
            builder=weft.ContextBuilder(recipe="weft").with_store(store).for_agent("iris"),
            provider=provider,
            tools=weft.ToolRegistry([*memory_tools(store.memory, store.recall), write_meanwhile]),
            caller=weft.Caller(agent_id="iris", channel="app", sender_id="me"),
        )
        async for _ in run_turn(turn, "Tidy up."):
            pass

        assert await store.memory.get_rendered_content("iris", "notes") == "rye\nmilk\ntea\n"
        _, rewritten, refused = (m.content for m in provider.requests[-1].steps if m.role == "tool")
        assert rewritten.endswith("others changed it too. It reads:\nrye\nmilk\ntea\n")
        assert "you were not shown the block 'aside'" in refused
        assert turn.caller.shown_blocks == {}
