"""An identity provider with OAuth 2.0's client credentials, and a broker that accepts its tokens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.kafka import secured
from tests.kafka.broker import BUILT, QUICK_JVM, START_LIMIT, Broker
from tests.ports import free_ports
from tests.versions import check_built

AUDIENCE = "letterhead-tests"
PASSWORD = "only-to-read"
"""Secret of a client whose tokens are for reading schemas."""

LIFETIME = 12
"""Seconds for which a token is valid; the broker ends connections whose token has expired."""

_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_MORE = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},OAUTH://127.0.0.1:{oauth}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},OAUTH://127.0.0.1:{oauth}
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OAUTH:SASL_SSL
inter.broker.listener.name=PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={own}
listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oauth.oauthbearer.connections.max.reauth.ms=600000
listener.name.oauth.oauthbearer.sasl.server.callback.handler.class={validator}
listener.name.oauth.oauthbearer.sasl.oauthbearer.jwks.endpoint.url={provider}/jwks
listener.name.oauth.oauthbearer.sasl.oauthbearer.expected.audience={audience}
listener.name.oauth.oauthbearer.sasl.oauthbearer.expected.issuer={provider}
listener.name.oauth.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule \
required ssl.truststore.type="PEM" ssl.truststore.location="{authority}" unsecuredLoginStringClaim_sub="broker";
"""


def _mapping(name: str, value: str, audience: str, role: str) -> dict[str, Any]:
    claims = {"sub": "letters", "aud": [audience], "groups": [role]}
    return {"requestParam": name, "match": value, "claims": claims}


class Identity:
    """A provider on loopback, reached over TLS, that ends when this process ends.

    It issues a token to every client. Only tokens with the scope ``kafka`` are for the broker.

    Attributes
    ----------
    url, endpoint : str
        The issuer, and where it issues tokens.
    authority : Path
        PEM: the authority that signed its certificate, and the broker's.
    """

    def __init__(self, directory: Path) -> None:
        check_built(BUILT)
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = directory / "authority.pem"
        self.own = directory / "own.pem"
        key, certificate = secured.authority(self.authority)
        secured.signed(self.own, key, certificate)
        store = directory / "own.p12"
        store.write_bytes(secured.pkcs12(self.own, "store-password"))
        [port] = free_ports(1)
        self.url = f"https://127.0.0.1:{port}/kafka"
        self.endpoint = f"{self.url}/token"
        settings = {
            "interactiveLogin": False,
            "httpServer": {
                "type": "NettyWrapper",
                "ssl": {
                    "keyPassword": "store-password",
                    "keystoreFile": str(store),
                    "keystoreType": "PKCS12",
                    "keystorePassword": "store-password",
                },
            },
            "tokenCallbacks": [
                {
                    "issuerId": "kafka",
                    "tokenExpiry": LIFETIME,
                    "requestMappings": [
                        _mapping("scope", "kafka", AUDIENCE, "sr-developer"),
                        _mapping("client_secret", PASSWORD, AUDIENCE, "sr-readonly"),
                        _mapping("scope", "*", "others", "sr-developer"),
                    ],
                }
            ],
        }
        variables = {"SERVER_HOSTNAME": "127.0.0.1", "SERVER_PORT": str(port), "JSON_CONFIG": json.dumps(settings)}
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(shutil.which("java") or "java", QUICK_JVM, "-Xmx256m", "-XX:+UseSerialGC"),
                    *("-cp", f"{BUILT / 'classes'}:{BUILT / 'identity'}/*:{BUILT / 'broker'}/*"),
                    "letterhead.testing.broker.Identity",
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | variables,
            )
        self._wait(directory / "log")

    def token(self, scope: str = "kafka") -> str:
        """Request a token without the code under test."""
        context = secured.trusting(self.authority)
        request = urllib.request.Request(
            self.endpoint,
            data=f"grant_type=client_credentials&client_id=tests&client_secret=any&scope={scope}".encode(),
        )
        with urllib.request.urlopen(request, context=context, timeout=30) as response:
            token: str = json.load(response)["access_token"]
            return token

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + START_LIMIT
        while True:
            try:
                self.token()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise RuntimeError(f"the identity provider does not answer:\n{log.read_text()[-4000:]}") from None
                time.sleep(0.2)


def start_broker(broker: Broker, identity: Identity) -> tuple[str, str]:
    """Start a broker; return its address without a login, and with one by OAUTHBEARER over TLS."""
    port, controller, oauth = free_ports(3)
    more = _MORE.format(
        port=port, controller=controller, oauth=oauth, own=identity.own, authority=identity.authority,
        provider=identity.url, audience=AUDIENCE, validator=_VALIDATOR,
    )  # fmt: skip
    broker.start(port, more=more)
    return f"127.0.0.1:{port}", f"127.0.0.1:{oauth}"
