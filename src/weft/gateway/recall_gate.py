"""Which costly layers a message needs, by its words.

The patterns match at the start of a word, in any case, so that "residue" does not match "due". A message with
none of these words saves the tokens of both layers.
"""

from __future__ import annotations

import re
from functools import cache

from weft.types.context import ContextNeeds
from weft.types.recipe import Gate
from weft.types.tokenize import query_part

_RECALL = {
    "English": "remember|recall|last time|you said|you told|you mentioned|earlier|before|previously"
    "|we talked|we discussed|we spoke|yesterday|last week|last month",
    "Spanish": "recuerda|te acuerdas|acuérdate|la última vez|dijiste|me contaste|mencionaste|antes"
    "|hablamos|ayer|la semana pasada",
    "Portuguese": "lembra|da última vez|disseste|você disse|mencionou|antes|conversamos|falamos|ontem"
    "|(?:n?a )?semana passada",
    "French": "souviens|souvenez|rappelle-toi|tu te rappelles|la dernière fois|tu as dit|tu m'as dit"
    "|vous avez dit|avant|plus tôt|on a parlé|nous avons parlé|hier|la semaine dernière",
    "German": "erinner|letzte[sn] mal|du hast gesagt|hast du gesagt|du sagtest|erwähnt|vorher|früher"
    "|wir haben gesprochen|haben wir gesprochen|besprochen|gestern|letzte woche",
    "Italian": "ricord|l'ultima volta|hai detto|hai menzionato|prima|abbiamo parlato|abbiamo discusso|ieri"
    "|la settimana scorsa",
    "Dutch": "herinner|weet je nog|vorige keer|je zei|je hebt gezegd|eerder|daarvoor|we hebben gesproken"
    "|hebben we gesproken|besproken|gisteren|vorige week",
}
_TASKS = {
    "English": "task|remind|pending|schedule|alarm|timer|tomorrow|next week|daily|weekly|monthly|cancel"
    "|recurring|appointment|due\\b|deadline|to-?do\\b",
    "Spanish": "tarea|recordatorio|recuérdame|pendiente|alarma|mañana|la próxima semana|cada día|cita\\b",
    "Portuguese": "tarefa|lembrete|lembra-me|me lembre|amanhã|próxima semana|compromisso",
    "French": "tâche|rappel|demain|la semaine prochaine|rendez-vous|chaque jour|échéance",
    # "Guten Morgen" is a greeting.
    "German": "aufgabe|erinnerung|erinnere mich|termin|wecker|(?<!guten )morgen\\b|nächste woche|täglich"
    "|wöchentlich|monatlich|absagen|fällig",
    "Italian": "compito|promemoria|ricordami|domani|la prossima settimana|appuntamento|scadenza",
    "Dutch": "taak|taken\\b|herinnering|herinner me|afspraak|wekker|volgende week|dagelijks|wekelijks"
    "|maandelijks|annuleer",
}


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile the words of recall and of tasks. Most recipes never need them."""
    recall, tasks = (
        re.compile(rf"(?<!\w)(?:{'|'.join(words.values())})", re.IGNORECASE) for words in (_RECALL, _TASKS)
    )
    return recall, tasks


def needs_of(message: str, gate: Gate = "keywords") -> ContextNeeds:
    """Return what a message needs under a recipe's gate: all, what its words ask for, or no recall."""
    if gate == "keywords":
        recall, tasks = _patterns()
        message = query_part(message)
        return ContextNeeds(
            recall=recall.search(message) is not None, pending_tasks=tasks.search(message) is not None
        )
    return ContextNeeds(recall=gate == "always")
