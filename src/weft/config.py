"""Settings: one TOML file and the environment make one frozen `Config`.

Nothing below this module reads settings: they are passed down as values.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from platformdirs import user_config_path, user_data_path

from weft.channels.http_settings import HttpChannelSettings
from weft.channels.telegram_settings import TelegramSettings
from weft.errors import ConfigError, did_you_mean
from weft.gateway.background import LearnSettings, TurnStoreSettings
from weft.gateway.settings import GatewaySettings
from weft.gateway.stream_settings import StreamSettings, refuse_same_names
from weft.providers.access import HttpSettings, Keys, ProviderSettings, check_key_names, check_providers
from weft.providers.choose import NAMES as PROVIDER_NAMES
from weft.providers.claude_code import ClaudeCodeSettings
from weft.providers.local import LocalSettings
from weft.providers.model_settings import ModelSettings, check_cache_prices
from weft.store.rules import TaskLimits
from weft.tools.files import FileToolSettings
from weft.tools.mcp import McpSettings
from weft.tools.process import ExecutionSettings
from weft.turn.act import ToolLimits
from weft.turn.authorize import ActsFreely
from weft.turn.classify import RouteSettings
from weft.types.codec import from_dict
from weft.types.limits import (
    MIN_WINDOW,
    CachePrices,
    CompressionStrategy,
    ContextConfig,
    ModelContextLimits,
    Prices,
    RecursiveSummarization,
    Truncate,
)
from weft.types.recipe import Recipe, SkillsMode
from weft.types.rules import ToolRule

_FROM_ENVIRONMENT = {
    "WEFT_RECIPE": "recipe",
    "WEFT_PROVIDER": "provider",
    "WEFT_MODEL": "model",
    "WEFT_WORKSPACE": "workspace",
}
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
OptionalTools = Literal["files", "fetch"]
_RESERVE = "reserved_response_tokens"
_LIMITS = ("max_tokens", "memory_tokens", "history_tokens", _RESERVE)
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Where things are: the XDG folders, or everything below `WEFT_HOME`."""

    config_dir: Path
    data_dir: Path

    @property
    def config_file(self) -> Path:
        return self.config_dir / "config.toml"

    @property
    def workspace(self) -> Path:
        return self.data_dir / "workspace"

    @property
    def database(self) -> Path:
        return self.data_dir / "weft.db"

    @property
    def skills(self) -> Path:
        return self.config_dir / "skills"


def find_paths(environ: Mapping[str, str] = os.environ) -> Paths:
    home = environ.get("WEFT_HOME")
    if home:
        return Paths(config_dir=Path(home).expanduser(), data_dir=Path(home).expanduser())
    config, data = environ.get("XDG_CONFIG_HOME"), environ.get("XDG_DATA_HOME")
    return Paths(
        config_dir=Path(config) / "weft" if config else user_config_path("weft"),
        data_dir=Path(data) / "weft" if data else user_data_path("weft"),
    )


def local_zone() -> str:
    """Return the name of this machine's time zone, such as Europe/Lisbon; UTC if it has none."""
    place = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2].removeprefix("posix/")
    names = (os.environ.get("TZ", "").strip(":"), place)
    return next((name for name in names if _is_zone(name)), "UTC")


