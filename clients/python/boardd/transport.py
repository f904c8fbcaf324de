"""HTTP connections to a server, kept open between calls."""

import http.client
import socket
import ssl
import threading
import time
from typing import Any, List, Mapping, Optional, Sequence, Set, Tuple

from boardd import forking

#: How long a connection may lie idle, in seconds, before it is not trusted any
#: more. A server or something between may have dropped it without a word.
IDLE = 20.0

#: The largest answer that is read, in bytes: more than a server sends.
MAX_ANSWER = 256 << 20


class Broken(Exception):
    """There was no answer.

    ``sent`` tells whether the server may have got the request, and so whether
    it may have done what it was asked for.
    """

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Cut:
    """Lets one thread end the calls of others, those to come included."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._held: Set[http.client.HTTPConnection] = set()

    @property
    def done(self) -> bool:
        return self._over.is_set()

    def cut(self) -> None:
        with self._lock:
            self._over.set()
            for conn in self._held:
                _cut(conn)

    def wait(self, seconds: float) -> bool:
        """Sleeps; returns early, and True, when it is done."""
        return self._over.wait(seconds)

    def _hold(self, conn: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._over.is_set():
                raise Broken("the call was cut", sent=False)
            self._held.add(conn)

    def _release(self, conn: http.client.HTTPConnection) -> None:
        with self._lock:
            self._held.discard(conn)


class Transport(object):
    """Posts bodies to the first of some addresses that answers.

    :param addresses: of (whether by TLS, host, port)
    """

    def __init__(self, addresses: Sequence[Tuple[bool, str, int]], connect_timeout: float = 10.0,
                 ca_file: Optional[str] = None, cert_file: Optional[str] = None,
                 key_file: Optional[str] = None) -> None:
        self._addresses = addresses
        self._connect_timeout = connect_timeout
        self._tls: Optional[ssl.SSLContext] = None
        if any(secure for secure, _host, _port in self._addresses):
            self._tls = ssl.create_default_context(cafile=ca_file)
            if cert_file:
                self._tls.load_cert_chain(cert_file, key_file)
        self._at = 0  # of the addresses
        self._closed = False
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        # (connection, since when), the newest last
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []
        # Connections that close() may cut.
        self._waiting: Set[http.client.HTTPConnection] = set()

    def close(self) -> None:
        """Closes what is idle and cuts what waits; the rest ends by itself."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            waiting = list(self._waiting)
        for conn, _since in idle:
            conn.close()
        for conn in waiting:
            _cut(conn)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], timeout: float, fresh: bool = False,
             waits: bool = False, cut: Optional[Cut] = None) -> Tuple[int, Any, bytes]:
        """Returns (status, headers, body of the answer).

        :param timeout: seconds of silence after which there is no answer
        :param fresh: whether to take no connection that was used before, since
                      one that the server has closed cannot be told from one
                      that it closed after it had read the request
        :param waits: whether close() may cut it short
        :param cut: what else may
        """
        conn, reused = self._take(fresh)
        with self._lock:
            if waits and not self._closed:
                self._waiting.add(conn)
        try:
            return self._exchange(conn, path, body, headers, timeout, cut)
        except Broken:
            if cut is None or not cut.done:
                self._give_up(another=not reused)
            raise
        finally:
            with self._lock:
                self._waiting.discard(conn)

    def _exchange(self, conn: http.client.HTTPConnection, path: str, body: bytes, headers: Mapping[str, str],
                  timeout: float, cut: Optional[Cut]) -> Tuple[int, Any, bytes]:
        try:
            if conn.sock is None:
                conn.timeout = min(self._connect_timeout, timeout)
                conn.connect()
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise Broken("can not connect to %s: %s"
                                  % (_name(conn), e or type(e).__name__),
                                  sent=False)
        try:
            if cut is not None:
                cut._hold(conn)
            conn.sock.settimeout(timeout)  # type: ignore[union-attr]  # or it is cut, see below
            conn.request('POST', path, body=body, headers=headers)
            answer = conn.getresponse()
            data = answer.read(MAX_ANSWER + 1)
            if len(data) > MAX_ANSWER:
                raise http.client.HTTPException("the answer is too large")
        except (OSError, http.client.HTTPException, ValueError,
                AttributeError) as e:  # the last two: cut by close()
            conn.close()
            raise Broken("no answer from %s: %s"
                                  % (_name(conn), e or type(e).__name__),
                                  sent=True)
        except BaseException:
            conn.close()  # an answer that still comes is not the next one's
            raise
        finally:
            if cut is not None:
                cut._release(conn)
        self._put(conn, keep=not answer.will_close)
        return answer.status, answer.headers, data

    def _take(self, fresh: bool) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            now = time.monotonic()
            while self._idle and not fresh:
                conn, since = self._idle.pop()
                if now - since <= IDLE:
                    return conn, True
                conn.close()
            secure, host, port = self._addresses[self._at]
        if secure:
            return http.client.HTTPSConnection(host, port,
                                               context=self._tls), False
        return http.client.HTTPConnection(host, port), False

    def _put(self, conn: http.client.HTTPConnection, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed:
                self._idle.append((conn, time.monotonic()))
                return
        conn.close()

    def _give_up(self, another: bool) -> None:
        """Trusts no connection any more, and perhaps not the address."""
        with self._lock:
            if another:
                self._at = (self._at + 1) % len(self._addresses)
            idle, self._idle = self._idle, []
        for conn, _since in idle:
            conn.close()


def _cut(conn: http.client.HTTPConnection) -> None:
    sock: Optional[socket.socket] = conn.sock
    if sock is not None:
        try:
            # Past TLS, which would say goodbye under the reader's feet.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass


def _name(conn: http.client.HTTPConnection) -> str:
    return '%s:%s' % (conn.host, conn.port)
