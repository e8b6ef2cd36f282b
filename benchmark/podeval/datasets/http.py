"""Read from untrusted servers: one request at a time, with pauses, and never from a private network.

The audio addresses in a feed can be anything, and every server may redirect. Each connection, including redirects,
therefore goes only to an address that was resolved and checked to be public; the name cannot resolve to another address
in between.

httpx makes the requests. safehttpx, and a list of additional networks, determine whether an address is public; the idea
of putting the checked address into the request and keeping the name for the certificate also comes from safehttpx. Its
own transport is not used: docs/decisions/house.md gives the reasons.
"""

import contextlib
import ipaddress
import socket
import ssl
import time
import unicodedata
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from safehttpx import is_public_ip

from podeval.errors import BadInput
from podeval.models.downloading import Watch, download, end_reads, make_client

LOOKUP_HOST, LOOKUP_PAUSE = "itunes.apple.com", 3.0
"""Host of Apple's lookups, and seconds between two lookups; Apple asks for no more than about 20 per minute."""


class AddressRefused(BadInput):
    """The address must not be requested because it is private or not on the web."""


class Web:
    """A client that reads from servers with pauses, and never from a private network.

    Args:
        pause: seconds between a response from a host and the next request to it.
        allow_private: whether private and loopback addresses are also allowed, for tests and your own servers.
        options: limits on time and attempts; see `download`.
    """

    def __init__(self, *, pause: float = 1.0, allow_private: bool = False, **options: Any) -> None:
        self._options = options
        self._pause = pause
        self._allow_private = allow_private
        self._last_contact: dict[str, float] = {}
        self._client = make_client(_Transport(allow_private))
        # These are called for every request and response, including redirects.
        self._client.event_hooks = {"request": [self._wait], "response": [self._note]}

    def read(self, url: str, most_bytes: int, scratch: Path) -> bytes:
        """Return the content of a small document; `scratch` is the file for the download.

        Raises:
            BadInput: the download failed; see `download` for the kinds of failure.
        """
        scratch.unlink(missing_ok=True)
        try:
            return self.save(url, scratch, most_bytes).read_bytes()
        finally:
            scratch.unlink(missing_ok=True)

    def save(self, url: str, to: Path, most_bytes: int, watch: Watch | None = None) -> Path:
        """Download a file, resuming from the existing part.

        Raises:
            BadInput: the download failed; see `download` for the kinds of failure.
        """
        self._client.cookies.clear()
        if not self._allow_private:
            # The transport checks every address; this check refuses private ones that httpx does not recognise as
            # addresses.
            with contextlib.suppress(ValueError):
                _refuse_private_literal(url, urlsplit(url).hostname or "")
        try:
            return download(url, to, most_bytes=most_bytes, watch=watch, client=self._client, **self._options)
        except BadInput as error:
            raise type(error)(str(error).replace(url, strip_secrets(url))) from None

    def _wait(self, request: httpx.Request) -> None:
        """Wait until the next request to the host is allowed."""
        host = _host_of(request)
        if host in self._last_contact:
            pause = max(self._pause, LOOKUP_PAUSE) if host == LOOKUP_HOST else self._pause
            time.sleep(max(0.0, self._last_contact[host] + pause - time.monotonic()))
        self._last_contact[host] = time.monotonic()

    def _note(self, answer: httpx.Response) -> None:
        """Record the time of a response, for the pause between requests to its host.

        Raises:
            AddressRefused: the response redirects to something that is not a web address.
        """
        self._last_contact[_host_of(answer.request)] = time.monotonic()
        scheme = urlsplit(answer.headers.get("Location") or "").scheme if answer.has_redirect_location else ""
        if scheme not in ("", "http", "https"):
            raise AddressRefused(
                f"{strip_secrets(str(answer.request.url))} redirects to {scheme}:, which is not a web address"
            )


