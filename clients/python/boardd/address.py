"""Where servers are, and where a token may be sent."""

import ipaddress
import re
from typing import NamedTuple, Optional, Sequence
from urllib import parse

# What a server may name: a scheme, a host and perhaps a port, and nothing else.
_NAMED = re.compile(r'https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]+)?', re.IGNORECASE)

# The last part of what some resolvers take for an address, such as 127.1.
_NUMBER = re.compile(r'[0-9]*|0x.*', re.IGNORECASE)


class Address(NamedTuple):
    """Where one server listens."""

    secure: bool  # by TLS
    host: str
    port: int


def given(text: str) -> Address:
    """Reads an address that a program was given; ValueError if it is none."""
    url = parse.urlsplit(text)
    host, port = url.hostname, url.port
    if url.scheme not in ('http', 'https') or not host or url.path.strip('/') or url.query:
        raise ValueError(text)
    return Address(url.scheme == 'https', host, port or (443 if url.scheme == 'https' else 80))


def named(text: str) -> Optional[Address]:
    """Reads an address that a server has named; None if it is none."""
    if not _NAMED.fullmatch(text):
        return None
    try:
        address = given(text)
    except ValueError:
        return None
    if _ip(address.host) is None and _NUMBER.fullmatch(address.host.rstrip('.').rpartition('.')[2]):
        return None
    return address


def trusts(known: Sequence[Address], other: Address) -> bool:
    """Whether the token may be sent to an address that one of the servers has
    named. It came with the answer to a call that brought the token, so whoever
    named it has the token already; what remains is that nobody else sees it on
    the way. So the connection is as safe as all those of the client's own
    addresses, and nothing on the client's own machine is called because a
    server far away speaks of its own."""
    if not other.secure and any(address.secure for address in known):
        return False
    return not _on_loopback(other.host) or any(_on_loopback(address.host) for address in known)


def _on_loopback(host: str) -> bool:
    """Whether an address is that of the machine itself."""
    name = host.lower()
    name = name[:-1] if name.endswith('.') else name
    if name == 'localhost' or name.endswith('.localhost'):
        return True
    ip = _ip(name)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    return ip is not None and (ip.is_loopback or ip.is_unspecified)


def _ip(host: str) -> 'ipaddress.IPv4Address | ipaddress.IPv6Address | None':
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
