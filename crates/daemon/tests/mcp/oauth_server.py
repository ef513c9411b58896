"""An MCP server over HTTP that wants a login, and the authorization server for it, on another port.

`oauth_server.py FILE` writes the two ports to FILE. Every check that the protocols demand is made: registered redirects, PKCE
(S256), the resource of a token, codes that are spent once, refresh tokens that are replaced when they are used. The person
agrees at once, unless DENY is set. REGISTER=no has no dynamic registration; the client "fixed" with the secret "s3cret" is known
in any case. ANONYMOUS=1 has the MCP server ask for a login only where a tool is called.

For the test: POST /test/expire ends all access tokens, POST /test/revoke all tokens; GET /test/log gives what was granted.
"""

import base64
import hashlib
import json
import os
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from server import answer

CLIENTS = {"fixed": {"secret": "s3cret", "redirects": None}}
CODES, ACCESS, REFRESH, LOG = {}, {}, {}, []
LOCK = threading.Lock()
ISSUER = RESOURCE = ""


class Base(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length", "0"))).decode()

    def reply(self, status, body=None, **headers):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if body is not None:
            self.send_header("content-type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Authorization(Base):
    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/oauth-authorization-server":
            known = {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            }
            if os.environ.get("REGISTER") != "no":
                known["registration_endpoint"] = f"{ISSUER}/register"
            return self.reply(200, known)
        if url.path == "/test/log":
            return self.reply(200, LOG)
        if url.path != "/authorize":
            return self.reply(404)
        client = CLIENTS.get(query.get("client_id"))
        redirect = query.get("redirect_uri", "")
        if client is None or (client["redirects"] is not None and redirect not in client["redirects"]):
            return self.reply(400, {"error": "invalid_client"})
        wanted = {"response_type": "code", "code_challenge_method": "S256", "resource": RESOURCE}
        if any(query.get(name) != value for name, value in wanted.items()) or not query.get("state"):
            return self.reply(400, {"error": "invalid_request", "query": query})
        answer = {"state": query["state"], "iss": ISSUER}
        if os.environ.get("DENY"):
            answer |= {"error": "access_denied", "error_description": "the person said no"}
        else:
            code = secrets.token_urlsafe(8)
            with LOCK:
                CODES[code] = query
            answer["code"] = code
        self.reply(302, location=f"{redirect}?{urlencode(answer)}")

    def do_POST(self):
        body = self.body()
        if self.path == "/register" and os.environ.get("REGISTER") != "no":
            asked = json.loads(body)
            if not all(it.startswith("http://127.0.0.1:") for it in asked["redirect_uris"]):
                return self.reply(400, {"error": "invalid_redirect_uri"})
            name = f"client-{len(CLIENTS)}"
            CLIENTS[name] = {"secret": None, "redirects": asked["redirect_uris"]}
            return self.reply(201, {**asked, "client_id": name})
        if self.path in ("/test/expire", "/test/revoke"):
            ACCESS.clear()
            if self.path == "/test/revoke":
                REFRESH.clear()
            return self.reply(200, {})
        if self.path != "/token":
            return self.reply(404)
        form = {name: values[0] for name, values in parse_qs(body).items()}
        status, answer = self.token(form)
        self.reply(status, answer)

    def token(self, form):
        client = form.get("client_id")
        basic = self.headers.get("authorization", "")
        if basic.startswith("Basic "):
            client, secret = base64.b64decode(basic[6:]).decode().split(":", 1)
            if CLIENTS.get(client, {}).get("secret") != secret:
                return 401, {"error": "invalid_client"}
        elif client not in CLIENTS or CLIENTS[client]["secret"]:
            return 401, {"error": "invalid_client"}
        if form.get("resource") != RESOURCE:
            return 400, {"error": "invalid_target"}
        with LOCK:
            if form["grant_type"] == "authorization_code":
                asked = CODES.pop(form["code"], None)
                proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
                good = (
                    asked is not None
                    and asked["client_id"] == client
                    and asked["redirect_uri"] == form["redirect_uri"]
                    and proof.decode().rstrip("=") == asked["code_challenge"]
                )
            else:
                good = REFRESH.pop(form["refresh_token"], None) == client
            if not good:
                return 400, {"error": "invalid_grant"}
            LOG.append(form["grant_type"])
            access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
            ACCESS[access], REFRESH[refresh] = client, client
        return 200, {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}


class Resource(Base):
    def do_POST(self):
        message = json.loads(self.body())
        free = os.environ.get("ANONYMOUS") and message.get("method") != "tools/call"
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if not free and token not in ACCESS:
            where = f"http://{self.headers['host']}/.well-known/oauth-protected-resource/mcp"
            return self.reply(401, www_authenticate=f'Bearer resource_metadata="{where}"')
        reply = answer(message, lambda _: None)
        self.reply(202 if reply is None else 200, reply)

    def do_GET(self):
        if self.path == "/.well-known/oauth-protected-resource/mcp":
            return self.reply(200, {"resource": RESOURCE, "authorization_servers": [ISSUER]})
        self.reply(405 if self.path == "/mcp" else 404)

    def do_DELETE(self):
        self.reply(200)


authorization = ThreadingHTTPServer(("127.0.0.1", 0), Authorization)
resource = ThreadingHTTPServer(("127.0.0.1", 0), Resource)
ISSUER = f"http://127.0.0.1:{authorization.server_port}"
RESOURCE = f"http://127.0.0.1:{resource.server_port}/mcp"
threading.Thread(target=authorization.serve_forever, daemon=True).start()
with open(sys.argv[1] + ".next", "w") as file:
    file.write(f"{resource.server_port} {authorization.server_port}")
os.rename(sys.argv[1] + ".next", sys.argv[1])
resource.serve_forever()
