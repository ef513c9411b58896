"""Trains the head of the wake word "hey Quintet" and writes `wake-word.bin`.

Needs espeak-ng, numpy, onnxruntime and hibari-tts. All speech is synthesized, so that the result is free;
--people FILE.wav adds recordings (16 bits, one channel) as negatives, the second half of each held out.

    python wake_word.py --models ~/.cache/quintet/models --out wake-word.bin

The network below it (melspectrogram.onnx, embedding_model.onnx) turns 80 ms of audio into 96 numbers; the
head looks at the last 16 of them: 1536 numbers, 32 units, one score.
"""
import argparse, io, itertools, os, random, subprocess, wave
import numpy as np
import onnxruntime as ort

RATE, CHUNK, BEFORE, WINDOW = 16000, 1280, 480, 16
PHRASE = "hey quintet"
# What sounds alike and is not meant.
NEAR = ["hey", "quintet", "a quintet", "hey quartet", "the quintet played", "hey Quentin", "hey quickly",
        "hey queen", "hey, when is it", "hey kitten", "they quit it", "hey twenty", "hey Quincy", "hey you",
        "okay Google", "hey Siri", "hey Jarvis", "Alexa", "a quick test", "hey quiet", "pay quint", "hey cousin",
        "say quintet again", "may Quinn text", "hey winter", "hay bale", "Quinn", "okay Quentin, that's it",
        "we can tell", "in the quintessence", "hey quilt", "hey clarinet", "grey quilted jacket"]
COMMANDS = ["open the settings", "what time is it", "turn on the lights", "read my mail", "play some music",
            "close the window", "search for flights to Rome", "stop", "how is the weather", "write a note"]
SENTENCES = """The quick brown fox jumps over the lazy dog and runs into the forest.
Please remember to buy milk, eggs, and a loaf of bread on your way home.
The meeting has been moved to Thursday at three in the afternoon.
She sells sea shells by the sea shore while he counts the waves.
It was the best of times, it was the worst of times.
I think we should wait until the results of the test are in.
There are many kinds of birds in this garden, and most of them sing at dawn.
Can you tell me where the nearest train station is, please?
He quit the team in twenty ten and went to Quebec with his cousins.
They asked quite a few questions about the quality of the equipment.
When the wind went down, the winter evening was quiet and white.
The quartet rehearsed the second movement of the piece again and again.
Okay, then take the key and wait at the gate until eight.
Maybe we can paint the cabinet next weekend, if it is not raining.
Hey, wait a minute, that is not what I meant at all.
The daily report contains a table with the numbers of the last week.
My favourite instrument is the clarinet, but I play the guitar, too.
Hello everybody, and welcome to another episode of our little show.
A good plan today is better than a perfect plan tomorrow.
We have to compile the program before we can run the tests.
His aunt planted mint and quince trees behind the tent.
It takes twenty minutes to get to the center by bus.
The committee will present its final statement within ten days.
Are you going to the concert with the string quintet tonight?
Nobody knew what had happened to the ship until it came back.
Turn left after the bridge, then keep right until you see the church.
The interest rate went up again, and so did the rent.
I would like a cup of tea with honey and a slice of lemon.""".splitlines()
VARIANTS = ["", "+m1", "+m2", "+m3", "+m4", "+m5", "+m6", "+m7", "+f1", "+f2", "+f3", "+f4", "+f5", "+croak", "+klatt",
            "+klatt2", "+klatt3", "+klatt4"]
LANGUAGES = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-029", "en-gb-x-gbclan"]


def read(data):
    with wave.open(io.BytesIO(data)) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768
        return resample(x, w.getframerate(), RATE)


def resample(x, rate, to):
    n = int(len(x) * to / rate)
    if rate > to:                                   # a simple low pass before samples are left out
        k = np.hanning(int(2 * rate / to) + 1)
        x = np.convolve(x, k / k.sum(), "same")
    return np.interp(np.arange(n) * rate / to, np.arange(len(x)), x).astype(np.float32)


def espeak(text, voice, speed, pitch):
    out = subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", text],
                         capture_output=True).stdout
    out = out[:40] + (len(out) - 44).to_bytes(4, "little") + out[44:]    # written to a pipe, the length is not known
    out = out[:4] + (len(out) - 8).to_bytes(4, "little") + out[8:]
    return trim(read(out))


def trim(x):
    loud = np.flatnonzero(np.abs(x) > 0.02 * np.abs(x).max()) if len(x) else []
    return x[loud[0]:loud[-1] + 1] if len(loud) else x


