"""Recall by subject from outside, in six languages: what is found, and what adds nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

import weft
from diaries import DIARIES, builder, item_count, recalled, save, tagged
from epoch_chaos import Model, small

LANGUAGES = sorted(DIARIES)


@pytest.fixture
async def store() -> AsyncIterator[weft.Store]:
    """Open a store in memory, which is cheaper than a file."""
    async with await weft.open(":memory:") as opened:
        yield opened


def case_id(value: str) -> str:
    """Return the start of a value, so that the name of a case fits a line."""
    return value[:40]


# A question without a date, in other words than the line that answers it.
SUBJECTS = [
    ("en", "How much rent do they want for the apartment?", "flat-may"),
    ("en", "which brakes did the mechanic put in, and what did Ben pay?", "car-feb"),
    ("en", "What can't the cat eat?", "cat"),
    ("en", "What is our cat allergic to?", "cat"),
    ("en", "whats the name of the street where the three-room flat is", "flat-may"),
    ("en", "What are we giving mum for her birthday?", "present"),
    ("en", "who was that novel about, the one with the lighthouses?", "book"),
    ("en", "Does the price of the movers include moving the piano?", "yesterday"),
    ("es", "¿Cuánto piden de alquiler por el apartamento?", "flat-may"),
    ("es", "cuanto costaron los frenos", "car-feb"),
    ("es", "¿A qué es alérgica nuestra gata?", "cat"),
    ("es", "¿El precio de la mudanza incluye el piano?", "yesterday"),
    ("es", "¿Qué le pasa a la lavadora?", "washing"),
    ("de", "Wie hoch ist die Miete für die Dreizimmerwohnung?", "flat-may"),
    ("de", "was haben die bremsen gekostet", "car-feb"),
    ("de", "Wogegen ist unsere Katze allergisch?", "cat"),
    ("de", "Wie hieß das Buch mit den Leuchttürmen?", "book"),
    ("de", "Ist das Klavier beim Umzug im Preis drin?", "yesterday"),
    ("de", "Was schenken wir Mama zum Geburtstag?", "present"),
    ("de", "Was ist mit der Waschmaschine?", "washing"),
    ("de", "Was kostete unsere Wagenreparatur, die mit den Bremsen?", "car-feb"),
    ("fr", "Il est à combien, le loyer de l'appart ?", "flat-may"),
    ("fr", "ils ont coute combien les freins", "car-feb"),
    ("fr", "Notre chatte est allergique à quoi ?", "cat"),
    ("fr", "C'était quoi ce roman sur les phares ?", "book"),
    ("fr", "Le piano est compris dans le prix du déménagement ?", "yesterday"),
    ("fr", "Qu'est-ce qu'on offre à maman pour son anniversaire ?", "present"),
    ("zh", "那套三室的房子每个月房租多少？", "flat-may"),
    ("zh", "换刹车花了多少钱", "car-feb"),
    ("zh", "我们家的猫对什么过敏？", "cat"),
    ("zh", "那本灯塔的书讲什么的？", "book"),
    ("zh", "搬家的报价包括钢琴吗？", "yesterday"),
    ("zh", "给妈妈送什么生日礼物？", "present"),
    ("ja", "あの3LDKの家賃っていくらだったっけ？", "flat-may"),
    ("ja", "ブレーキの交換はいくらかかった？", "car-feb"),
    ("ja", "うちの猫は何のアレルギーだっけ？", "cat"),
    ("ja", "灯台の本って何の話？", "book"),
    ("ja", "引っ越しの見積もりにピアノは入ってる？", "yesterday"),
    ("ja", "母の還暦のプレゼントは何にする？", "present"),
]


@pytest.mark.parametrize(("language", "question", "tag"), SUBJECTS, ids=case_id)
async def test_a_question_in_other_words_shows_the_line_that_answers_it(
    store: weft.Store, language: str, question: str, tag: str
) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(question)

    assert tagged(language, tag).shown in recalled(context)


WORDS = [
    ("en", "Zermatt?", "trip-winter"),
    ("en", "lamp", "market"),
    ("en", "lighthouse", "book"),
    ("en", "lighthouses?", "book"),
    ("es", "mudanza", "yesterday"),
    ("es", "restaurante", "dinner-may"),
    ("es", "¿la procesión?", "easter"),
    ("de", "Messinglampe", "market"),
    ("de", "Wurzelbehandlung?", "dentist-nov"),
    ("de", "inklusive", "yesterday"),
    ("fr", "déménageurs", "yesterday"),
    ("fr", "dévitaliser", "dentist-nov"),
    ("zh", "钢琴", "yesterday"),
    ("zh", "灯塔", "book"),
    ("ja", "ピアノ", "yesterday"),
    ("ja", "灯台", "book"),
]


@pytest.mark.parametrize(("language", "word", "tag"), WORDS, ids=case_id)
async def test_a_telling_word_alone_shows_the_line_that_has_it(
    store: weft.Store, language: str, word: str, tag: str
) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(word)

    assert tagged(language, tag).shown in recalled(context)


MISSPELT = [
    ("en", "Where is Klara moving to?", "meet"),
    ("en", "what did Clarra say at the station", "meet"),
    ("en", "How was the snow in Zermat?", "trip-winter"),
    ("es", "¿A dónde se muda Begonia?", "meet"),
    ("es", "¿qué tal la nieve en Vaqueira?", "trip-winter"),
    ("de", "Wohin zieht Friedericke?", "meet"),
    ("de", "Wie war der Schnee in Zermat?", "trip-winter"),
    ("fr", "Où part vivre Matilde ?", "meet"),
    ("fr", "Elle était comment, la neige à Chamonnix ?", "trip-winter"),
    ("zh", "陈思淇要搬去哪儿？", "meet"),
    ("ja", "由香理はどこに引っ越すの？", "meet"),
    ("ja", "ロッテルダンのプロジェクトの話って何だっけ？", "friday"),
]


@pytest.mark.parametrize(("language", "question", "tag"), MISSPELT, ids=case_id)
async def test_a_misspelt_name_still_finds_its_line(
    store: weft.Store, language: str, question: str, tag: str
) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(question)

    assert tagged(language, tag).shown in recalled(context)


SMALL_TALK = {
    "en": ["hi", "thanks!", "Good morning!", "ok", "lol", "How are you?", "see you tomorrow"],
    "es": ["hola", "¡gracias!", "Buenos días", "vale", "jajaja", "¿Qué tal?", "hasta mañana"],
    "de": ["hallo", "danke!", "Guten Morgen!", "ok", "haha", "Wie geht's?", "bis morgen"],
    "fr": ["salut", "merci !", "Bonjour", "d'accord", "mdr", "Ça va ?", "à demain"],
    "zh": ["你好", "谢谢！", "早上好", "好的", "哈哈哈", "你好吗？", "明天见"],
    "ja": ["こんにちは", "ありがとう！", "おはよう", "了解", "笑", "元気？", "また明日"],
}
SMALL_TALK_CASES = [(language, text) for language, texts in SMALL_TALK.items() for text in texts]


@pytest.mark.parametrize(("language", "text"), SMALL_TALK_CASES, ids=case_id)
async def test_small_talk_recalls_nothing(store: weft.Store, language: str, text: str) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(text)

    assert recalled(context) == []
    assert item_count(context) == 0


# Questions about what nobody mentioned, and requests that need no past.
UNKNOWN = [
    ("en", "What is the name of my sister's horse?"),
    ("en", "How do I bake sourdough bread?"),
    ("en", "Set a timer for twenty minutes."),
    ("en", "Remind me to buy milk tomorrow."),
    ("en", "What's the weather like today?"),
    ("en", "Wake me at seven on Friday."),
    ("en", "What did Rosalind say about the flat in May?"),
    ("en", "How much did they want for the brakes of Rosalind's Volvo?"),
    ("es", "¿Qué dijo Leonora de la lavadora?"),
    ("fr", "Qu'est-ce que Gwendoline a dit du loyer ?"),
    ("es", "¿Qué hora es?"),
    ("de", "Wie wird das Wetter morgen?"),
    ("fr", "Quelle heure est-il ?"),
    ("zh", "现在几点了？"),
    ("ja", "明日の天気は？"),
    ("es", "¿Cómo se llama el caballo de mi hermana?"),
    ("es", "¿Cómo se hace el pan de masa madre?"),
    ("es", "Recuérdame mañana comprar leche."),
    ("de", "Wie heißt das Pferd meiner Schwester?"),
    ("de", "Wie backt man Sauerteigbrot?"),
    ("de", "Erinnere mich morgen daran, Milch zu kaufen."),
    ("fr", "Comment s'appelle le cheval de ma sœur ?"),
    ("fr", "Comment fait-on du pain au levain ?"),
    ("fr", "Rappelle-moi d'acheter du lait demain."),
    ("zh", "我姐姐的马叫什么名字？"),
    ("zh", "酸面包怎么烤？"),
    ("zh", "明天提醒我买牛奶。"),
    ("ja", "姉の馬の名前は何？"),
    ("ja", "天然酵母パンの焼き方を教えて。"),
    ("ja", "明日、牛乳を買うようにリマインドして。"),
]


@pytest.mark.parametrize(("language", "question"), UNKNOWN, ids=case_id)
async def test_what_was_never_mentioned_recalls_nothing(
    store: weft.Store, language: str, question: str
) -> None:
    await save(store, DIARIES[language])

    context = await builder(store).build(question)

    assert recalled(context) == []
    assert item_count(context) == 0


OF_FLATS = {
    "en": "What was said about the flat in May?",
    "es": "¿Qué se dijo del piso en mayo?",
    "de": "Was wurde im Mai über die Wohnung gesagt?",
    "fr": "Qu'est-ce qu'on a dit de l'appartement en mai ?",
    "zh": "五月份看的那套房子怎么样？",
    "ja": "5月に見た部屋の家賃はいくら？",
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_line_of_another_person_is_recalled(store: weft.Store, language: str) -> None:
    await save(store, DIARIES[language], sender="guest")
    mine = [line for line in DIARIES[language] if line.tag == "flat-aug"]
    await save(store, mine)

    theirs = await builder(store, "guest").build(OF_FLATS[language])
    own = await builder(store).build(OF_FLATS[language])
    nobody = await builder(store, "stranger").build(OF_FLATS[language])

    assert tagged(language, "flat-may").shown in recalled(theirs)
    assert set(recalled(own)) <= {line.shown for line in mine}
    assert item_count(nobody) == 0


@pytest.mark.parametrize("language", LANGUAGES)
async def test_lines_of_the_running_conversation_that_are_in_view_are_not_repeated(
    store: weft.Store, language: str
) -> None:
    sessions = await save(store, DIARIES[language])
    line = tagged(language, "flat-may")

    context = await builder(store).with_session(sessions[line.conversation].id).build(OF_FLATS[language])

    in_view = {
        line.shown
        for line in DIARIES[language]
        if line.conversation == tagged(language, "flat-may").conversation
    }
    assert line.text in context.to_prompt_string()
    assert not in_view & set(recalled(context))


OF_CATS = {
    "en": "What is our cat allergic to?",
    "es": "¿A qué es alérgica nuestra gata?",
    "de": "Wogegen ist unsere Katze allergisch?",
    "fr": "Notre chatte est allergique à quoi ?",
    "zh": "我们家的猫对什么过敏？",
    "ja": "うちの猫は何のアレルギーだっけ？",
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_run_of_short_messages_is_shown_as_one_run(store: weft.Store, language: str) -> None:
    await save(store, DIARIES[language])
    lines = DIARIES[language]
    last = lines.index(tagged(language, "cat"))

    context = await builder(store).build(OF_CATS[language])

    shown = recalled(context)
    run = [line.shown for line in lines[last - 1 : last + 1]]
    start = shown.index(run[0])
    assert shown[start : start + 2] == run


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_was_said_often_is_shown_once(store: weft.Store, language: str) -> None:
    line = tagged(language, "flat-may")
    copies = [
        replace(line, conversation=number, timestamp=line.timestamp + timedelta(days=number))
        for number in range(101, 106)
    ]
    await save(store, [*DIARIES[language], *copies])

    context = await builder(store).build(OF_FLATS[language])

    assert len([row for row in recalled(context) if line.text in row]) == 1


@pytest.mark.parametrize(
    "length",
    [
        pytest.param(3, id="3 lines"),
        pytest.param(500, id="500 lines"),
    ],
)
async def test_a_subject_within_a_run_is_shown_however_long_the_run_is(
    store: weft.Store, length: int
) -> None:
    start = tagged("en", "cat")
    texts = [f"step {number} of the stairs" for number in range(length)]
    texts[::50] = [f"the zeppelin drifts over bridge {number}" for number in range(len(texts[::50]))]
    run = [
        replace(start, conversation=101, timestamp=start.timestamp + timedelta(seconds=number), text=text)
        for number, text in enumerate(texts)
    ]
    await save(store, [*DIARIES["en"], *run])

    context = await builder(store).build("What about the zeppelin?")

    assert any("zeppelin" in row for row in recalled(context))


def _long_talk() -> list[weft.Message]:
    start = tagged("en", "easter").timestamp
    texts = ["The zeppelin leaves from Basel at nine."]
    texts += [
        f"Plant {number} grows slowly. " + "It likes the shade of the wall. " * 20 for number in range(80)
    ]
    return [
        weft.Message(role="user", content=text, timestamp=start + timedelta(minutes=number))
        for number, text in enumerate(texts)
    ]


async def test_what_fell_out_of_the_window_is_recalled_in_the_request_that_leaves_it_out(
    store: weft.Store,
) -> None:
    session = await store.sessions.new("app", "c1", "owner", agent_id="weft")
    await store.messages.append(session.id, *_long_talk())

    tight = builder(store).with_session(session.id).with_model_info(weft.ModelInfo(max_tokens=8_000))
    context = await tight.build("When does the zeppelin leave?")

    assert "zeppelin leaves from Basel" in context.to_prompt_string()
    assert any("zeppelin" in row for row in recalled(context))


async def test_what_was_folded_is_recalled_in_the_same_conversation() -> None:
    model = Model(info=small(6_000))
    app = await weft.connect(provider=model)
    for message in _long_talk()[:31]:
        await app.ask(message.content, session="chat")
        await app.folds.settle()
    await app.ask("When does the zeppelin leave?", session="chat")
    await app.close()

    assert any("zeppelin leaves from Basel" in row for row in recalled(model.requests[-1]))
