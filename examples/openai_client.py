"""Memory for a program that uses the `openai` package: it asks `weft serve` instead of the vendor.

Start `weft serve`, then tell it something and ask for it in another run:

    python examples/openai_client.py "Remember that my boat is called Marlin."
    python examples/openai_client.py "What is my boat called?"
"""

import os
import sys

from openai import OpenAI

SERVER = os.environ.get("WEFT_SERVER", "http://127.0.0.1:8713")
TOKEN = os.environ.get("WEFT_TOKEN", "none is needed on this machine")


def main(text: str) -> None:
    client = OpenAI(base_url=f"{SERVER}/v1", api_key=TOKEN, max_retries=0)
    stream = client.chat.completions.create(
        model="weft",
        user="ada",  # whose memory it is
        messages=[{"role": "user", "content": text}],
        stream=True,
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            print(chunk.choices[0].delta.content, end="", flush=True)
        elif "weft" in (chunk.model_extra or {}):  # what Weft itself has to say, such as what it remembered
            print(f"\n[{chunk.model_extra['weft'].get('notice', '')}]", end="")
    print()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
