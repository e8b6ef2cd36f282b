"""Reading from servers of strangers: one request at a time, with pauses, and never from a private network.

A feed names its audio by any address it likes, and every server may redirect. So each connection goes only to an
address that was looked up and found public, redirects included; the name cannot change its meaning in between.
"""

import ipaddress
import socket
import ssl
import time
import unicodedata
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podeval.errors import BadInput
from podeval.hub.downloading import Watch, download


class AddressRefused(BadInput):
    """An address that is not gone to: private, or not of the web."""


@dataclass(frozen=True)
class HttpFacts:
    """What the server said with a file: the last answer, and how many redirects led to it."""

    status: int
    host: str
    redirects: int
    content_type: str | None
    etag: str | None
    last_modified: str | None


class Web:
    """A careful reader.

    Args:
        pause: seconds between an answer of a host and the next request to it.
        pauses: the same for single hosts.
        timeout: seconds without a byte.
        tries: attempts at what may pass by itself.
        wait: seconds before the second attempt; see `download`.
        allow_private: go to private and loopback addresses too; for tests and for servers of one's own.
    """

    def __init__(
        self,
        *,
        pause: float = 1.0,
        pauses: Mapping[str, float] | None = None,
        timeout: float = 30.0,
        tries: int = 4,
        wait: float = 1.0,
        allow_private: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {"timeout": timeout, "tries": tries, "wait": wait}
        self._visits = _Visits(pause, pauses or {}, allow_private)
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler() if allow_private else _PublicHTTPHandler(),
            urllib.request.HTTPSHandler() if allow_private else _PublicHTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPRedirectHandler(),
            self._visits,
        ):
            self._opener.add_handler(handler)

    def read(self, url: str, scratch: Path, most_bytes: int) -> bytes:
        """The content of a small document; `scratch` is the file it passes through.

        Raises:
            BadInput: it cannot be had; see `download` for the kinds.
        """
        scratch.unlink(missing_ok=True)
        try:
            return self.save(url, scratch, most_bytes).read_bytes()
        finally:
            scratch.unlink(missing_ok=True)

    def save(self, url: str, to: Path, most_bytes: int, watch: Watch | None = None) -> Path:
        """Download a file, going on with what is there of it.

        Raises:
            BadInput: it cannot be had; see `download` for the kinds.
        """
        self._visits.answers.clear()
        try:
            return download(url, to, most_bytes=most_bytes, watch=watch, opener=self._opener, **self._options)
        except BadInput as error:
            raise type(error)(str(error).replace(url, strip_secrets(url))) from None

    def facts(self) -> HttpFacts | None:
        """What was said with what was saved last; None where no server was asked."""
        answers = self._visits.answers
        if not answers:
            return None
        host, status, headers = answers[-1]
        redirects = 0
        for _, earlier, _ in reversed(answers[:-1]):
            if not 300 <= earlier < 400:
                break
            redirects += 1
        return HttpFacts(
            status, host, redirects, headers.get("Content-Type"), headers.get("ETag"), headers.get("Last-Modified")
        )


def is_loopback(url: str) -> bool:
    """Whether an address names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Visits(urllib.request.BaseHandler):
    """Waits before each request, redirects included, and notes each answer."""

    # Before the handler that turns answers into redirects and errors.
    handler_order = 100

    def __init__(self, pause: float, pauses: Mapping[str, float], allow_private: bool) -> None:
        self.answers: list[tuple[str, int, HTTPMessage]] = []
        self._pause = pause
        self._pauses = pauses
        self._allow_private = allow_private
        self._last: dict[str, float] = {}

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        if not self._allow_private:
            _refuse_private_literal(request)
        if request.host in self._last:
            pause = self._pauses.get(request.host, self._pause)
            time.sleep(max(0.0, self._last[request.host] + pause - time.monotonic()))
        self._last[request.host] = time.monotonic()
        return request

    def http_response(self, request: urllib.request.Request, answer: HTTPResponse) -> HTTPResponse:
        host = urlsplit(request.full_url).netloc.rpartition("@")[2]
        self._last[host] = time.monotonic()
        self.answers.append((host, answer.status, answer.headers))
        scheme = urlsplit(answer.headers.get("Location") or "").scheme if 300 <= answer.status < 400 else ""
        if scheme not in ("", "http", "https"):
            answer.close()
            raise AddressRefused(f"{strip_secrets(request.full_url)} redirects to {scheme}:, which is no web address")
        return answer

    https_request, https_response = http_request, http_response


def strip_secrets(url: str) -> str:
    """An address without what may be a secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _refuse_private_literal(request: urllib.request.Request) -> None:
    """Addresses that need no lookup; the only ones that can be judged where a proxy does the looking up."""
    # Signs that stand for digits and dots: a resolver reads ① as 1, and 0x7f.1 as 127.0.0.1.
    host = unicodedata.normalize("NFKC", urlsplit(request.full_url).hostname or "")
    try:
        private = not _is_public(_dotted(host))
    except ValueError:
        private = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    if private:
        raise AddressRefused(f"{strip_secrets(request.full_url)} is in a private network, so it is not gone to")


def _dotted(host: str) -> str:
    """A host with its address of IPv4 in the usual form, where it is one in another: `127.1`, `0x7f000001`."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return host


def _is_public(address: str) -> bool:
    literal = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(literal, ipaddress.IPv6Address):
        if literal.ipv4_mapped:
            return _is_public(str(literal.ipv4_mapped))
        # All that is given out lies here. Ways from there to an address of IPv4 (6to4, Teredo) are in the list, and
        # translators (64:ff9b::/96) outside, as they may lead into a private network.
        if literal not in _GLOBAL_UNICAST:
            return False
    # Python's own list is as old as Python, and takes some addresses of clouds' metadata for public.
    if any(literal in network for network in _SPECIAL if network.version == literal.version):
        return False
    return literal.is_global and not literal.is_multicast


_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            # IANA's registries of special addresses (RFC 6890 and later): this machine, private, shared, documentation,
            # benchmarks, anycast relays, multicast, reserved.
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
            # Metadata of clouds outside of these: Azure. (Oracle's 192.0.0.192, Alibaba's 100.100.100.200, Amazon's
            # fd00:ec2::254 and Google's fd20:ce::254 are inside, or no global unicast.)
            "168.63.129.16/32",
        ),
    )
)


def _public_connection(
    address: tuple[str, int], timeout: Any = None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to a host at an address that was checked; in place of `socket.create_connection`."""
    host, port = address
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if private := [one for one in found if not _is_public(one)]:
        raise AddressRefused(f"{host} is {private[0]}, in a private network, so it is not gone to")
    trouble: OSError = OSError(f"{host} has no address")
    for one in found:
        try:
            return socket.create_connection((one, port), timeout, source_address)
        except OSError as error:
            trouble = error
    raise trouble


class _PublicHTTP(HTTPConnection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._create_connection = _public_connection


class _PublicHTTPS(HTTPSConnection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._create_connection = _public_connection


def _by_proxy(request: urllib.request.Request) -> bool:
    return request.has_proxy() or getattr(request, "_tunnel_host", None) is not None


class _PublicHTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(HTTPConnection if _by_proxy(req) else _PublicHTTP, req)


class _PublicHTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        kind = HTTPSConnection if _by_proxy(req) else _PublicHTTPS
        return self.do_open(kind, req, context=ssl.create_default_context())
