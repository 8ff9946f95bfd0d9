"""The public names, for type checkers and for `__init__.py`, which loads each when it is first used."""

from weft import wire
from weft.compose import connect, open
from weft.config import Config
from weft.errors import (
    BudgetExceeded,
    ChannelError,
    ConfigError,
    ContextError,
    EmptyMessage,
    InvalidEdit,
    LimitExceeded,
    LostFile,
    NotDone,
    PermissionDenied,
    ProviderError,
    PurgedText,
    StoreError,
    ToolError,
    Unauthorized,
    WeftError,
    WorkspaceError,
)
from weft.gateway.assistant import Assistant
from weft.memory.audit import Finding
from weft.memory.base import Store
from weft.memory.edits import BlockEdit
from weft.providers.scripted import ScriptedProvider
from weft.recall.embed import Embedder
from weft.sources.base import BuildRequest
from weft.tools.base import Tool
from weft.tools.function import tool_from
from weft.tools.registry import ToolRegistry
from weft.turn.build import ContextBuilder
from weft.types.context import Context, ContextNeeds
from weft.types.instruction import StandingInstruction
from weft.types.limits import (
    ContextConfig,
    ModelContextLimits,
    ModelInfo,
    RecursiveSummarization,
    Truncate,
)
from weft.types.memory import (
    ActivityEntry,
    ArchivalEntry,
    BlockInfo,
    BlockType,
    BlockVersion,
    Fact,
    Permission,
    RenderedBlock,
    SharedBlock,
    Summary,
    Task,
)
from weft.types.message import McpServer, Message, ToolCall, ToolDefinition
from weft.types.receipt import Receipt, ReceiptItem, Usage
from weft.types.recipe import Recipe
from weft.types.reply import Done, Reading, Reply, TextDelta, ToolFinished, ToolStarted, TurnStarted
from weft.types.request import Caller, TurnRequest
from weft.types.rules import ToolRule
from weft.types.schema import (
    CompositeSchema,
    CompositeSection,
    FieldDef,
    ListSchema,
    LogEntrySchema,
    LogSchema,
    MapSchema,
    TextSchema,
    Viewport,
)
from weft.types.search import MemorySearchResult, Recalled, SearchContentType, SearchMode, SearchOptions
from weft.types.section import Keep, Offer, Origin, Piece, Section, Stability, Withheld
from weft.types.session import OpenTurn, Session, SessionRule
from weft.types.version import VERSION as __version__

__all__ = [
    "ActivityEntry",
    "ArchivalEntry",
    "Assistant",
    "BlockEdit",
    "BlockInfo",
    "BlockType",
    "BlockVersion",
    "BudgetExceeded",
    "BuildRequest",
    "Caller",
    "ChannelError",
    "CompositeSchema",
    "CompositeSection",
    "Config",
    "ConfigError",
    "Context",
    "ContextBuilder",
    "ContextConfig",
    "ContextError",
    "ContextNeeds",
    "Done",
    "Embedder",
    "EmptyMessage",
    "Fact",
    "FieldDef",
    "Finding",
    "InvalidEdit",
    "Keep",
    "LimitExceeded",
    "ListSchema",
    "LogEntrySchema",
    "LogSchema",
    "LostFile",
    "MapSchema",
    "McpServer",
    "MemorySearchResult",
    "Message",
    "ModelContextLimits",
    "ModelInfo",
    "NotDone",
    "Offer",
    "OpenTurn",
    "Origin",
    "Permission",
    "PermissionDenied",
    "Piece",
    "ProviderError",
    "PurgedText",
    "Reading",
    "Recalled",
    "Receipt",
    "ReceiptItem",
    "Recipe",
    "RecursiveSummarization",
    "RenderedBlock",
    "Reply",
    "ScriptedProvider",
    "SearchContentType",
    "SearchMode",
    "SearchOptions",
    "Section",
    "Session",
    "SessionRule",
    "SharedBlock",
    "Stability",
    "StandingInstruction",
    "Store",
    "StoreError",
    "Summary",
    "Task",
    "TextDelta",
    "TextSchema",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolError",
    "ToolFinished",
    "ToolRegistry",
    "ToolRule",
    "ToolStarted",
    "Truncate",
    "TurnRequest",
    "TurnStarted",
    "Unauthorized",
    "Usage",
    "Viewport",
    "WeftError",
    "Withheld",
    "WorkspaceError",
    "__version__",
    "connect",
    "open",
    "tool_from",
    "wire",
]