class Backbone:
    def __init__(self, models):
        so = ort.SessionOptions()
        so.intra_op_num_threads = 1
        self.mel = ort.InferenceSession(f"{models}/wake-word/melspectrogram.onnx", so)
        self.emb = ort.InferenceSession(f"{models}/wake-word/embedding_model.onnx", so)

    def features(self, x):
        """96 numbers for each chunk of the clip, as the streaming detector computes them."""
        x = np.concatenate([np.zeros(BEFORE, np.float32), x]) * 32768
        frames = [np.ones((76, 32), np.float32)]
        ends = []
        for i in range((len(x) - BEFORE) // CHUNK):
            m = self.mel.run(None, {"input": x[None, i * CHUNK:(i + 1) * CHUNK + BEFORE]})[0].reshape(-1, 32)
            frames.append(m / 10 + 2)
            ends.append(sum(map(len, frames)) if i == 0 else ends[-1] + len(m))
        frames = np.concatenate(frames)
        if not ends:
            return np.zeros((0, 96), np.float32)
        batch = np.stack([frames[e - 76:e] for e in ends])[..., None]
        out = [self.emb.run(None, {"input_1": batch[k:k + 64]})[0].reshape(-1, 96) for k in range(0, len(batch), 64)]
        return np.concatenate(out)


def windows(f):
    f = np.concatenate([np.zeros((WINDOW - 1, 96), np.float32), f])
    return np.stack([f[i:i + WINDOW].reshape(-1) for i in range(len(f) - WINDOW + 1)]) if len(f) >= WINDOW else np.zeros((0, WINDOW * 96), np.float32)


def worsen(x, rng):
    """Another level, noise and a room."""
    x = x * rng.uniform(0.15, 1.0) / max(1e-3, np.abs(x).max())
    if rng.random() < 0.4:
        tail = np.exp(-np.arange(int(RATE * 0.25)) / (RATE * rng.uniform(0.02, 0.08))) * rng.normal(size=int(RATE * 0.25))
        wet = np.convolve(x, tail)[:len(x)]
        x = x + 0.4 * wet * np.abs(x).max() / max(1e-6, np.abs(wet).max())
    if rng.random() < 0.7:
        noise = rng.normal(size=len(x))
        if rng.random() < 0.5:
            noise = np.convolve(noise, np.ones(8) / 8, "same")
        x = x + noise * 10 ** rng.uniform(-3.6, -1.8)
    return np.clip(x, -1, 1).astype(np.float32)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--models", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--people", nargs="*", default=[])
    a = a.parse_args()
    random.seed(1)
    rng = np.random.default_rng(1)
    back = Backbone(a.models)
    from hibari import Hibari
    voice = Hibari()

    def hibari(text, speed, shift):
        return trim(resample(voice(text, speed=speed * shift, seed=1), 24000 / shift, RATE))

    def silence(low, high):
        return np.zeros(int(RATE * rng.uniform(low, high)), np.float32)

    voices = [(l + v, s, p) for l, v, s, p in itertools.product(LANGUAGES, VARIANTS, (120, 150, 180), (30, 50, 70))]
    random.shuffle(voices)
    held_out, voices = voices[:40], voices[40:]
    texts = [PHRASE, PHRASE.replace(" ", ", ", 1) + "!", PHRASE.title()]
    shifts = [0.72, 0.8, 0.88, 0.95, 1.0, 1.06, 1.14, 1.22]

    commands = [hibari(c, 1.0, s) for c, s in zip(COMMANDS, itertools.cycle(shifts))]
    commands += [espeak(c, *random.choice(voices)) for c in COMMANDS]

    positive, negative = [], []

    def take_positive(x, into):
        """A clip of the phrase, with silence or speech before and behind it."""
        before = silence(0.3, 1.2) if rng.random() < 0.6 else np.concatenate([random.choice(commands), silence(0.05, 0.4)])
        after = silence(0.6, 1.0) if rng.random() < 0.6 else np.concatenate([silence(0.0, 0.15), random.choice(commands)])
        end = (len(before) + len(x)) // CHUNK
        w = windows(back.features(worsen(np.concatenate([before, x, after]), rng)))
        into.append(w[end:end + 5])
        negative.append(w[:max(0, end - 7)])
        negative.append(w[end + 14:])

    for v in voices[:420]:
        take_positive(espeak(random.choice(texts), *v), positive)
    for speed, shift in itertools.product((0.8, 0.9, 1.0, 1.1, 1.25), shifts):
        for t in texts[:2]:
            for _ in range(2):
                take_positive(hibari(t, speed, shift), positive)
    print("positive clips done", flush=True)

    def take_negative(x, into):
        # As much silence as around the phrase, or silence would tell them apart.
        into.append(windows(back.features(worsen(np.concatenate([silence(0.1, 1.4), x, silence(0.1, 1.0)]), rng))))

    for t in NEAR:
        for v in random.sample(voices, 8):
            take_negative(espeak(t, *v), negative)
        for s in random.sample(shifts, 4):
            take_negative(hibari(t, random.choice((0.9, 1.0, 1.15)), s), negative)
    for t in SENTENCES + COMMANDS:
        for v in random.sample(voices, 4):
            take_negative(espeak(t, *v), negative)
        for s in random.sample(shifts, 3) + [1.0]:
            take_negative(hibari(t, random.choice((0.9, 1.0, 1.15)), s), negative)
    for _ in range(40):                              # noise, hum and clicks
        x = rng.normal(size=RATE * 3) * 10 ** rng.uniform(-4, -0.7)
        t = np.arange(RATE * 3) / RATE
        x = x + np.sin(2 * np.pi * rng.uniform(60, 3000) * t) * rng.uniform(0, 0.3)
        negative.append(windows(back.features(np.clip(x, -1, 1).astype(np.float32))))
    people = []
    for command in commands:                         # what follows the phrase, and is not the phrase
        take_negative(command, negative)
    for path in a.people:
        x = read(open(path, "rb").read())
        half = len(x) // 2
        for g in (1.0, 0.5, 0.25):
            negative.append(windows(back.features(x[:half] * g)))
        people.append(x[half:])
    P, N = np.concatenate(positive), np.concatenate(negative)
    print(f"{len(P)} positive and {len(N)} negative windows", flush=True)

    test_p = []
    for v in held_out:
        take_positive(espeak(random.choice(texts), *v), test_p)
    test_n = []
    for v in held_out[:10]:
        for t in random.sample(NEAR + SENTENCES, 6):
            take_negative(espeak(t, *v), test_n)

    mean, std = N.mean(0), N.std(0) + 1e-3
    X = np.concatenate([P, N])
    X -= mean
    X /= std
    y = np.concatenate([np.ones(len(P)), np.zeros(len(N))]).astype(np.float32)
    W1 = rng.normal(size=(X.shape[1], 32)).astype(np.float32) * 0.02
    b1 = np.zeros(32, np.float32)
    w2 = rng.normal(size=32).astype(np.float32) * 0.2
    b2 = np.float32(-2)
    params = [W1, b1, w2, np.array([b2], np.float32)]
    m = [np.zeros_like(p) for p in params]
    v2 = [np.zeros_like(p) for p in params]
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    hard = neg
    for step in range(1, 3001):
        if step % 400 == 0:                          # the negatives that score highest count more
            scores = np.zeros(len(X), np.float32)
            for k in range(0, len(X), 8192):
                scores[k:k + 8192] = np.maximum(X[k:k + 8192] @ W1 + b1, 0) @ w2 + params[3][0]
            hard = neg[np.argsort(-scores[neg])[:4000]]
        i = np.concatenate([rng.choice(pos, 128), rng.choice(neg, 256), rng.choice(hard, 128)])
        x, t = X[i] * (rng.random((len(i), X.shape[1])) > 0.15), y[i]
        h = np.maximum(x @ W1 + b1, 0)
        p = 1 / (1 + np.exp(-(h @ w2 + params[3][0])))
        d = (p - t) / len(i) * np.where(t == 1, 1.0, 2.0)
        dh = np.outer(d, w2) * (h > 0)
        grads = [x.T @ dh + 1e-3 * W1, dh.sum(0), h.T @ d + 1e-3 * w2, np.array([d.sum()], np.float32)]
        rate = 3e-3 if step < 2000 else 6e-4
        for q, g, mm, vv in zip(params, grads, m, v2):
            mm += 0.1 * (g - mm)
            vv += 0.001 * (g * g - vv)
            q -= rate * (mm / (1 - 0.9 ** step)) / (np.sqrt(vv / (1 - 0.999 ** step)) + 1e-8)
    def score(w):
        return 1 / (1 + np.exp(-(np.maximum((w - mean) / std @ W1 + b1, 0) @ w2 + params[3][0])))

    hits = [score(w).max() for w in test_p]
    print(f"held-out voices: {sum(h > 0.5 for h in hits)} of {len(hits)} found, lowest {min(hits):.2f}")
    other = np.concatenate([score(w) for w in test_n])
    print(f"held-out negatives: {len(other) * 0.08:.0f} s, highest {other.max():.2f}, {np.sum(other > 0.5)} windows above 0.5")
    for path, x in zip(a.people, people):
        s = score(windows(back.features(x)))
        print(f"people, {path}: {len(s) * 0.08:.0f} s, highest {s.max():.2f}, {np.sum(s > 0.5)} windows above 0.5")
    print(f"training: {np.mean(score(P) > 0.5):.3f} of positives, {np.sum(score(N) > 0.5)} of {len(N)} negatives above 0.5")

    first = W1 / std[:, None]                        # the normalization becomes part of the weights
    bias = b1 - mean @ first
    with open(a.out, "wb") as f:
        for part in (first, bias, w2, params[3]):
            f.write(np.ascontiguousarray(part, "<f4").tobytes())


if __name__ == "__main__":
    main()
