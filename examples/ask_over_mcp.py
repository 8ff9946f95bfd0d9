"""Another program that uses your memory over MCP: it starts `weft mcp`, writes a fact, and finds it again.

python examples/ask_over_mcp.py
"""

import asyncio
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command="weft", args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = sorted(tool.name for tool in (await session.list_tools()).tools)
        print(f"{len(tools)} tools: {', '.join(tools)}")
        await session.call_tool("create_block", {"label": "packing"})
        await session.call_tool("append_block", {"label": "packing", "text": "fins, mask"})
        await session.call_tool("append_block", {"label": "packing", "text": "wetsuit"})
        block = await session.call_tool("read_block", {"label": "packing"})
        print(block.content[0].text)
        hits = await session.call_tool("search", {"query": "wetsuit"})
        print(hits.content[0].text)


if __name__ == "__main__":
    asyncio.run(main())
