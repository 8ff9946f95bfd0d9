"""Recall by time from outside: a question names a day, a month, a season or a holiday, in six languages."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

import weft
from diaries import DIARIES, NOW, SENDER, Line, builder, item_count, recalled, save, tagged, token_count

FEW = 5


@pytest.fixture
async def store() -> AsyncIterator[weft.Store]:
    """Open a store in memory, which is cheaper than a file."""
    async with await weft.open(":memory:") as opened:
        yield opened


def case_id(value: str) -> str:
    """Return the start of a value, so that the name of a case fits a line."""
    return value[:40]


# A question, the line that answers it, and lines of the same subject from other times.
MONTHS_AND_SUBJECTS = [
    ("en", "What was said about the flat in May?", "flat-may", "flat-aug"),
    ("en", "what did ben say about the car back in february", "car-feb", "car-jun"),
    ("en", "How did it go at the dentist last week?", "dentist-sep", "dentist-nov dentist-mar"),
    ("en", "What did the garage do to the car three months ago?", "car-jun", "car-feb"),
    ("en", "where did we go last winter?", "trip-winter", "trip-summer"),
    (
        "en",
        "What did the dentist charge me between March 1 and March 15?",
        "dentist-mar",
        "dentist-nov dentist-sep",
    ),
    ("en", "What did the dentist say on November 12, 2025?", "dentist-nov", "dentist-mar dentist-sep"),
    ("en", "what did we eat on christmas eve, was it goose?", "dinner-xmas", "dinner-may"),
    ("en", "Remind me what we signed for the flat in the second week of August", "flat-aug", "flat-may"),
    ("es", "¿Qué se dijo del piso en mayo?", "flat-may", "flat-aug"),
    ("es", "que dijo marcos del coche en febrero", "car-feb", "car-jun"),
    ("es", "¿Qué tal me fue en el dentista la semana pasada?", "dentist-sep", "dentist-nov dentist-mar"),
    ("es", "¿Qué le hicieron al coche en el taller hace tres meses?", "car-jun", "car-feb"),
    ("es", "¿Dónde estuvimos el invierno pasado?", "trip-winter", "trip-summer"),
    (
        "es",
        "¿Cuánto me cobró el dentista entre el 1 y el 15 de marzo?",
        "dentist-mar",
        "dentist-nov dentist-sep",
    ),
    ("es", "¿Qué dijo el dentista el 12 de noviembre de 2025?", "dentist-nov", "dentist-mar dentist-sep"),
    ("es", "¿Qué había en el horno en Nochebuena?", "dinner-xmas", "dinner-may"),
    ("es", "¿Qué firmamos del piso la segunda semana de agosto?", "flat-aug", "flat-may"),
    ("de", "Was wurde im Mai über die Wohnung gesagt?", "flat-may", "flat-aug"),
    ("de", "was meinte jonas im februar zum auto", "car-feb", "car-jun"),
    ("de", "Wie war es letzte Woche beim Zahnarzt?", "dentist-sep", "dentist-nov dentist-mar"),
    ("de", "Was hat die Werkstatt vor drei Monaten am Auto gemacht?", "car-jun", "car-feb"),
    ("de", "Wo waren wir letzten Winter?", "trip-winter", "trip-summer"),
    (
        "de",
        "Was hat der Zahnarzt zwischen dem 1. und dem 15. März gekostet?",
        "dentist-mar",
        "dentist-nov dentist-sep",
    ),
    ("de", "Was hat der Zahnarzt am 12. November 2025 gesagt?", "dentist-nov", "dentist-mar dentist-sep"),
    ("de", "Was gab es an Heiligabend zu essen, eine Gans?", "dinner-xmas", "dinner-may"),
    (
        "de",
        "Was haben wir in der zweiten Augustwoche wegen der Wohnung unterschrieben?",
        "flat-aug",
        "flat-may",
    ),
    ("fr", "Qu'est-ce qu'on a dit de l'appartement en mai ?", "flat-may", "flat-aug"),
    ("fr", "il disait quoi hugo sur la voiture en fevrier", "car-feb", "car-jun"),
    (
        "fr",
        "Comment ça s'est passé chez le dentiste la semaine dernière ?",
        "dentist-sep",
        "dentist-nov dentist-mar",
    ),
    ("fr", "Qu'a fait le garage sur la voiture il y a trois mois ?", "car-jun", "car-feb"),
    ("fr", "Où est-ce qu'on était l'hiver dernier ?", "trip-winter", "trip-summer"),
    (
        "fr",
        "Combien m'a pris le dentiste entre le 1er et le 15 mars ?",
        "dentist-mar",
        "dentist-nov dentist-sep",
    ),
    ("fr", "Qu'a dit le dentiste le 12 novembre 2025 ?", "dentist-nov", "dentist-mar dentist-sep"),
    ("fr", "Qu'est-ce qu'il y avait au four à Noël ?", "dinner-xmas", "dinner-may"),
    ("fr", "Qu'est-ce qu'on a signé pour l'appartement la deuxième semaine d'août ?", "flat-aug", "flat-may"),
    ("zh", "五月份看的那套房子怎么样？", "flat-may", "flat-aug"),
    ("zh", "阿伟二月份说车怎么了", "car-feb", "car-jun"),
    ("zh", "上周牙医怎么说的？", "dentist-sep", "dentist-nov dentist-mar"),
    ("zh", "三个月前修理厂给车做了什么？", "car-jun", "car-feb"),
    ("zh", "去年冬天我们去哪儿玩了？", "trip-winter", "trip-summer"),
    ("zh", "三月一号到三月十五号之间看牙医花了多少钱？", "dentist-mar", "dentist-nov dentist-sep"),
    ("zh", "2025年11月12日牙医说了什么？", "dentist-nov", "dentist-mar dentist-sep"),
    ("zh", "八月第二周房子签了什么？", "flat-aug", "flat-may"),
    ("ja", "5月に見た部屋はどんな感じだった？", "flat-may", "flat-aug"),
    ("ja", "健太は二月に車のこと何て言ってた", "car-feb", "car-jun"),
    ("ja", "先週の歯医者はどうだった？", "dentist-sep", "dentist-nov dentist-mar"),
    ("ja", "三か月前に車の何を交換したっけ？", "car-jun", "car-feb"),
    ("ja", "去年の冬はどこに行ったんだっけ？", "trip-winter", "trip-summer"),
    ("ja", "3月1日から3月15日の間に歯医者でいくら払った？", "dentist-mar", "dentist-nov dentist-sep"),
    ("ja", "2025年11月12日に歯医者で何て言われた？", "dentist-nov", "dentist-mar dentist-sep"),
    ("ja", "8月の第2週に部屋の何にサインした？", "flat-aug", "flat-may"),
]


def said(when: datetime, text: str, conversation: int) -> Line:
    """Return a line of Ada in a conversation that the diaries do not have."""
    return Line(tag="", conversation=conversation, timestamp=when, speaker="Ada", text=text)


def later(lines: list[Line]) -> list[Line]:
    """Return the lines in conversations with numbers of their own."""
    return [replace(line, conversation=line.conversation + 100) for line in lines]


async def rank(store: weft.Store, question: str) -> list[str]:
    """Return the texts that are recalled for a question, the best first."""
    lines = await store.recall.recall(question, sender=SENDER, session_id="", limit=40, now=NOW)
    return [line.text for line in lines]


@pytest.mark.parametrize(("language", "question", "tag", "others"), MONTHS_AND_SUBJECTS, ids=case_id)
async def test_the_line_of_the_time_that_is_named_stands_before_the_same_subject_at_other_times(
    store: weft.Store, language: str, question: str, tag: str, others: str
) -> None:
    line, rivals = tagged(language, tag), {tagged(language, other).text for other in others.split()}

    await save(store, DIARIES[language])
    ranked = await rank(store, question)
    context = await builder(store).build(question)

    assert line.shown in recalled(context)
    assert line.text in ranked[:FEW]
    assert not rivals & set(ranked[: ranked.index(line.text)])


# A question that names a time and no subject, or only a vague one.
TIMES_ALONE = [
    ("en", "what were we talking about yesterday?", "yesterday"),
    ("en", "What did Ben tell me last Friday?", "friday"),
    ("en", "What happened on July 2nd?", "meet"),
    ("en", "what did we do at easter", "easter"),
    ("en", "Did we buy anything on the last Saturday of August?", "market"),
    ("en", "What was going on in mid-July?", "trip-summer"),
    ("es", "¿De qué hablamos ayer?", "yesterday"),
    ("es", "¿Qué me contó Marcos el viernes pasado?", "friday"),
    ("es", "¿Qué pasó el 2 de julio?", "meet"),
    ("es", "¿Qué pasó el día de Reyes?", "kings"),
    ("es", "¿Compramos algo el último sábado de agosto?", "market"),
    ("es", "qué hicimos en semana santa", "easter"),
    ("de", "Worüber haben wir gestern geredet?", "yesterday"),
    ("de", "Was hat Jonas mir letzten Freitag erzählt?", "friday"),
    ("de", "Was war am 2. Juli los?", "meet"),
    ("de", "was haben wir an ostern gemacht", "easter"),
    ("de", "Haben wir am letzten Samstag im August etwas gekauft?", "market"),
    ("de", "Was war Mitte Juli?", "trip-summer"),
    ("fr", "De quoi on a parlé hier ?", "yesterday"),
    ("fr", "Qu'est-ce que Hugo m'a raconté vendredi dernier ?", "friday"),
    ("fr", "Que s'est-il passé le 2 juillet ?", "meet"),
    ("fr", "on a fait quoi à pâques", "easter"),
    ("fr", "On a acheté quelque chose le dernier samedi d'août ?", "market"),
    ("fr", "Qu'est-ce qu'on faisait à la mi-juillet ?", "trip-summer"),
    ("zh", "昨天我们聊了什么？", "yesterday"),
    ("zh", "上周五阿伟跟我说了什么？", "friday"),
    ("zh", "7月2号发生了什么事？", "meet"),
    ("zh", "八月最后一个星期六我们买了什么吗？", "market"),
    ("zh", "七月中旬我们在做什么？", "trip-summer"),
    ("ja", "昨日は何の話をしてたっけ？", "yesterday"),
    ("ja", "先週の金曜日、健太は何て言ってた？", "friday"),
    ("ja", "7月2日に何があった？", "meet"),
    ("ja", "お正月は何してたっけ", "newyear"),
    ("ja", "8月最後の土曜日に何か買った？", "market"),
    ("ja", "7月中旬は何をしてた？", "trip-summer"),
    ("en", "What did I say last night?", "yesterday"),
    ("en", "what did we do on xmas eve", "dinner-xmas"),
    ("en", "What happened between New Year's and Valentine's Day?", "trip-winter"),
    ("en", "What's on for October 1st?", "flat-aug"),
    ("en", "what did ben say on the 11th?", "friday"),
    ("en", "what was it I told you on 8/29?", "market"),
    ("es", "¿Qué hicimos a mediados de julio?", "trip-summer"),
    ("es", "¿Qué te dije anoche?", "yesterday"),
    ("es", "¿Qué pasa el 1 de octubre?", "flat-aug"),
    ("es", "¿Qué dijo Marcos el día 11?", "friday"),
    ("es", "¿Qué hemos hablado en los últimos tres días?", "yesterday"),
    ("de", "Was war am 12.11.2025?", "dentist-nov"),
    ("de", "Was war Ende August?", "market"),
    ("de", "Was ist am 1. Oktober?", "flat-aug"),
    ("de", "Was hat Jonas am 11. gesagt?", "friday"),
    ("fr", "Que s'est-il passé fin août ?", "market"),
    ("fr", "Qu'est-ce que je t'ai raconté il y a une semaine ?", "dentist-sep"),
    ("fr", "Qu'est-ce qui se passe le 1er octobre ?", "flat-aug"),
    ("fr", "Qu'est-ce que Hugo a dit le 11 ?", "friday"),
    ("fr", "On a fait quoi en avril ?", "easter"),
    ("fr", "On a dit quoi lundi ?", "yesterday"),
    ("zh", "上个月签了什么？", "flat-aug"),
    ("zh", "国庆假期我在看什么？", "book"),
    ("zh", "10月1号有什么安排？", "flat-aug"),
    ("zh", "11号阿伟说了什么？", "friday"),
    ("zh", "十个月前怎么了？", "dentist-nov"),
    ("zh", "八月底阿伟买了什么？", "market"),
    ("ja", "先月、何にサインした？", "flat-aug"),
    ("ja", "昨夜は何を話してた？", "yesterday"),
    ("ja", "10月1日は何がある？", "flat-aug"),
    ("ja", "11日に健太は何て言ってた？", "friday"),
    ("ja", "年末年始は何してた？", "newyear"),
    ("ja", "ここ三日間で何を話した？", "yesterday"),
    ("ja", "ゆうべ何の話をした？", "yesterday"),
]


@pytest.mark.parametrize(("language", "question", "tag"), TIMES_ALONE, ids=case_id)
async def test_a_question_that_only_names_a_time_shows_what_was_said_or_happened_then(
    store: weft.Store, language: str, question: str, tag: str
) -> None:
    line = tagged(language, tag)

    await save(store, DIARIES[language])
    ranked = await rank(store, question)
    context = await builder(store).build(question)

    assert line.shown in recalled(context)
    assert line.text in ranked[:FEW]


# A subject that comes up in three conversations or more.
WIDE = [
    ("en", "the dentist, the car and the flat"),
    ("es", "el dentista, el coche y el piso"),
    ("de", "Zahnarzt, Auto und Wohnung"),
    ("fr", "le dentiste, la voiture et l'appartement"),
    ("zh", "牙医、修理厂和房子"),
    ("ja", "歯医者はどうだった？"),
    ("ja", "歯医者と車と部屋"),
    ("en", "the dentist, the car, the flat and my parents"),
    ("es", "el dentista, el coche, el piso y mis padres"),
    ("de", "Zahnarzt, Auto, Wohnung und Restaurant"),
    ("fr", "le dentiste, la voiture, l'appartement et le restaurant"),
    ("zh", "牙医、修理厂、房子和爸妈"),
]


@pytest.mark.parametrize(("language", "question"), WIDE)
async def test_lines_are_grouped_by_conversation_in_time_order_with_dates_and_speakers(
    store: weft.Store, language: str, question: str
) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(question)

    by_shown = {line.shown: line for line in DIARIES[language]}
    lines = [by_shown[shown] for shown in recalled(context)]
    assert len({line.conversation for line in lines}) >= 3
    assert lines == sorted(lines, key=lambda line: (line.conversation, line.timestamp))
    assert item_count(context) == len(lines) + 1


@pytest.mark.parametrize(
    "pause",
    [
        pytest.param(timedelta(minutes=3), id="minutes"),
        pytest.param(timedelta(days=1), id="days"),
    ],
)
async def test_two_conversations_at_the_same_time_are_shown_one_after_the_other(
    store: weft.Store, pause: timedelta
) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    texts = ["The kayak has a leak", "Patched the kayak", "The kayak floats again"]
    others = ["A rack for the kayak?", "The kayak rack arrived", "Mounted the kayak rack"]
    mixed = [text for pair in zip(texts, others, strict=True) for text in pair]
    lines = [said(start + number * pause, text, number % 2 + 1) for number, text in enumerate(mixed)]
    await save(store, lines + later(DIARIES["en"]))

    context = await builder(store).build("What about the kayak?")

    shown = [row.partition("Ada: ")[2] for row in recalled(context)]
    assert [text for text in shown if "kayak" in text] == texts + others


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (datetime(2026, 3, 11, 12, tzinfo=UTC), "dentist-mar"),
        (datetime(2025, 11, 13, 12, tzinfo=UTC), "dentist-nov"),
        (datetime(2026, 9, 9, 12, tzinfo=UTC), "dentist-sep"),
    ],
)
async def test_yesterday_is_the_day_before_the_question_whenever_it_is_asked(
    store: weft.Store, now: datetime, shown: str
) -> None:
    await save(store, [line for line in DIARIES["en"] if line.timestamp < now])
    line = tagged("en", shown)

    question = "What did the dentist do yesterday?"
    ranked = await store.recall.recall(question, sender=SENDER, session_id="", limit=40, now=now)
    context = await builder(store).at(now).build(question)

    assert line.shown in recalled(context)
    assert next(entry.text for entry in ranked if "dentist" in entry.text) == line.text


KAYAK = "The kayak trip number {} went down the river to the mill, past the weir and the old ferry."


@pytest.mark.parametrize(
    "trips",
    [40, 400],
)
async def test_a_subject_that_came_up_often_is_recalled_within_the_tokens_of_the_recipe(
    store: weft.Store, trips: int
) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    lines = [
        said(start + number * timedelta(hours=7), KAYAK.format(number), number // 20 + 1)
        for number in range(trips)
    ]
    await save(store, lines + later(DIARIES["en"]))

    context = await builder(store).build("How far did the kayak trip go?")

    assert any("kayak" in row for row in recalled(context))
    assert token_count(context) <= 1_500


HOSTILE = [
    "flat " * 20_000,
    "last " * 20_000 + "week",
    "?!...",
    "😀🎉",
    '" OR *',
    "flat' OR 1=1; DROP TABLE messages;--",
    "NEAR(flat may)",
    "\x00flat\ud800",
    "9999999999999999999999 years ago",
    "31 February 2026, 0/0/0000, Easter 99999",
    "十百千万" * 1_000 + "年前",
    "99999999か月前",
    "vor 99999999 Jahren",
]


@pytest.mark.parametrize("question", HOSTILE, ids=lambda question: repr(question[:20]))
async def test_no_question_breaks_recall(store: weft.Store, question: str) -> None:
    await save(store, DIARIES["en"])

    context = await builder(store).build(question)

    assert set(recalled(context)) <= {line.shown for line in DIARIES["en"]}
    assert token_count(context) <= 1_500


@pytest.mark.parametrize(
    "when",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12))),
    ],
    ids=str,
)
async def test_a_line_of_the_first_or_the_last_day_of_the_calendar_is_recalled(
    store: weft.Store, when: datetime
) -> None:
    text = "The zeppelin landed yesterday and leaves again next year"
    await save(store, [*DIARIES["en"], said(when, text, 50)])

    context = await builder(store).build("What about the zeppelin?")

    assert any(text in row for row in recalled(context))


async def test_a_session_whose_times_go_backwards_is_recalled(store: weft.Store) -> None:
    lines = [said(NOW - timedelta(days=number), f"zeppelin part {number}", 50) for number in range(1, 6)]
    await save(store, [*DIARIES["en"], *lines])

    context = await builder(store).build("What about the zeppelin?")

    assert {row for row in recalled(context) if "zeppelin" in row} == {line.shown for line in lines}


async def test_the_receipt_names_a_recalled_line_with_its_day_in_the_persons_zone(store: weft.Store) -> None:
    late = datetime(2026, 5, 1, 23, 30, tzinfo=UTC)
    await save(store, [*DIARIES["en"], said(late, "The zeppelin has three rooms and a view of the sea", 50)])

    context = await builder(store).at(NOW.astimezone(timezone(timedelta(hours=2)))).build("the zeppelin?")

    assert context.receipt is not None
    titles = [item.title for item in context.receipt.items if "zeppelin" in item.title]
    assert titles == ["2026-05-02 Ada: The zeppelin has three rooms and a view"]
