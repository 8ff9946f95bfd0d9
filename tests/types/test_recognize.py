"""Which sentences are standing instructions: rules for the assistant, and nothing else, in six languages."""

import pytest

from weft.types.recognize import MAX_CHARS, MAX_READ_CHARS, standing_instructions

RULES = {
    "en": """
Always answer in Spanish.
always reply in one sentence
Please always call me Robert.
Never call me Bob.
never use emojis
Never ever use the word "utilize" again.
Don't ever call me Bob!
Do not call me Bob ever again.
From now on, answer in Spanish.
From now on I want you to use metric units.
from now on only in Spanish please
From now on you will call me Captain.
Going forward, please keep your answers short.
In future, use the 24-hour clock.
In the future, please give me sources.
Call me Rob from now on.
Please cite sources in every answer.
Every time I ask for a recipe, give me the weights in grams.
Whenever I paste code, please explain it line by line.
When I ask about the weather, always use Celsius.
You must always answer in Spanish.
You are never to call me Bob.
I want you to always write in British English.
Make sure you always ask me before you delete anything.
Hey Weft, always be concise.
Remember: never apologize.
Under no circumstances give medical advice.
Could you always answer in short sentences?
Could you please never call me Bob?
Can you please never call me Bob?
Hey, would you please always use metric units?
Can you always answer in Spanish, please?
Could you always answer in short sentences.
""",
    "es": """
Responde siempre en español.
Siempre responde en español.
Contéstame siempre en inglés, por favor.
Por favor, llámame siempre Ana.
Usa siempre unidades métricas.
Nunca me llames Bob.
Jamás uses emojis.
No me llames nunca Bob.
No uses emojis nunca.
No me vuelvas a llamar Bob.
A partir de ahora, responde en español.
De ahora en adelante quiero que me llames Ana.
De ahora en adelante no uses emojis.
En el futuro, dame siempre las fuentes.
Cada vez que te pida una receta, dame los gramos.
Siempre que pegue código, explícame cada línea.
Quiero que siempre respondas en español.
Debes responder siempre en español.
Llámame Roberto de ahora en adelante.
Nunca debes usar emojis.
¿Podrías responder siempre en español?
Por favor, ¿podrías siempre hablar en español?
¿Puedes, por favor, no llamarme nunca Bob?
""",
    "de": """
Antworte immer auf Deutsch.
Antworte mir bitte immer auf Deutsch.
Bitte antworte stets kurz.
Nenn mich nie Bob.
Nenne mich niemals Bob!
Verwende niemals Emojis.
Benutze immer metrische Einheiten.
Antworten Sie immer auf Deutsch.
Verwenden Sie bitte nie Emojis.
Immer auf Deutsch antworten.
Nie Emojis benutzen, bitte.
Ab jetzt antworte auf Deutsch.
Ab sofort bitte auf Deutsch antworten.
Von nun an nennst du mich Robert.
In Zukunft gib mir bitte Quellen an.
Künftig sollst du mich siezen.
Antworte ab jetzt auf Deutsch.
Jedes Mal, wenn ich nach einem Rezept frage, gib mir die Menge in Gramm.
Immer wenn ich Code einfüge, erkläre ihn Zeile für Zeile.
Du sollst mir immer auf Deutsch antworten.
Ich möchte, dass du mich immer siezt.
Könntest du immer auf Deutsch antworten?
Kannst du mich bitte nie Bob nennen?
""",
    "fr": """
Réponds toujours en français.
Réponds-moi toujours en français, s'il te plaît.
Répondez toujours brièvement.
Ne m'appelle jamais Bob.
N'utilise jamais d'emojis.
Ne me tutoie jamais.
N’utilisez plus jamais d’emojis.
Toujours répondre en français.
Ne jamais utiliser d'emojis.
Désormais, réponds en français.
Dorénavant, appelle-moi Robert.
À partir de maintenant, tu dois répondre en français.
À l'avenir, donne-moi les sources.
Désormais je veux que tu me vouvoies.
Appelle-moi Robert désormais.
Chaque fois que je demande une recette, donne-moi les quantités en grammes.
Tu dois toujours répondre en français.
Je veux que tu répondes toujours en français.
S'il te plaît, utilise toujours le système métrique.
Pourrais-tu toujours répondre en français ?
Peux-tu, s'il te plaît, ne jamais m'appeler Bob ?
""",
    "zh": """
请始终用中文回答。
以后都用中文回答我。
以后请用中文回答
从现在起，请用中文回复我。
从现在开始，叫我小王。
从今以后不要叫我老王。
今后请先问我再删除文件。
永远不要叫我老王。
永远别用表情符号回复。
你必须始终用公制单位。
请总是用中文回答。
你要一直用敬语称呼我。
请每次都附上来源。
绝不要编造来源。
每次我问菜谱，请用克表示单位。
每当我贴代码，你都要解释。
以后不要再使用表情符号。
一律用中文回答。
""",
    "ja": """
いつも日本語で答えてください。
常に日本語で答えて。
必ず出典を示してください。
これからは日本語で答えてください。
今後は敬語で話してください。
今後、絵文字を使わないでください。
これからは私をロブと呼んで。
二度とボブと呼ばないでください。
絶対に絵文字を使わないで。
決して嘘を言わないでください。
毎回、出典を付けてください。
私がレシピを聞くたびに、グラムで答えてください。
私がコードを貼ったときは必ず説明してください。
今から英語で返信してください。
いつも簡潔に答えるようにしてください。
私のことは常にロブと呼んでください。
これからはメートル法でお願いします。
""",
}
OTHERS = {
    "en": """
I never eat meat.
I always get up at six.
She never calls.
My boss always answers late.
Do you always answer in English?
Can you always answer in Spanish?
Can you always see the sea from there?
Could you always see the sea from there?
Could you always answer the phone so late?
Do you always answer like that?
Would you always answer like that?
Can you please explain why it never works?
Could he always answer like that, please?
Could you tell me if it always rains there?
He said: could you always answer politely?
Always answer in Spanish?
From now on you will call me Bob?
He said: always answer politely.
My grandmother always said never call a wolf a dog.
Never again will I fly.
Never mind.
Never give up!
Never say never.
Always late, that man.
Answer in Spanish.
Please call me Rob.
You always answer late.
You never listen to me.
From now on I will get up at six.
From now on my boss answers late.
In the future cars will fly.
Every time I call her, she cries.
Every time I ask, you answer in French.
Tell me what will happen in the future.
Explain why it fails every time.
"Always answer politely."
You should always wear a helmet.
Is it rude to never answer?
I will always call you Bob.
Never heard of it.
Whenever you need help, just let me know.
never put your ego above team success
Always answer politely, my mother said.
We are going to Spain from now on.
How do I say 'never call me again' in French?
""",
    "es": """
Nunca como carne.
Siempre me levanto a las seis.
Ella nunca llama.
Mi jefe siempre responde tarde.
Siempre responde tarde.
Nunca me llama.
¿Siempre respondes en inglés?
¿Puedes ver siempre el mar?
¿Podrías responder en español?
Responde en español.
Llámame Ana.
Nunca más volaré.
Nunca digas nunca.
A partir de ahora vivo en Lisboa.
A partir de ahora me levanto a las seis.
En el futuro los coches volarán.
Cada vez que la llamo, llora.
Cada vez que llamo, contesta tarde.
Él dijo: responde siempre con cortesía.
«Responde siempre con cortesía.»
Siempre lo mismo.
Habla siempre de su madre.
Nunca he estado en Roma.
""",
    "de": """
Ich esse nie Fleisch.
Ich stehe immer um sechs auf.
Sie ruft nie an.
Mein Chef antwortet immer spät.
Antwortest du immer auf Englisch?
Kannst du von dort immer das Meer sehen?
Könntest du immer dort bleiben?
Antworte immer auf Deutsch?
Antworte auf Deutsch.
Nenn mich Robert.
Er sagte: antworte immer höflich.
Nie wieder fliege ich.
Nie im Leben!
Immer mit der Ruhe.
Ab jetzt wohne ich in Lissabon.
Von nun an stehe ich um sechs auf.
In Zukunft werden Autos fliegen.
In Zukunft werden Roboter mit uns sprechen.
Jedes Mal, wenn ich sie anrufe, weint sie.
Frage mich immer, ob das stimmt.
Erkläre mir, was ab jetzt gilt.
„Antworte immer höflich.“
Antworte immer zu spät, sorry.
Du antwortest nie.
Immer muss ich alles sagen.
""",
    "fr": """
Je ne mange jamais de viande.
Je me lève toujours à six heures.
Elle n'appelle jamais.
Mon chef répond toujours en retard.
Est-ce que tu réponds toujours en anglais ?
Peux-tu toujours voir la mer ?
Réponds en français.
Appelle-moi Robert.
Il a dit : réponds toujours poliment.
Plus jamais je ne prendrai l'avion.
Jamais de la vie !
Toujours en retard, celui-là.
Désormais je vis à Lisbonne.
Désormais, elle parle français.
À l'avenir, les voitures voleront.
Chaque fois que je l'appelle, elle pleure.
« Réponds toujours poliment. »
Tu ne réponds jamais.
Explique ce qui change désormais.
On ne sait jamais.
""",
    "zh": """
我从不吃肉。
我总是六点起床。
她从来不打电话。
我老板总是回复得很晚。
总是回复得很晚。
你总是用英文回答吗？
你必须始终用中文回答吗
用中文回答。
请叫我小王。
他说：总是礼貌地回答。
我再也不坐飞机了。
以后再说。
以后我想当医生。
从现在起我住在里斯本。
每次我给她打电话，她都哭。
永远不会忘记。
总是这样。
“请始终礼貌地回答。”
你总是用英文回答我。
将来汽车会飞。
""",
    "ja": """
私は決して肉を食べない。
いつも六時に起きます。
彼女は絶対に電話しない。
上司はいつも返事が遅い。
いつも英語で答えてくれますか？
日本語で答えて。
ロブと呼んでください。
彼は「いつも丁寧に答えて」と言った。
二度と飛行機には乗らない。
これからリスボンに住みます。
今後、車は空を飛ぶでしょう。
いつも忙しくて。
いつも答えてくれてありがとう。
電話するたびに彼女は泣く。
「いつも丁寧に答えてください。」
絶対に無理。
私はいつも母に聞いて。
""",
}


