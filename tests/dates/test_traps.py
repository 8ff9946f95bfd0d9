"""Texts without a date that look as if they had one, dates that do not exist, and hostile texts."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.dates.find import dates_in
from weft.dates.words import HAN_WORDS, LEXICONS

NOW = datetime(2024, 3, 15, 12, 30)

TRAPS = [
    "May I ask you something?",
    "May the force be with you.",
    "I may go, and you may stay.",
    "I think you may have seen it, but this may be wrong.",
    "YOU MAY GO NOW",
    "You May Also Like",
    "Theresa May said no.",
    "They march to the sea; we march 3 miles.",
    "March on, said the captain.",
    "Give me a second, I am in second place.",
    "The sun was out and he sat down on the mat, wed to his job.",
    "Mars and Sunflower are fine, but the mar on the Marble is not.",
    "Install version 1.5.2 of the parser.",
    "It runs 10.4.12 and v2022 of the tool.",
    "Add 3/4 cup of flour and 1/2 spoon.",
    "Call +1 555 2022 or 555-2022.",
    "It cost $2022 and 1999€.",
    "We meet at 10:30 in room 12.",
    "The server is 192.168.20.23.",
    "I walked 2000 steps and wrote it in 2000 words.",
    "I put mayo in the sandwich once.",
    "I need a winter coat and a spring roll.",
    "Do not fall off the stairs.",
    "Have a nice day, and do it day by day.",
    "We swim every Friday and each summer.",
    "on the 3rd of the queue",
    "the next day and the last time",
    "Wir treffen uns am 3. in der Halle.",
    "Guten Morgen! Am Morgen trinke ich Tee.",
    "Jeden Freitag schwimmen wir.",
    "Hier ist die Woche noch nicht um.",
    "Los martes por la mañana nado.",
    "Esto se hace en el mar.",
    "J'ai été malade et il a été gentil.",
    "Chaque été nous nageons, c'est passé.",
    "J'ai sept chats et une année de retard.",
    "我的名字前面没有字",
    "每周二开会",
    "一个月有几天",
    "毎週火曜日に走る",
    "お名前は何ですか。午前です。",
    "月と日と年",
    "31 February",
    "February 30, 2023",
    "29 February 2023",
    "31.02.2023",
    "13/13/2023",
    "2023-13-01",
    "2023年2月31日",
    "7 May 1850",
    "7 May 2150",
    "1850-05-07",
    "1850年5月7日",
    "1850年5月7日前",
    "二十二十天前",
    "in 3024",
    "9999999 years ago",
    "9999 years ago",
    "",
    "\x00\x00",
]


@pytest.mark.parametrize("text", TRAPS)
def test_a_text_without_a_date_has_none(text: str) -> None:
    assert dates_in(text, NOW) == ()


@pytest.mark.parametrize(
    ("text", "said"), [("1 May 2023", "1 May 2023"), ("(in May)", "May"), ("_May 2023_", "May 2023")]
)
def test_a_date_keeps_the_words_that_said_it(text: str, said: str) -> None:
    assert [span.text for span in dates_in(text, NOW)] == [said]


def test_accents_in_two_characters_are_read_as_one() -> None:
    assert dates_in("en fe\u0301vrier 2022", NOW)[0].first == date(2022, 2, 1)


def test_only_the_beginning_of_a_text_is_read() -> None:
    assert len(dates_in("yesterday " + "x" * 4200 + " tomorrow", NOW)) == 1
    assert dates_in("x" * 4096 + " tomorrow", NOW) == ()


@pytest.mark.parametrize("now", [datetime.min, datetime.max, datetime(1, 3, 1), datetime(9999, 11, 30)])
@pytest.mark.parametrize(
    "text",
    "yesterday|tomorrow|last week|next week|last month|next month|last year|next year|9999 weeks ago"
    "|in 9999 weeks|last winter|next winter|this winter|at Christmas|next Easter|last Friday|next Friday"
    "|this Sunday|the other day|a few years ago|in the last 9999 days|on Tuesday last week|since Christmas"
    "|before today|after today|end of the year|from Friday to Monday|from May to January"
    "|the week after New Year's Eve|9999 days ago|last weekend|in a few months"
    "|9999年前|上周二|in 9999 months|9999 months ago".split("|"),
)
def test_dates_near_the_end_of_time_never_raise(text: str, now: datetime) -> None:
    assert all(span.first <= span.last for span in dates_in(text, now))


# A pattern that backtracks badly takes minutes for one of these, and the run is stopped.
HOSTILE = [
    "May ",
    "the of the ",
    "1-",
    "1.",
    "12/",
    "2023-05-",
    "last ",
    "early ",
    "between ",
    "月",
    "三",
    "第一",
    "上",
    "の",
    "年初",
    "\u0301",
    "a couple of ",
    "from ",
    "3 to ",
    "first week of ",
    "last year in ",
    "-",
    ", ",
    "day before ",
    "vor ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_repetition_is_read_to_its_end(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))

    assert all(span.first <= span.last for span in dates_in(text, NOW))


WORDS = sorted({word for lexicon in LEXICONS.values() for word in lexicon} | set(HAN_WORDS))
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.integers(0, 10**7).map(str),
    st.dates().map(str),
    st.sampled_from(["3.", "5th", "12/31/1999", "2023年", "5月", "7日", "\n", ",", "-", "–", "'", ". ", "!"]),
)


@given(text=st.text(max_size=200), now=st.datetimes())
@example(text="²³月 ٣日前 十十十十年", now=NOW)
def test_no_text_raises(text: str, now: datetime) -> None:
    assert all(span.first <= span.last for span in dates_in(text, now))


@given(pieces=st.lists(PIECES, max_size=14), separator=st.sampled_from([" ", ""]), now=st.datetimes())
def test_no_row_of_words_for_dates_raises(pieces: list[str], separator: str, now: datetime) -> None:
    text = separator.join(pieces)

    for span in dates_in(text, now):
        assert span.first <= span.last
        assert span.text


@given(day=st.dates(date(1900, 1, 1), date(2100, 12, 31)), now=st.datetimes())
def test_a_written_day_is_read_as_itself_at_any_time(day: date, now: datetime) -> None:
    months = "January February March April May June July August September October November December".split()
    forms = [
        day.isoformat(),
        f"on {day.day} {months[day.month - 1]} {day.year}",
        f"on {months[day.month - 1]} {day.day}, {day.year}",
        f"am {day.day:02}.{day.month:02}.{day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]

    assert [[(span.first, span.last) for span in dates_in(form, now)] for form in forms] == [[(day, day)]] * 5


@given(now=st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1)), count=st.integers(1, 400))
def test_days_ago_are_counted_from_now(now: datetime, count: int) -> None:
    day = now.date() - timedelta(days=count)

    for text in (
        f"{count} days ago",
        f"vor {count} Tagen",
        f"hace {count} días",
        f"il y a {count} jours",
        f"{count}天前",
    ):
        assert [(span.first, span.last) for span in dates_in(text, now)] == [(day, day)]


@given(now=st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1)), month=st.integers(1, 12))
def test_a_month_without_a_year_has_begun_and_is_less_than_a_year_old(now: datetime, month: int) -> None:
    span = dates_in(f"{month}月", now)[0]

    assert span.first.month == month
    assert timedelta(0) <= now.date() - span.first <= timedelta(days=366)
