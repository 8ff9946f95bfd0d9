"""Each layer looks the same everywhere, and has a color wherever one is shown."""

import re
from pathlib import Path

from weft.channels.terminal import LAYER_COLOURS
from weft.sources.catalogue import SOURCES
from weft.types.section import Origin
from weft.web.layers import LAYERS, layer_class, origin_mark
from weft.web.page import STATIC

CSS = (Path(STATIC) / "weft.css").read_text("utf-8")


def test_every_layer_has_a_color_in_the_pages_and_in_the_terminal() -> None:
    assert set(re.findall(r"\.layer-(\w+) \{ fill", CSS)) == {*LAYERS, "other"}
    assert set(LAYERS) == set(LAYER_COLOURS)
    assert set(SOURCES) <= set(LAYERS)


def test_a_layer_of_a_plugin_has_a_color_too() -> None:
    assert layer_class("agenda") == "layer-other"


def test_every_origin_has_a_mark_that_needs_no_color() -> None:
    marks = {str(origin): origin_mark(origin) for origin in Origin}

    assert all(mark.mark.strip() and mark.says for mark in marks.values())
    trusted = [marks[name].mark for name in ("operator", "user", "agent", "tool")]
    strangers = {marks[name].mark for name in ("web", "feed", "import", "mcp")}
    assert len({*trusted}) == 4
    assert not strangers & {*trusted}
