"""Servers that accept connections and then say nothing, or very little at a time."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

from tests.sockets import LoopbackServer


class SilentServer(LoopbackServer):
    """Accepts connections, and sends some bytes at once and then one at a time, for ever.

    Parameters
    ----------
    begin : bytes, optional
        What it sends at once.
    drips : bool, default False
        Whether it sends zeros, one every 20 ms, afterwards.
    """

    def __init__(self, begin: bytes = b"", *, drips: bool = False) -> None:
        self._begin, self._drips = begin, drips
        self.asked = threading.Event()
        """Whether a client has sent something."""
        super().__init__()

    def _serve(self, client: socket.socket) -> None:
        client.recv(1)
        self.asked.set()
        client.sendall(self._begin)
        while self._drips:
            client.sendall(b"\0")
            time.sleep(0.02)
        while client.recv(1 << 16):
            pass


def interrupted(program: str, *arguments: str, server: SilentServer) -> str:
    """Start a program that waits for a server, interrupt it as Ctrl-C does, and return the end of its traceback."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert server.asked.wait(300)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=300)
        finally:
            process.kill()
    return errors.strip().rpartition("\n")[2]


def without_a_name_server(program: str) -> str:
    """Run a program in which only addresses in digits can be looked up, and return what it prints."""
    before = """
import socket, time
real = socket.getaddrinfo
def lookup(host, *arguments, **options):
    if not host[0].isdigit():
        time.sleep(1000)
    return real(host, *arguments, **options)
def patched(host, *arguments, flags=0, **options):
    return lookup(host, *arguments, **options) if not flags else real(host, *arguments, flags=flags, **options)
socket.getaddrinfo = patched
"""
    command = [sys.executable, "-c", before + program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=540, check=True)
    return ran.stdout
