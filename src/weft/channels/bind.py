"""Where a server may listen, what its place is called, and who knows its token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket

from weft.errors import ChannelError, ConfigError

HERE = ("127.0.0.1", "localhost", "[::1]")
"""The names by which a machine calls itself."""


def check_place(host: str, token: str) -> None:
    """Do nothing if a server may listen there.

    Raises:
        ConfigError: others could reach it, and there is no token that they must know.
    """
    if not token and not is_loopback(host):
        raise ConfigError(
            f"Others could reach a server at {host!r}: set WEFT_TOKEN to a secret that they must know, "
            "or leave --host out."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(host: str) -> bool:
    """Whether this is the number of a machine, which no trick with names can bend."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_everywhere(host: str) -> bool:
    """Whether a server there listens at every address of the machine."""
    return is_address(host) and ipaddress.ip_address(host.strip("[]")).is_unspecified


def shown(host: str) -> str:
    """An address as it stands in a URL."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


def listen(host: str, port: int) -> socket.socket:
    """Raises ChannelError if nothing can listen there."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        listening = socket.create_server((bare, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if isinstance(error.errno, int) else str(error)
        raise ChannelError(
            f"Nothing can listen at {bare} on port {port} ({reason}): give another --port or --host."
        ) from error
    # Connections inherit it. An answer is written in two pieces, and without this the second one waits 40 ms
    # for the client to confirm the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def knows_token(authorization: str, token: str) -> bool:
    """Whether a header is `Bearer TOKEN`; how long this takes tells nothing of the token."""
    scheme, _, given = authorization.partition(" ")
    told = f"{scheme.lower()} {given.strip()}".encode("utf-8", "replace")
    return hmac.compare_digest(told, f"bearer {token}".encode())
