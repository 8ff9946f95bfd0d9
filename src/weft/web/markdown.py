"""Markdown as HTML: what an answer says is drawn, and none of it becomes markup of ours."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from weft.types.escape import printable


def drawn(text: str) -> Markup:
    """Render Markdown. HTML in it is shown as text, and a picture as a link: no page loads from elsewhere."""
    return Markup(_parser().render(printable(text)))  # noqa: S704 - the parser escapes all HTML


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable(["image", "html_inline", "html_block"])
    parser.add_render_rule("link_open", _link)
    return parser


def _link(
    renderer: Any, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Open links beside the page, without telling the other site where they were."""
    tokens[at].attrSet("rel", "noreferrer noopener")
    tokens[at].attrSet("target", "_blank")
    opening: str = renderer.renderToken(tokens, at, options, env)
    return opening
