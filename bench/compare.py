#!/usr/bin/env python3
"""Measures Quintet beside another agent server, on one machine, with one scripted model.

usage: compare.py QUINTET [--opencode PROGRAM] [--turns N]

Prints a Markdown table for docs/comparison.md: start, memory, the overhead of a turn, and what is left of an
answer after `kill -9` in the middle of it. Needs nothing but Python.
"""

import argparse
import http.client
import http.server
import json
import os
import re
import signal
import socketserver
import statistics
import subprocess
import tempfile
import threading
import time

WORDS = re.compile(r"w\d{4}")


class Model(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible model. `count N MS` in the last user message has it write N words, one each MS."""

    protocol_version = "HTTP/1.1"
    calls = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        began = time.monotonic()
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = [message for message in body["messages"] if message["role"] == "user"]
        order = re.findall(r"count (\d+) (\d+)", json.dumps(asked[-1]))
        count, gap = map(int, order[-1]) if order else (1, 0)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for number in range(count):
                self.chunk({"content": f"w{number:04} "}, None)
                time.sleep(gap / 1000)
            self.chunk({}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
        except OSError:
            return
        Model.calls.append((count, began, time.monotonic()))

    def chunk(self, delta, finish):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "fake", "choices": [choice]}
        if finish:
            event["usage"] = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()


class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def call(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body and json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
    return json.loads(text) if text else None


def follow(port, path, see):
    """Hands each `data:` line of an event stream to `see`, in a thread, until the stream ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers={"accept": "text/event-stream"})
    answer = connection.getresponse()

    def read():
        try:
            for line in answer:
                if line.startswith(b"data:"):
                    see(line)
        except (OSError, http.client.HTTPException):
            pass

    threading.Thread(target=read, daemon=True).start()


