"""The providers of the settings: which there are, how each is made, and what a model's name stands for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from weft.config import Config
from weft.errors import ConfigError
from weft.plugins import load_plugin, make_plugin
from weft.providers.access import address_of, key_of, key_place, own_vendor
from weft.providers.base import Provider
from weft.providers.choose import NAMES, Choice, check_name, choose, ollama_runs
from weft.providers.claude_code import ClaudeCode
from weft.providers.local import LocalProvider, unavailable
from weft.providers.scripted import ScriptedProvider
from weft.types.limits import ModelInfo
from weft.wire.vendor import Vendor
from weft.wire.vendors import VENDORS, model_info


def choose_model(config: Config, environ: Mapping[str, str] = os.environ) -> tuple[Config, Choice]:
    """Choose who answers. Returns the settings with the chosen model in them, and the reason.

    Raises:
        ConfigError: there is no such provider.
        ProviderError: none can be reached.
    """
    config = with_named_provider(config)
    return config, choose(config.provider, config.keys, config.local, environ, own=config.providers)


def with_named_provider(config: Config) -> Config:
    """Return the settings with `PROVIDER:MODEL` taken apart, if the first part is the name of a provider."""
    before, colon, after = (config.model or "").partition(":")
    if not colon or not is_provider(before, config):
        return config
    return replace(config, provider=before, model=after or None)


def reachable(config: Config, environ: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """List the providers that are set up, each with the reason to think so."""
    rows = [
        (vendor.name, place or f"{vendor.address_variable} is set")
        for vendor in VENDORS.values()
        if vendor.name != "openai_responses"
        and ((place := key_place(vendor, config.keys, environ)) or environ.get(vendor.address_variable))
    ]
    rows += [(name, f"`providers.{name}` is set") for name in config.providers]
    if "ollama" not in dict(rows) and ollama_runs(environ):
        rows.append(("ollama", "Ollama is running"))
    if unavailable(config.local) is None:
        rows.append(("local", "a small stand-in that needs no network"))
    return rows


def stand_in_note(info: ModelInfo) -> str:
    """Say what the embedded model is, and the two best ways to a real one on this machine."""
    if info.provider != "local":
        return ""
    pull = "`ollama pull llama3.2`" if shutil.which("ollama") else "install Ollama and `ollama pull llama3.2`"
    return (
        f"{info.id} is a small stand-in: it needs no network, knows little, and calls no tools. For a real "
        f"model {pull}, or set ANTHROPIC_API_KEY or OPENAI_API_KEY."
    )


def is_provider(name: str, config: Config) -> bool:
    return name in NAMES or name in config.providers


def make_provider(
    name: str, config: Config, environ: Mapping[str, str] = os.environ, *, needs_key: bool = True
) -> Provider:
    """Make the provider of a name, with its settings. One that is only described may lack its key.

    Raises:
        ConfigError: it has no key, or no such model.
    """
    if name == "scripted":
        info = ModelInfo(id=config.model or "scripted", provider="scripted", max_tokens=config.window)
        delay = config.scripted.delay_seconds
        return ScriptedProvider(config.scripted.replies, info=info, delay_seconds=delay, remember=False)
    if name == "claude_code":
        return _claude_code(config)
    if name == "local":
        return _local(config)
    vendor = find_vendor(name, config)
    if vendor is None:
        settings = dict(config.plugins.get(name, {})) | ({"model": config.model} if config.model else {})
        part: Provider | Vendor = make_plugin("providers", name, {name: settings})
        if not isinstance(part, Vendor):
            return part
        vendor = part
    from weft.providers.http import HttpProvider  # noqa: PLC0415 - most runs on one machine need no HTTP

    own = config.providers.get(name)
    keys = config.keys if own is None else {name: own.key}
    has_key = needs_key or key_place(vendor, keys, environ)

    def info_of(model: str) -> ModelInfo:
        return model_info(vendor, model, window=config.window_of(name, model))

    return HttpProvider(
        vendor,
        info=info_of(config.model or vendor.default_model),
        url=address_of(vendor, environ),
        key=key_of(vendor, keys, environ) if has_key else "",
        settings=config.requests,
        info_of=None if config.model or (own and own.model) else info_of,
    )


def find_vendor(name: str | None, config: Config) -> Vendor | None:
    """Find the vendor of a provider's name: one of ours, of the settings, or of a plugin's entry point.

    Raises:
        ConfigError: no provider has this name.
    """
    if name is None or name in NAMES:
        return VENDORS.get(name or "")
    if name in config.providers:
        return own_vendor(name, config.providers[name])
    check_name(name, config.providers)
    plugin = load_plugin("providers", name)
    return plugin if isinstance(plugin, Vendor) else None


def model_named(name: str, now: ModelInfo, config: Config) -> Provider:
    """Make the provider of `PROVIDER`, `PROVIDER:MODEL`, or of a model of the one that answers now.

    Raises:
        ConfigError: it has no key, or no such model.
    """
    before, colon, after = name.partition(":")
    if is_provider(name, config):
        return make_provider(name, replace(config, model=None))
    if colon and is_provider(before, config):
        return make_provider(before, replace(config, model=after or None))
    if close := get_close_matches(before, (*NAMES, *config.providers), n=1):
        raise ConfigError(
            f"There is no provider {before!r}: did you mean {close[0]!r}? For a model of that name write "
            f"`{now.provider}:{name}`."
        )
    return make_provider(now.provider, replace(config, model=name))


def _local(config: Config) -> Provider:
    provider = LocalProvider(config.local)
    if config.model not in (None, provider.info.id):
        raise ConfigError(
            f"The local provider has the model {provider.info.id!r}, not {config.model!r}: "
            "leave the model out, or set `local.model_path` to another file."
        )
    return provider


def _claude_code(config: Config) -> Provider:
    """Make Claude Code. It works in the workspace, unless the settings say where."""
    folder = config.claude_code.working_dir or str(config.workspace or config.paths.workspace)
    settings = replace(config.claude_code, working_dir=folder if Path(folder).expanduser().is_dir() else None)
    # Its own names for models, such as `sonnet`, stand for some Claude too.
    is_id = config.model is not None and config.model.startswith("claude-")
    info = model_info(VENDORS["anthropic"], config.model if is_id else "claude-")
    info = replace(info, id=config.model or "", provider="claude_code", calls_tools=False)
    return ClaudeCode(settings, info)
