"""Markdown as Telegram shows it."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.channels.telegram_text import LIMIT, messages, plain_messages, units

ALLOWED = {"b", "i", "s", "code", "pre", "a", "blockquote"}


class Reader(HTMLParser):
    """Reads HTML as Telegram does, which refuses tags that it does not know or that do not close."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.open = "", list[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ALLOWED
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> str:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader.text


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold** and *it* and ~~no~~", "<b>bold</b> and <i>it</i> and <s>no</s>"),
        ("# Head\n\ntext", "<b>Head</b>\n\ntext"),
        ("`a < b`", "<code>a &lt; b</code>"),
        ("```py\nx = 1 < 2\n```", '<pre><code class="language-py">x = 1 &lt; 2</code></pre>'),
        ("```\nplain\n```", "<pre>plain</pre>"),
        ("- one\n- two\n  - three", "• one\n• two\n  • three"),
        ("3. one\n4. two", "3. one\n4. two"),
        ("[Weft](https://x.org/?a=1&b=2)", '<a href="https://x.org/?a=1&amp;b=2">Weft</a>'),
        (
            "> said\n> so",
            "<blockquote>said</blockquote><blockquote>\n</blockquote><blockquote>so</blockquote>",
        ),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("| a | **b** |\n|---|---|\n| 1 | 2 |\n\nx", "a | <b>b</b>\n1 | 2\n\nx"),
        ("***both***", "<i><b>both</b></i>"),
    ],
)
def test_markdown_becomes_the_few_tags_that_telegram_knows(markdown: str, html: str) -> None:
    assert messages(markdown) == [html]


def test_a_text_without_letters_gives_no_message() -> None:
    assert messages("") == messages(" \n\n ") == []


def test_a_long_answer_is_cut_between_paragraphs() -> None:
    paragraphs = [f"**{n}** " + "word " * 150 for n in range(12)]

    found = messages("\n\n".join(paragraphs))

    assert len(found) == 3
    assert all(message.startswith("<b>") for message in found)


def test_formatting_goes_on_where_a_paragraph_is_cut() -> None:
    found = messages("**" + "word " * 2000 + "end**")

    assert len(found) > 2
    assert all(message.startswith("<b>") and message.endswith("</b>") for message in found)


def test_long_code_is_cut_between_lines_and_stays_code() -> None:
    lines = [f"line {n}" for n in range(1500)]

    found = messages("```py\n" + "\n".join(lines) + "\n```")

    assert all(message.startswith('<pre><code class="language-py">') for message in found)
    assert "".join(read(message) for message in found).split() == "\n".join(lines).split()


def test_units_are_counted_as_telegram_does() -> None:
    found = messages("🐠" * 3000)

    assert [units(read(message)) for message in found] == [4096, 1904]


@settings(deadline=None)
@given(st.text(alphabet="ab *_`~#>-\n[]()<&1.🐠", max_size=400), st.integers(20, 80))
def test_every_text_becomes_valid_messages_within_the_limit_and_loses_nothing(
    markdown: str, limit: int
) -> None:
    found = messages(markdown, limit)

    for message in found:
        assert 0 < units(read(message)) <= limit
    letters = [c for c in "".join(map(read, found)) if c in "ab🐠"]
    assert letters.count("🐠") <= markdown.count("🐠")
    if not set("[]()`") & set(markdown):
        assert letters == [c for c in markdown if c in "ab🐠"]


@given(st.text(max_size=300), st.integers(5, 50))
def test_plain_text_is_cut_to_the_limit_and_loses_no_word(text: str, limit: int) -> None:
    found = plain_messages(text, limit)

    assert all(units(message) <= limit for message in found)
    if text.strip():
        assert "".join(found).split() == text.split()
    assert LIMIT == 4096
