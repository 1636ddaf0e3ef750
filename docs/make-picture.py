#!/usr/bin/env python3
"""Draws a real run as docs/run.svg: starts it in a terminal of its own, and draws the final screen.

    docs/make-picture.py [--lockstep target/release/lockstep] [--epochs 10]
"""

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS, ROWS = 100, 80
CELL_W, CELL_H, MARGIN, BAR = 8.4, 19, 22, 34
BACKGROUND, TITLE_BAR, FRAME, TEXT = "#14171f", "#1d212b", "#4a5264", "#d6dae3"
COLOURS = {30: "#5c6370", 31: "#f07178", 32: "#8fd694", 33: "#f2c674",
           34: "#7fb2ff", 35: "#d2a1f0", 36: "#6fd0d6", 37: TEXT}  # fmt: skip
PLAIN = (TEXT, False, False)  # colour, bold, dim

# Which of a cell's four arms (left, right, up, down) each box character draws; round ones are corners.
ARMS = {"─": "lr", "│": "ud", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru", "┼": "lrud",
        "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu"}  # fmt: skip
TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n\x00-\x1f])")


def run_in_terminal(command):
    """All that a command writes to a terminal of the picture's size."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": ""}
    environment.pop("NO_COLOR", None)
    run = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    written = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # how Linux says that the other side was closed
            break
        if not block:
            break
        written += block
    if run.wait() != 0:
        sys.exit(f"{' '.join(command)} failed:\n{written.decode()}")
    return written.decode()


def screen(written):
    """What a terminal shows in the end: rows of (character, style) cells."""
    rows, row, column, style = [{}], 0, 0, PLAIN
    for match in TOKEN.finditer(written):
        arguments, command, control, character = match.groups()
        if character:
            if column == COLUMNS:
                row, column = row + 1, 0
            while row >= len(rows):
                rows.append({})
            rows[row][column] = (character, style)
            column += 1
        elif control == "\r":
            column = 0
        elif control == "\n":
            row += 1
        elif command == "m":
            style = styled(style, [int(n or 0) for n in arguments.split(";")])
        elif command == "K":
            while row >= len(rows):
                rows.append({})
            rows[row] = {} if arguments == "2" else {c: x for c, x in rows[row].items() if c < column}
        elif command == "A":
            row = max(0, row - int(arguments or 1))
        elif command == "B":
            row += int(arguments or 1)
    blank = (" ", PLAIN)
    lines = [[cells.get(c, blank) for c in range(COLUMNS)] for cells in rows]
    while lines and all(character == " " for character, _ in lines[-1]):
        lines.pop()
    return lines


def styled(style, codes):
    colour, bold, dim = style
    for code in codes:
        if code == 0:
            colour, bold, dim = PLAIN
        elif code == 1:
            bold = True
        elif code == 2:
            dim = True
        elif code in COLOURS:
            colour = COLOURS[code]
        elif 90 <= code <= 97:
            colour = COLOURS[code - 60]
    return colour, bold, dim


def box_path(character, x, y):
    """A box character as a path: text would leave gaps between the rows."""
    middle_x, middle_y = x + CELL_W / 2, y + CELL_H / 2
    ends = {"l": (x, middle_y), "r": (x + CELL_W, middle_y), "u": (middle_x, y), "d": (middle_x, y + CELL_H)}
    arms = [ends[arm] for arm in ARMS[character]]
    if character in "╭╮╰╯":
        (from_x, from_y), (to_x, to_y) = arms
        return f"M{from_x:g} {from_y:g}Q{middle_x:g} {middle_y:g} {to_x:g} {to_y:g}"
    return "".join(f"M{middle_x:g} {middle_y:g}L{to_x:g} {to_y:g}" for to_x, to_y in arms)


def draw(lines, title):
    width, height = 2 * MARGIN + COLUMNS * CELL_W, BAR + 2 * MARGIN + len(lines) * CELL_H
    dots = "".join(
        f'<circle cx="{20 + 20 * n}" cy="{BAR / 2:g}" r="6" fill="{fill}"/>'
        for n, fill in enumerate(["#f07178", "#f2c674", "#8fd694"])
    )
    texts, frames = [], []
    for number, line in enumerate(lines):
        y = BAR + MARGIN + number * CELL_H
        at = 0
        for (box, style), run in groupby(line, lambda cell: (cell[0] in ARMS, cell[1])):
            word = "".join(character for character, _ in run)
            if box:
                places = enumerate(word, at)
                frames += [box_path(c, MARGIN + CELL_W * column, y) for column, c in places]
            elif word.strip():
                texts.append(text(word, MARGIN + CELL_W * at, y, style))
            at += len(word)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>{escape(title)}</title>
<rect width="{width:g}" height="{height:g}" rx="12" fill="{BACKGROUND}"/>
<path d="M0 {BAR}V12Q0 0 12 0H{width - 12:g}Q{width:g} 0 {width:g} 12V{BAR}Z" fill="{TITLE_BAR}"/>
{dots}
<path d="{"".join(frames)}" fill="none" stroke="{FRAME}" stroke-width="1.2"/>
<g font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
{chr(10).join(texts)}
</g>
</svg>
"""


def text(word, x, y, style):
    """A run of characters, as wide as its cells whatever the font."""
    colour, bold, dim = style
    lead = len(word) - len(word.lstrip())
    word, x = word.strip(), x + lead * CELL_W
    look = f' fill="{colour}"' + ' font-weight="bold"' * bold + ' opacity="0.55"' * dim
    fit = f'textLength="{len(word) * CELL_W:g}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:g}" y="{y + 14:g}" {fit} xml:space="preserve"{look}>{escape(word)}</text>'


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", default="target/release/lockstep")
    arguments.add_argument("--epochs", default="10")
    options = arguments.parse_args()
    root = Path(__file__).resolve().parent.parent
    os.chdir(root)
    words = ["run", "examples/fashion-mnist.toml", "--workers", "2", "--epochs", options.epochs]
    shown = " ".join(["lockstep", *words])
    prompt = f"\x1b[32m$\x1b[0m \x1b[1m{shown}\x1b[0m\r\n"
    lines = screen(prompt + run_in_terminal([options.lockstep, *words]))
    (root / "docs/run.svg").write_text(draw(lines, f"{shown}: the screen of a finished run"))


if __name__ == "__main__":
    main()
