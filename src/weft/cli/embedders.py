"""The embedders that can be chosen: which are there, and how to get the others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from weft.config import Config, SearchSettings
from weft.errors import ConfigError, did_you_mean
from weft.plugins import plugin_names
from weft.providers.access import address_of, key_place
from weft.recall import minilm, wordllama
from weft.recall.http_embed import list_embedding_models
from weft.wire.vendors import VENDORS

OURS = ("none", "wordllama", "minilm", "ollama", "openai")
_BEHIND_ADDRESS = ("ollama", "openai")
_OPENAI_MODEL = "text-embedding-3-small"
_ABOUT = {
    "wordllama": "word vectors, 19 MB, offline: very fast, knows single words",
    "minilm": "a small model of sentences, 23 MB, offline: better, dozens of texts a second",
    "none": "no embedder: searches go by words alone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An embedder that could be chosen. One that is not ready says what to do for it."""

    name: str
    about: str
    is_ready: bool = True


async def list_offers(config: Config, environ: Mapping[str, str] = os.environ) -> list[Offer]:
    """Return what can be chosen here. Ollama is asked which models it has."""
    return [
        _packaged("wordllama", wordllama.INSTALL, is_installed=find_spec("wordllama") is not None),
        _packaged("minilm", minilm.INSTALL, is_installed=minilm.is_installed()),
        await _ollama(config, environ),
        _openai(config, environ),
        *(Offer(name=name, about="a plugin that is installed") for name in plugin_names("embedders")),
        Offer(name="none", about=_ABOUT["none"]),
    ]


def _packaged(name: str, install: str, *, is_installed: bool) -> Offer:
    about = _ABOUT[name] if is_installed else f"{_ABOUT[name]}; `{install}` installs it"
    return Offer(name=name, about=about, is_ready=is_installed)


async def _ollama(config: Config, environ: Mapping[str, str]) -> Offer:
    url = _address("ollama", None, config, environ)
    models = await list_embedding_models(url)
    if models:
        return Offer(name="ollama", about=f"at {url}, with {', '.join(models[:5])}")
    problem = f"no answer at {url}: start it" if models is None else f"at {url}, without an embedding model"
    return Offer(name="ollama", about=f"{problem}; `ollama pull nomic-embed-text` gets one", is_ready=False)


def _openai(config: Config, environ: Mapping[str, str], url: str | None = None) -> Offer:
    vendor, url = VENDORS["openai"], _address("openai", url, config, environ)
    is_own = url != vendor.address
    place = key_place(vendor, config.keys, environ)
    if is_own or place:
        return Offer(name="openai", about=f"at {url}" + ("" if is_own else f", with the key of {place}"))
    about = "set OPENAI_API_KEY, or give `--url` and `--model` of any server that speaks OpenAI's protocol"
    return Offer(name="openai", about=about, is_ready=False)


async def choose_embedder(
    name: str, model: str | None, url: str | None, config: Config, environ: Mapping[str, str] = os.environ
) -> SearchSettings:
    """Return the settings of an embedder, with a model where it needs one.

    Raises:
        ConfigError: there is no such embedder, it takes no model or address, or needs one.
    """
    plugins = plugin_names("embedders")
    if name not in (*OURS, *plugins):
        raise ConfigError(f"There is no embedder {name!r}: {did_you_mean(name, (*OURS, *plugins))}")
    if name not in _BEHIND_ADDRESS:
        if model or url:
            raise ConfigError(f"`--model` and `--url` are for ollama and openai: leave them out for {name}.")
        return SearchSettings(embedder=None if name == "none" else name)
    if url is not None:
        url = _checked(url)
    if name == "openai" and not (offer := _openai(config, environ, url)).is_ready:
        raise ConfigError(f"The embedder openai needs a key or an address: {offer.about}.")
    return SearchSettings(
        embedder=name, model=model or await _usual_model(name, url, config, environ), url=url
    )


async def _usual_model(name: str, url: str | None, config: Config, environ: Mapping[str, str]) -> str:
    address = _address(name, url, config, environ)
    if name == "openai":
        if address != VENDORS["openai"].address:
            raise ConfigError(f"Name the embedding model of {address} with `--model`.")
        return _OPENAI_MODEL
    models = await list_embedding_models(address)
    if models is None:
        raise ConfigError(f"Ollama does not answer at {address}: start it, or give its address with `--url`.")
    if not models:
        raise ConfigError(
            f"Ollama at {address} has no embedding model: `ollama pull nomic-embed-text` gets one, or name "
            "one with `--model`."
        )
    return models[0]


def _address(name: str, url: str | None, config: Config, environ: Mapping[str, str]) -> str:
    """Return where a server is: as it is said, as it is set, or where it usually is."""
    known = config.search.url if config.search.embedder == name else None
    return url or known or address_of(VENDORS[name], environ)


def _checked(url: str) -> str:
    """Return an address without a slash at its end. Raises ConfigError if it is none."""
    try:
        parts = urlsplit(url.strip())
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigError(f"{url!r} is no address: `--url` begins with http:// or https://.")
    return url.strip().rstrip("/")
