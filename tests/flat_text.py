"""Reading the flat text of a context back."""

import re


def sections_of(flat: str) -> list[tuple[str, str]]:
    """Read a flat prompt back: a label alone on a line begins a section, a blank line ends the one before."""
    pieces = re.split(r"(?:\A|\n\n)\[(System|User|Assistant)\]\n", flat)
    assert pieces[0] == ""
    hidden = "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    hidden += "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
    names = "|".join(f"{hidden}*".join(name) for name in ("System", "User", "Assistant"))
    breaks = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
    indent = rf"(?:(?![{breaks}])\s|{hidden})*"
    label = rf"\\*[\[\uff3b]{hidden}*(?:{names}){hidden}*[\]\uff3d]"
    guarded = re.compile(rf"((?:\A|[{breaks}]){indent})\\({label})")
    return [(name, guarded.sub(r"\1\2", text)) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)]
