"""Makes embeddings.json: sentences and their vectors, computed in f64 from the published weights.

usage: python3 embeddings.py MODEL_DIR > embeddings.json   (needs numpy and tokenizers)

MODEL_DIR has model.safetensors and tokenizer.json. The steps are those of sentence-transformers: at most
256 tokens, masked mean over the tokens, normalised to length 1.
"""

import json
import math
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "open the settings and turn on dark mode",
    "Öffne die Einstellungen und schalte den dunklen Modus ein.",
    "次の会議は午後三時に始まります。",
    "🎉 release party 🎉 tomorrow!",
    "git commit -am 'fix: off-by-one in pagination' && git push --force-with-lease",
    "https://example.com/a/b?c=d&e=f#g",
    "",
    "a",
    "naïve café résumé coöperate",
    "NUL\0in the middle",
    "fn main() {\n\tprintln!(\"hello\");\n}",
    "   leading and trailing spaces   ",
    "Antidisestablishmentarianism supercalifragilisticexpialidocious",
    "한국어 문장도 있다",
    "word " * 400,
]

folder = sys.argv[1]
with open(f"{folder}/model.safetensors", "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()


def weight(name):
    about = header[name]
    begin, end = about["data_offsets"]
    return np.frombuffer(data[begin:end], "<f4").reshape(about["shape"]).astype(np.float64)


def linear(x, name):
    return x @ weight(name + ".weight").T + weight(name + ".bias")


def norm(x, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * weight(name + ".weight") + weight(name + ".bias")


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def embed(ids):
    x = weight("embeddings.word_embeddings.weight")[ids]
    x = x + weight("embeddings.position_embeddings.weight")[: len(ids)]
    x = norm(x + weight("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
    for layer in range(6):
        prefix = f"encoder.layer.{layer}."
        heads = lambda name: linear(x, prefix + "attention.self." + name).reshape(len(ids), 12, 32).transpose(1, 0, 2)
        scores = heads("query") @ heads("key").transpose(0, 2, 1) / math.sqrt(32)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ heads("value")
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), 384)
        x = norm(x + linear(mixed, prefix + "attention.output.dense"), prefix + "attention.output.LayerNorm")
        wide = gelu(linear(x, prefix + "intermediate.dense"))
        x = norm(x + linear(wide, prefix + "output.dense"), prefix + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
tokenizer.enable_truncation(256)
print("[")
for n, text in enumerate(SENTENCES):
    ids = tokenizer.encode(text).ids
    vector = [round(float(x), 5) for x in embed(ids)]
    row = json.dumps({"text": text, "tokens": len(ids), "vector": vector}, separators=(",", ":"))
    print(row + ("," if n + 1 < len(SENTENCES) else ""))
print("]")
