"""A provider of tokens for the tests' brokers.

It signs nothing, and the brokers take that: what is tested is that clients fetch and bring a token.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import time

from tests.acceptance.harness.guarded import PASSWORD


class Issuer(BaseHTTPRequestHandler):
    """Gives a token for any user to who knows the password."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        user = b64decode(self.headers["authorization"].split()[1]).decode().partition(":")[0]
        now_s = int(time())
        claims = {"sub": user, "iat": now_s, "exp": now_s + 300}
        parts = [_url_base64(json.dumps(each)) for each in ({"alg": "none"}, claims)]
        login = b64encode(f"{user}:{PASSWORD}".encode()).decode()
        self.send_response(200 if self.headers["authorization"] == f"Basic {login}" else 401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        told = {"access_token": ".".join((*parts, "")), "expires_in": 300, "token_type": "Bearer"}
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal of the tests."""


@contextmanager
def token_issuer() -> Iterator[str]:
    """The address at which tokens are given while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Issuer) as issuer:
        Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{issuer.server_port}/token"
        issuer.shutdown()


def token_properties(address: str, user: str) -> dict[str, str]:
    """What a client gives instead of a password."""
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": address,
        "sasl.oauthbearer.client.id": user,
        "sasl.oauthbearer.client.secret": PASSWORD,
    }


def _url_base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")
