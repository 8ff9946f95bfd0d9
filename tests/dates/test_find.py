"""Dates in six languages, each case as a speaker means it on Friday, 15 March 2024."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from weft.dates.find import DateSpan, dates_in

NOW = datetime(2024, 3, 15, 12, 30, tzinfo=UTC)
OPEN = ""


def _day(text: str, otherwise: date) -> date:
    return date.fromisoformat(text) if text else otherwise


# (text, first day, last day); one day where there is no last one.
ENGLISH = [
    ("We met on 7 May 2023 in Rome.", "2023-05-07"),
    ("What happened on May 7th, 2023?", "2023-05-07"),
    ("What happened on May 7?", "2023-05-07"),
    ("the 4th of July, 2022", "2022-07-04"),
    ("the second of May", "2023-05-02"),
    ("log of 2023-05-07T10:30:00Z", "2023-05-07"),
    ("2023/05/07", "2023-05-07"),
    ("07.05.2023", "2023-05-07"),
    ("I paid on 7/5/2023 for it", "2023-07-05"),
    ("I paid on 25/12/2022 for it", "2022-12-25"),
    ("I paid on 7/5/23 for it", "2023-07-05"),
    ("Sept. 3, 2022 was hot", "2022-09-03"),
    ("Sat, 7 May 2022", "2022-05-07"),
    ("7-May-2022", "2022-05-07"),
    ("What did we do in May?", "2023-05-01", "2023-05-31"),
    ("we met in may 2022", "2022-05-01", "2022-05-31"),
    ("Was May cold?", "2023-05-01", "2023-05-31"),
    ("last May", "2023-05-01", "2023-05-31"),
    ("May of last year", "2023-05-01", "2023-05-31"),
    ("last year in August", "2023-08-01", "2023-08-31"),
    ("this June we go to Crete", "2024-06-01", "2024-06-30"),
    ("next June", "2024-06-01", "2024-06-30"),
    ("2022-11 was busy", "2022-11-01", "2022-11-30"),
    ("Where did I live in 2022?", "2022-01-01", "2022-12-31"),
    ("music of the 1990s", "1990-01-01", "1999-12-31"),
    ("What did I eat today?", "2024-03-15"),
    ("I saw her yesterday.", "2024-03-14"),
    ("the day before yesterday", "2024-03-13"),
    ("see you tomorrow", "2024-03-16"),
    ("the day after tomorrow", "2024-03-17"),
    ("last night", "2024-03-14"),
    ("What did I say last week?", "2024-03-04", "2024-03-10"),
    ("this week", "2024-03-11", "2024-03-17"),
    ("next week", "2024-03-18", "2024-03-24"),
    ("the week before last", "2024-02-26", "2024-03-03"),
    ("last month", "2024-02-01", "2024-02-29"),
    ("next month", "2024-04-01", "2024-04-30"),
    ("last year", "2023-01-01", "2023-12-31"),
    ("this year's plans", "2024-01-01", "2024-12-31"),
    ("last weekend", "2024-03-09", "2024-03-10"),
    ("over the weekend", "2024-03-09", "2024-03-10"),
    ("this weekend", "2024-03-16", "2024-03-17"),
    ("last Tuesday", "2024-03-12"),
    ("last Friday", "2024-03-08"),
    ("next Friday", "2024-03-22"),
    ("on Thursday", "2024-03-14"),
    ("on Friday", "2024-03-15"),
    ("on Tuesday last week", "2024-03-05"),
    ("two days ago", "2024-03-13"),
    ("twenty days ago", "2024-02-24"),
    ("about 10 days ago", "2024-03-05"),
    ("a week ago", "2024-03-05", "2024-03-11"),
    ("a couple of weeks ago", "2024-02-27", "2024-03-04"),
    ("three months ago", "2023-11-30", "2023-12-30"),
    ("half a year ago", "2023-08-31", "2023-09-30"),
    ("two years ago", "2022-01-01", "2022-12-31"),
    ("a few days ago", "2024-03-09", "2024-03-13"),
    ("the other day", "2024-03-05", "2024-03-14"),
    ("in three days", "2024-03-18"),
    ("in the last three weeks", "2024-02-23", "2024-03-15"),
    ("between March and May 2023", "2023-03-01", "2023-05-31"),
    ("between march and may 2023", "2023-03-01", "2023-05-31"),
    ("from December to February", "2023-12-01", "2024-02-29"),
    ("from 3 to 5 June", "2023-06-03", "2023-06-05"),
    ("May 3-5, 2023", "2023-05-03", "2023-05-05"),
    ("between 3 and 5 June 2022", "2022-06-03", "2022-06-05"),
    ("from May 2023 to January", "2023-05-01", "2024-01-31"),
    ("from Monday to Wednesday", "2024-03-11", "2024-03-13"),
    ("from Wednesday to Sunday", "2024-03-13", "2024-03-17"),
    ("from 2019 to 2021", "2019-01-01", "2021-12-31"),
    ("since May", "2023-05-01", OPEN),
    ("before May 2023", OPEN, "2023-04-30"),
    ("after 3 May 2023", "2023-05-04", OPEN),
    ("until last week", OPEN, "2024-03-10"),
    ("early May", "2023-05-01", "2023-05-10"),
    ("mid-June", "2023-06-11", "2023-06-20"),
    ("in late December 2022", "2022-12-21", "2022-12-31"),
    ("late February 2023", "2023-02-21", "2023-02-28"),
    ("the end of 2022", "2022-09-01", "2022-12-31"),
    ("at the end of the month", "2024-03-21", "2024-03-31"),
    ("the first week of August", "2023-08-01", "2023-08-07"),
    ("the last week of August 2022", "2022-08-25", "2022-08-31"),
    ("the first Monday of May 2023", "2023-05-01"),
    ("the last Friday in May 2023", "2023-05-26"),
    ("summer 2022", "2022-06-01", "2022-08-31"),
    ("in the fall of 2022", "2022-09-01", "2022-11-30"),
    ("last winter", "2023-12-01", "2024-02-29"),
    ("next summer", "2024-06-01", "2024-08-31"),
    ("at Christmas", "2023-12-24", "2023-12-26"),
    ("last year at Christmas", "2023-12-24", "2023-12-26"),
    ("New Year's Eve 2022", "2022-12-31"),
    ("New Year's Day", "2024-01-01"),
    ("on Halloween", "2023-10-31"),
    ("on Valentine's Day", "2024-02-14"),
    ("Easter 2023", "2023-04-07", "2023-04-10"),
    ("Easter Sunday 2024", "2024-03-31"),
    ("Thanksgiving 2022", "2022-11-24"),
    ("Thanksgiving", "2023-11-23"),
    ("the week before Christmas", "2023-12-17", "2023-12-23"),
]
SPANISH = [
    ("Nos vimos el 7 de mayo de 2023", "2023-05-07"),
    ("el 7/5/2023 fui al médico", "2023-05-07"),
    ("¿Qué hicimos en mayo?", "2023-05-01", "2023-05-31"),
    ("en mayo de 2023", "2023-05-01", "2023-05-31"),
    ("en mayo del año pasado", "2023-05-01", "2023-05-31"),
    ("en el año 2022", "2022-01-01", "2022-12-31"),
    ("¿Qué comí ayer?", "2024-03-14"),
    ("ayer por la mañana", "2024-03-14"),
    ("anteayer", "2024-03-13"),
    ("mañana viajamos a Roma", "2024-03-16"),
    ("pasado mañana", "2024-03-17"),
    ("esta mañana", "2024-03-15"),
    ("la semana pasada", "2024-03-04", "2024-03-10"),
    ("el próximo mes", "2024-04-01", "2024-04-30"),
    ("el mes que viene", "2024-04-01", "2024-04-30"),
    ("el fin de semana pasado", "2024-03-09", "2024-03-10"),
    ("el martes pasado", "2024-03-12"),
    ("el martes de la semana pasada", "2024-03-05"),
    ("hace tres meses", "2023-11-30", "2023-12-30"),
    ("hace dieciséis días", "2024-02-28"),
    ("hace un par de semanas", "2024-02-27", "2024-03-04"),
    ("dentro de tres días", "2024-03-18"),
    ("los últimos tres meses", "2023-12-15", "2024-03-15"),
    ("el otro día", "2024-03-05", "2024-03-14"),
    ("entre marzo y mayo de 2023", "2023-03-01", "2023-05-31"),
    ("del 3 al 5 de junio", "2023-06-03", "2023-06-05"),
    ("desde mayo", "2023-05-01", OPEN),
    ("antes de mayo de 2023", OPEN, "2023-04-30"),
    ("a principios de mayo", "2023-05-01", "2023-05-10"),
    ("a finales de 2022", "2022-09-01", "2022-12-31"),
    ("la primera semana de agosto", "2023-08-01", "2023-08-07"),
    ("el verano pasado", "2023-06-01", "2023-08-31"),
    ("en Nochebuena", "2023-12-24"),
    ("el miercoles", "2024-03-13"),
]
GERMAN = [
    ("Wir waren am 3. Mai 2023 dort", "2023-05-03"),
    ("am dritten Mai", "2023-05-03"),
    ("am 3.5. war ich krank", "2023-05-03"),
    ("Rechnung vom 07.05.23 ist bezahlt", "2023-05-07"),
    ("Was war im Mai?", "2023-05-01", "2023-05-31"),
    ("im Mai letzten Jahres", "2023-05-01", "2023-05-31"),
    ("im Jahr 2022", "2022-01-01", "2022-12-31"),
    ("Wo war ich gestern?", "2024-03-14"),
    ("vorgestern", "2024-03-13"),
    ("heute Morgen", "2024-03-15"),
    ("Ich fahre morgen nach Wien", "2024-03-16"),
    ("übermorgen", "2024-03-17"),
    ("uebermorgen", "2024-03-17"),
    ("letzte Woche", "2024-03-04", "2024-03-10"),
    ("nächstes Jahr", "2025-01-01", "2025-12-31"),
    ("letztes Wochenende", "2024-03-09", "2024-03-10"),
    ("letzten Dienstag", "2024-03-12"),
    ("letzte Woche Dienstag", "2024-03-05"),
    ("am Mittwochabend", "2024-03-13"),
    ("vor drei Monaten", "2023-11-30", "2023-12-30"),
    ("vor einem halben Jahr", "2023-08-31", "2023-09-30"),
    ("vor siebzehn Tagen", "2024-02-27"),
    ("in zwei Tagen", "2024-03-17"),
    ("neulich", "2024-03-05", "2024-03-14"),
    ("von März bis Mai 2023", "2023-03-01", "2023-05-31"),
    ("vom 3. bis 5. Juni", "2023-06-03", "2023-06-05"),
    ("seit Mai", "2023-05-01", OPEN),
    ("vor Mai 2023", OPEN, "2023-04-30"),
    ("Anfang Mai", "2023-05-01", "2023-05-10"),
    ("Ende letzten Jahres", "2023-09-01", "2023-12-31"),
    ("die erste Woche im August", "2023-08-01", "2023-08-07"),
    ("im Sommer 2022", "2022-06-01", "2022-08-31"),
    ("an Weihnachten 2022", "2022-12-24", "2022-12-26"),
    ("zu Ostern", "2023-04-07", "2023-04-10"),
    ("an Silvester", "2023-12-31"),
]
FRENCH = [
    ("On s'est vus le 7 mai 2023", "2023-05-07"),
    ("le 1er mai", "2023-05-01"),
    ("le 7/5/2023 chez le médecin", "2023-05-07"),
    ("en mai", "2023-05-01", "2023-05-31"),
    ("l'année dernière en mai", "2023-05-01", "2023-05-31"),
    ("en 2022 nous étions à Lyon", "2022-01-01", "2022-12-31"),
    ("Qu'est-ce que j'ai mangé hier ?", "2024-03-14"),
    ("avant-hier", "2024-03-13"),
    ("aujourd'hui", "2024-03-15"),
    ("demain", "2024-03-16"),
    ("après-demain", "2024-03-17"),
    ("la semaine dernière", "2024-03-04", "2024-03-10"),
    ("le mois prochain", "2024-04-01", "2024-04-30"),
    ("le week-end dernier", "2024-03-09", "2024-03-10"),
    ("mardi dernier", "2024-03-12"),
    ("il y a trois mois", "2023-11-30", "2023-12-30"),
    ("il y a dix-sept jours", "2024-02-27"),
    ("il y a un an", "2023-01-01", "2023-12-31"),
    ("dans trois jours", "2024-03-18"),
    ("l'autre jour", "2024-03-05", "2024-03-14"),
    ("entre mars et mai 2023", "2023-03-01", "2023-05-31"),
    ("du 3 au 5 juin", "2023-06-03", "2023-06-05"),
    ("depuis mai", "2023-05-01", OPEN),
    ("avant mai 2023", OPEN, "2023-04-30"),
    ("début mai", "2023-05-01", "2023-05-10"),
    ("mi-juin 2022", "2022-06-11", "2022-06-20"),
    ("la première semaine d'août", "2023-08-01", "2023-08-07"),
    ("l'été dernier", "2023-06-01", "2023-08-31"),
    ("à Noël", "2023-12-24", "2023-12-26"),
    ("Pâques 2023", "2023-04-07", "2023-04-10"),
    ("en fevrier 2022", "2022-02-01", "2022-02-28"),
]
CHINESE = [
    ("我们2023年5月7日见面了", "2023-05-07"),
    ("二〇二三年五月七日", "2023-05-07"),
    ("5月7日", "2023-05-07"),
    ("十一月二十三号", "2023-11-23"),
    ("我在2023-05-07去了北京", "2023-05-07"),
    ("五月我们做了什么", "2023-05-01", "2023-05-31"),
    ("2023年5月", "2023-05-01", "2023-05-31"),
    ("2022年我住在哪里", "2022-01-01", "2022-12-31"),
    ("昨天我吃了什么", "2024-03-14"),
    ("前天", "2024-03-13"),
    ("明天", "2024-03-16"),
    ("去年", "2023-01-01", "2023-12-31"),
    ("上个月", "2024-02-01", "2024-02-29"),
    ("上周", "2024-03-04", "2024-03-10"),
    ("上周二", "2024-03-05"),
    ("下周五", "2024-03-22"),
    ("上週末去爬山", "2024-03-09", "2024-03-10"),
    ("星期天", "2024-03-10"),
    ("三个月前", "2023-11-30", "2023-12-30"),
    ("二十天前", "2024-02-24"),
    ("两周前", "2024-02-27", "2024-03-04"),
    ("三天后", "2024-03-18"),
    ("前几天", "2024-03-05", "2024-03-14"),
    ("从2023年三月到五月", "2023-03-01", "2023-05-31"),
    ("2023年5月之前", OPEN, "2023-04-30"),
    ("自从5月", "2023-05-01", OPEN),
    ("2023年5月3日前", OPEN, "2023-05-02"),
    ("五月初", "2023-05-01", "2023-05-10"),
    ("月初", "2024-03-01", "2024-03-10"),
    ("2022年底", "2022-09-01", "2022-12-31"),
    ("8月第一周", "2023-08-01", "2023-08-07"),
    ("去年夏天", "2023-06-01", "2023-08-31"),
    ("圣诞节", "2023-12-24", "2023-12-26"),
]
JAPANESE = [
    ("2023年5月7日に会いました", "2023-05-07"),
    ("２０２３年５月７日", "2023-05-07"),
    ("5月に何をしましたか", "2023-05-01", "2023-05-31"),
    ("去年の5月", "2023-05-01", "2023-05-31"),
    ("昨日何を食べましたか", "2024-03-14"),
    ("一昨日", "2024-03-13"),
    ("おととい", "2024-03-13"),
    ("明後日", "2024-03-17"),
    ("先週", "2024-03-04", "2024-03-10"),
    ("先週の火曜日", "2024-03-05"),
    ("来週の金曜日", "2024-03-22"),
    ("先月", "2024-02-01", "2024-02-29"),
    ("昨年", "2023-01-01", "2023-12-31"),
    ("先週末", "2024-03-09", "2024-03-10"),
    ("三か月前", "2023-11-30", "2023-12-30"),
    ("3日前", "2024-03-12"),
    ("2週間前", "2024-02-27", "2024-03-04"),
    ("十五年前", "2009-01-01", "2009-12-31"),
    ("2023年3月から5月まで", "2023-03-01", "2023-05-31"),
    ("5月7日から9日まで", "2023-05-07", "2023-05-09"),
    ("5月以降", "2023-05-01", OPEN),
    ("2023年5月まで", OPEN, "2023-05-31"),
    ("5月中旬", "2023-05-11", "2023-05-20"),
    ("昨年の夏", "2023-06-01", "2023-08-31"),
    ("大晦日", "2023-12-31"),
    ("ゴールデンウィーク", "2023-04-29", "2023-05-05"),
]


@pytest.mark.parametrize(
    "case", ENGLISH + SPANISH + GERMAN + FRENCH + CHINESE + JAPANESE, ids=lambda case: str(case[0])
)
def test_the_days_of_a_text_are_those_that_a_speaker_means(case: tuple[str, ...]) -> None:
    first, last = _day(case[1], date.min), _day(case[-1], date.max)

    assert [(span.first, span.last) for span in dates_in(case[0], NOW)] == [(first, last)]


def test_a_text_with_several_dates_has_them_in_its_order() -> None:
    spans = dates_in("On 3 May 2023 we left, 昨天 we came back, and in June 2025 we go again.", NOW)

    assert [span.text for span in spans] == ["3 May 2023", "昨天", "June 2025"]


@pytest.mark.parametrize(
    "text", ["in May", "May 7", "at Christmas", "in the summer", "since May", "early May", "5月7日", "im Mai"]
)
def test_what_has_no_year_is_recurring(text: str) -> None:
    assert [span.is_recurring for span in dates_in(text, NOW)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "May 2023",
        "last May",
        "yesterday",
        "on Friday",
        "between March and May 2023",
        "last year in May",
        "去年夏天",
    ],
)
def test_what_has_a_year_or_is_near_now_is_not_recurring(text: str) -> None:
    assert [span.is_recurring for span in dates_in(text, NOW)] == [False]


@pytest.mark.parametrize(
    ("text", "now", "first"),
    [
        ("in March", datetime(2024, 3, 1), "2024-03-01"),
        ("in March", datetime(2024, 2, 29), "2023-03-01"),
        ("on 29 February", datetime(2023, 8, 1), "2020-02-29"),
        ("last winter", datetime(2024, 1, 10), "2022-12-01"),
        ("this winter", datetime(2024, 1, 10), "2023-12-01"),
        ("last summer", datetime(2024, 7, 10), "2023-06-01"),
        ("last Christmas", datetime(2024, 12, 25), "2023-12-24"),
        ("last month", datetime(2024, 1, 31), "2023-12-01"),
        ("three months ago", datetime(2024, 5, 31), "2024-02-14"),
        ("over the weekend", datetime(2024, 3, 17), "2024-03-16"),
    ],
)
def test_the_newest_that_has_begun_depends_on_now(text: str, now: datetime, first: str) -> None:
    assert [span.first for span in dates_in(text, now)] == [date.fromisoformat(first)]


def test_the_day_of_now_is_the_day_in_its_own_time_zone() -> None:
    late = datetime(2024, 3, 15, 23, 30, tzinfo=timezone(timedelta(hours=-8)))

    assert dates_in("today", late) == (
        DateSpan(first=date(2024, 3, 15), last=date(2024, 3, 15), text="today"),
    )


@pytest.mark.parametrize(
    ("year", "month", "day"),
    [(1954, 4, 18), (1961, 4, 2), (1981, 4, 19), (2000, 4, 23), (2019, 4, 21), (2025, 4, 20), (2038, 4, 25)],
)
def test_easter_is_computed(year: int, month: int, day: int) -> None:
    assert dates_in(f"Easter Sunday {year}", NOW)[0].first == date(year, month, day)
