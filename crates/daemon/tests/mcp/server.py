"""An MCP server for tests, on stdio or, with `http FILE`, over HTTP on any free port, which it writes to FILE.

What it does is set by variables: TOOLS=N adds N tools, START=FILE holds its first answer until that file is there, TOKEN=T has
it ask for that bearer token, ERA=modern has it know the stateless protocol alone, NOTE=FILE has it append its
process id there when it starts, ATTEMPTS=1 adds a tool that reads, writes and connects.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}

TOOLS = {
    "echo": ("Says the same.", TEXT, {"readOnlyHint": True}),
    "picture": ("Gives a picture.", NONE, {}),
    "structured": ("Gives structured content.", NONE, {}),
    "fail": ("Always fails.", NONE, {}),
    "wait": ("Waits.", {"type": "object", "properties": {"seconds": {"type": "number"}}}, {}),
    "crash": ("Ends the server.", NONE, {}),
    "spawn": ("Starts a process and gives its id.", NONE, {}),
    "ask": ("Asks the user.", {"type": "object", "properties": {"link": {"type": "boolean"}, "booking": {"type": "boolean"}}}, {}),
    "environment": ("Gives the names of its variables.", NONE, {}),
    "grow": ("Adds a tool.", NONE, {}),
    "dotted.name": ("Has a dot in its name.", NONE, {}),
    "bad_schema": ("Has a wrong schema.", {"type": "object", "properties": {"a": {"type": 7}}}, {}),
    "no_object": ("Has no schema.", "nonsense", {}),
}
if "ATTEMPTS" in os.environ:
    AT = {"type": "object", "properties": {"what": {"type": "string"}, "at": {"type": "string"}}}
    TOOLS["attempt"] = ("Tries to reach something.", AT, {})
for n in range(int(os.environ.get("TOOLS", "0"))):
    TOOLS[f"number_{n}"] = (f"Tool number {n}, about {'birds' if n == 37 else 'nothing'}.", TEXT, {})

PROMPTS = {
    "ask": ("Asks something.", [{"name": "what", "required": True}]),
    "plain": ("Has no arguments.", []),
}

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    },
    "required": ["name"],
}

# A field of each kind.
BOOKING = {
    "type": "object",
    "properties": {
        "newsletter": {"type": "boolean", "title": "Newsletter"},
        "mail": {"type": "string", "format": "email", "title": "Mail <b>to</b>\u202e", "description": "For the invoice."},
        "guests": {"type": "integer", "minimum": 1, "maximum": 9, "title": "Guests"},
        "room": {
            "type": "string", "title": "Room", "default": "s",
            "oneOf": [{"const": "g", "title": "Garden"}, {"const": "s", "title": "Street"}],
        },
        "meals": {
            "type": "array", "title": "Meals",
            "items": {"anyOf": [{"const": "b", "title": "Breakfast"}, {"const": "d", "title": "Dinner"}]},
        },
    },
    "required": ["mail", "guests"],
}

OUT = threading.Lock()
cancelled = {}
asked = {}
answers = {}
MODERN = os.environ.get("ERA") == "modern"


def listed():
    tools = [
        {"name": name, "description": text, "inputSchema": schema, "annotations": hints}
        for name, (text, schema, hints) in TOOLS.items()
    ]
    tools.append("not a tool at all")
    return {"tools": tools}


def prompts(method, params):
    if method == "prompts/list":
        about = [{"name": name, "description": words, "arguments": them} for name, (words, them) in PROMPTS.items()]
        return {"prompts": about}
    if params["name"] == "ask":
        said = f"From the server: {params['arguments']['what']}"
    else:
        said = f"This is {params['name']}."
    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    more = [{"role": "user", "content": picture}] if params["name"] == "plain" else []
    return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}, *more]}


def text(words, error=False):
    return {"content": [{"type": "text", "text": words}], "isError": error}


def attempt(what, at):
    """Does what a server should not be able to do everywhere; fails with what the system says."""
    if what == "read":
        with open(at, "rb") as file:
            return f"{len(file.read())} bytes"
    if what == "write":
        with open(at, "a") as file:
            file.write("x")
        return os.path.realpath(at)
    if what == "unix":
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(at)
        return "connected"
    host, port = at.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
        return connection.recv(100).decode().split("\r\n")[0]


def call(name, arguments, request, notify):
    if name == "echo" or name.startswith("number_"):
        return text(arguments["text"])
    if name == "picture":
        return {"content": [{"type": "text", "text": "here"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
    if name == "structured":
        return {"content": [{"type": "text", "text": "two"}], "structuredContent": {"number": 2}}
    if name == "fail":
        return text("it went wrong", True)
    if name == "wait":
        end = time.time() + arguments.get("seconds", 600)
        stop = cancelled.setdefault(request, threading.Event())
        note(f"waiting {os.getpid()}")
        if stop.wait(end - time.time()):
            note("cancelled")
        return text("waited")
    if name == "crash":
        sys.stderr.write("I am broken\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "spawn":
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        return text(f"{os.getpid()} {child.pid}")
    if name == "attempt":
        try:
            return text(attempt(arguments["what"], arguments["at"]))
        except OSError as error:
            return text(f"{type(error).__name__}: {error}", True)
    if name == "environment":
        return text(" ".join(sorted(os.environ)))
    if name == "grow":
        TOOLS["grown"] = ("Is new.", NONE, {})
        PROMPTS["grown"] = ("Is new.", [])
        notify({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        notify({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})
        return text("grown")
    if name == "grown" or name == "dotted.name":
        return text(f"this is {name}")
    raise KeyError(name)


def question(arguments):
    if arguments.get("link"):
        return {"mode": "url", "message": "Open this.", "url": "https://a.example/login", "elicitationId": "e1"}
    if arguments.get("booking"):
        return {"mode": "form", "message": "<i>Which</i> room?\u202e", "requestedSchema": BOOKING}
    return {"mode": "form", "message": "Who are you?", "requestedSchema": FORM}


def ask(params, request, send):
    """Asks the user and gives what came of it as text."""
    wanted = question(params.get("arguments") or {})
    if MODERN:
        if "inputResponses" not in params:
            requests = {"who": {"method": "elicitation/create", "params": wanted}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "state-1"}
        assert params["requestState"] == "state-1", params
        return text(json.dumps(params["inputResponses"]["who"], sort_keys=True))
    number = f"ask-{request}"
    asked[number] = threading.Event()
    send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": wanted})
    note("asking")
    asked[number].wait()
    note(f"answered {json.dumps(answers[number], sort_keys=True)}")
    return text(json.dumps(answers[number], sort_keys=True))


def note(line):
    if os.environ.get("NOTE"):
        with open(os.environ["NOTE"], "a") as file:
            file.write(line + "\n")


def answer(message, notify):
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/cancelled":
        cancelled.setdefault(params.get("requestId"), threading.Event()).set()
    if "id" in message and method is None:
        answers[message["id"]] = message.get("result") or message.get("error")
        asked[message["id"]].set()
        return None
    if "id" not in message:
        return None
    lists = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
    about = {"capabilities": lists, "serverInfo": {"name": "fixture", "version": "1"}}
    error = {"code": -32601, "message": f"no method {method}"}
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize" and not MODERN:
        while "START" in os.environ and not os.path.exists(os.environ["START"]):
            time.sleep(0.01)
        return {**reply, "result": {"protocolVersion": params["protocolVersion"], **about}}
    if method == "server/discover" and MODERN:
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private", **about}
        return {**reply, "result": result}
    if method == "ping":
        return {**reply, "result": {}}
    if method == "tools/list":
        extra = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
        return {**reply, "result": {**extra, **listed()}}
    if method in ("prompts/list", "prompts/get"):
        extra = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
        return {**reply, "result": {**extra, **prompts(method, params)}}
    if method == "tools/call":
        try:
            if params["name"] == "ask":
                result = ask(params, message["id"], notify)
            else:
                result = call(params["name"], params.get("arguments") or {}, message["id"], notify)
            return {**reply, "result": {**({"resultType": "complete"} if MODERN else {}), **result}}
        except KeyError as key:
            error = {"code": -32602, "message": f"there is no {key}"}
    return {**reply, "error": error}


def stdio():
    def send(message):
        with OUT:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def one(message):
        reply = answer(message, send)
        if reply is not None:
            send(reply)

    sys.stdout.write("this line is no message\n")
    sys.stdout.flush()
    for line in sys.stdin:
        threading.Thread(target=one, args=(json.loads(line),), daemon=True).start()


def http(place):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            token = os.environ.get("TOKEN")
            if token and self.headers.get("authorization") != f"Bearer {token}":
                return self.reply(401, b"", {"www-authenticate": "Bearer"})
            reply = answer(json.loads(body), lambda _: None)
            if reply is None:
                return self.reply(202, b"", {})
            headers = {"content-type": "application/json"}
            if "error" in reply and MODERN:
                return self.reply(400, json.dumps(reply).encode(), headers)
            if not MODERN:
                headers["mcp-session-id"] = "s1"
            self.reply(200, json.dumps(reply).encode(), headers)

        def do_GET(self):
            self.reply(405, b"", {})

        def do_DELETE(self):
            note("deleted")
            self.reply(200, b"", {})

        def reply(self, status, body, headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(place + ".next", "w") as file:
        file.write(str(server.server_port))
    os.rename(place + ".next", place)
    server.serve_forever()


if __name__ == "__main__":
    note(str(os.getpid()))
    if len(sys.argv) > 1 and sys.argv[1] == "http":
        http(sys.argv[2])
    else:
        stdio()