def _is_zone(name: str) -> bool:
    try:
        return bool(name and ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """How a history that is too long is shortened, in place of the recipe's rule."""

    strategy: Literal["truncate", "summarize"] | None = None
    keep_recent: int = 100
    chunk_size: int = 20
    summarization_model: str = ""

    def chosen(self) -> CompressionStrategy | None:
        if self.strategy is None:
            return None
        if self.strategy == "truncate":
            return Truncate(keep_recent=self.keep_recent)
        return RecursiveSummarization(
            chunk_size=self.chunk_size, summarization_model=self.summarization_model
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Limits set over the recipe's. None leaves the recipe's value."""

    max_tokens: int | None = None
    memory_tokens: int | None = None
    history_tokens: int | None = None
    reserved_response_tokens: int | None = None
    max_messages: int | None = None
    include_descriptions: bool | None = None
    include_schemas: bool | None = None
    activity_entries: int | None = None
    compression: CompressionSettings = CompressionSettings()
    max_attachment_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """Texts of the owner's own. `system` stands in place of a recipe's own words, before workspace files."""

    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """Further folders of skills, how skills are shown, which are disabled, and whether scripts may run.

    With `enforce_read` a skill's tools answer only once the model has read the skill with `read_skill`.
    """

    directory: str | None = None
    extra_dirs: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    context_mode: SkillsMode | None = None
    allow_scripts: bool = False
    enforce_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Limits of tools, optional ones that are enabled, plugins, and rules. None leaves the recipe's value."""

    max_rounds: int | None = None
    seconds: float = 60.0
    max_chars: int = 20_000
    max_stored_chars: int = 1_000_000
    plugins: tuple[str, ...] = ()
    enabled: tuple[OptionalTools, ...] = ()
    files: FileToolSettings = FileToolSettings()
    rules: tuple[Mapping[str, Any], ...] = ()
    acts_freely: ActsFreely = ActsFreely()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedSettings:
    """What the scripted provider answers, one reply for each request, and after how long."""

    replies: tuple[str, ...] = ("This reply was scripted: no model was asked.",)
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How searches and recall look: by words alone, or with an embedder by meaning too.

    The embedders `ollama` and `openai` need a model; `url` is where the server is, if not at its usual place.
    """

    embedder: str | None = None
    model: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What `weft serve` logs, in which form, and whether texts of people and models may be in it."""

    level: LogLevel = "info"
    format: LogFormat = "text"
    content: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting, with its default."""

    recipe: str = "weft"
    provider: str | None = None
    model: str | None = None
    window: int | None = None
    workspace: str | None = None
    time_zone: str = field(default_factory=local_zone)
    context: ContextSettings = ContextSettings()
    prompts: PromptSettings = PromptSettings()
    search: SearchSettings = SearchSettings()
    skills: SkillSettings = SkillSettings()
    tools: ToolSettings = ToolSettings()
    tasks: TaskLimits = TaskLimits()
    mcp: McpSettings = McpSettings()
    route: RouteSettings = RouteSettings()
    telegram: TelegramSettings = TelegramSettings()
    gateway: GatewaySettings = GatewaySettings()
    learn: LearnSettings = LearnSettings()
    turns: TurnStoreSettings = TurnStoreSettings()
    streams: tuple[StreamSettings, ...] = ()
    logs: LogSettings = LogSettings()
    keys: Keys = field(default_factory=dict, repr=False)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    claude_code: ClaudeCodeSettings = ClaudeCodeSettings()
    local: LocalSettings = LocalSettings()
    requests: HttpSettings = HttpSettings()
    http: HttpChannelSettings = HttpChannelSettings()
    scripted: ScriptedSettings = ScriptedSettings()
    channels: tuple[str, ...] = ()
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    paths: Paths = field(default_factory=find_paths, metadata={"private": True})

    def __post_init__(self) -> None:
        refuse_same_names(self.streams)
        windows = {f"models.{id_}.window": model.window for id_, model in self.models.items()}
        for name, window in {"window": self.window, **windows}.items():
            if window is not None and window < MIN_WINDOW:
                raise ConfigError(f"`{name}` is {window}: a model reads at least {MIN_WINDOW} tokens.")
        check_cache_prices(self.models)

    @property
    def prices(self) -> dict[str, Prices]:
        """The prices that are set, by the model's id."""
        return {
            id_: Prices(input=model.input_price or 0.0, output=model.output_price or 0.0)
            for id_, model in self.models.items()
            if model.input_price is not None or model.output_price is not None
        }

    @property
    def cache_prices(self) -> dict[str, CachePrices]:
        """The prices of cached tokens that are set, by the model's id."""
        return {
            id_: CachePrices(read=model.cache_read, write=model.cache_write)
            for id_, model in self.models.items()
        }

    @property
    def windows(self) -> dict[str, int]:
        """The windows that are set, by the model's id."""
        return {id_: model.window for id_, model in self.models.items() if model.window}

    def window_of(self, provider: str, model: str) -> int | None:
        """Return the window that is set for a model, by its id or with its provider before a colon."""
        return self.window or self.windows.get(f"{provider}:{model}") or self.windows.get(model)

    def with_overrides(self, **changes: Any) -> Config:
        """Return a copy with the values that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def chosen_recipe(self) -> Recipe:
        """Load the recipe, with the skills mode that is set here."""
        recipe = Recipe.load(self.recipe)
        if self.skills.context_mode is not None:
            recipe = recipe.replace(skills_mode=self.skills.context_mode)
        return recipe

    def context_config(self, recipe: Recipe) -> ContextConfig:
        """Return the recipe's limits and options with what is set here."""
        context, limits = self.context, _limits(recipe.limits, self.context)
        own = {id_: _limits(recipe.limits, context, model) for id_, model in self.models.items()}
        return ContextConfig(
            default_limits=limits,
            model_overrides={id_: own_limits for id_, own_limits in own.items() if own_limits != limits},
            include_descriptions=context.include_descriptions,
            include_schemas=context.include_schemas,
            activity_entries_limit=context.activity_entries,
            compression_strategy=context.compression.chosen(),
            max_messages_cap=context.max_messages,
        )

    def tool_rules(self) -> tuple[ToolRule, ...]:
        """Return the rules about tool calls.

        Raises:
            ConfigError: one is wrong.
        """
        return tuple(
            ToolRule.from_table(table, where=f"`tools.rules` number {number}")
            for number, table in enumerate(self.tools.rules, 1)
        )

    def tool_limits(self, recipe: Recipe) -> ToolLimits:
        """Return how often and how long a turn may call tools."""
        rounds = recipe.tools.max_rounds if self.tools.max_rounds is None else self.tools.max_rounds
        return ToolLimits(
            max_rounds=rounds,
            seconds=self.tools.seconds,
            max_chars=self.tools.max_chars,
            acts_freely=self.tools.acts_freely,
            max_stored_chars=self.tools.max_stored_chars,
        )

    def execution(self) -> ExecutionSettings:
        """Return how programs of skills run. They end just before the call, so that their output is read."""
        return ExecutionSettings(seconds=self.tools.seconds * 0.95, allow_scripts=self.skills.allow_scripts)

    def skill_dirs(self, workspace: Path | None) -> list[Path]:
        """Return the folders of skills. Of two skills with one name the later folder's is used."""
        dirs = [self.paths.skills]
        if workspace is not None:
            dirs.append(workspace / "skills")
        dirs += [Path(self.skills.directory).expanduser()] if self.skills.directory else []
        return dirs + [Path(folder).expanduser() for folder in self.skills.extra_dirs]


def _limits(recipe: ModelContextLimits, *tables: ContextSettings | ModelSettings) -> ModelContextLimits:
    """Return the recipe's limits with those of the settings, of which a later table wins.

    A smaller window lowers the recipe's reserve for the answer too, but not one that somebody set and that
    fits into it.
    """
    own: dict[str, int] = {}
    for table in tables:
        values = {name: value for name in _LIMITS if (value := getattr(table, name)) is not None}
        if "max_tokens" in values and values["max_tokens"] <= own.get(_RESERVE, 0):
            del own[_RESERVE]
        own |= values
    window = own.pop("max_tokens", recipe.max_tokens)
    shrinks = _RESERVE not in own and window < recipe.max_tokens
    return replace(recipe.lowered_to(window) if shrinks else recipe.resized(window), **own)


def load_config(path: str | Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Config:
    """Load the settings of a file (the default one need not exist), overridden by the environment.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has an unknown key.
    """
    paths = find_paths(environ)
    file = Path(path).expanduser() if path is not None else paths.config_file
    data = _read(file, required=path is not None)
    data |= {name: value for key, name in _FROM_ENVIRONMENT.items() if (value := environ.get(key))}
    if isinstance(data.get("skills"), dict):
        data["skills"] = {_CAMEL.sub(r"_\1", key).lower(): value for key, value in data["skills"].items()}
    config = from_dict(Config, data, where=str(file), unknown="refuse", error=ConfigError)
    check_key_names(config.keys, where=f"{file}.keys")
    check_providers(config.providers, PROVIDER_NAMES, where=f"{file}.providers")
    if not _is_zone(config.time_zone):
        near = did_you_mean(config.time_zone, available_timezones())
        hint = near if near.startswith("did you mean") else "write it like Europe/Lisbon."
        raise ConfigError(f"There is no time zone {config.time_zone!r}: {hint}")
    return replace(config, paths=paths)


def _read(file: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ConfigError(f"There is no config file {file}: make one with `weft init`.") from None
        return {}
    except OSError as error:
        raise ConfigError(f"The config file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The config file {file} is not UTF-8: save it as UTF-8 text.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from error
