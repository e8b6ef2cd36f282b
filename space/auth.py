"""A person's identity: proven by signing in with the Hub, or that of the only user of a board on this machine.

On a Space the Hub sets `OAUTH_CLIENT_ID`, `OAUTH_CLIENT_SECRET` and `OPENID_PROVIDER_URL` (README: `hf_oauth: true`);
elsewhere, an operator sets them, for the Hub or another OpenID provider. Signing in uses authlib's code flow with PKCE,
state and nonce. A signed cookie stores the name of the person who signed in, but no token.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from itsdangerous import BadSignature, TimestampSigner
from joserfc.errors import JoseError
from starlette.middleware import sessions

from podeval.errors import BadInput, PodevalError

HUB = "https://huggingface.co"
HUB_ISSUER = "hf"
"""Prefix of the identities of Hub accounts."""
SESSION = "person"
RATE = "60/minute"
SIGNED_IN = "signed-in"
"""Value of `no` in the front page's address after a sign-in that was not completed."""
_CONTACT = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+|https://[\w-][^\s()<>\[\]\"\\]+")


@dataclass(frozen=True)
class Person:
    """The signed-in person; `identity` is the proven name, such as `hf:5e67bdd61009063689407479`."""

    identity: str
    name: str
    admin: bool = False
    orgs: tuple[str, ...] = ()


LOCAL = Person("local", "you", admin=True)
"""The only user of a board on a loopback address."""


class CannotSignIn(Exception):
    """The sign-in provider cannot be reached."""


class SignInRefused(Exception):
    """The provider's response does not prove an identity."""


class NotSignedIn(PodevalError):
    """The request requires a proven person."""

    def __init__(self) -> None:
        super().__init__("Please sign in first, at /sign-in.", code="sign-in-first")


@dataclass(frozen=True)
class SignIn:
    """The way in which people sign in on this site.

    Attributes:
        mode: `local` (one person, loopback only), `oidc`, or `none` (people can only read).
        client: client of the provider, if there is one.
        issuer: prefix of identities: `hf` for the Hub, otherwise the provider's address.
        admins: identities with operator rights; for the Hub, which assigns a name only once, names are also accepted.
    """

    mode: str
    client: Any = None
    issuer: str = HUB_ISSUER
    admins: frozenset[str] = frozenset()

    def person(self, request: Request) -> Person | None:
        """Return the person who sent a request."""
        if self.mode == "local":
            return LOCAL
        account = _read_account(request.session) if self.mode == "oidc" else None
        if account is None:
            return None
        name, identity, orgs = account
        # With other providers, people choose their names, so anyone could take an operator's name.
        by_name = self.issuer == HUB_ISSUER and identity.startswith(f"{HUB_ISSUER}:") and name in self.admins
        return Person(identity, name, by_name or identity in self.admins, orgs)

    @property
    def host(self) -> str:
        """The name of the provider, to be shown to people who do not sign in with the Hub; empty for the Hub."""
        return "" if self.issuer == HUB_ISSUER else urlsplit(self.issuer).netloc


def _read_account(session: Any) -> tuple[str, str, tuple[str, ...]] | None:
    """Return the name, identity and organisations in a session; None if no sign-in has stored a person in the
    session.
    """
    account = session.get(SESSION) if isinstance(session, Mapping) else None
    if not isinstance(account, Mapping):
        return None
    name, identity, orgs = account.get("name"), account.get("identity"), account.get("orgs", [])
    if not (isinstance(name, str) and isinstance(identity, str) and identity and isinstance(orgs, list)):
        return None
    return name, identity, tuple(map(str, orgs))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listening address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def sign_in(host: str) -> SignIn:
    """Create the sign-in for a board that listens on `host`, from the environment.

    Raises:
        BadInput: anyone could take the operators' names at the provider.
    """
    admins = frozenset(name.strip() for name in os.environ.get("PODEVAL_ADMINS", "").split(",") if name.strip())
    identifier, secret = os.environ.get("OAUTH_CLIENT_ID"), os.environ.get("OAUTH_CLIENT_SECRET")
    if identifier and secret:
        provider = os.environ.get("OPENID_PROVIDER_URL", HUB).rstrip("/")
        # Otherwise authlib would load the certificates twice per sign-in, and delay all requests by 40 ms each time.
        certificates = httpx.create_ssl_context()
        certificates.load_default_certs()
        client = OAuth().register(
            name="hub",
            client_id=identifier,
            client_secret=secret,
            server_metadata_url=f"{provider}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid profile", "code_challenge_method": "S256", "verify": certificates},
        )
        # The name of an account with this provider cannot be taken by anyone else.
        names = sorted(name for name in admins if not name.startswith(f"{provider}:") or name == f"{provider}:")
        if provider != HUB and names:
            raise BadInput(
                f"PODEVAL_ADMINS contains {', '.join(names)}, but people may choose their names at {provider}: write "
                f"identities, {provider}:SUB, where SUB is the provider's id of an account (its claim `sub`)"
            )
        return SignIn("oidc", client, HUB_ISSUER if provider == HUB else provider, admins)
    return SignIn("local" if is_loopback(host) else "none", admins=admins)


