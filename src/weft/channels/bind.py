"""Where a server may listen, its names, and its token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket

from weft.errors import ChannelError, ConfigError

HERE = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine for itself."""


def check_place(host: str, token: str) -> None:
    """Refuse an address that others can reach, unless there is a token that they must know.

    Raises:
        ConfigError: the address needs a token.
    """
    if not token and not is_loopback(host):
        raise ConfigError(
            f"Others could reach a server at {host!r}: set WEFT_TOKEN to a secret that they must know, "
            "or leave --host out."
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, which DNS rebinding cannot forge."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_everywhere(host: str) -> bool:
    """Return whether a server there listens at every address of the machine."""
    return is_address(host) and ipaddress.ip_address(host.strip("[]")).is_unspecified


def url_host(host: str) -> str:
    """Return a host as it stands in a URL."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises:
        ChannelError: nothing can listen there.
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        listening = socket.create_server((bare, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if isinstance(error.errno, int) else str(error)
        raise ChannelError(
            f"Nothing can listen at {bare} on port {port} ({reason}): give another --port or --host."
        ) from error
    # Connections inherit it. A response is written in two pieces, and without this the second one waits 40 ms
    # for the client to acknowledge the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def bearer_token(authorization: str) -> str:
    """Return the token of a header `Bearer TOKEN`; an empty text if it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_same(token: str, other: str) -> bool:
    """Compare two tokens in constant time."""
    return hmac.compare_digest(token.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
