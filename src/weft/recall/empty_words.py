"""Words of a query that say nothing about what to find, in six languages, besides `STOP_WORDS`.

They are the words of questions ("what kind of", "did we talk about"), of grammar, and of greetings. Chinese
and Japanese have no spaces: there a text is cut at these words, and what stands between them is looked for.
So only those are listed there that are hardly ever a part of another word.
"""

from __future__ import annotations

import re
from functools import cache

_ENGLISH = """
    two three four five six seven eight nine ten eleven twelve
    after also because before being between both done during each ever going goes go got having hers kind
    kinds long made make many may mention mentioned mentions might mine more most much must name named names
    often one only other over own said same say says shall since sort such thing things think those time
    type types under until very way went while whom whose yours ve ll re d s t m don didn doesn isn wasn
    whats hows talk talked talking discuss discussed happen happened happens
"""
_SPANISH = """
    a al cómo como cuando cuál cuáles cuándo cuanto cuánto cuántos de del decía dicho dijiste dijimos dijo
    dónde donde e el ella ellos en entre era eran es esa ese eso esta está estaba este esto fue fueron ha
    habla habló hablado hablamos había han has hay he hemos hice hicieron hicimos hizo la las le les lo los
    me mi mis muy más no nos nuestra nuestro o pasa pasó para pero por porque que qué quién se ser si sí sin
    sobre son su sus también te ti tiene tenía todo tu tus un una unas unos va y ya yo
"""
_GERMAN = """
    dabei damit danach daran darauf darüber davon dazu erinner erinnere
    aber alle als am an auch auf aus bei bin da damals das dass dem den denn der des dich die dir doch du
    ein eine einem einen einer eines er es etwas euch für gab gegen geht gemacht gerade gesagt gesprochen
    gibt habe haben hat hatte hatten heißt hieß ich ihr ihm ihn im in ist ja kann könnt man mein meine
    meinem meinen mich mir mit nach nicht noch nochmal nur ob oder sagte schon sein seine sich sie sind so
    über um und uns unser unsere vom von vor wann war waren warum was weil welche welchem welchen welcher
    welches wem wen wenn wer werden wie wieder wieso wieviel wir wird wo wogegen woher wohin womit worüber
    wurde wurden zu zum zur
"""
_FRENCH = """
    heure heures
    chez passé passe passait rappelle
    a ai as au aussi aux avait avaient avec avons avez c ce cela ces cet cette ceux combien comme comment d
    dans de des dit dire dites disait donc du elle elles en es est et étaient étais était été être eu fait
    faire fais faisait font ils il j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre
    nous on ont ou où par parle parlé parlait parler pas pendant peu plus pour pourquoi qu quand que quel
    quelle quelles quels qui quoi s sa sans se ses si son sont sur t ta te tes toi ton tout tu un une va vos
    votre vous y à ça coûté coute coûtent
"""
EMPTY_WORDS = frozenset(" ".join((_ENGLISH, _SPANISH, _GERMAN, _FRENCH)).split())

SMALL_TALK = frozenset(
    """
    absolutely again anyway course definitely exactly guess indeed maybe please problem see true well worries
    worry
    afternoon awesome back bye cool cute evening fine glad good great haha happy hello hey hi hmm hope later
    lol lovely luck morning nice night nope ok okay oh ooh right sorry sounds sure soon thank thanks today
    tomorrow tonight totally welcome wonderful wow yeah yep yes yesterday adiós bien buenas bueno buenos
    claro días genial gracias hasta hola luego mañana noche noches perdón pronto tal tardes vale abend bald
    bis bitte danke gut gute guten hallo klar morgen nacht nein schön schöne servus super tag tschüss
    bientôt bonjour bonne bonsoir ça accord demain désolé journée merci non nuit oui salut soir soirée va
    """.split()
)
"""Words of greetings and thanks: nothing is recalled for a message that has no other words."""

_CHINESE = """
    去哪儿 去哪里 去哪 现在 刚才 了解
    什么时候 为什么 怎么样 怎么了 怎么 怎样 什么 哪里 哪儿 哪个 哪些 多少钱 多少 几个 几点 谁 我们家 我们
    你们 他们 她们 咱们 咱家 我家 那套 那个 那些 那本 那次 那家 那天 这个 这些 这次 每个 一个 一下 一些 说过
    说了 说的 聊了 聊过 聊到 谈到 谈了 提到 提过 讲了 讲的 记得 知道 觉得 没有 有没有 是不是 可以 应该 已经
    还是 因为 关于 时候 事情 的事 花了 买了 去了 发生了 发生 在做 做了 我 你 您 他 她 的 了 吗 呢 吧 啊 呀
    嘛 是 在 有 就 都 也 很 把 被 跟 给 你好 您好 早上好 上午好 下午好 晚上好 晚安 早安 好的 好呀 好吧 谢谢
    多谢 再见 拜拜 不客气 没关系 对不起 没事 哈哈 嗯 明天见 回头见
"""
_JAPANESE = """
    行ったんだ 行った んだ
    リマインド
    いつ どこ だれ 誰 なに 何時 何人 何回 何て 何の 何を 何が 何 どう どんな どの なぜ どうして いくつ
    いくら だっけ でしたっけ っけ でした ました ます です だった した して してた している する される ない
    なかった ていた てた ている てる って という ということ について のこと こと もの とき 時 あの その この
    うちの うち 私たち 私 僕たち 僕 俺 あなた 君 言ってた 言った 話してた 話した 話 かかった 教えて 覚えてる
    から まで より など だけ しか でも けど ので のに は が を に で の と も へ や か ね よ な だ
    おはようございます おはよう こんにちは こんばんは おやすみなさい おやすみ ありがとうございます
    ありがとう どういたしまして はい うん ううん いいえ そうだね そうですね そう 了解です 了解 またね
    また明日 また お疲れ様です お疲れ様 お疲れ さようなら じゃあね じゃあ ごめん すみません
"""


@cache
def _cutter(words: str) -> re.Pattern[str]:
    """Compile a pattern of all words. It takes 5 ms, which only texts without spaces need."""
    return re.compile("|".join(sorted(map(re.escape, words.split()), key=len, reverse=True)))


_KANA = re.compile(r"[\u3040-\u30ff]")


def cut_unspaced(run: str, *, is_japanese: bool) -> list[str]:
    """Cut a run without spaces at the words that say nothing. Returns what stands between them."""
    parts = _cutter(_JAPANESE if is_japanese else _CHINESE).split(run)
    return [part for part in parts if part and (len(part) > 1 or not looks_japanese(part))]


def looks_japanese(text: str) -> bool:
    """Check whether a text has kana: Chinese has none."""
    return _KANA.search(text) is not None
