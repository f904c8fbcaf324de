"""HTTP connections to a server, kept open between calls."""

import http.client
import socket
import ssl
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from boardd import forking
from boardd import silent

#: How long a connection may lie idle, in seconds, before it is not trusted any
#: more. A server or something between may have dropped it without a word.
IDLE = 20.0

#: The largest answer that is read, in bytes: more than a server sends.
MAX_ANSWER = 256 << 20


class Broken(Exception):
    """There was no answer.

    ``sent`` tells whether the server may have got the request, and so whether
    it may have done what it was asked for; ``late``, whether the time was over.
    """

    def __init__(self, message: str, sent: bool, late: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.late = late


class _Plain(http.client.HTTPConnection):
    """A connection to one of some addresses."""

    at = 0  # which of them


class _Secure(http.client.HTTPSConnection):
    """The same by TLS. Unlike its parent's, its socket is there to be cut while
    the two ends agree on the encryption, which a server that is stopped never does."""

    at = 0

    def __init__(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        super().__init__(host, port, context=tls)
        self._tls = tls

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        sock = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = sock
        sock.do_handshake()


_Connection = Union[_Plain, _Secure]


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
        self._idle: List[Tuple[_Connection, float]] = []
        # Connections that close() may cut.
        self._waiting: Set[_Connection] = set()
        # By address; none where there is only one, as it is asked anyway.
        self._ears: Dict[int, silent.Ear] = {}
        if len(self._addresses) > 1:
            self._ears = {at: self._ear(at) for at in range(len(self._addresses))}

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
        for ear in self._ears.values():
            ear.close()

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
        ear = self._ears.get(conn.at)
        call = ear.listen(waits, lambda: _cut(conn)) if ear is not None else None
        try:
            answer = self._exchange(conn, path, body, headers, timeout, cut, call)
            if answer[0] == 503 and len(self._addresses) > 1:  # it cannot serve now
                self._give_up(conn.at, another=True)
            return answer
        except Broken as e:
            if cut is None or not cut.done:
                self._give_up(conn.at, another=e.late or not reused)
            raise
        finally:
            if ear is not None and call is not None:
                ear.answered(call)
            with self._lock:
                self._waiting.discard(conn)

    def _exchange(self, conn: _Connection, path: str, body: bytes, headers: Mapping[str, str], timeout: float,
                  cut: Optional[Cut], call: Optional[silent.Attended]) -> Tuple[int, Any, bytes]:
        try:
            if conn.sock is None:
                conn.timeout = min(self._connect_timeout, timeout)
                conn.connect()
            if call is not None and call.silent:  # and there was nothing yet to cut
                raise OSError('it has stopped answering')
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise Broken(_unmade(conn, e, call), sent=False)
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
            late = isinstance(e, socket.timeout) or call is not None and call.silent
            raise Broken("no answer from %s: %s" % (_name(conn), _why(e, call)), sent=True, late=late)
        except BaseException:
            conn.close()  # an answer that still comes is not the next one's
            raise
        finally:
            if cut is not None:
                cut._release(conn)
        self._put(conn, keep=not answer.will_close)
        return answer.status, answer.headers, data

    def _ear(self, at: int) -> silent.Ear:
        return silent.Ear(lambda: self._alive(at), lambda: self._give_up(at, another=True))

    def _alive(self, at: int) -> bool:
        """Asks a server for a sign of life: whatever it says, it says something."""
        until = time.monotonic() + silent.FOR
        conn = self._connection(at)
        try:
            conn.timeout = silent.FOR
            conn.connect()
            conn.sock.settimeout(max(0.001, until - time.monotonic()))
            conn.request('GET', '/healthz')
            conn.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            conn.close()
        return True

    def _take(self, fresh: bool) -> Tuple[_Connection, bool]:
        with self._lock:
            now = time.monotonic()
            while self._idle and not fresh:
                conn, since = self._idle.pop()
                if now - since <= IDLE and conn.at == self._at:
                    return conn, True
                conn.close()
            return self._connection(self._at), False

    def _connection(self, at: int) -> _Connection:
        secure, host, port = self._addresses[at]
        conn: _Connection
        if secure:
            assert self._tls is not None
            conn = _Secure(host, port, self._tls)
        else:
            conn = _Plain(host, port)
        conn.at = at
        return conn

    def _put(self, conn: _Connection, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed:
                self._idle.append((conn, time.monotonic()))
                return
        conn.close()

    def _give_up(self, at: int, another: bool) -> None:
        """Trusts no connection any more, and perhaps not the address, unless
        somebody has left that meanwhile."""
        with self._lock:
            if another and self._at == at:
                self._at = (at + 1) % len(self._addresses)
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


def _unmade(conn: _Connection, error: Exception, call: Optional[silent.Attended]) -> str:
    """Says why there is no connection, and what may be wrong."""
    if isinstance(error, ssl.SSLError) and error.reason in ('WRONG_VERSION_NUMBER', 'RECORD_LAYER_FAILURE'):
        return '%s speaks no TLS: want http:// in place of https://' % _name(conn)
    advice = '; is a boardd running there?' if isinstance(error, ConnectionRefusedError) else ''
    return "can not connect to %s: %s%s" % (_name(conn), _why(error, call), advice)


def _why(error: Exception, call: Optional[silent.Attended]) -> object:
    if call is not None and call.silent:
        return 'it has stopped answering'
    return str(error) or type(error).__name__


def _name(conn: http.client.HTTPConnection) -> str:
    return '%s:%s' % (conn.host, conn.port)
