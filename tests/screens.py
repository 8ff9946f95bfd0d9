"""A screen that understands what rich writes: line ends, the cursor up, and an erased line."""

import re

_PIECES = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|\r|\n|[^\x1b\r\n]+|\x1b")


def lines_on_screen(written: str) -> list[str]:
    """Return the lines that a person sees in the end."""
    lines, row, column = [""], 0, 0
    for piece in _PIECES.finditer(written):
        text = piece[0]
        if text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif piece[2] == "A":
            row = max(row - int(piece[1] or 1), 0)
        elif piece[2] == "K":
            lines[row] = ""
        elif not text.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]
