"""An agent with a tool and a rule: it may look at the tide twice in a turn, and answers in a sentence.

It asks the first model that Weft can reach, such as the vendor whose key is in the environment:

    python examples/agent_with_a_tool.py "When should we leave on Sunday?"
"""

import asyncio
import sys

import weft

TIDES = {"saturday": "five", "sunday": "six"}


def high_tide(day: str) -> str:
    """Tell when the tide is high on a day of the week.

    Args:
        day: The day, such as sunday.
    """
    return TIDES.get(day.lower(), "nobody knows")


async def main(question: str) -> None:
    rules = [weft.ToolRule.max_calls("high_tide", 2)]
    app = await weft.connect(tools=[high_tide], rules=rules, database=":memory:")
    async for event in app.stream(question):
        match event:
            case weft.ToolStarted(call=call):
                print(f"[{call.name} {dict(call.arguments)}]")
            case weft.TextDelta(text=text):
                print(text, end="", flush=True)
            case weft.Done(reply=reply):
                print(f"\n[{reply.receipt.total_tokens} tokens in {len(reply.receipt.kept)} items]")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "When should we leave on Sunday?"))
