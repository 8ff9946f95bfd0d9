"""The words for dates in English, Spanish, German, French, Chinese and Japanese.

Each entry gives the tokens that its words become: a kind (one letter) and a value. The grammar in `find.py`
reads only kinds, so a language is a table:

    M month   m month that is also a word (may)   l short month   w weekday   g short weekday
    H season or holiday   h season that is also a word (fall)   j season that is also an adjective   k été
    z days from today   L lately   D W O Y K day, week, month, year, weekend
    x which (-1 last, 0 this, 1 next)   q the same, also behind its noun
    n number (0: a few)   i article   r ordinal   ~ about   u counted noun
    E part (0 early, 1 mid, 2 late)   e the same, behind its noun
    o filler   I p P prepositions   f from   > to   s since   t until   b before   N after   B between   & and
    A ago   G v ago, before its number   F ahead, before its number   J from now
    c from, behind its noun   V until, behind its noun   = between, behind its nouns
    * every: what follows is a habit   . a phrase that means none of these
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TypeAlias

Meaning: TypeAlias = tuple[tuple[str, int], ...]

# Seasons and holidays: first and last day as month and day, or days from Easter.
SEASONS = {101: (3, 5), 102: (6, 8), 103: (9, 11), 104: (12, 2)}
HOLIDAYS = {
    201: (12, 24, 12, 26),
    202: (12, 24, 12, 24),
    203: (12, 25, 12, 25),
    204: (12, 31, 12, 31),
    205: (1, 1, 1, 1),
    206: (10, 31, 10, 31),
    207: (2, 14, 2, 14),
    208: (11, 1, 11, 2),
    209: (11, 1, 11, 1),
    210: (12, 26, 12, 26),
    211: (1, 6, 1, 6),
    212: (1, 1, 1, 3),
    213: (10, 1, 10, 7),
    214: (4, 29, 5, 5),
    215: (8, 13, 8, 16),
    216: (12, 28, 1, 4),
}
EASTER_DAYS = {301: (-2, 1), 302: (-2, -2), 303: (49, 50), 304: (-7, 0), 305: (1, 1)}
THANKSGIVING = 401

_ENGLISH = """
M1 january; M2 february; m3 march; M4 april; m5 may; M6 june; M7 july; M8 august; M9 september; M10 october
M11 november; M12 december; l1 jan; l2 feb; l3 mar; l4 apr; l6 jun; l7 jul; l8 aug; l9 sep, sept; l10 oct
l11 nov; l12 dec; w0 monday; w1 tuesday; w2 wednesday; w3 thursday; w4 friday; w5 saturday; w6 sunday
g0 mon; g1 tue, tues; g2 wed; g3 thu, thur, thurs; g4 fri; g5 sat; g6 sun
z0 today, tonight, this morning, this afternoon, this evening; z-1 yesterday, last night
z-2 day before yesterday; z1 tomorrow; z2 day after tomorrow; L other day; D day, days; W week, weeks
O month, months; Y year, years; K weekend, week end; n2,W fortnight; n6,O half a year
x-1 last, past, previous; x0 this, current; x1 next, coming, upcoming; x-2,W week before last
x-2,O month before last; x-2,Y year before last; x2,W week after next; n0 few, a few, several
n2 couple, couple of, a couple of, a couple; i1 a, an; n1 one; n2 two; n3 three; n4 four; n5 five; n6 six
n7 seven; n8 eight; n9 nine; n10 ten; n11 eleven; n12 twelve; n13 thirteen; n14 fourteen; n15 fifteen
n16 sixteen; n17 seventeen; n18 eighteen; n19 nineteen; n20 twenty; n30 thirty; n40 forty; n50 fifty
n100 hundred, a hundred; r1 first; r2 second; r3 third; r4 fourth; r5 fifth; r6 sixth; r7 seventh; r8 eighth
r9 ninth; r10 tenth; r11 eleventh; r12 twelfth; r13 thirteenth; r14 fourteenth; r15 fifteenth; r16 sixteenth
r17 seventeenth; r18 eighteenth; r19 nineteenth; r20 twentieth; r21 twenty first; r22 twenty second
r23 twenty third; r24 twenty fourth; r25 twenty fifth; r30 thirtieth; r31 thirty first
E0 early, beginning, start; E1 mid, middle; E2 late, end
~ about, around, roughly, almost, nearly, over, exactly; o the, of, s, that; I in
P on, at, during, by, over the, for; f from; > to, through; s since, ever since; t until, till
b before, prior to; N after; B between; & and; A ago; * every, each; J from now; c onwards, onward
h101 spring; j102 summer; h103 fall; j103 autumn; j104 winter; H201 christmas, xmas; H202 christmas eve
H203 christmas day; H204 new year s eve, new years eve; H205 new year s day, new years day, new year s
H206 halloween; H207 valentine s day, valentines day; H210 boxing day; H301 easter; H302 good friday
H305 easter monday; H300 easter sunday; H401 thanksgiving, thanksgiving day; . may be, may have, may not
u steps, words, people, dollars, euros, pounds, times, meters, metres, miles, km, calories, points
u pages, kg, rpm
u lines, tokens, users, files, items, bytes, copies, characters, guests, employees, watts, kcal, yen
u grams
"""

_SPANISH = """
M1 enero; M2 febrero; M3 marzo; M4 abril; M5 mayo; M6 junio; M7 julio; M8 agosto; M9 septiembre, setiembre
M10 octubre; M11 noviembre; M12 diciembre; l1 ene; l2 feb; l4 abr; l6 jun; l7 jul; l9 sept, sep; l10 oct
l11 nov; l12 dic; w0 lunes; w1 martes; w2 miércoles; w3 jueves; w4 viernes; w5 sábado; w6 domingo
. los lunes, los martes, los miércoles, los jueves, los viernes, la mañana, hasta mañana, hoy en día
z0 hoy, esta mañana, esta tarde, esta noche; z-1 ayer, anoche; z-2 anteayer, antes de ayer, antier
z1 mañana; z2 pasado mañana; L otro día; D día, días; W semana, semanas; O mes, meses; Y año, años
K fin de semana, finde; n6,O medio año; x0 este, esta, estos, estas
q-1 pasado, pasada, pasados, pasadas, último, última, últimos, últimas, anterior
q1 próximo, próxima, próximos, próximas, siguiente, que viene
n0 unos, unas, varios, varias, unos pocos, algunos, algunas; i1 un, una; n1 uno; n2 dos, un par de; n3 tres
n4 cuatro; n5 cinco; n6 seis; n7 siete; n8 ocho; n9 nueve; n10 diez; n11 once; n12 doce; n13 trece
n14 catorce; n15 quince; n16 dieciséis; n17 diecisiete; n18 dieciocho; n19 diecinueve; n20 veinte
n30 treinta; n40 cuarenta; n50 cincuenta; n100 cien; r1 primero, primer, primera; r2 segundo, segunda
r3 tercero, tercer, tercera; r4 cuarto, cuarta; r5 quinto, quinta
E0 principios, comienzos, inicios, principio, comienzo, inicio; E1 mediados; E2 finales, fines, final, fin
~ casi, aproximadamente, alrededor de, cerca de, ya, más de; o de, del, el, la, los, las, d; I en
P durante, para, por; f desde el; s desde; t hasta; > a, al; b antes de, antes del
N después de, después del, tras; B entre; & y, e; G hace; A atrás; * cada, todos los, todas las; F dentro de
H101 primavera; H102 verano; H103 otoño; H104 invierno; H201 navidad, navidades; H202 nochebuena
H204 nochevieja, fin de año; H205 año nuevo; H206 halloween; H207 san valentín, día de san valentín
H208 día de muertos, día de los muertos; H209 todos los santos; H211 día de reyes, reyes magos; H301 pascua
H302 viernes santo; H304 semana santa
u pasos, palabras, personas, euros, pesos, dólares, veces, metros, páginas, km
"""

_GERMAN = """
M1 januar, jänner; M2 februar; M3 märz; M4 april; M5 mai; M6 juni; M7 juli; M8 august; M9 september
M10 oktober; M11 november; M12 dezember; l1 jan; l2 feb; l3 mrz; l4 apr; l6 jun; l7 jul; l8 aug
l9 sep, sept; l10 okt; l11 nov; l12 dez; w0 montag; w1 dienstag; w2 mittwoch; w3 donnerstag; w4 freitag
w5 samstag, sonnabend; w6 sonntag; z0 heute, heute morgen, heute abend; z-1 gestern, gestern morgen
z-2 vorgestern; z1 morgen; z2 übermorgen; . guten morgen, am morgen, jeden morgen, jeden tag
L neulich, kürzlich; D tag, tage, tagen, tages; W woche, wochen; O monat, monate, monaten, monats
Y jahr, jahre, jahren, jahres; K wochenende; n6,O halben jahr, halbes jahr
x-1 letzte, letzten, letzter, letztes, letztem
x-1 vergangene, vergangenen, vergangener, vergangenes, vergangenem, vorige, vorigen, voriger, voriges
x-1 vorigem; x0 diese, diesen, dieser, dieses, diesem; x0,Y heuer
x-2 vorletzte, vorletzten, vorletzter, vorletztes, vorletztem
x1 nächste, nächsten, nächster, nächstes, nächstem, kommende, kommenden, kommender, kommendes, kommendem
x2 übernächste, übernächsten, übernächster, übernächstes
n0 paar, ein paar, einigen, einige, mehreren, wenigen; i1 ein, eine, einem, einer, einen; n1 eins; n2 zwei
n3 drei; n4 vier; n5 fünf; n6 sechs; n7 sieben; n8 acht; n9 neun; n10 zehn; n11 elf; n12 zwölf; n13 dreizehn
n14 vierzehn; n15 fünfzehn; n16 sechzehn; n17 siebzehn; n18 achtzehn; n19 neunzehn; n20 zwanzig; n30 dreißig
n40 vierzig; n50 fünfzig; n100 hundert; r1 erste, ersten, erster, erstes; r2 zweite, zweiten, zweiter
r3 dritte, dritten, dritter; r4 vierte, vierten, vierter; r5 fünfte, fünften, fünfter; r6 sechste, sechsten
r7 siebte, siebten; r8 achte, achten; r9 neunte, neunten; r10 zehnte, zehnten; E0 anfang, beginn, früh im
E1 mitte; E2 ende, spät im; ~ etwa, ungefähr, fast, knapp, rund, circa, ca, gut, genau, über
o der, die, das, des, dem, den; I in, im; P am, an, um, während, zu, übers; f vom, von; s seit, ab
t bis, bis zum; b bevor; v vor; N nach; B zwischen; * jeden, jede, jedes, jeder, jedem; & und
H101 frühling, frühjahr; H102 sommer; H103 herbst; H104 winter; H201 weihnachten
H202 heiligabend, heiliger abend; H204 silvester; H205 neujahr; H206 halloween; H207 valentinstag
H209 allerheiligen; H301 ostern; H300 ostersonntag; H302 karfreitag; H303 pfingsten; H305 ostermontag
u schritte, schritten, wörter, wörtern, personen, leute, leuten, euro, mal, meter, metern, seiten, km
u kg, menschen
"""

_FRENCH = """
M1 janvier; M2 février; m3 mars; M4 avril; M5 mai; M6 juin; M7 juillet; M8 août; M9 septembre; M10 octobre
M11 novembre; M12 décembre; l1 janv; l2 févr; l4 avr; l7 juil; l10 oct; l11 nov; l12 déc; w0 lundi; w1 mardi
w2 mercredi; w3 jeudi; w4 vendredi; w5 samedi; w6 dimanche
z0 aujourd hui, ce matin, ce soir, cet après midi, cette nuit; z-1 hier; z-2 avant hier; z1 demain
z2 après demain; L autre jour; D jour, jours; W semaine, semaines; O mois; Y an, ans, année, années
K week end, weekend; q-1 dernier, dernière, derniers, dernières, passé, passée, précédent, précédente
x0 ce, cet, cette, ces; q1 prochain, prochaine, prochains, prochaines, suivant, suivante, qui vient
n0 quelques, plusieurs; i1 un, une; n2 deux, une couple de; n3 trois; n4 quatre; n5 cinq; n6 six; n7 sept
n8 huit; n9 neuf; n10 dix; n11 onze; n12 douze; n13 treize; n14 quatorze; n15 quinze; n16 seize
n17 dix sept; n18 dix huit; n19 dix neuf; n20 vingt; n12 une douzaine de; n15,D une quinzaine de jours
n30 trente; n40 quarante; n50 cinquante; n100 cent; r1 premier, première; r2 deuxième, seconde; r3 troisième
r4 quatrième; r5 cinquième; E0 début; E1 mi, milieu; E2 fin
~ environ, presque, près de, à peu près, plus de; o le, la, les, l, de, du, des, d, ca; I en
P dans le, dans la, pendant, au cours de, durant, pour, aux; s depuis, à partir de, à partir du, dès
t jusqu à, jusqu au, jusqu en; > à, au; b avant, avant le; N après; B entre; & et
* chaque, tous les, toutes les; G il y a, voilà, ça fait; F dans; . il y a eu; H101 printemps; k102 été
H103 automne; H104 hiver; H201 noël; H202 veille de noël, réveillon de noël
H204 saint sylvestre, réveillon du nouvel an; H205 jour de l an, nouvel an; H206 halloween
H207 saint valentin; H209 toussaint; H301 pâques; H302 vendredi saint; H303 pentecôte; H305 lundi de pâques
u pas, mots, personnes, euros, fois, mètres, pages, km, kg, gens
"""

_HAN = """
z0 今天, 今日, 今早, 今晚, 今朝, 今晩, 今夜, きょう; z-1 昨天, 昨日, 昨晚, 昨夜, 昨晩, きのう, ゆうべ
z-2 前天, 一昨日, おととい; z-3 大前天; z1 明天, 明日, 明早, 明晚, あした; z2 后天, 後天, 明後日, あさって
z3 大后天; x-1,Y 去年, 昨年, 上一年; x-2,Y 前年, 一昨年, おととし; x0,Y 今年, 本年; x1,Y 明年, 来年, 來年
x2,Y 后年, 後年, 再来年; x-1,O 上个月, 上個月, 上月, 先月; x-2,O 上上个月, 上上個月, 先々月
x0,O 这个月, 這個月, 本月, 今月; x1,O 下个月, 下個月, 下月, 来月, 來月
x-1,W 上周, 上週, 上个星期, 上個星期, 上星期, 上个礼拜, 上礼拜, 先週; x-2,W 上上周, 上上週, 先々週
x0,W 这周, 這週, 本周, 本週, 这个星期, 這個星期, 这星期, 今週; x2,W 再来週
x1,W 下周, 下週, 下个星期, 下個星期, 下星期, 下礼拜, 来週; x-1,K 上周末, 上週末, 上个周末, 上個週末, 先週末
x0,K 这周末, 這週末, 这个周末, 本周末, 今週末; x1,K 下周末, 下週末, 下个周末, 来週末; P,K 周末, 週末
x-1 最近, 过去, 過去, この前の, 前の; x0 この, 今度の; x1 未来, 今後; n6,O 半年
L 前几天, 前幾天, 前些天, 先日, この間, こないだ; h101 春; h102 夏; h103 秋; h104 冬; H101 春天, 春季
H102 夏天, 夏季, 夏休み, 暑假; H103 秋天, 秋季; H104 冬天, 冬季, 寒假; H201 圣诞节, 聖誕節, 圣诞, クリスマス
H202 平安夜, クリスマスイブ, クリスマス・イブ; H204 大晦日, 跨年夜, 新年前夜; H205 元旦, 元日
H206 万圣节, 萬聖節, ハロウィン; H207 情人节, 情人節, バレンタインデー, バレンタイン
H212 お正月, 正月, 正月三が日, 三が日; H215 お盆; H216 年末年始; s ここ
H213 国庆节, 國慶節, 国庆; H214 ゴールデンウィーク; H301 复活节, 復活節, イースター
o の, 的, に; f 从, 從, 自; s 自从, 自從; > 到, 至, 〜, ～, ~; & 和, 与, 與, と; = 之间, 之間, の間
A 前, 以前, 之前, より前; J 后, 後, 以后, 以後, 之后, 之後; c から, 以来, 以來, 以降, 起, 开始, 開始
* 每, 每个, 每個, 每年, 毎, 毎年, 毎週, 毎月; V まで, 为止, 為止; e0 初, 上旬, 初め, はじめ, 初旬
e1 中旬, 半ば; e2 底, 末, 下旬, 終わり; e10 月初; e11 月中; e12 月底, 月末; e20 年初; e21 年中
e22 年底, 年末; r1,W 最初の週, 第一个星期; x-1,W 最后一周, 最後一週, 最後の週
. 前半, 后半, 後半, 前日, 前回, 后来, 後来, 起床, 起来, 起き, 前后, 前後, 以前は, 元旦那, 生年月日
. 明日香, 从前, 從前, 春日, 夏目
"""

# Words of each language that the other three do not use, to tell which language a text is in.
MARKERS = {
    "en": frozenset(
        "the of and to is are was were what when where who how did do does have has had i my you your"
        " we our they it he she his her with from for that this which about at by not be been would"
        " could will can there if or ago last next please went go going get since until between before"
        " after".split()
    ),
    "es": frozenset(
        "el los las del que qué y en un una por para con su sus mis fue fui hace hicimos hice cuándo"
        " cuando dónde donde cómo como quién pero muy está estoy son nos lo le se es al vamos desde"
        " hasta entre sobre este esta yo pasado pasada próximo próxima dentro ya más también la de".split()
    ),
    "de": frozenset(
        "der die das und ist ich du er sie wir ihr nicht ein eine einen einem einer mit von zu auf für"
        " im am den dem hat habe haben war waren wann wo wie wer bis vor seit zwischen nach bei aus"
        " mein meine dein unser es letzte letzten letzter letztes nächste nächsten nächster nächstes"
        " diese diesen diesem dieses zum zur wird".split()
    ),
    "fr": frozenset(
        "le les du des et je tu il elle nous vous ils est sont ai avons avez ont était dans pour avec"
        " sur une au aux ce cet cette qui que quand où comment mon ma mes ton notre votre pas ne en"
        " depuis jusqu entre avant après dernier dernière prochain prochaine à l j qu un la de aujourd"
        " hui y quoi parlé dit fait ça".split()
    ),
}


def _meaning(spec: str) -> Meaning:
    return tuple((atom[0], int(atom[1:] or 0)) for atom in spec.split(","))


def _entries(table: str) -> dict[str, Meaning]:
    entries: dict[str, Meaning] = {}
    for entry in table.replace("\n", ";").split(";"):
        if entry.strip():
            spec, words = entry.strip().split(" ", 1)
            entries.update(dict.fromkeys(words.split(", "), _meaning(spec)))
    return entries


def _plain(word: str) -> str:
    return unicodedata.normalize("NFD", word).encode("ascii", "ignore").decode()


def _lexicon(table: str) -> dict[str, Meaning]:
    """Parse a table, and add each word as it is typed without accents."""
    entries = _entries(table)
    for word in [word for word in entries if not word.isascii() and len(word) > 1]:
        umlauts = word.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
        for variant in (_plain(umlauts), _plain(word.replace("ß", "ss"))):
            if variant != "ete":
                entries.setdefault(variant, entries[word])
    return entries


def _with_parts_of_days(entries: dict[str, Meaning]) -> dict[str, Meaning]:
    """Add the German compounds of a weekday and a part of the day."""
    for word, meaning in list(entries.items()):
        if meaning[0][0] == "w":
            for part in ("abend", "morgen", "nachmittag", "vormittag", "mittag", "nacht"):
                entries[word + part] = meaning
    return entries


LEXICONS = {
    "en": _lexicon(_ENGLISH),
    "es": _lexicon(_SPANISH),
    "de": _with_parts_of_days(_lexicon(_GERMAN)),
    "fr": _lexicon(_FRENCH),
}
HEADS = {
    language: frozenset(word.split(" ", 1)[0] for word in entries if " " in word)
    for language, entries in LEXICONS.items()
}
HAN_WORDS = _entries(_HAN)


def _triggers() -> frozenset[str]:
    """Return words of which every Latin text with a date in words has at least one."""
    kinds = set("MmlHhjkwgzLDWOYK")
    entries = [entry for lexicon in LEXICONS.values() for entry in lexicon.items()]
    words = {word for word, meaning in entries if " " not in word and kinds & {kind for kind, _ in meaning}}
    phrases = [word.split() for word, meaning in entries if " " in word and meaning[-1][0] in kinds]
    # "an" is French for a year, and English for much more: a pattern finds it.
    words.discard("an")
    return frozenset(words | {max(phrase, key=len) for phrase in phrases if words.isdisjoint(phrase)})


TRIGGERS = _triggers()

_TO_DIGITS = str.maketrans("〇零一二三四五六七八九两兩", "0012345678922")


def han_number(text: str) -> int:
    """Read a number of at most four characters in Chinese, Japanese or any digits.

    Returns:
        0 for "a few", and -1 for what is no number.
    """
    if text[-1] in "几幾数數":
        return 0
    tens, ten, ones = text.translate(_TO_DIGITS).partition("十")
    if not ten:
        return int(tens)
    if len(tens) > 1 or len(ones) > 1 or not (tens + ones + "0").isdecimal():
        return -1
    return int(tens or 1) * 10 + int(ones or 0)


_HAN_UNIT = "個星期|个星期|个礼拜|個禮拜|週間|周|週|个月|個月|[かヶカヵケ箇]月|日間|年間|天|年|月|日|号|號"


@cache
def han_token() -> re.Pattern[str]:
    """Compile the pattern of Chinese and Japanese tokens at its first use: it takes some milliseconds."""
    return re.compile(
        r"(?<![\d.])(?P<nth>第?)(?P<number>[\d〇零一二三四五六七八九十两兩]{1,4}|好?[几幾数數])"
        rf"\s?(?P<unit>{_HAN_UNIT})"
        r"|(?P<which>[上下]?[上下](?:个|個)?|[这這](?:个|個)?|本)?(?:周|週|星期|礼拜|禮拜)"
        r"(?P<zh>[一二三四五六日天])(?![气氣个個年月周])"
        r"|(?P<ja>[月火水木金土日])曜日?"
        rf"|(?P<word>{'|'.join(sorted(map(re.escape, HAN_WORDS), key=len, reverse=True))})"
        r"|(?P<comma>[、，,])"
    )


HAN_UNITS = {"天": "D", "日間": "D", "年間": "Y"} | dict.fromkeys(
    ("周", "週", "週間", "个星期", "個星期", "个礼拜", "個禮拜"), "W"
)
HAN_WHICH = {"上": -1, "下": 1, "这": 0, "這": 0, "本": 0}
