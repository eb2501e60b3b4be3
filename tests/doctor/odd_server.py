"""A server that gives every connection the same bytes, or none, whatever it was asked."""

import socket
import ssl
import threading
from contextlib import contextmanager, suppress

LONGEST = 30


def http(status, body, kind="text/html"):
    """The bytes of one HTTP answer."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n{body}".encode()


@contextmanager
def odd_server(answer, *, context: ssl.SSLContext | None = None):
    """Yield host and port; *answer* is bytes, or None to say nothing until the block ends."""
    listener, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()
    threads = []

    def accept():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                one = threading.Thread(target=_serve, args=(connection, answer, context, stop))
                threads.append(one)
                one.start()

    threads.append(threading.Thread(target=accept))
    threads[0].start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join(LONGEST)


def _serve(connection, answer, context, stop):
    with connection, suppress(OSError):
        connection.settimeout(LONGEST)
        if context is not None:
            with context.wrap_socket(connection, server_side=True) as wrapped:
                _talk(wrapped, answer, stop)
        else:
            _talk(connection, answer, stop)


def _talk(connection, answer, stop):
    connection.recv(65536)
    if answer is None:
        stop.wait(LONGEST)
    else:
        connection.sendall(answer)
