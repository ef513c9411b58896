"""Drives `quintet acp` with acpx, a client of the Agent Client Protocol that others wrote.

The model of the test writes a file and then answers. acpx must show that it was asked for permission,
that the file was written, and that the prompt was answered; and that a rejected call does not run.
Usage: run.py QUINTET FOLDER (FOLDER has node_modules with acpx and a Node that is new enough)
"""

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

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
windie = "off"
terminal = "off"
[verify]
auto = false
"""
CALL = {"name": "write_file", "arguments": '{"path":"note.txt","content":"by acpx\\n"}'}


class Model(http.server.BaseHTTPRequestHandler):
    """A model that writes a note and says that it is done."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if asked["messages"][-1]["role"] == "user":
            call = {"index": 0, "id": "call_1", "type": "function", "function": CALL}
            said = {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
        else:
            said = {"delta": {"content": "all done"}, "finish_reason": "stop"}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps({'choices': [said]})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_):
        pass


def model():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def acpx(folder, home, agent, work, *flags):
    """The messages of one run, and its exit code."""
    node = folder / "node_modules/.bin/node"
    node = str(node) if node.exists() else "node"
    command = [node, str(folder / "node_modules/acpx/dist/cli.js"), "--agent", agent, "--cwd", work]
    command += [*flags, "--format", "json", "--json-strict", "--timeout", "60", "exec", "write the note"]
    ran = subprocess.run(command, env={**os.environ, "HOME": home}, capture_output=True, text=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return lines, ran


def daemons(home):
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"--detached" in line and home.encode() in line:
                yield int(entry.name)


def main(quintet, folder):
    quintet, folder = pathlib.Path(quintet).resolve(), pathlib.Path(folder).resolve()
    with tempfile.TemporaryDirectory() as home:
        config, work = pathlib.Path(home, "quintet.toml"), pathlib.Path(home, "work")
        config.write_text(CONFIG.format(home=home, model=model()))
        work.mkdir()
        agent = f"{quintet} acp --config {config}"
        try:
            lines, ran = acpx(folder, home, agent, str(work), "--deny-all")
            assert not (work / "note.txt").exists(), ran.stdout
            lines, ran = acpx(folder, home, agent, str(work), "--approve-all")
            assert ran.returncode == 0, (ran.stdout, ran.stderr)
            assert (work / "note.txt").read_text() == "by acpx\n"
            text = json.dumps(lines)
            for part in ["session/request_permission", "tool_call", "all done", "end_turn", '"diff"']:
                assert part in text, (part, ran.stdout)
        finally:
            for pid in daemons(home):
                os.kill(pid, signal.SIGTERM)
    print("acpx: permission, file and answer as they should be")


main(*sys.argv[1:])
