"""Derives the embedded fonts from IBM Plex Sans and IBM Plex Mono.

Plex has tabular digits and all the letters and signs that Velo writes, except
the small geometric marks (source marks, arrows of a comparison, list marks),
the raised minus sign and, in the monospace, three Greek letters that it has under another code
point. This script adds those and nothing else. The Open Font License keeps
the name "Plex" for the original, so what comes out is called Velo.

Usage: derive.py FOLDER, where FOLDER holds IBMPlexSans-{Regular,Bold}.woff
and IBMPlexMono-{Regular,Bold}.woff of the npm packages @ibm/plex-sans 1.1.0
and @ibm/plex-mono 2.5.0. Needs fontTools 4.60. Same input, same bytes.
"""

import math
import pathlib
import sys

from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont

WIDTH = 600  # of every mark, in 1/1000 em: the monospace's own advance
MIDDLE = 349  # half the cap height of Plex, so that marks sit on a digit's centre


def polygon(pen, points, hole=False):
    points = list(points)
    if hole:
        points.reverse()
    pen.moveTo(points[0])
    for point in points[1:]:
        pen.lineTo(point)
    pen.closePath()


def square(pen, half, hole=False):
    x, y = WIDTH // 2, MIDDLE
    polygon(pen, [(x - half, y - half), (x - half, y + half), (x + half, y + half), (x + half, y - half)], hole)


def diamond(pen, half, hole=False):
    x, y = WIDTH // 2, MIDDLE
    polygon(pen, [(x - half, y), (x, y + half), (x + half, y), (x, y - half)], hole)


def circle(pen, radius, hole=False):
    """Eight quadratic arcs: at most 0.1 % away from the true circle."""
    x, y, n = WIDTH // 2, MIDDLE, 8
    on = [(x + radius * math.cos(-2 * math.pi * i / n), y + radius * math.sin(-2 * math.pi * i / n)) for i in range(n)]
    far = radius / math.cos(math.pi / n)
    off = [(x + far * math.cos(-math.pi * (2 * i + 1) / n), y + far * math.sin(-math.pi * (2 * i + 1) / n)) for i in range(n)]
    on = [(round(a), round(b)) for a, b in on]
    off = [(round(a), round(b)) for a, b in off]
    if hole:
        on = [on[0]] + on[:0:-1]
        off.reverse()
    pen.moveTo(on[0])
    for i in range(n):
        pen.qCurveTo(off[i], on[(i + 1) % n])
    pen.closePath()


def triangle(pen, up):
    x, y, half = WIDTH // 2, MIDDLE, 250
    if up:
        polygon(pen, [(x - half, y - 230), (x, y + 230), (x + half, y - 230)])
    else:
        polygon(pen, [(x - half, y + 230), (x + half, y + 230), (x, y - 230)])


def outlined(shape, size, wall=56):
    def draw(pen):
        shape(pen, size)
        shape(pen, size - wall, hole=True)

    return draw


MARKS = {
    0x25A0: ("blacksquare", lambda pen: square(pen, 230)),
    0x25A1: ("whitesquare", outlined(square, 230)),
    0x25AA: ("smallblacksquare", lambda pen: square(pen, 150)),
    0x25AB: ("smallwhitesquare", outlined(square, 150)),
    0x25B2: ("triangleup", lambda pen: triangle(pen, True)),
    0x25BC: ("triangledown", lambda pen: triangle(pen, False)),
    0x25CF: ("blackcircle", lambda pen: circle(pen, 230)),
    0x25CB: ("whitecircle", outlined(circle, 230)),
    0x25C6: ("blackdiamond", lambda pen: diamond(pen, 280)),
    0x25C7: ("whitediamond", outlined(diamond, 280, 80)),
}
# The same letter under the code point that keyboards and models write.
ALIASES = {0x03BC: 0x00B5, 0x0394: 0x2206, 0x03A9: 0x2126}


def superscript_minus(font):
    """The minus sign of 10⁻⁶: as wide as a raised digit, half way up it."""
    digit = font.getBestCmap()[0x2076]
    width, _ = font["hmtx"][digit]
    bounds = font["glyf"][digit]
    middle = (bounds.yMin + bounds.yMax) // 2
    half = 36 if font["OS/2"].usWeightClass >= 600 else 25
    pen = TTGlyphPen(None)
    polygon(pen, [(bounds.xMin, middle - half), (bounds.xMin, middle + half), (bounds.xMax, middle + half), (bounds.xMax, middle - half)])
    glyph = pen.glyph()
    glyph.recalcBounds(font["glyf"])
    return width, glyph


def derive(source, target):
    font = TTFont(source, recalcTimestamp=False)
    font.flavor = None
    order = font.getGlyphOrder()
    maps = [table.cmap for table in font["cmap"].tables if table.format in (4, 12)]
    for code, (name, draw) in MARKS.items():
        if code in font.getBestCmap():
            continue
        pen = TTGlyphPen(None)
        draw(pen)
        order = order + [name]
        font.setGlyphOrder(order)
        glyph = pen.glyph()
        glyph.recalcBounds(font["glyf"])
        font["glyf"][name] = glyph
        font["hmtx"][name] = (WIDTH, glyph.xMin)
        for cmap in maps:
            cmap[code] = name
    if 0x207B not in font.getBestCmap():
        order = order + ["superscriptminus"]
        font.setGlyphOrder(order)
        width, glyph = superscript_minus(font)
        font["glyf"]["superscriptminus"] = glyph
        font["hmtx"]["superscriptminus"] = (width, glyph.xMin)
        for cmap in maps:
            cmap[0x207B] = "superscriptminus"
    for code, original in ALIASES.items():
        for cmap in maps:
            if code not in cmap:
                cmap[code] = cmap[original]
    for record in list(font["name"].names):
        if record.nameID == 7:  # the trademark notice speaks of the original's name
            font["name"].removeNames(nameID=7)
        elif record.nameID != 0:  # the copyright notice stays as it is
            text = record.toUnicode().replace("IBM Plex", "Velo").replace("IBMPlex", "Velo").replace("Plex", "Velo")
            record.string = text
    if "DSIG" in font:  # signs the original's bytes
        del font["DSIG"]
    font.save(target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).parent
    for style in ("Sans-Regular", "Sans-Bold", "Mono-Regular", "Mono-Bold"):
        derive(pathlib.Path(sys.argv[1]) / f"IBMPlex{style}.woff", here / f"Velo{style}.ttf")
