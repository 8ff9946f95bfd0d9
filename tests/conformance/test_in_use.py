"""Lines that a person reaches by a command or a setting: real processes, and vendors on loopback."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import environ, run_weft
from weft.testing import LoopbackVendor

Script = list[str | weft.Reply]
PROVIDERS = ["anthropic", "openai", "openai_responses", "openrouter", "ollama", "gemini"]
ECHO = {
    "tools": [
        {
            "name": name,
            "description": "Says it again.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        }
        for name in ("say", "shout")
    ],
    "allowlist": {"echo": [""]},
    "execution": [
        {
            "tool": name,
            "binary": "echo",
            "subcommand": "",
            "args": [{"param": "text", "kind": "positional"}],
        }
        for name in ("say", "shout")
    ],
}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def write_echo_skill(workspace: Path, front_matter: str = "") -> None:
    head = f"---\nname: echo\ndescription: Says things again.\n{front_matter}---\n"
    write(workspace / "skills" / "echo" / "SKILL.md", f"{head}Use say with a text.\n")
    write(workspace / "skills" / "echo" / "tools.json", json.dumps(ECHO))


def calls(name: str, id_: str = "call_1", **arguments: Any) -> weft.Reply:
    return weft.Reply(
        tool_calls=(weft.ToolCall(id=id_, name=name, arguments=arguments),), stop_reason="tools"
    )


def run(
    home: Path, vendor: LoopbackVendor, *words: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    variables = {
        "OLLAMA_HOST": "127.0.0.1:1",
        "NO_COLOR": "1",
        "HOME": str(home),
        "WEFT_PROVIDER": vendor.vendor.name,
        "WEFT_MODEL": "gpt-4o",
        **vendor.environ,
        **env,
    }
    done = run_weft(environ(home, **variables), *words, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done


def declared(payload: Any) -> str:
    return json.dumps(payload.get("tools", []))


def results(payload: Any) -> list[str]:
    """The texts of the tool results in a request to OpenAI."""
    return [message["content"].strip() for message in payload["messages"] if message["role"] == "tool"]


# --- the tool loop


@pytest.mark.parametrize("provider", PROVIDERS)
def test_C5_C20_a_tool_that_the_model_made_up_is_never_declared(tmp_path: Path, provider: str) -> None:
    script: Script = [calls("fly_to_the_moon"), "I cannot fly.", "Still here."]
    with LoopbackVendor(provider, script) as vendor:
        run(tmp_path, vendor, "chat", stdin="Fly!\nAnd now?\n")

    assert len(vendor.requests) == 3
    for request in vendor.requests:
        assert "fly_to_the_moon" not in declared(request.payload)
        assert "memory_append" in declared(request.payload)
    assert "fly_to_the_moon" in json.dumps(vendor.requests[-1].payload), "what happened is still told"


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_C3_at_the_round_limit_the_final_reply_is_shown(tmp_path: Path, command: str) -> None:
    write_echo_skill(tmp_path / "workspace")
    write(tmp_path / "config.toml", "[tools]\nmax_rounds = 2\n")
    script: Script = [calls("say", f"call_{n}", text="x") for n in range(4)]
    with LoopbackVendor("openai", script) as vendor:
        words = ("ask", "Go") if command == "ask" else ("chat",)
        done = run(tmp_path, vendor, *words, stdin="" if command == "ask" else "Go\n")

    assert "[The limit of 2 rounds of tool calls was reached before there was an answer.]" in done.stdout


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_C3_P38_when_a_tool_ends_the_turn_its_result_is_the_reply(tmp_path: Path, command: str) -> None:
    write_echo_skill(tmp_path / "workspace", "tool-rules:\n  - tool: say\n    exit_loop: true\n")
    with LoopbackVendor("openai", [calls("say", text="that was all")]) as vendor:
        words = ("ask", "Go") if command == "ask" else ("chat",)
        done = run(tmp_path, vendor, *words, stdin="" if command == "ask" else "Go\n")

    assert "that was all" in done.stdout
    assert len(vendor.requests) == 1


# --- rules


def test_P38_P40_P42_rules_of_the_settings_are_told_and_enforced(tmp_path: Path) -> None:
    write_echo_skill(tmp_path / "workspace")
    rules = '[[tools.rules]]\ntool = "say"\nmax_calls = 1\n'
    rules += '[[tools.rules]]\ntool = "shout"\nrequires_prior = "say"\n'
    write(tmp_path / "config.toml", rules)
    script: Script = [
        calls("shout", "call_1", text="a"),
        calls("say", "call_2", text="b"),
        calls("say", "call_3", text="c"),
        calls("shout", "call_4", text="d"),
        "Done.",
    ]
    with LoopbackVendor("openai", script) as vendor:
        run(tmp_path, vendor, "ask", "Go")

    system = vendor.requests[0].payload["messages"][0]["content"]
    assert (
        "# Tool Execution Rules\n\n- Call `say` at most 1 times\n- Call `shout` only after calling" in system
    )
    assert [text.startswith("error: refused by a rule") for text in results(vendor.requests[-1].payload)] == [
        True,
        False,
        True,
        False,
    ]


def test_P38_a_skill_sets_rules_for_its_own_tools_only(tmp_path: Path) -> None:
    front = "tool-rules:\n  - {tool: say, max_calls: 1}\n  - {tool: read_skill, max_calls: 1}\n"
    write_echo_skill(tmp_path / "workspace", front)
    script: Script = [calls("say", "call_1", text="a"), calls("say", "call_2", text="b"), "Done."]
    with LoopbackVendor("openai", script) as vendor:
        done = run(tmp_path, vendor, "ask", "--receipt", "Go")

    system = vendor.requests[0].payload["messages"][0]["content"]
    assert "Call `say` at most 1 times" in system
    assert "Call `read_skill`" not in system
    assert results(vendor.requests[-1].payload)[1].startswith("error: refused by a rule")
    assert "the skill has no tool 'read_skill'" in done.stderr


def test_P38_a_rule_that_is_wrong_ends_the_call_with_2_and_says_how_to_mend_it(tmp_path: Path) -> None:
    write(tmp_path / "config.toml", '[[tools.rules]]\ntool = "say"\nmax_call = 1\n')

    done = run_weft(environ(tmp_path), "ask", "-p", "scripted", "hi")

    assert done.returncode == 2
    assert "did you mean 'max_calls'?" in done.stderr


# --- skills that are read on demand


def test_C14_a_tool_whose_skill_was_not_read_answers_with_the_remedy_where_that_is_set(
    tmp_path: Path,
) -> None:
    write_echo_skill(tmp_path / "workspace")
    write(tmp_path / "config.toml", "[skills]\nenforceRead = true\n")
    script: Script = [
        calls("say", "call_1", text="too early"),
        calls("read_skill", "call_2", skill_name="echo"),
        calls("say", "call_3", text="now it works"),
        "Done.",
        calls("say", "call_4", text="still works"),
        "Done again.",
    ]
    with LoopbackVendor("openai", script) as vendor:
        run(tmp_path, vendor, "chat", stdin="Go\nAgain\n")

    early, read, late, again = results(vendor.requests[-1].payload)
    assert early == 'error: read the skill first: call read_skill with skill_name "echo"'
    assert read == "Use say with a text."
    assert (late, again) == ("now it works", "still works")


def test_C14_without_the_setting_tools_run_at_once(tmp_path: Path) -> None:
    write_echo_skill(tmp_path / "workspace")
    script: Script = [calls("say", text="at once"), "Done."]
    with LoopbackVendor("openai", script) as vendor:
        run(tmp_path, vendor, "ask", "Go")

    assert results(vendor.requests[-1].payload) == ["at once"]


async def test_C20_a_builder_with_a_workspace_offers_the_tools_of_its_skills(tmp_path: Path) -> None:
    write_echo_skill(tmp_path)
    own = weft.ToolDefinition(name="own")

    for recipe, first in (("weft", ["read_skill"]), ("chai", [])):
        builder = weft.ContextBuilder(recipe=recipe).with_workspace(tmp_path)
        alone = await builder.build("hi")
        with_own = await builder.with_tools([own]).build("hi")
        assert [tool.name for tool in alone.tools] == [*first, "say", "shout"]
        assert [tool.name for tool in with_own.tools] == [*first, "own", "say", "shout"]


# --- the recipe's form


@pytest.mark.parametrize("provider", ["openai", "openrouter", "ollama"])
def test_M2_each_layer_is_a_system_message_of_its_own_on_the_wire(tmp_path: Path, provider: str) -> None:
    write(tmp_path / "workspace" / "SOUL.md", "I am Paw.")
    write(tmp_path / "workspace" / "memory" / "MEMORY.md", "- The cat is called Mia.")
    with LoopbackVendor(provider, ["Hello."]) as vendor:
        run(tmp_path, vendor, "ask", "-r", "miniclaw", "Where is Mia?")

    messages = vendor.requests[0].payload["messages"]
    system = [_text(message["content"]) for message in messages if message["role"] == "system"]
    assert [text.partition("\n")[0] for text in system][:3] == [
        "I am Paw.",
        system[1].partition("\n")[0],
        "Relevant memories:",
    ]
    assert system[1].startswith("Current date and time:")
    assert messages[-1]["role"] == "user"


def test_M2_anthropic_gets_separate_system_blocks_and_gemini_one_text(tmp_path: Path) -> None:
    write(tmp_path / "workspace" / "SOUL.md", "I am Paw.")
    with LoopbackVendor("anthropic", ["Hello."]) as vendor:
        run(tmp_path, vendor, "ask", "-r", "miniclaw", "Hi", WEFT_MODEL="claude-sonnet-5")
    blocks = vendor.requests[0].payload["system"]
    with LoopbackVendor("gemini", ["Hello."]) as vendor:
        run(tmp_path, vendor, "ask", "-r", "miniclaw", "Hi", WEFT_MODEL="gemini-3-flash")
    [one] = vendor.requests[0].payload["systemInstruction"]["parts"]

    assert blocks[0]["text"].startswith("I am Paw.")
    assert blocks[1]["text"].startswith("Current date and time:")
    assert one["text"].startswith("I am Paw.")
    assert "\n\nCurrent date and time:" in one["text"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


# --- settings


def test_P34_the_summarization_model_of_the_settings_writes_the_summaries(tmp_path: Path) -> None:
    write(
        tmp_path / "config.toml",
        "[context]\nmax_messages = 6\n[context.compression]\nstrategy = 'summarize'\n"
        "chunk_size = 4\nsummarization_model = 'gpt-4o-mini'\n",
    )
    with LoopbackVendor("openai", ["An answer."] * 30) as vendor:
        talk = "".join(f"message {n}\n" for n in range(8))
        run(tmp_path, vendor, "chat", "-r", "pattern", stdin=talk)

    by_model = [request.payload["model"] for request in vendor.requests]
    assert by_model.count("gpt-4o") == 8
    assert by_model.count("gpt-4o-mini") >= 1
    assert "[Summary of messages 1-" in json.dumps(vendor.requests[-1].payload)


async def test_P34_the_summarization_model_of_a_context_config_is_used(tmp_path: Path) -> None:
    provider = weft.ScriptedProvider(["An answer."] * 30)
    strategy = weft.RecursiveSummarization(chunk_size=4, summarization_model="small")
    config = weft.ContextConfig(compression_strategy=strategy, max_messages_cap=6)
    app = await weft.connect(provider=provider, database=tmp_path / "weft.db", context=config)
    try:
        for number in range(8):
            await app.ask(f"message {number}", session="one")
    finally:
        await app.close()

    assert "small" in {request.model for request in provider.requests}


def test_P32_limits_and_options_of_a_context_config_are_settings(tmp_path: Path) -> None:
    write(
        tmp_path / "config.toml",
        "[context]\ninclude_schemas = true\ninclude_descriptions = false\nactivity_entries = 1\n"
        '[models."gpt-4o"]\nmax_tokens = 9000\nreserved_response_tokens = 1000\n',
    )
    run_weft(environ(tmp_path), "init")
    with LoopbackVendor("openai", ["Hello.", "Hello."]) as vendor:
        small = run(tmp_path, vendor, "ask", "--receipt", "Hi").stderr
        other = run(tmp_path, vendor, "ask", "--receipt", "Hi", WEFT_MODEL="gpt-4.1").stderr

    system = _text(vendor.requests[0].payload["messages"][0]["content"])
    assert "of 8,000 tokens" in small
    assert "of 60,000 tokens" in other
    assert "Schema: {" in system
    assert "The person you talk with" not in system


@pytest.mark.parametrize(("recipe", "instead_of"), [("omega", "OMEGA"), ("pattern", "lasting memory")])
def test_O39_P4_the_base_prompt_has_a_setting(tmp_path: Path, recipe: str, instead_of: str) -> None:
    write(tmp_path / "config.toml", '[prompts]\nsystem = "You are Ada, a lighthouse keeper."\n')
    with LoopbackVendor("openai", ["Hello."]) as vendor:
        run(tmp_path, vendor, "chat", "-r", recipe, stdin="Hi\n")

    system = _text(vendor.requests[0].payload["messages"][0]["content"])
    assert system.startswith("You are Ada, a lighthouse keeper.")
    assert instead_of not in system


def test_O15_O16_a_new_context_takes_the_short_prompt_of_a_recipe() -> None:
    context = weft.Context.new("hi", recipe="omega")

    assert context.system_prompt == (
        "You are OMEGA Ω, a personal AI assistant running on the user's own server. "
        "You are helpful, concise, and action-oriented."
    )
    assert weft.Context.new("hi").system_prompt.startswith("You are Weft, ")
    with pytest.raises(weft.ConfigError, match="There is no recipe 'omga'"):
        weft.Context.new("hi", recipe="omga")


# --- the folders of the other systems


@pytest.mark.parametrize("recipe", ["chai", "miniclaw"])
def test_C8_M20_without_a_workspace_the_folder_of_that_system_is_used_and_the_receipt_says_so(
    tmp_path: Path, recipe: str
) -> None:
    theirs = tmp_path / f".{recipe}" / "workspace"
    write(theirs / "AGENTS.md", "Keep the light burning.")
    own = write(tmp_path / "other" / "AGENTS.md", "Something else.").parent
    with LoopbackVendor("openai", ["Hello."] * 3) as vendor:
        receipt = run(tmp_path, vendor, "ask", "-r", recipe, "--receipt", "Hi").stderr
        named = run(tmp_path, vendor, "ask", "-r", recipe, "-w", str(own), "--receipt", "Hi").stderr
        plain = run(tmp_path, vendor, "ask", "--receipt", "Hi").stderr

    first, second, third = (json.dumps(request.payload) for request in vendor.requests)
    assert "Keep the light burning." in first
    assert f"The workspace is {theirs}, the folder of {recipe} itself." in receipt
    assert "Something else." in second
    assert "Keep the light burning." not in second + third
    assert "the folder of" not in named + plain