def cases(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(language, line) for language, text in table.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize("table", [RULES, OTHERS], ids=["rules", "others"])
def test_each_language_has_fifteen_cases_at_least(table: dict[str, str]) -> None:
    assert {language for language, text in table.items() if len(text.split("\n")) >= 17} == {*RULES}


@pytest.mark.parametrize(("language", "sentence"), cases(RULES))
def test_a_lasting_rule_for_the_assistant_is_recognized_verbatim(language: str, sentence: str) -> None:
    assert standing_instructions(f"  {sentence} \n") == (sentence,)


@pytest.mark.parametrize(("language", "sentence"), cases(OTHERS))
def test_facts_questions_quotes_stories_and_orders_for_once_are_not(language: str, sentence: str) -> None:
    assert standing_instructions(sentence) == ()


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        ("Hi! Always answer in Spanish. What's the weather?", ("Always answer in Spanish.",)),
        ("What is the weather? Always answer in Spanish.", ("Always answer in Spanish.",)),
        ("always answer in spanish. what is the time", ("always answer in spanish.",)),
        ("Use km, e.g. 5 km. Never use miles, i.e. no mi.", ("Never use miles, i.e. no mi.",)),
        (
            "My rules:\n- Always answer in Spanish\n2. never call me Bob",
            ("Always answer in Spanish", "never call me Bob"),
        ),
        ("以后请用中文回答。今天天气怎么样？", ("以后请用中文回答。",)),
        ("Always answer in Spanish.\nAlways answer in Spanish.", ("Always answer in Spanish.",)),
        ('Always sign with "Yours. Weft".', ('Always sign with "Yours. Weft".',)),
        ("Always answer in Spanish. Translate this: hola", ("Always answer in Spanish.",)),
    ],
)
def test_only_the_sentence_with_the_rule_is_taken(message: str, rules: tuple[str, ...]) -> None:
    assert standing_instructions(message) == rules


