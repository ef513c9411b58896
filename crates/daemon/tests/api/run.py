"""Tests the HTTP API of the computer-use protocol against its own OpenAPI document.

Starts the daemon that was built, registers an install with it and lets schemathesis send what the
document allows and what it does not. Usage: run.py QUINTET SCHEMATHESIS [ARGUMENTS OF IT]
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.request

HERE = pathlib.Path(__file__).parent
CONFIG = """
data_dir = "{home}/data"
default_model = "quick/quick"
[providers.quick]
api = "openai-chat"
base_url = "{model}"
api_key = "none"
[listen]
harness = "off"
jarvis = "off"
agent = "off"
agent_health = "off"
openai = "off"
terminal = "off"
windie = "127.0.0.1:0"
[windie]
install_auth = true
runs_key = "schemathesis"
embedding_service_key = "schemathesis"
"""


class Model(http.server.BaseHTTPRequestHandler):
    """A model that says the same to everything, at once."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        said = {"choices": [{"delta": {"content": "SUMMARY: well"}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_):
        pass


def model():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def start(quintet, home):
    config = home / "quintet.toml"
    config.write_text(CONFIG.format(home=home, model=model()))
    daemon = subprocess.Popen(
        [quintet, "serve", "--config", str(config)],
        stdout=subprocess.PIPE,
        env={**os.environ, "QUINTET_LOG": "error"},
    )
    ready = json.loads(daemon.stdout.readline())
    return daemon, ready["listeners"]["windie"]


def register(url):
    request = urllib.request.Request(
        f"{url}/api/install/register",
        data=b"{}",
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["install_token"]


def main(quintet, schemathesis, *arguments):
    with tempfile.TemporaryDirectory() as home:
        daemon, url = start(quintet, pathlib.Path(home))
        try:
            command = [
                schemathesis,
                "--config-file",
                str(HERE / "schemathesis.toml"),
                "run",
                f"{url}/openapi.json",
                "--header",
                f"Authorization: Bearer {register(url)}",
                *arguments,
            ]
            failed = subprocess.run(command, cwd=home).returncode
            if daemon.poll() is not None:
                print("the daemon ended", file=sys.stderr)
                failed = 1
            return failed
        finally:
            daemon.terminate()
            daemon.wait(timeout=30)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