class Server:
    def __init__(self, program, model, home):
        self.program, self.model, self.home, self.process = program, model, home, None
        self.followed = {}
        self.work = os.path.join(home, "work")
        os.makedirs(self.work, exist_ok=True)

    def start(self):
        """Starts the server; returns the seconds until it answers."""
        began = time.monotonic()
        environment = {"HOME": self.home, "PATH": os.environ["PATH"]} | self.environment()
        self.process = subprocess.Popen(
            self.command(), cwd=self.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.read_port()
        while True:
            try:
                self.ready()
                return time.monotonic() - began
            except OSError:
                time.sleep(0.01)

    def environment(self):
        return {}

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def memory_mb(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000

    def turn(self, session, text):
        """Sends a message; returns the seconds until its turn is over for one who follows the session."""
        if session not in self.followed:
            self.followed[session] = threading.Semaphore(0)
            self.watch(session, lambda line: self.is_over(line) and self.followed[session].release())
        began = time.monotonic()
        self.send(session, text)
        if not self.followed[session].acquire(timeout=120):
            raise RuntimeError("the turn does not end")
        return time.monotonic() - began


class Quintet(Server):
    def command(self):
        config = os.path.join(self.home, "quintet.toml")
        with open(config, "w") as file:
            file.write(f"""data_dir = "{self.home}/data"
default_model = "fake/fake"
[listen]
harness = "127.0.0.1:0"
terminal = "{self.home}/terminal.sock"
jarvis = "127.0.0.1:0"
agent = "127.0.0.1:0"
agent_health = "127.0.0.1:0"
windie = "127.0.0.1:0"
console = "127.0.0.1:0"
openai = "127.0.0.1:0"
[providers.fake]
api = "openai-chat"
base_url = "{self.model}"
api_key = "x"
""")
        return [self.program, "serve", "--config", config]

    def read_port(self):
        listeners = json.loads(self.process.stdout.readline())["listeners"]
        self.port = int(listeners["harness"].rsplit(":", 1)[1])

    def ready(self):
        call(self.port, "GET", "/v1/sessions")

    def session(self):
        return call(self.port, "POST", "/v1/sessions", {"workspace_path": self.work})["session_id"]

    def watch(self, session, see):
        follow(self.port, f"/v1/sessions/{session}/events", see)

    def is_over(self, line):
        return b'"turn_completed"' in line or b'"turn_failed"' in line

    def send(self, session, text):
        message = {"role": "user", "parts": [{"type": "text", "text": text}], "auto_run": True}
        call(self.port, "POST", f"/v1/sessions/{session}/messages", message)

    def kept(self, session):
        return json.dumps(call(self.port, "GET", f"/v1/sessions/{session}")["messages"])


class Opencode(Server):
    def command(self):
        config = {
            "$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled",
            "model": "fake/fake", "small_model": "fake/fake",
            "provider": {"fake": {
                "npm": "@ai-sdk/openai-compatible", "name": "fake",
                "options": {"baseURL": self.model, "apiKey": "x"}, "models": {"fake": {"name": "fake"}}}},
        }
        with open(os.path.join(self.work, "opencode.json"), "w") as file:
            json.dump(config, file)
        return [self.program, "serve", "--port", "0"]

    def environment(self):
        # Neither its list of models nor plug-ins are fetched: this is about the server.
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}

    def read_port(self):
        for line in self.process.stdout:
            found = re.search(r"http://[\d.]+:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise RuntimeError("opencode did not start")

    def ready(self):
        call(self.port, "GET", "/session")

    def session(self):
        return call(self.port, "POST", "/session", {"title": "compare"})["id"]

    def watch(self, session, see):
        follow(self.port, "/event", see)

    def is_over(self, line):
        return b'"session.idle"' in line

    def send(self, session, text):
        body = {"model": {"providerID": "fake", "modelID": "fake"}, "parts": [{"type": "text", "text": text}]}
        call(self.port, "POST", f"/session/{session}/prompt_async", body)

    def kept(self, session):
        return json.dumps(call(self.port, "GET", f"/session/{session}/message"))


def overhead_ms(server, session, turns):
    """What the server adds to a turn: its time without the model's, as a median."""
    samples = []
    for _ in range(turns):
        Model.calls.clear()
        took = server.turn(session, "count 20 2")
        asked = [call for call in Model.calls if call[0] == 20]
        samples.append((took - (asked[-1][2] - asked[-1][1])) * 1000)
    return statistics.median(samples)


def after_kill(server):
    """Kills the server in the middle of an answer; returns how much of what was shown is there afterwards,
    and whether the answer is completed by itself."""
    session, seen, enough = server.session(), set(), threading.Event()

    def see(line):
        seen.update(WORDS.findall(line.decode()))
        if len(seen) >= 100:
            enough.set()

    server.watch(session, see)
    server.send(session, "count 300 10")
    if not enough.wait(60):
        raise RuntimeError("no answer")
    server.kill()
    shown = set(seen)
    server.start()
    end = time.monotonic() + 20
    while True:
        kept = set(WORDS.findall(server.kept(session)))
        if len(kept) == 300 or time.monotonic() > end:
            return len(shown & kept), len(shown), len(kept) == 300
        time.sleep(0.2)


def measure(server, turns):
    starts = []
    for _ in range(5):
        starts.append(server.start())
        time.sleep(2)
        idle = server.memory_mb()
        server.kill()
    server.start()
    session = server.session()
    server.turn(session, "count 1 0")
    overhead = overhead_ms(server, session, turns)
    memory = server.memory_mb()
    kept, shown, completed = after_kill(server)
    server.kill()
    return [
        f"{os.path.getsize(os.path.realpath(server.program)) / 1e6:.0f} MB",
        f"{statistics.median(starts) * 1000:.0f} ms",
        f"{idle:.0f} MB",
        f"{overhead:.1f} ms",
        f"{memory:.0f} MB",
        f"{kept} of {shown}",
        "yes" if completed else "no",
    ]


ROWS = [
    "size of the program", "start → first request answered", "memory when idle, RSS",
    "a turn without the model's time", "memory after those turns, RSS",
    "words shown before `kill -9` that are there after a restart", "the answer is completed after the restart",
]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("quintet")
    arguments.add_argument("--opencode")
    arguments.add_argument("--turns", type=int, default=30)
    arguments = arguments.parse_args()
    server = Threads(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = f"http://127.0.0.1:{server.server_address[1]}/v1"
    columns = {}
    for name, kind, program in [("Quintet", Quintet, arguments.quintet), ("opencode", Opencode, arguments.opencode)]:
        if program:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
                columns[name] = measure(kind(os.path.abspath(program), model, home), arguments.turns)
    print("| | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for number, row in enumerate(ROWS):
        print(f"| {row} | " + " | ".join(column[number] for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