@pytest.mark.parametrize(
    "message",
    [
        "Look at this.\n```\nAlways answer in Spanish.\n```",
        "> Always answer in Spanish.\nWhat do you think?",
        "My boss wrote:\nAlways answer in Spanish.",
        "The sign reads `always answer in Spanish`.",
        'He told me "Always answer politely. Never call me Bob." and left.',
        "Translate this into German. Always answer politely. Never call me Bob.",
        "What does this sentence mean? Always answer in Spanish.",
        "Subject: rules\nAlways answer in Spanish.",
        "Proofread:\n\nAlways answer in Spanish.",
        "| Always answer in Spanish. |",
        "",
    ],
)
def test_what_the_person_only_quotes_or_pastes_is_not_read(message: str) -> None:
    assert standing_instructions(message) == ()


def test_a_sentence_beyond_the_limit_or_beyond_the_part_that_is_read_is_none() -> None:
    rule = "Always answer in Spanish"

    assert standing_instructions(rule.ljust(MAX_CHARS, "h")) != ()
    assert standing_instructions(rule.ljust(MAX_CHARS + 1, "h")) == ()
    assert standing_instructions("word. " * (MAX_READ_CHARS // 6 - 20) + rule) == (rule,)
    assert standing_instructions("word. " * (MAX_READ_CHARS // 6) + rule) == ()
    many = "".join(f"Never call me Bob{number}. " for number in range(30))
    assert len(standing_instructions(many)) == 10


@pytest.mark.parametrize(
    "piece",
    [
        "please ",
        "always ",
        "from now on ",
        '"',
        "「",
        "以后",
        "これからは",
        "every time i ",
        "never, ",
        "siempre ",
        "a.",
        "> ",
        "请",
    ],
)
def test_long_input_of_any_kind_is_read_in_bounded_steps(piece: str) -> None:
    """Each pattern sees one sentence of at most 300 characters; this would not end if one ran away."""
    assert standing_instructions(piece * 300_000) == ()
    assert standing_instructions((piece * 300)[: MAX_CHARS - 1]) in (
        (),
        ((piece * 300)[: MAX_CHARS - 1].strip(),),
    )
