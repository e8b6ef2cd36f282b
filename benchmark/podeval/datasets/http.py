"""Read from untrusted servers, one request at a time and with pauses, but never from a private network.

The audio addresses in a feed can be anything, and every server may redirect. Each connection, including redirects,
therefore goes only to an address that was resolved and checked to be public; the name cannot resolve to another address
between the check and the connection.

httpx makes the requests. safehttpx, and a list of additional networks, determine whether an address is public; the idea
of putting the checked address into the request and keeping the name for the certificate also comes from safehttpx. The
transport of safehttpx is not used; docs/decisions/house.md gives the reasons.
"""

import contextlib
import ipaddress
import socket
import ssl
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from safehttpx import is_public_ip

from podeval.errors import BadInput
from podeval.models.downloading import Watch, download, end_reads, make_client


class AddressRefused(BadInput):
    """The address must not be requested because it is private or not on the web."""


class Web:
    """A client that pauses between requests, and never reads from a private network.

    Args:
        pause: seconds between a response from a host and the next request to the same host; Apple asks for no more than
            about 20 lookups per minute.
        allow_private: whether private and loopback addresses are also allowed, for tests and your own servers.
        options: limits on time and attempts; see `download`.
    """

    def __init__(self, *, pause: float = 3.0, allow_private: bool = False, **options: Any) -> None:
        self._options = options
        self._client = make_client(_Transport(pause, allow_private))

    def read(self, url: str, most_bytes: int) -> bytes:
        """Return the content of a small document.

        Raises:
            BadInput: the download failed; see `download` for the kinds of failure.
        """
        with tempfile.TemporaryDirectory() as folder:
            return self.save(url, Path(folder, "document"), most_bytes).read_bytes()

    def save(self, url: str, to: Path, most_bytes: int, watch: Watch | None = None) -> Path:
        """Download a file, resuming from the existing part.

        Raises:
            BadInput: the download failed; see `download` for the kinds of failure.
        """
        self._client.cookies.clear()
        try:
            return download(url, to, most_bytes=most_bytes, watch=watch, client=self._client, **self._options)
        except BadInput as error:
            raise type(error)(str(error).replace(url, strip_secrets(url))) from None


def is_loopback(url: str) -> bool:
    """Return whether an address refers to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def strip_secrets(url: str) -> str:
    """Remove possible secrets from an address: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class _Transport(httpx.BaseTransport):
    """A transport that sends each request, redirects included, to a checked address or the environment's proxy.

    A proxy resolves names itself, so only numeric addresses can be checked if there is a proxy.
    """

    def __init__(self, pause: float, allow_private: bool) -> None:
        self._pause = pause
        self._allow_private = allow_private
        self._direct = _make_transport()
        self._next_request: dict[str, float] = {}
        """The earliest time for the next request to each host."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        scheme, host = request.url.scheme, request.url.raw_host.decode("ascii")
        if scheme not in ("http", "https"):
            raise AddressRefused(f"the server redirects to {scheme}:, which is not a web address")
        if not self._allow_private:
            _refuse_private_literal(str(request.url), host.rstrip("."))
        time.sleep(max(0.0, self._next_request.get(host, 0.0) - time.monotonic()))
        try:
            if (proxy := urllib.request.getproxies().get(scheme)) and not urllib.request.proxy_bypass(host):
                return _make_transport(proxy if "://" in proxy else f"http://{proxy}").handle_request(request)
            return self._direct.handle_request(request) if self._allow_private else self._send_checked(request, host)
        finally:
            self._next_request[host] = time.monotonic() + self._pause

    def _send_checked(self, request: httpx.Request, host: str) -> httpx.Response:
        """Send a request to the first reachable address of its host; all its addresses must be public."""
        port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        try:
            addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from None
        if private := [address for address in addresses if not is_public_address(address)]:
            raise AddressRefused(f"{host} is at {private[0]} on a private network, from which podeval fetches nothing")
        trouble: httpx.TransportError = httpx.ConnectError(f"{host} has no IP address", request=request)
        # The `Host` header already contains the name, and the certificate is also checked against the name.
        kept: dict[str, Any] = {"headers": request.headers, "extensions": request.extensions | {"sni_hostname": host}}
        for address in addresses:
            pinned = httpx.Request(request.method, request.url.copy_with(host=address), stream=request.stream, **kept)
            try:
                return self._direct.handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                trouble = error
        raise trouble


def _make_transport(proxy: str | None = None) -> httpx.HTTPTransport:
    # Connections are not kept alive, because a connection belongs to an address, which several names may share.
    limits = httpx.Limits(max_keepalive_connections=0)
    return end_reads(httpx.HTTPTransport(verify=ssl.create_default_context(), proxy=proxy, limits=limits))


def _refuse_private_literal(url: str, host: str) -> None:
    """Refuse private numeric addresses, which are the only addresses that can be checked if a proxy resolves names."""
    # Resolvers also accept addresses with fewer than four numbers, such as 0x7f.1 for 127.0.0.1. httpx refuses other
    # characters, such as ①.
    with contextlib.suppress(OSError):
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        private = not is_public_address(host)
    except ValueError:
        private = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    if private:
        raise AddressRefused(f"{strip_secrets(url)} is on a private network, from which podeval fetches nothing")


def is_public_address(address: str) -> bool:
    """Return whether a numeric address belongs to the public internet.

    Raises:
        ValueError: the text is not a numeric address.
    """
    literal = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(literal, ipaddress.IPv6Address) and literal.ipv4_mapped:
        return is_public_address(str(literal.ipv4_mapped))
    return is_public_ip(str(literal)) and not any(literal in network for network in _NOT_PUBLIC)


# All assigned IPv6 addresses are in 2000::/3. Tunnels to IPv4 in that range (6to4, Teredo) may lead into a private
# network, so `_SPECIAL` lists them; translators (64:ff9b::/96) are outside that range.
_NOT_GLOBAL_UNICAST = ("::/3", "4000::/2", "8000::/1")
# Special addresses in IANA's registries (RFC 6890 and later) that safehttpx and some versions of Python from 3.11 on
# treat as public: shared, assigned to protocols, anycast relays, documentation.
_SPECIAL = ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")
# The only cloud metadata address outside these ranges is Azure's. (Oracle's 192.0.0.192, Alibaba's
# 100.100.100.200, Amazon's fd00:ec2::254 and Google's fd20:ce::254 are inside them or are not global unicast.)
_AZURE = "168.63.129.16/32"
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, (*_NOT_GLOBAL_UNICAST, *_SPECIAL, _AZURE)))
