"""Writes ratios.json: what Python says of how alike some texts are. Run once: python3 ratios.py"""

import json
import pathlib
import random
from difflib import SequenceMatcher

random.seed(20261117)
UI = ["Search Amazon", "search amazon", "Seach Arnazon", "Save", "Save As…", "Save all", "Cancel",
      "OK", "File Edit View", "  File\t", "Straße", "STRASSE", "İstanbul", "ΟΔΟΣ", "οδος",
      "ファイル", "ファイルを開く", "保存", "👩‍💻 code", "e\u0301te\u0301", "été", "\x1cSign in\x1f",
      "\u00a0Log out\u3000", "Sign in", "Sign out", "", " ", "1,024.50 €", "1024.50 EUR", "diet", "tide"]


def words(count, letters):
    return "".join(random.choice(letters) for _ in range(count))


pairs = [(a, b) for a in UI[:12] for b in UI[:8]]
pairs += [(random.choice(UI), random.choice(UI)) for _ in range(60)]
for length in (10, 199, 200, 250, 400):
    for letters in ("ab", "abcdefgh ", "abcdefghijklmnopqrstuvwxyzéßあ中 .,-"):
        one = words(length, letters)
        two = list(one)
        for _ in range(length // 10):
            two[random.randrange(length)] = random.choice(letters)
        pairs += [(one, "".join(two)), (one[: length // 2], one), (words(40, letters), one)]
pairs += [("x" * 250, "x" * 250), ("a" * 199 + "b", "b" + "a" * 199), ("ab" * 120, "ba" * 120)]

rows = []
for a, b in pairs:
    one, two = a.lower().strip(), b.lower().strip()
    rows.append({"a": a, "b": b, "a_normalized": one, "b_normalized": two,
                 "ratio": repr(SequenceMatcher(None, one, two).ratio())})
lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
(pathlib.Path(__file__).parent / "ratios.json").write_text(f"[\n{lines}\n]\n")
