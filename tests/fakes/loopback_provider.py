"""An OpenID provider on loopback: discovery, code flow with PKCE, signed id tokens; whoever it is told to signs in."""

import base64
import hashlib
import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.fakes.loopback_server import serve_app


class LoopbackProvider:
    """Signs in `person`; `claims` go before what an id token says, `signing` before the key that it is signed with."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "5e67bdd6", "preferred_username": "alice"}
        self.claims: dict[str, Any] = {}
        self.signing: RSAKey | None = None
        self._key = RSAKey.generate_key(2048, {"kid": "one"})
        self._codes: dict[str, dict[str, str]] = {}
        self._serving = serve_app(self._app())

    def __enter__(self) -> "LoopbackProvider":
        self.url = self._serving.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.__exit__(None, None, None)

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        def discovery() -> dict[str, Any]:
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/oauth/authorize",
                "token_endpoint": f"{self.url}/oauth/token",
                "userinfo_endpoint": f"{self.url}/oauth/userinfo",
                "jwks_uri": f"{self.url}/jwks",
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }

        @app.get("/jwks")
        def keys() -> dict[str, Any]:
            return {"keys": [self._key.as_dict(private=False)]}

        @app.get("/oauth/authorize")
        def authorize(request: Request) -> Response:
            asked = dict(request.query_params)
            code = secrets.token_urlsafe()
            self._codes[code] = asked
            return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

        @app.post("/oauth/token")
        async def token(request: Request) -> Response:
            sent = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            asked = self._codes.pop(sent.get("code", ""), None)
            verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
            if asked is None or challenge != asked["code_challenge"]:
                return JSONResponse({"error": "invalid_grant"}, 400)
            now = int(time.time())
            claims = {
                **self.person,
                "iss": self.url,
                "aud": asked["client_id"],
                "nonce": asked["nonce"],
                "iat": now,
                "exp": now + 300,
                **self.claims,
            }
            signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signing or self._key)
            return JSONResponse({"access_token": "secret-token", "token_type": "bearer", "id_token": signed})

        return app
