"""Where a server listens."""

import socket

from weft.channels.bind import listen


def test_the_second_piece_of_an_answer_does_not_wait_for_the_first_to_be_confirmed() -> None:
    with listen("127.0.0.1", 0) as listening:
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
