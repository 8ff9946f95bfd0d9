"""Where a server listens."""

import socket

from weft.channels.bind import listen


def test_a_connection_sends_each_piece_of_an_answer_without_delay() -> None:
    with listen("127.0.0.1", 0) as listening:
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