def is_loopback(url: str) -> bool:
    """Return whether an address belongs to this machine."""
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
    """A transport that sends each request to a checked address, or through the proxy that the environment names.

    A proxy resolves names itself, so only numeric addresses can be checked if there is a proxy.
    """

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._direct = _make_transport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.raw_host.decode("ascii")
        if not self._allow_private:
            _refuse_private_literal(str(request.url), host)
        if proxy := _find_proxy(request.url.scheme, host):
            return _make_transport(proxy).handle_request(request)
        return self._direct.handle_request(request) if self._allow_private else self._send_checked(request, host)

    def _send_checked(self, request: httpx.Request, host: str) -> httpx.Response:
        """Send a request to the first reachable address of its host; all its addresses must be public."""
        port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        trouble: httpx.TransportError = httpx.ConnectError(f"{host} has no address", request=request)
        for address in _look_up(host, port, request):
            # The `Host` header already contains the name, and the certificate is also checked against the name.
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return self._direct.handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                trouble = error
        raise trouble


def _make_transport(proxy: str | None = None) -> httpx.HTTPTransport:
    # Connections are not kept alive, because they belong to an address and several names may share it.
    limits = httpx.Limits(max_keepalive_connections=0)
    return end_reads(httpx.HTTPTransport(verify=ssl.create_default_context(), proxy=proxy, limits=limits))


def _find_proxy(scheme: str, host: str) -> str | None:
    """Return the proxy that the environment names for a scheme; None if the host is exempt."""
    proxy = urllib.request.getproxies().get(scheme)
    if not proxy or urllib.request.proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _look_up(host: str, port: int, request: httpx.Request) -> list[str]:
    """Look up the addresses of a host.

    Raises:
        AddressRefused: one of the addresses is private. httpx.ConnectError: the name cannot be resolved.
    """
    try:
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        raise httpx.ConnectError(str(error), request=request) from None
    if private := [address for address in addresses if not is_public_address(address)]:
        raise AddressRefused(f"{host} is {private[0]}, on a private network, so it is not fetched")
    return addresses


def _host_of(request: httpx.Request) -> str:
    return request.url.netloc.decode("ascii")


def _refuse_private_literal(url: str, host: str) -> None:
    """Refuse private numeric addresses, the only ones that can be checked if a proxy resolves names."""
    # Resolvers accept other characters for digits and dots: they read ① as 1, and 0x7f.1 as 127.0.0.1.
    host = unicodedata.normalize("NFKC", host)
    try:
        private = not is_public_address(_to_dotted(host))
    except ValueError:
        private = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    if private:
        raise AddressRefused(f"{strip_secrets(url)} is on a private network, so it is not fetched")


def _to_dotted(host: str) -> str:
    """Convert an IPv4 address such as `127.1` or `0x7f000001` to dotted form; return names unchanged."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return host


def is_public_address(address: str) -> bool:
    """Return whether a numeric address belongs to the public internet.

    Raises:
        ValueError: the text is not a numeric address.
    """
    literal = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(literal, ipaddress.IPv6Address):
        if literal.ipv4_mapped:
            return is_public_address(str(literal.ipv4_mapped))
        # All assigned addresses are in this range. Addresses that tunnel to IPv4 (6to4, Teredo) may lead into a private
        # network; those in the range are in the list below, and translators (64:ff9b::/96) are outside the range.
        if literal not in _GLOBAL_UNICAST:
            return False
    if any(literal in network for network in _NOT_PUBLIC if network.version == literal.version):
        return False
    return bool(is_public_ip(str(literal)))


_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            # Special addresses in IANA's registries (RFC 6890 and later) that safehttpx and some versions of Python
            # from 3.11 on treat as public: shared, assigned to protocols, anycast relays, documentation.
            *("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"),
            # The only metadata address of a cloud that is outside these ranges is Azure's. (Oracle's 192.0.0.192,
            # Alibaba's 100.100.100.200, Amazon's fd00:ec2::254 and Google's fd20:ce::254 are inside them or are not
            # global unicast.)
            "168.63.129.16/32",
        ),
    )
)
