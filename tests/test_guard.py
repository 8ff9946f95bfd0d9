"""The guard that keeps tests off the network is shown to bite."""

import socket

import pytest


def test_no_test_can_reach_the_network() -> None:
    with socket.socket() as outside, pytest.raises(AssertionError, match="only loopback"):
        outside.connect(("192.0.2.1", 80))


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as inside:
        inside.connect(server.getsockname())

        assert inside.getpeername() == server.getsockname()
