"""Texts that read like orders to the model: ignoring its instructions, another role, secrecy. Pure."""

from __future__ import annotations

import re
from unicodedata import category, normalize

from weft.types.tokenize import slices, words

# What orders are made of, in English, Spanish, Portuguese, French, German, Italian and Dutch, unaccented.
_IGNORE = """(?:ignore|disregard|forget|override|bypass|ignora|olvida|olvide|descarta|esqueca|esquece
    |haz caso omiso de|desconsidere|ignorez|oublie|oubliez|ne (?:tiens|tenez) pas compte|ignoriere|vergiss
    |ignorieren|vergessen|missachte|ignorate|dimentica|dimenticate|negeer|vergeet) """
_YOUR = "(?:your|tus|sus|tuas|suas|tes|vos|deine|ihre|tue|vostre|je|jouw|uw)"
_ALL = "(?:all|any|every|todas|todos|toutes|tous|alle|tutte|tutti)"
_LINK = f"""(?:(?:{_ALL}|{_YOUR}|of|the|these|those|my|las|los|les|le|de|des|del|as|os|sie|die|der|den|gli|i
    |het|estas|essas|ces|diese|queste|deze) ){{0,4}}"""
_EARLIER = """(?:previous|prior|above|earlier|preceding|foregoing|original|initial|previas|anteriores
    |de arriba|precedentes|acima|anterieures|ci dessus|vorherigen|vorigen|bisherigen|vorangegangenen
    |obigen|fruheren|precedenti|di cui sopra|vorige|eerdere|voorgaande|bovenstaande)"""
_ORDERS = """(?:instructions?|prompts?|directions|directives?|rules|guidelines|commands|constraints|regles
    |restrictions|programming|instrucciones|indicaciones|ordenes|reglas|directrices|instrucoes|ordens|regras
    |diretrizes|consignes|anweisungen|instruktionen|befehle|regeln|vorgaben|istruzioni|regole|direttive|ordini
    |instructies|aanwijzingen|regels|opdrachten)"""
_COMMANDS = {
    "tells the model to ignore its instructions": f"""{_IGNORE}{_LINK}(?:{_EARLIER} (?:[a-z]+ )?{_ORDERS}
    |{_ORDERS} (?:(?:that|you|were|are|given|written|from|dadas|donnees) ){{0,4}}{_EARLIER}
    |(?:{_YOUR}|{_ALL}) (?:(?:of|the|own|system|safety) ){{0,3}}{_ORDERS})
    |(?:ignore|disregard|forget) (?:(?:all|everything|anything|of|the) ){{0,4}}above(?! average)
    |(?:ignore|disregard|forget) (?:everything|all|anything|what) you (?:were|have been) told""",
    "asks the model for its instructions": f"""system prompt
    |(?:reveal|disclose|leak|expose|print|output) {_LINK}{_YOUR} (?:[a-z]+ ){{0,2}}{_ORDERS}""",
    "gives the model another role": """(?<!what )(?<!where )(?<!who )(?<!how )(?<!old )(?<!if )
    you (?:are|re) now(?! (?:able|allowed|and|at|back|but|connected|enrolled|following|free to|home|leaving
    |logged|off|on|or|part|ready|registered|safe|set|signed|subscribed|unsubscribed|verified|[0-9]+
    |the (?:[a-z]+ )?owner|an? (?:[a-z]+ )?(?:member|subscriber|follower|customer))) [a-z]+
    |(?:act|behave|respond|answer|pretend|roleplay) (?:as|like|to be|you are) (?:[^ ]+ ){1,12}?
    (?:without|with no|free of|free from) (?:any |all )?(?:[a-z]+ )?
    (?:restrictions?|limits|limitations?|filters?|rules|guidelines|constraints|censorship)""",
    "tells the model what to do from now on": """from (?:now|this point) (?:on|onwards?|forward) (?:always
    |never|obey|you (?:must|always|never|shall|will|are|have to|need to|should|do not))
    |a partir de (?:ahora|agora) (?:voce )?(?:debes|siempre|nunca|eres|tienes que|deve|sempre|tem que)
    |(?:a partir de maintenant|desormais|dorenavant) (?:tu|vous) (?:dois|devez|es|etes)
    |(?:ab (?:jetzt|sofort)|von (?:nun|jetzt) an) (?:musst|bist|sollst|wirst|mussen) (?:du|sie)
    |(?:da|d) (?:ora|adesso) in (?:poi|avanti) (?:devi|sei|dovrai)|vanaf nu (?:moet|ben|zul) (?:je|jij|u)""",
    "tells the model to hide something from the user": """without (?:telling|informing|notifying) the user
    |(?:do not|don t|never) (?:tell|inform|notify|(?:mention|reveal) (?:this|it) to) the user
    |(?:hide|keep) (?:[a-z]+ ){1,3}from the user|no (?:le |se lo )?(?:digas|cuentes|reveles) .{0,20}usuario
    |nao (?:diga|conte|revele) .{0,20}usuario|ne (?:dis|dites|revele|revelez) (?:pas|rien) .{0,20}utilisateur
    |(?:sage?|sagen|verrate) .{0,20}nutzer (?:[a-z]+ )?nichts?|non (?:dire|rivelare) .{0,20}utente
    |(?:vertel|zeg) .{0,20}gebruiker (?:[a-z]+ )?niets?""",
}
_ORDERED = {what: re.compile(rf"\b(?:{order})\b".replace("\n    ", "")) for what, order in _COMMANDS.items()}
_LONGEST_ORDER = 40
"""How many words an order has at most."""
_MIDDLE = "-"
# `### Instructions` is the heading of a recipe, `### Instruction` that of a prompt.
_ROLE = re.compile(r"""(?xi)(?:\A|[\n\r\v\f\x85\u2028\u2029])[ \t]*+(?:\**system\**[ \t]*+:
    |\[/?(?:system|inst)\]|<\|\w+\|>|<<sys>>|</?system>|\#{3,}[ ]*+(?:instruction|system)\b)""")


def orders_in(text: str, *, named: str = "") -> str:
    """Say in a few words what a text, or its name, orders the model to do; empty if nothing.

    A long text is looked at in slices, each with the last words of the one before.
    """
    called = " ".join(named.lower().split())
    orders = {what for what, order in _ORDERED.items() if order.search(called)}
    has_role, before = False, list[str]()
    for part in slices(text):
        visible = _visible(part)
        now = words(visible)
        said = " ".join((*before, *now))
        orders |= {what for what, order in _ORDERED.items() if what not in orders and order.search(said)}
        # In a later slice only a line end begins a line.
        has_role = has_role or _ROLE.search(f"{_MIDDLE}{visible}" if before else visible) is not None
        before = now[-_LONGEST_ORDER:] or before
    first = (what for what in _ORDERED if what in orders)
    return next(first, "begins a line like a message of the system" if has_role else "")


def _visible(text: str) -> str:
    """Remove invisible characters: they hide a word from a search and not from a model."""
    if text.isascii():
        return text
    return "".join(each for each in normalize("NFKD", text) if category(each) not in ("Cf", "Mn"))
