"""Makes the pictures of this folder and screens.json with the text and the boxes in them.

usage: python3 screens.py FOLDER   (needs Pillow 11 and the DejaVu fonts, package fonts-dejavu)
"""

import json
import sys

from PIL import Image, ImageDraw, ImageFont

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVu"
folder = sys.argv[1]
screens = {}


class Screen:
    def __init__(self, width, height, ground):
        self.image = Image.new("RGB", (width, height), ground)
        self.draw = ImageDraw.Draw(self.image)
        self.lines = []

    def text(self, x, y, text, size=14, colour="#222222", font="Sans", anchor="la"):
        font = ImageFont.truetype(f"{FONTS}{font}.ttf", size)
        self.draw.text((x, y), text, colour, font, anchor=anchor)
        left, top, right, bottom = self.draw.textbbox((x, y), text, font, anchor=anchor)
        self.lines.append({"text": text, "x": left, "y": top, "width": right - left, "height": bottom - top})

    def box(self, x, y, width, height, fill, outline=None, radius=4):
        self.draw.rounded_rectangle((x, y, x + width, y + height), radius, fill, outline)

    def save(self, name, image=None, lines=None, **options):
        image = (image or self.image).quantize(64) if name.endswith("png") else self.image
        image.save(f"{folder}/{name}", **options)
        screens[name] = self.lines if lines is None else lines


def window(dark):
    ground, panel, ink, faint, line = (
        ("#1e1f22", "#2b2d30", "#dfe1e5", "#9da0a8", "#43454a")
        if dark
        else ("#ffffff", "#f3f4f6", "#1f2328", "#59636e", "#d1d9e0")
    )
    screen = Screen(1000, 640, ground)
    screen.box(0, 0, 1000, 40, panel, radius=0)
    for n, word in enumerate(["File", "Edit", "Selection", "View", "Terminal", "Help"]):
        screen.text(16 + n * 92, 12, word, 14, ink)
    screen.box(0, 40, 220, 600, panel, radius=0)
    files = ["README.md", "Cargo.toml", "src/main.rs", "src/lib.rs", "tests/it.rs", "docs/senses.md", "Makefile"]
    for n, word in enumerate(files):
        screen.text(24, 64 + n * 30, word, 13, ink)
    screen.text(252, 60, "Project settings", 26, ink, "Sans-Bold")
    screen.text(252, 104, "Changes are saved at once and apply to every open window.", 14, faint)
    rows = [
        ("Display name", "Quintet workspace"),
        ("Default branch", "main"),
        ("E-mail", "ada@example.org"),
        ("Proxy", "http://127.0.0.1:8787"),
        ("Time limit", "3600 seconds"),
    ]
    for n, (label, value) in enumerate(rows):
        y = 150 + n * 56
        screen.text(252, y + 8, label, 14, ink)
        screen.box(420, y, 420, 34, ground, line)
        screen.text(434, y + 8, value, 14, ink, "SansMono")
    screen.box(252, 452, 130, 38, "#1f6feb")
    screen.text(317, 471, "Save changes", 14, "#ffffff", "Sans-Bold", "mm")
    screen.box(400, 452, 100, 38, panel, line)
    screen.text(450, 471, "Cancel", 14, ink, anchor="mm")
    screen.text(252, 520, "Danger zone", 18, "#cf222e" if not dark else "#ff7b72", "Sans-Bold")
    screen.text(252, 552, "Deleting a project cannot be undone (2 sessions, 14 files).", 13, faint)
    screen.text(252, 604, "Ln 42, Col 7", 11, faint)
    screen.text(400, 604, "UTF-8", 11, faint)
    screen.text(480, 604, "Version 1.28.3", 11, faint)
    return screen


light = window(False)
light.save("light.png")
light.save("light.jpg", quality=85)
window(True).save("dark.png")


def turned(screen, quarter):
    """The boxes after a turn counterclockwise by so many quarters."""
    width, height = screen.image.size
    lines = []
    for line in screen.lines:
        x, y, w, h = line["x"], line["y"], line["width"], line["height"]
        if quarter == 2:
            x, y = width - x - w, height - y - h
        else:
            x, y, w, h = y, width - x - w, h, w
        lines.append({"text": line["text"], "x": x, "y": y, "width": w, "height": h})
    return lines


half = window(False)
half.save("turned.png", half.image.rotate(180), turned(half, 2))
quarter = Screen(420, 300, "#ffffff")
for n, words in enumerate(["Inspection report", "Pressure valve 12", "Checked by M. Curie", "Next date 2027-03-14"]):
    quarter.text(30, 30 + n * 64, words, 26, "#111111", "Serif")
quarter.save("quarter.png", quarter.image.rotate(90, expand=True), turned(quarter, 1))

print_shop = Screen(500, 160, "#ffffff")
print_shop.text(30, 30, "Printed in four colours", 26, "#202060")
print_shop.text(30, 90, "Proof 7 of 12", 20, "#802020")
print_shop.image = print_shop.image.convert("CMYK")
print_shop.save("cmyk.jpg", quality=90)
film = Screen(400, 100, "#ffffff")
film.text(30, 30, "First frame", 28)
second = Image.new("RGB", (400, 100), "#000000")
film.save("film.gif", save_all=True, append_images=[second], duration=100)

table = Screen(1000, 600, "#ffffff")
heads = ["Host", "Region", "Requests", "p50 ms", "p99 ms", "Errors", "Updated"]
columns = [16, 180, 310, 440, 560, 680, 800]
for x, head in zip(columns, heads):
    table.text(x, 12, head, 12, "#000000", "Sans-Bold")
regions = ["eu-west-1", "us-east-2", "ap-south-1", "sa-east-1"]
for n in range(26):
    y = 36 + n * 21
    if n % 2 == 0:
        table.draw.rectangle((0, y - 4, 1000, y + 16), "#f2f5f9")
    cells = [
        f"node-{n + 11:02}.internal",
        regions[n % 4],
        f"{(n * 7919 + 1234) % 98765:,}",
        f"{(n * 37 % 90) + 3}.{n % 10}",
        f"{(n * 91 % 800) + 120}",
        f"{(n * 13 % 50) / 10:.1f} %",
        f"2026-11-{n % 28 + 1:02} {n % 24:02}:{n * 7 % 60:02}",
    ]
    for x, cell in zip(columns, cells):
        table.text(x, y, cell, 12, "#24292f")
table.save("table.png")

with open(f"{folder}/screens.json", "w") as file:
    file.write("{\n")
    for n, (name, lines) in enumerate(screens.items()):
        rows = ",\n".join("  " + json.dumps(line) for line in lines)
        file.write(f'"{name}": [\n{rows}\n]{"," if n + 1 < len(screens) else ""}\n')
    file.write("}\n")
