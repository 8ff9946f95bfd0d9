"""Weft weaves what a model sees. These names are the public ones; each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.app import App, connect
    from weft.errors import (
        BudgetExceeded,
        ChannelError,
        ConfigError,
        ContextError,
        EmptyMessage,
        PermissionDenied,
        ProviderError,
        StoreError,
        ToolError,
        WeftError,
        WorkspaceError,
    )
    from weft.providers.scripted import ScriptedProvider
    from weft.tools.registry import ToolRegistry
    from weft.turn.build import ContextBuilder
    from weft.types.context import Context, ContextNeeds, McpServer
    from weft.types.limits import (
        ContextConfig,
        ModelContextLimits,
        ModelInfo,
        RecursiveSummarization,
        Truncate,
    )
    from weft.types.message import Message, ToolCall, ToolDefinition
    from weft.types.receipt import Receipt, ReceiptItem, Usage
    from weft.types.recipe import Recipe
    from weft.types.records import (
        ActivityEntry,
        BlockType,
        Fact,
        Permission,
        Recalled,
        RenderedBlock,
        Summary,
        Task,
    )
    from weft.types.reply import Done, Reading, Reply, TextDelta
    from weft.types.rules import ToolRule
    from weft.types.section import Keep, Origin, Section, Stability
    from weft.types.version import VERSION as __version__

__all__ = [
    "ActivityEntry",
    "App",
    "BlockType",
    "BudgetExceeded",
    "ChannelError",
    "ConfigError",
    "Context",
    "ContextBuilder",
    "ContextConfig",
    "ContextError",
    "ContextNeeds",
    "Done",
    "EmptyMessage",
    "Fact",
    "Keep",
    "McpServer",
    "Message",
    "ModelContextLimits",
    "ModelInfo",
    "Origin",
    "Permission",
    "PermissionDenied",
    "ProviderError",
    "Reading",
    "Recalled",
    "Receipt",
    "ReceiptItem",
    "Recipe",
    "RecursiveSummarization",
    "RenderedBlock",
    "Reply",
    "ScriptedProvider",
    "Section",
    "Stability",
    "StoreError",
    "Summary",
    "Task",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "ToolError",
    "ToolRegistry",
    "ToolRule",
    "Truncate",
    "Usage",
    "WeftError",
    "WorkspaceError",
    "__version__",
    "connect",
]

_HOMES = {
    "weft.app": "App connect",
    "weft.errors": "BudgetExceeded ChannelError ConfigError ContextError EmptyMessage PermissionDenied "
    "ProviderError StoreError ToolError WeftError WorkspaceError",
    "weft.providers.scripted": "ScriptedProvider",
    "weft.tools.registry": "ToolRegistry",
    "weft.turn.build": "ContextBuilder",
    "weft.types.context": "Context ContextNeeds McpServer",
    "weft.types.limits": "ContextConfig ModelContextLimits ModelInfo RecursiveSummarization Truncate",
    "weft.types.message": "Message ToolCall ToolDefinition",
    "weft.types.receipt": "Receipt ReceiptItem Usage",
    "weft.types.recipe": "Recipe",
    "weft.types.records": "ActivityEntry BlockType Fact Permission Recalled RenderedBlock Summary Task",
    "weft.types.reply": "Done Reading Reply TextDelta",
    "weft.types.rules": "ToolRule",
    "weft.types.section": "Keep Origin Section Stability",
    "weft.types.version": "VERSION",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # so that type checkers still notice a name that does not exist

    def __getattr__(name: str) -> Any:
        """Load a public name from its module: `import weft` alone costs nothing."""
        wanted = "VERSION" if name == "__version__" else name
        if wanted not in _HOME_OF:
            raise AttributeError(f"module 'weft' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[wanted]), wanted)
        return value
