"""Tests content outside of the database in an S3-compatible server.

Starts s3rver, and before it a proxy that checks signatures, which s3rver does not. Runs the tests of stores against
that, which otherwise use a folder, and has `quintet doctor` say what is wrong with a key and a bucket.
Usage: run.py QUINTET S3RVER [CARGO]
"""

import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

# The only key that the server knows.
KEY = "S3RVER"
TESTS = [
    ("quintet-stores", ["objects", "conformance", "transfer"]),
    ("quintet-daemon", ["postgres::long_content"]),
]
CONFIG = """
data_dir = "{home}/data"
[listen]
harness = "off"
[store]
url = "postgres://127.0.0.1:1/none"
blobs = "s3://{bucket}?endpoint={endpoint}"
s3_access_key = "{key}"
s3_secret_key = "{secret}"
"""


def signature(method, host, target):
    """The signature that a URL should have (version 4, in the query)."""
    path, _, query = target.partition("?")
    signed = sorted(pair for pair in query.split("&") if not pair.startswith("X-Amz-Signature="))
    values = urllib.parse.parse_qs(query)
    date, credential = values["X-Amz-Date"][0], values["X-Amz-Credential"][0]
    scope = credential.split("/", 1)[1]
    request = "\n".join([method, path, "&".join(signed), f"host:{host}", "", "host", "UNSIGNED-PAYLOAD"])
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = b"AWS4" + KEY.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, "\n".join(["AWS4-HMAC-SHA256", date, scope, digest]).encode(), "sha256").hex()


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes requests with a good signature on."""

    protocol_version = "HTTP/1.1"
    server_address = None

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        given = urllib.parse.parse_qs(self.path.partition("?")[2]).get("X-Amz-Signature", [""])[0]
        if given == signature(self.command, self.headers["host"], self.path):
            connection = http.client.HTTPConnection(self.server_address)
            connection.request(self.command, self.path, body)
            response = connection.getresponse()
            answer = response.status, response.getheader("content-length"), response.read()
            connection.close()
        else:
            answer = 403, None, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        status, length, content = answer
        self.send_response(status)
        self.send_header("content-length", length or str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_DELETE = pass_on

    def log_message(self, *_):
        pass


def check_signatures(address):
    """The address of a proxy before a server."""
    handler = type("Handler", (Proxy,), {"server_address": address})
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # A client that ends with its connection open is no error.
    proxy.handle_error = lambda *_: None
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{proxy.server_port}"


def start(program, folder):
    """The server and its address."""
    options = ["-d", folder, "-a", "127.0.0.1", "-p", "0", "--no-vhost-buckets", "--configure-bucket", "quintet"]
    server = subprocess.Popen([program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        if found := re.search(r"listening on (\S+:\d+)", line):
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return server, found[1]
    sys.exit("s3rver does not start")


def check_doctor(quintet, endpoint, home):
    """What is said of good and bad settings."""
    cases = [
        ("quintet", KEY, "can be written"),
        ("quintet", "wrong", "403 Forbidden SignatureDoesNotMatch"),
        ("missing", KEY, "404 Not Found NoSuchBucket"),
    ]
    for bucket, secret, expected in cases:
        file = pathlib.Path(home) / "quintet.toml"
        file.write_text(CONFIG.format(home=home, bucket=bucket, endpoint=endpoint, key=KEY, secret=secret))
        done = subprocess.run([quintet, "doctor", "--config", file], capture_output=True, text=True)
        line = next((line for line in done.stdout.splitlines() if "store.blobs" in line), done.stdout + done.stderr)
        if expected not in line or "Signature=" in done.stdout:
            sys.exit(f"quintet doctor, bucket {bucket}: {expected!r} is not in {line!r}")


def main(quintet, program, cargo="cargo"):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        server, address = start(program, folder)
        endpoint = check_signatures(address)
        try:
            for package, names in TESTS:
                run = [cargo, "test", "-q", "-p", package, "--test", "it", "--", *names]
                if subprocess.run(run, env={**os.environ, "S3_ENDPOINT": endpoint}).returncode:
                    sys.exit(f"{package}: tests against an S3-compatible store failed")
            stored = sum(file.is_file() for file in pathlib.Path(folder, "quintet").rglob("*"))
            if not stored:
                sys.exit("the tests stored nothing in the S3-compatible store")
            check_doctor(quintet, endpoint, home)
        finally:
            server.kill()
    print("content in an S3-compatible store: all tests passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