class SessionMiddleware(sessions.SessionMiddleware):
    """Sessions in a signed cookie; a signed cookie without a session is ignored."""

    def __init__(self, app: Any, secret_key: str, **options: Any) -> None:
        super().__init__(app, secret_key, **options)
        self.signer = _SessionSigner(secret_key)


class _SessionSigner(TimestampSigner):
    def unsign(self, signed_value: Any, *args: Any, **kwargs: Any) -> Any:
        data = super().unsign(signed_value, *args, **kwargs)
        try:
            content = json.loads(b64decode(data))
        except (ValueError, RecursionError):
            raise BadSignature("the cookie does not contain a session") from None
        if not isinstance(content, dict):
            raise BadSignature("the cookie does not contain a session")
        return data


def read_cookie_secret() -> str:
    """Read the key that signs the session cookie; if no key is set, people must sign in again after a restart."""
    return os.environ.get("PODEVAL_COOKIE_SECRET") or secrets.token_urlsafe(32)


def read_public_address() -> str:
    """Read the public address of this site, as `https://host`; empty if the addresses of requests are trusted."""
    if address := os.environ.get("PODEVAL_URL", "").rstrip("/"):
        return address
    host = os.environ.get("SPACE_HOST", "")
    return f"https://{host}" if host else ""


def read_contact() -> str:
    """Read the operator's private contact, as a Markdown link; empty if none is set.

    Raises:
        BadInput: the contact is neither an e-mail address nor the address of a page.
    """
    contact = os.environ.get("PODEVAL_CONTACT", "").strip()
    if contact and not _CONTACT.fullmatch(contact):
        raise BadInput(
            "PODEVAL_CONTACT must be an e-mail address, such as security@board.example, or the address of a page, "
            "such as https://…"
        )
    return f"[{contact}]({contact if contact.startswith('https://') else f'mailto:{contact}'})" if contact else ""


def build_router(how: SignIn, limit: Callable[[Request, str], None]) -> APIRouter:
    """Build the routes for signing in and out; `limit` limits the requests from one address for which the provider is
    contacted.
    """
    routes = APIRouter(include_in_schema=False)

    @routes.get("/sign-in")
    async def begin(request: Request, next: str = "/") -> Response:
        limit(request, RATE)
        if how.mode != "oidc":
            return RedirectResponse(_own_path(next), status_code=303)
        request.session["next"] = _own_path(next)
        # Behind a proxy, a request states neither the site's name nor that it was sent over HTTPS.
        address = read_public_address()
        back = f"{address}{request.url_for('finish').path}" if address else str(request.url_for("finish"))
        try:
            answer: Response = await how.client.authorize_redirect(request, back)
        except Exception as error:
            # The possible errors depend on the library that authlib uses for requests.
            raise CannotSignIn from error
        return answer

    @routes.get("/sign-in/done", name="finish")
    async def finish(request: Request) -> Response:
        limit(request, RATE)
        if how.mode != "oidc":
            return RedirectResponse("/", status_code=303)
        target = _own_path(str(request.session.get("next", "/")))
        try:
            token = await how.client.authorize_access_token(request)
        except OAuthError:
            request.session.clear()
            return RedirectResponse(f"/?{SIGNED_IN}=no", status_code=303)
        except (JoseError, AuthlibBaseError) as error:
            # The provider answered, but for another sign-in or site, or too late, or without signing the answer.
            request.session.clear()
            raise SignInRefused from error
        except Exception as error:
            raise CannotSignIn from error
        userinfo = token.get("userinfo") or {}
        # Start a new session, so the cookie from before signing in becomes worthless.
        request.session.clear()
        if userinfo.get("sub"):
            request.session[SESSION] = {
                "identity": f"{how.issuer}:{userinfo['sub']}",
                # Anyone can choose any display name, so only the account name counts, because a provider assigns it
                # only once.
                "name": str(userinfo.get("preferred_username") or f"user-{userinfo['sub']}")[:80],
                "orgs": [
                    str(org["preferred_username"]) for org in userinfo.get("orgs") or [] if "preferred_username" in org
                ][:100],
            }
        return RedirectResponse(target, status_code=303)

    @routes.post("/sign-out")
    async def leave(request: Request) -> Response:
        request.session.clear()
        return RedirectResponse("/", status_code=303)

    return routes


def _own_path(address: str) -> str:
    """Return a path of this site; anything else becomes the front page, so sign-ins never lead elsewhere."""
    safe = address.startswith("/") and not address.startswith(("//", "/\\", "/sign-")) and address.isprintable()
    return address if safe else "/"
