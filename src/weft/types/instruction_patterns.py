"""The patterns of lasting rules in English, Spanish, German, French, Chinese and Japanese.

Each is matched at the start of one sentence of at most 300 characters, in which quotes are masked. The verbs
are those of an assistant's work, because "never call me Bob" is a rule and "never again will I fly" is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_LANGUAGE = (
    r"(?:english|spanish|german|french|chinese|japanese|italian|portuguese|dutch|russian|korean|arabic"
    r"|hindi)"
)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: all of them take 60 ms, and few messages need any."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Language:
    """The forms of lasting rules in a language. No sentence without its `trigger` has one of them.

    `requests` are those that ask the assistant politely: they may end with a question mark.
    """

    trigger: str
    forms: tuple[str, ...]
    requests: tuple[str, ...] = ()

    def matches(self, sentence: str, *, is_question: bool) -> bool:
        if not compiled(self.trigger).search(sentence):
            return False
        forms = self.requests if is_question else (*self.forms, *self.requests)
        return any(compiled(form).match(sentence) for form in forms)


def _language(trigger: str, *forms: str, requests: tuple[str, ...] = ()) -> Language:
    return Language(trigger, forms, requests)


def _words(most: int) -> str:
    """Return a pattern for up to so many words, each with a space behind it."""
    return rf"(?:[^\s,;:]+ ){{0,{most}}}?"


# --- English

_EN_LEAD = (
    r"(?:(?:please|pls|ok|okay|and|also|but|so|then|hey|hi|hello|oh|thanks|thank you|weft|assistant|btw"
    r"|by the way|one more thing|important|note|reminder|remember|new rule|rule)\b[\s,:;!\-–—]+){0,4}"
)
_EN_TO_ME = (
    r"(?:answer(?! the (?:phone|door))|reply|respond|write|speak (?:in|to me|like|as|more|less)|talk "
    r"(?:to me|like)"
    r"|(?:call|address|greet|remind|tell|ask|show|give|send|warn) (?:me|us)|refer to me|explain|translate"
    r"|keep your|cite|include|add|use (?:emojis?|emoticons|metric|imperial|markdown|bullets?|tables?"
    r"|celsius"
    r"|formal|informal|simple|short|plain|british|american|first names))\b"
)
_EN_VERB = (
    rf"(?:{_EN_TO_ME}|(?:use|show|format|put (?:the|it|each|every|all|code|sources|units|a)|convert|round"
    rf"|assume|mention|send|list|summari[sz]e|suggest|treat"
    r"|sign|spell|confirm|double-check|provide|follow|prefer|avoid|return|recommend|propose|output|repeat"
    r"|apologi[sz]e|swear|guess|invent|number|quote|finish|start|begin|end|stick to|call (?:it|him|her|them"
    r"|this)"
    r"|refer to|check with|wait for|let me (?:decide|choose|check|confirm)|be (?:brief|concise|short|polite"
    r"|honest|formal|informal|direct|kind"
    r"|precise|specific|critical|friendly|clear)|keep (?:it|the|answers|replies|responses|things)"
    r"|ask (?:before|for)|give (?!up\b|in\b)|say (?!never\b|die\b)|make (?:sure|your|the|it|up)"
    r"|remember (?:that|to))\b)"
)
_EN_NOT = r"(?:do not|don't)"
_EN_YOU = (
    r"(?:you (?:(?:should|must|will|shall|can|may|are to|have to|need to|only|just) )?"
    r"|i(?:'d| would)? (?:want|like|need|expect) you to )"
)
_EN_HOW = rf"(?:please,? |{_EN_YOU}|always |never |only |just |{_EN_NOT} (?:ever )?|to )*"
_EN_NOW = (
    r"(?:from now on|from (?:here|today|this point) on(?:wards?)?(?: out| in)?|going forward|henceforth"
    r"|in (?:the )?future|as of (?:now|today)|starting (?:now|today))"
)
_EN_LATER = (
    r"(?:from now on|from here on(?: out| in)?|going forward|henceforth|from today on|in future"
    r"|in (?:all|every one of) your (?:answers|replies|responses)|in every (?:answer|reply|response)"
    r"|every time|each time|at all times|without exception)(?:,? (?:please|ok|okay|thanks|thank you))?\W*$"
)
_EN_ASKS = r"(?!.*\b(?:what|how|why|who|whether|which|where|when|if|about)\b)"
ENGLISH = _language(
    r"\b(?:always|never|ever|now|here|today|point|forward|henceforth|future|every|everytime|each|whenever"
    r"|any ?time|any ?more|all|under|without)\b",
    rf"{_EN_LEAD}(?:always|never(?: ever)?(?: again)?|{_EN_NOT} ever|under no circumstances"
    rf"|at all times,?) "
    rf"(?:please )?{_EN_VERB}",
    rf"{_EN_LEAD}{_EN_NOT} {_EN_VERB}.*\b(?:ever(?: again)?|any ?more)\W*$",
    rf"{_EN_LEAD}{_EN_NOW}[,:]? {_EN_HOW}{_EN_VERB}",
    rf"{_EN_LEAD}{_EN_NOW}[,:]? (?:please,? )?(?:only )?(?:in )?{_LANGUAGE}(?: only)?(?:,? please)?\W*$",
    rf"{_EN_LEAD}{_EN_ASKS}{_EN_HOW}{_EN_VERB}.*\b{_EN_LATER}",
    rf"{_EN_LEAD}(?:every ?time|each time|whenever|any ?time) (?:i|we|you|there|the|a|an|my|it|someone)\b"
    rf"[^,]{{1,160}}, (?:then )?(?!you {_EN_VERB}){_EN_HOW}{_EN_VERB}",
    rf"{_EN_LEAD}(?:when|if|before|after) [^,]{{1,160}}, (?:please )?(?:you (?:should|must) )?"
    rf"(?:always|never) {_EN_VERB}",
    rf"{_EN_LEAD}you (?:must|should|shall|have to|need to|ought to|are to|may|can|are) (?:please )?"
    rf"(?:always|never)(?: to)? {_EN_TO_ME}",
    rf"{_EN_LEAD}(?:i(?:'d| would)? (?:want|like|need|prefer|expect) (?:you to|that you)"
    rf"|(?:make sure|be sure|try|remember)(?: that)?(?: you| to)?) (?:always|never) {_EN_VERB}",
    requests=(
        rf"{_EN_LEAD}could you (?:always|never) {_EN_TO_ME}",
        rf"{_EN_LEAD}(?:can|could|will|would) you,? please,? (?:always|never(?: ever)?) {_EN_VERB}",
        rf"{_EN_LEAD}(?:can|could|will|would) you (?:always|never(?: ever)?) {_EN_VERB}.*\bplease\W*$",
    ),
)

# --- Spanish: a form that may also tell what somebody else does needs more around it.

_ES_LEAD = (
    r"(?:(?:por favor|vale|ok|bueno|y|oye|hola|gracias|además|también|importante|nota|recuerda|weft)\b"
    r"[\s,:;!\-–—]+){0,4}"
)
_ES_SURE = (
    r"(?:respóndeme|contéstame|escríbeme|háblame|llámame|dime|dame|pregúntame|muéstrame|enséñame|explícame"
    r"|recuérdame|avísame|trátame|tutéame|envíame|mándame|hazme|hazlo|sé|ponme|haz|ten en cuenta|mantén"
    r"|responda|conteste|escriba|hable|utilice|incluya|añada|agregue|muestre|explique|traduzca|evite"
    r"|indique"
    r"|respóndame|contésteme|llámeme|dígame|deme|pregúnteme|háblame|tráteme|decime|llamame|respondé"
    r"|contestá"
    r"|hablá|usá)\b"
)
_ES_EITHER = (
    r"(?:responde|contesta|escribe|habla|usa|use|utiliza|incluye|añade|agrega|muestra|explica|traduce"
    r"|empieza"
    r"|termina|redondea|convierte|evita|indica|menciona|cita)\b"
)
_ES_HINT = (
    r"(?:en|con|sin|de (?:forma|manera|modo|usted|tú)|a mis|brevemente|unidades|el|la|los|las|un|una|como"
    r"|tus"
    r"|emojis|fuentes|ejemplos)\b(?!.*\b(?:sus?|él|ella)\b)"
)
_ES_SUBJUNCTIVE = (
    r"(?:respondas|contestes|escribas|hables|uses|utilices|incluyas|añadas|agregues|muestres|expliques"
    r"|traduzcas|llames|digas|des|preguntes|trates|empieces|termines|pongas|hagas|menciones|cites|recuerdes"
    r"|avises|mandes|envíes|inventes|repitas|seas|tutees|corrijas|asumas|supongas|cambies|borres|compartas"
    r"|responda|conteste|escriba|hable|use|utilice|llame|diga|invente|mencione|trate|tutee)\b"
)
_ES_INFINITIVE = (
    r"(?:responder|contestar|escribir|hablar|usar|utilizar|llamar|tratar|dar|decir|mostrar|explicar|incluir"
    r"|añadir|traducir|preguntar|mencionar|tutear)(?:me|nos)?\b"
)
_ES_NOW = (
    r"(?:a partir de (?:ahora|hoy|este momento)|de (?:ahora|aquí|hoy) en adelante|desde ahora"
    r"(?: en adelante)?"
    r"|en adelante|en el futuro|en lo sucesivo)"
)
_ES_NOT = rf"(?:(?:no|nunca|jamás) (?:(?:me|nos|le|les|lo|la|los|las) )?{_ES_SUBJUNCTIVE})"
_ES_WANT = (
    rf"(?:(?:quiero|necesito|prefiero|me gustaría|te pido|espero) que (?:tú )?(?:siempre |nunca |jamás "
    rf"|no )?"
    rf"(?:(?:me|nos) )?{_ES_SUBJUNCTIVE}|(?:debes|tienes que|deberías|vas a) (?:siempre )?{_ES_INFINITIVE})"
)
_ES_ORDER = (
    rf"(?:{_ES_SURE}|{_ES_EITHER} (?:(?:siempre|solo|sólo|por favor) )?{_ES_HINT}|{_ES_NOT}|{_ES_WANT})"
)
_ES_ASKS = r"(?!.*\b(?:qué|cómo|por qué|quién|cuándo|cuál|dónde|si)\b)"
SPANISH = _language(
    r"\b(?:siempre|nunca|jamás|ahora|hoy|momento|adelante|futuro|sucesivo|vez|veces|vuelvas)\b",
    rf"{_ES_LEAD}{_ES_SURE} {_words(3)}siempre\b",
    rf"{_ES_LEAD}{_ES_EITHER},? (?:por favor,? )?siempre {_ES_HINT}",
    rf"{_ES_LEAD}siempre,? (?:por favor,? )?(?:{_ES_SURE}|(?:responde|contesta|escribe|habla) "
    r"(?:en|de (?:forma|manera))\b(?!.*\b(?:sus?|él|ella)\b))",
    rf"{_ES_LEAD}(?:nunca|jamás)(?: más)? (?!digas nunca|digas de)(?:(?:me|nos|le|les|lo|la|los|las) )?"
    rf"{_ES_SUBJUNCTIVE}",
    rf"{_ES_LEAD}no (?:(?:me|nos|le|lo|la|los|las) )?(?:{_ES_SUBJUNCTIVE} (?:.* )?(?:nunca|jamás)\b"
    rf"|vuelvas a {_ES_INFINITIVE})",
    rf"{_ES_LEAD}{_ES_NOW},? (?:por favor,? )?(?:siempre |solo |sólo )?{_ES_ORDER}",
    rf"{_ES_LEAD}{_ES_ASKS}(?:{_ES_SURE}|{_ES_EITHER}|{_ES_NOT}).* {_ES_NOW.replace('|en el futuro', '')}"
    r"(?:,? por favor)?\W*$",
    rf"{_ES_LEAD}(?:cada vez que|siempre que|todas las veces que) [^,]{{1,160}}, (?:por favor,? )?"
    rf"(?:siempre )?{_ES_ORDER}",
    rf"{_ES_LEAD}(?:quiero|necesito|prefiero|me gustaría|te pido|espero) que (?:tú )?(?:(?:siempre|nunca"
    rf"|jamás) "
    rf"(?:me )?{_ES_SUBJUNCTIVE}|(?:me |no me |no )?{_ES_SUBJUNCTIVE} {_words(1)}(?:siempre|nunca"
    rf"|jamás)\b)",
    rf"{_ES_LEAD}(?:debes|tienes que|deberías) (?:siempre {_ES_INFINITIVE}|{_ES_INFINITIVE} siempre\b)",
    rf"{_ES_LEAD}(?:nunca|jamás) (?:debes|deberías|puedes) {_ES_INFINITIVE}",
    requests=(
        rf"¿?{_ES_LEAD}¿?(?:podrías|podría usted|(?:puedes|podrías),? por favor,?) "
        rf"(?:siempre {_ES_INFINITIVE}|{_ES_INFINITIVE} siempre\b|no {_ES_INFINITIVE} (?:nunca|jamás)\b)",
    ),
)

# --- German

_DE_LEAD = (
    r"(?:(?:bitte|ok|okay|und|also|aber|hey|hallo|danke|übrigens|wichtig|merk dir|merke|hinweis|weft)\b"
    r"[\s,:;!\-–—]+){0,4}"
)
_DE_YOU = (
    r"(?:antworte|schreibe?|sprich|rede|nenne?|benutze?|verwende|nutze|nimm|gib|zeige?|erkläre?|füge"
    r"|übersetze"
    r"|duze?|sieze?|sage?|frage?|halte?|bleibe?|sei|mache?|beginne?|beende|erinnere?|warne|zitiere|runde"
    r"|rechne"
    r"|formuliere?|fasse?|liste|vermeide|prüfe|bestätige|begrüße?|behandle|erwähne|erfinde|hänge?)"
)
_DE_FORMAL = (
    r"(?:antworten|schreiben|sprechen|reden|nennen|benutzen|verwenden|nutzen|nehmen|geben|zeigen|erklären"
    r"|übersetzen|duzen|siezen|sagen|fragen|halten|bleiben|seien|machen|zitieren|formulieren|vermeiden"
    r"|erwähnen) Sie"
)
_DE_IMPERATIVE = rf"(?:{_DE_FORMAL}|{_DE_YOU})\b"
_DE_INFINITIVE = (
    r"(?:(?:be)?antworten|schreiben|sprechen|reden|nennen|benutzen|verwenden|nutzen|nehmen|(?:an)?geben"
    r"|(?:an)?zeigen|erklären|übersetzen|duzen|siezen|sagen|(?:nach)?fragen|halten|bleiben|machen|zitieren"
    r"|runden|umrechnen|formulieren|zusammenfassen|auflisten|vermeiden|hinzufügen|erwähnen|ansprechen)"
)
_DE_INFINITIVE_END = rf"{_DE_INFINITIVE}(?:,? bitte)?\W*$"
_DE_SOMEBODY = (
    r"(?!.*\b(?:ich|er|sie|es|wir|ihr|man|werden|wird|muss|musste|kann|können|hat|haben|leider|sorry)\b)"
)
_DE_ALWAYS = r"(?:immer|stets|grundsätzlich|ausnahmslos|jederzeit|nie|niemals|nie wieder|nie mehr)"
_DE_NOW = r"(?:ab (?:jetzt|sofort|heute|nun)|von (?:nun|jetzt|heute) an|künftig|zukünftig|in zukunft|fortan)"
_DE_YOU_DO = (
    r"(?:antwortest|schreibst|sprichst|nennst|benutzt|verwendest|nutzt|gibst|zeigst|sagst|fragst|bist|duzt"
    r"|siezt|sollst|musst|darfst) du\b"
)
_DE_ASKS = r"(?!.*\b(?:was|wie|warum|wieso|wer|ob|wann|welche[rsn]?|wo|über)\b)"
_DE_NOT_REGRET = (
    r"(?!.*\b(?:leider|sorry|tut mir leid|zu spät)\b)(?!frage? mich .*\b(?:ob|warum|wieso|wie|was|wer)\b)"
)
GERMAN = _language(
    r"\b(?:immer|stets|grundsätzlich|ausnahmslos|jederzeit|nie|niemals|ab|an|künftig|zukünftig|zukunft"
    r"|fortan|jedes ?mal|sooft)\b",
    rf"{_DE_LEAD}{_DE_NOT_REGRET}{_DE_IMPERATIVE} {_words(4)}{_DE_ALWAYS}\b",
    rf"{_DE_LEAD}{_DE_SOMEBODY}{_DE_ALWAYS} (?!wenn\b)(?:\S+ ){{1,12}}?{_DE_INFINITIVE_END}",
    rf"{_DE_LEAD}{_DE_NOW},? (?:bitte )?(?:{_DE_ALWAYS} |nur (?:noch )?)?(?:{_DE_IMPERATIVE}|{_DE_YOU_DO}"
    rf"|(?:möchte|will|erwarte) ich, dass du\b|{_DE_SOMEBODY}(?:\S+ ){{1,12}}?{_DE_INFINITIVE_END})",
    rf"{_DE_LEAD}{_DE_ASKS}{_DE_IMPERATIVE}.* {_DE_NOW}\b",
    rf"{_DE_LEAD}(?:jedes ?mal,? wenn|immer,? wenn|wann immer|sooft) [^,]{{1,160}}, (?:dann )?(?:bitte )?"
    rf"(?:{_DE_IMPERATIVE}|(?:sollst|musst) du\b|möchte ich, dass du\b)",
    rf"{_DE_LEAD}du (?:sollst|musst|darfst|solltest) {_words(3)}{_DE_ALWAYS}\b.* {_DE_INFINITIVE_END}",
    rf"{_DE_LEAD}(?:ich (?:möchte|will|erwarte|wünsche mir)|achte (?:bitte )?darauf|stell(?:e)? sicher"
    rf"|denk(?:e)? daran), dass du {_words(3)}{_DE_ALWAYS}\b",
    requests=(
        rf"{_DE_LEAD}(?:kannst|könntest|würdest) du (?=.*\bbitte\b){_words(4)}{_DE_ALWAYS} (?:\S+ ){{1,12}}?"
        rf"{_DE_INFINITIVE_END}",
        rf"{_DE_LEAD}könntest du {_words(3)}{_DE_ALWAYS} (?:\S+ ){{1,12}}?"
        r"(?:(?:be)?antworten|nennen|duzen|siezen|formulieren|zusammenfassen)\W*$",
    ),
)

# --- French

_FR_LEAD = (
    r"(?:(?:s'il te plaît|s'il vous plaît|stp|svp|ok|et|aussi|mais|salut|bonjour|merci|au fait|important"
    r"|note"
    r"|weft)\b[\s,:;!\-–—]+){0,4}"
)
_FR_IMPERATIVE = (
    r"(?:réponds|répondez|écris|écrivez|parlez?|utilisez?|emploie|employez|appelle|appelez|tutoie|tutoyez"
    r"|vouvoie|vouvoyez|donnez?|montrez?|expliquez?|dis|dites|demandez?|rappelle|rappelez|ajoutez?"
    r"|commencez?"
    r"|terminez?|finis|traduis|traduisez|citez?|gardez?|restez?|sois|soyez|fais|faites|indiquez?|évitez?"
    r"|mets"
    r"|mettez|résumez?|convertis|proposez?|préviens|prévenez|adressez?|mentionnez?|arrondis|vérifiez?"
    r"|confirmez?"
    r"|inclus|incluez|inventez?|répétez?|répète)(?:-(?:moi|nous|le|la|les|toi))?\b"
)
_FR_INFINITIVE = (
    r"(?:répondre|écrire|parler|utiliser|employer|appeler|tutoyer|vouvoyer|donner|montrer|expliquer|dire"
    r"|demander|ajouter|commencer|terminer|traduire|citer|garder|indiquer|éviter|mettre|convertir|proposer"
    r"|mentionner|inventer)\b"
)
_FR_SUBJUNCTIVE = (
    r"(?:répondes|répondiez|écrives|écriviez|parles|parliez|utilises|utilisiez|appelles|appeliez|tutoies"
    r"|vouvoies|donnes|montres|expliques|dises|demandes|ajoutes|traduises|cites|évites|mettes|fasses"
    r"|sois)\b"
)
_FR_NOT = rf"n(?:e |')(?:(?:me|nous|le|la|les|lui) |[mlt]')?{_FR_IMPERATIVE}"
_FR_NOW = (
    r"(?:désormais|dorénavant|à partir de (?:maintenant|ce moment|cet instant)|à l'avenir|dès maintenant"
    r"|dès à présent)"
)
_FR_YOU = (
    r"(?:tu (?:dois|devras|réponds|répondras|m'appelles|m'appelleras|utilises|utiliseras|écris|écriras"
    r"|parles"
    r"|parleras)|vous (?:devez|devrez|répondez|répondrez|utilisez|utiliserez|m'appelez)"
    r"|je (?:veux|voudrais|souhaite|aimerais) que (?:tu|vous)|(?:merci|prière) de)\b"
)
_FR_ASKS = r"(?!.*\b(?:ce que|ce qui|comment|pourquoi|qui|quand|si|quels?|quelles?|où)\b)"
FRENCH = _language(
    r"\b(?:toujours|systématiquement|jamais|fois|circonstances|désormais|dorénavant|maintenant|moment"
    r"|instant|avenir|présent)\b",
    rf"{_FR_LEAD}{_FR_IMPERATIVE} {_words(3)}(?:toujours|systématiquement|à chaque fois"
    rf"|en toutes circonstances)\b",
    rf"{_FR_LEAD}{_FR_NOT} {_words(2)}jamais\b",
    rf"{_FR_LEAD}(?:toujours|ne (?:plus )?jamais) (?:me |m'|nous )?{_FR_INFINITIVE}",
    rf"{_FR_LEAD}{_FR_NOW},? (?:(?:s'il te plaît|s'il vous plaît|stp|svp),? )?(?:toujours )?"
    rf"(?:{_FR_IMPERATIVE}|{_FR_NOT}|{_FR_YOU}|{_FR_INFINITIVE})",
    rf"{_FR_LEAD}{_FR_ASKS}(?:{_FR_IMPERATIVE}|{_FR_NOT}).*\b{_FR_NOW}(?:,? (?:stp|svp|merci))?\W*$",
    rf"{_FR_LEAD}(?:à )?(?:chaque fois|toutes les fois) (?:que |qu')[^,]{{1,160}}, "
    rf"(?:toujours )?(?:{_FR_IMPERATIVE}|{_FR_NOT}|tu dois\b|vous devez\b|merci de\b)",
    rf"{_FR_LEAD}(?:(?:tu dois|tu devras|vous devez|vous devrez)|assure-toi de|assurez-vous de|veille à"
    rf"|veillez à|pense à) (?:toujours|ne jamais|systématiquement) (?:me |m'|nous )?{_FR_INFINITIVE}",
    rf"{_FR_LEAD}je (?:veux|voudrais|souhaite|aimerais) que (?:tu|vous) (?:ne )?(?:me |m'|nous )?"
    rf"{_FR_SUBJUNCTIVE} (?:toujours|jamais)\b",
    requests=(
        rf"{_FR_LEAD}(?:pourrais-tu|pourriez-vous|(?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous),? "
        rf"(?:s'il (?:te|vous) plaît|stp|svp),?) (?:toujours|ne (?:plus )?jamais) (?:me |m'|nous )?"
        rf"{_FR_INFINITIVE}",
    ),
)

# --- Chinese

_ZH_LEAD = r"(?:(?:请|麻烦你?|拜托|好的?|嗯|对了|还有|另外|注意|记住|谢谢|你好)[，,：:、！!\s]*){0,4}"
_ZH_TONGUE = r"(?:中文|英文|英语|汉语|普通话|西班牙语|德语|法语|日语|简体|繁体)"
_ZH_VERB = (
    rf"(?:(?:用|使用|以)[^，,。]{{1,16}}(?:回答|回复|答复|写|说|交流|称呼|解释|表示|对话|格式|单位)(?!得)"
    rf"|说{_ZH_TONGUE}|(?:回答|回复|答复)(?!得|了)(?:我|时|的|问题|简|要|尽|里)?|(?:叫|称呼|喊|提醒|告诉|问"
    rf"|给|称)我"
    r"|使用|附上|加上|加|列出|给出|注明|写明|引用|翻译|检查|确认|保持|避免|先问|解释|简短|简洁|礼貌|道歉"
    r"|编造|透露|提(?:到|起))"
)
_ZH_MUST = (
    r"(?:(?:请|你|您|都|要|得|必须|务必|应该|应当|一律|只|只能|尽量|始终|总是|永远|一直|记得|先|再|就|也"
    r"|帮我)[，,]?)*"
)
_ZH_NOT = r"(?:不要|别|不准|不许|不得|不能|不可以|勿)(?:再)?"
_ZH_NOW = r"(?:从现在(?:起|开始)|从今(?:天)?(?:起|以后|往后|开始)|从此(?:以后)?|以后|今后|往后|日后|将来)"
CHINESE = _language(
    r"[从以今往日将始永一务每请要须该得绝再任只]",
    rf"{_ZH_LEAD}{_ZH_NOW}[，,：:\s]*(?!再说){_ZH_MUST}(?:{_ZH_NOT})?{_ZH_MUST}{_ZH_VERB}",
    rf"{_ZH_LEAD}(?:你|您)?(?:必须|要|应该|务必|得)?(?:始终|永远|一律|务必总是|每次都(?:要"
    rf"|请)){_ZH_MUST}{_ZH_VERB}",
    rf"(?:(?:{_ZH_LEAD}(?<=请)|{_ZH_LEAD}(?:你|您)(?:要|必须|应该|得|务必)|{_ZH_LEAD}(?:务必|必须))[，,]?)"
    rf"(?:总是|一直|每次都?|都){_ZH_MUST}{_ZH_VERB}",
    rf"{_ZH_LEAD}(?:你|您)?(?:永远|绝对|以后|再也|任何时候)(?:都|也)?{_ZH_NOT}{_ZH_MUST}{_ZH_VERB}",
    rf"{_ZH_LEAD}(?:你|您)?绝(?:不要|不能|不可以|不许|不得){_ZH_MUST}{_ZH_VERB}",
    rf"{_ZH_LEAD}(?:每次|每当|每逢|只要)我[^，,]{{1,80}}[，,]\s*(?:请|你(?:都)?(?:要|必须|应该|得)|都要"
    rf"|都请|务必|记得)"
    rf"{_ZH_MUST}(?:{_ZH_NOT})?{_ZH_VERB}",
)

# --- Japanese: the rule is in the first words, the order in the last ones.

_JA_LEAD = (
    r"(?:(?:すみません|お願い(?:します)?|あと|それと|それから|では|じゃあ|なお|ちなみに"
    r"|注意)[、,。！\s]*){0,3}"
)
_JA_DO = (
    r"(?:答え|返事(?:を)?し|返信し|回答し|返答し|応答し|使っ|使用し|用い|書い|話し|しゃべっ|教え|説明し"
    r"|示し|付け|つけ|加え"
    r"|添え|入れ|確認し|言っ|聞い|尋ね|出し|載せ|挙げ|表示し|翻訳し|訳し|まとめ|始め|終え|終わっ|避け"
    r"|思い出させ|知らせ|し)て|呼んで"
)
_JA_NOT_DO = (
    r"(?:答え|返事し|返信し|回答し|使わ|使用し|書か|話さ|呼ば|言わ|聞か|出さ|入れ|付け|つけ|加え|示さ|訳さ"
    r"|触れ|謝ら|作ら|し)ないで"
)
_JA_ASK = (
    r"(?:ください|下さい|くださいね|ほしい(?:です)?|欲しい(?:です)?|くれ|もらいたい(?:です)?|ね|よ|おいて"
    r"(?:ください)?)?"
)
_JA_END = (
    rf"(?:(?:(?:{_JA_DO})|{_JA_NOT_DO}){_JA_ASK}|(?:答える|使う|書く|話す|呼ぶ|説明する|使わない|書かない"
    rf"|呼ばない|言わない|する|しない)"
    rf"(?:こと|ように(?:して(?:ください|下さい|ね)?|お願いします)?)|でお願いします|しろ|するな|使うな"
    rf"|呼ぶな|言うな)[。！!\s]*$"
)
_JA_NOW = (
    r"(?:これから(?:は|も)?|今後(?:は|も)?|今から(?:は)?|以後(?:は)?|この先(?:は)?|次から(?:は)?|今日から"
    r"(?:は)?)"
)
_JA_ALWAYS = r"(?:いつも|常に|つねに|必ず|毎回|絶対に|決して|けっして|二度と|一切|どんな時も)"
_JA_NOBODY = r"(?!(?:私|僕|俺|わたし|彼|彼女|母|父|上司|友達|みんな|うち)(?:は|も|の(?!こと)))"
JAPANESE = _language(
    r"(?:これから|今後|今から|以後|この先|次から|今日から|いつも|常に|つねに|必ず|毎回|絶対に|決して"
    r"|けっして|二度と|一切|どんな時も|たび|度に|ときは|時は)",
    rf"{_JA_LEAD}{_JA_NOBODY}(?:私(?:に|を|への"
    rf"|のこと)[^、。]{{0,12}}?)?{_JA_NOW}[、,]?.{{0,200}}?{_JA_END}",
    rf"{_JA_LEAD}{_JA_NOBODY}(?:(?:私|僕|俺)(?:に|を|への|のこと)[^、。]{{0,16}}?|[^、。は]{{1,16}}?(?:は"
    rf"|を|で|には)[、]?)?"
    rf"{_JA_ALWAYS}.{{0,200}}?{_JA_END}",
    rf"{_JA_LEAD}(?:私|僕|俺)(?:が|から)[^。]{{1,80}}?(?:たび(?:に)?|度に|ときは(?:いつも|必ず|常に|毎回)"
    rf"|時は(?:いつも|必ず|常に|毎回))"
    rf"[、,]?.{{0,160}}?{_JA_END}",
)

LANGUAGES = (ENGLISH, SPANISH, GERMAN, FRENCH, CHINESE, JAPANESE)
TRIGGERS = "|".join(language.trigger for language in LANGUAGES)
"""A text in which none of these is found sets no rule."""
