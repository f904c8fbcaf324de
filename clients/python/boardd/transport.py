"""HTTP connections to a server, kept open between calls."""

import http.client
import selectors
import socket
import ssl
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from boardd import forking
from boardd import silent
from boardd import straight
from boardd.address import Address

#: How long a connection may lie idle, in seconds, before it is not trusted any
#: more. A server or something between may have dropped it without a word.
IDLE = 20.0

# What costs nothing to make, and takes any number of a socket.
_Selector = getattr(selectors, 'PollSelector', selectors.SelectSelector)

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
    """A connection to an address."""

    at: Address


class _Secure(http.client.HTTPSConnection):
    """The same by TLS. Unlike its parent's, its socket is there to be cut while
    the two ends agree on the encryption, which a server that is stopped never does."""

    at: Address

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
    """Posts bodies to the first of some addresses that answers, or straight to
    the server that has the board that they are about.

    :param addresses: of (whether by TLS, host, port)
    """

    def __init__(self, addresses: Sequence[Tuple[bool, str, int]], connect_timeout: float = 10.0,
                 ca_file: Optional[str] = None, cert_file: Optional[str] = None,
                 key_file: Optional[str] = None) -> None:
        self._addresses = [Address(*address) for address in addresses]
        self._connect_timeout = connect_timeout
        self._ca_file, self._cert_file, self._key_file = ca_file, cert_file, key_file
        self._tls: Optional[ssl.SSLContext] = None
        if any(address.secure for address in self._addresses):
            self._context()
        self._at = 0  # of the addresses
        self._lost = 0  # how many calls at them failed in a row
        self._closed = False
        self._straights = straight.Straights(self._addresses, self._is_one)
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        # By address: (connection, since when), the newest last
        self._idle: Dict[Address, List[Tuple[_Connection, float]]] = {}
        self._swept = 0.0  # when the old ones were closed
        # Connections that close() may cut.
        self._waiting: Set[_Connection] = set()
        # Of the addresses; none where there is only one, as it is asked anyway.
        self._ears: List[silent.Ear] = []
        if len(self._addresses) > 1:
            self._ears = [self._ear(at) for at in range(len(self._addresses))]
        self._straights.after_fork()

    def close(self) -> None:
        """Closes what is idle and cuts what waits; the rest ends by itself."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
            waiting = list(self._waiting)
        for conns in idle.values():
            for conn, _since in conns:
                conn.close()
        for conn in waiting:
            _cut(conn)
        for ear in self._ears:
            ear.close()
        self._straights.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str], timeout: float, fresh: bool = False,
             waits: bool = False, cut: Optional[Cut] = None, way: Optional[straight.Way] = None) -> Tuple[int, Any, bytes]:
        """Returns (status, headers, body of the answer).

        :param timeout: seconds of silence after which there is no answer
        :param fresh: whether to take no connection that was used before, since
                      one that the server has closed cannot be told from one
                      that it closed after it had read the request
        :param waits: whether close() may cut it short
        :param cut: what else may
        :param way: which board it is about, if it may go straight to the
                    server of that, and then where it went
        """
        place = None
        if way is not None and way.board:
            place = way.straight = self._straights.of(way.board)
            if place is None and self._lost >= len(self._addresses):
                self._lost = 0  # the next one tries them again
                place = way.straight = self._straights.any()
                way.around = place is not None
        at = self._at  # somebody else may go on to the next
        conn, reused = self._take(place.address if place is not None else self._addresses[at], fresh)
        with self._lock:
            if waits and not self._closed:
                self._waiting.add(conn)
        ear = place.ear if place is not None else self._ears[at] if self._ears else None
        call = ear.listen(waits, lambda: _cut(conn)) if ear is not None else None
        try:
            answer = self._exchange(conn, path, body, headers, timeout, cut, call)
            if place is None:
                self._answered(at, way, answer)
            else:
                assert way is not None
                self._answered_straight(place, way, answer)
            return answer
        except Broken as e:
            if cut is None or not cut.done:
                self._drop_idle(conn.at)
                self._failed(at, place, way, old=reused and not e.late)
            raise
        finally:
            if ear is not None and call is not None:
                ear.answered(call)
            with self._lock:
                self._waiting.discard(conn)

    def _failed(self, at: int, place: Optional[straight.Place], way: Optional[straight.Way], old: bool) -> None:
        if place is None:
            if not old:
                self._lost += 1
                self._leave(at)
            return
        assert way is not None
        way.old = old
        if not old:
            self._straights.fail(place)

    def _answered(self, at: int, way: Optional[straight.Way], answer: Tuple[int, Any, bytes]) -> None:
        status, headers, _body = answer
        self._lost = 0
        if way is not None and way.board:
            self._straights.learn(way, status, headers)
        if status == 503 and not straight.names_another(headers):  # it cannot serve now, nor say who can
            self._leave(at)

    def _answered_straight(self, place: straight.Place, way: straight.Way, answer: Tuple[int, Any, bytes]) -> None:
        status, headers, _body = answer
        way.strange = straight.strange(status, headers)
        if way.strange:
            self._straights.fail(place)
            return
        self._straights.learn(way, status, headers)
        self._straights.done(place)

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
            _ask(conn, path, body, headers)
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
        self._put(conn, keep=not answer.will_close and conn.sock is not None)
        return answer.status, answer.headers, data

    def _ear(self, at: int) -> silent.Ear:
        # A sign of life: whatever the server says, it says something.
        return silent.Ear(lambda: self._health(self._addresses[at]) is not None, lambda: self._leave(at))

    def _is_one(self, address: Address) -> bool:
        """Asks an address that one of the servers has named whether there is a server."""
        return self._health(address) == 200

    def _health(self, address: Address) -> Optional[int]:
        """Asks a server how it is, and returns the status of what it answers; None: nothing."""
        until = time.monotonic() + silent.FOR
        try:
            conn = self._connection(address)
        except (OSError, ValueError):  # the files for TLS, which are not what they were
            return None
        try:
            conn.timeout = silent.FOR
            conn.connect()
            conn.sock.settimeout(max(0.001, until - time.monotonic()))
            conn.request('GET', '/healthz')
            return conn.getresponse().status
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            conn.close()

    def _take(self, address: Address, fresh: bool) -> Tuple[_Connection, bool]:
        with self._lock:
            now = time.monotonic()
            idle = [] if fresh else self._idle.get(address, [])
            while idle:
                conn, since = idle.pop()
                if now - since <= IDLE and not _ended(conn):
                    return conn, True
                conn.close()
        return self._connection(address), False

    def _connection(self, address: Address) -> _Connection:
        conn: _Connection
        if address.secure:
            conn = _Secure(address.host, address.port, self._context())
        else:
            conn = _Plain(address.host, address.port)
        conn.at = address
        return conn

    def _context(self) -> ssl.SSLContext:
        """What all connections by TLS have in common."""
        if self._tls is None:
            tls = ssl.create_default_context(cafile=self._ca_file)
            if self._cert_file:
                tls.load_cert_chain(self._cert_file, self._key_file)
            self._tls = tls
        return self._tls

    def _put(self, conn: _Connection, keep: bool) -> None:
        old: List[_Connection] = []
        with self._lock:
            now = time.monotonic()
            if keep and not self._closed:
                self._idle.setdefault(conn.at, []).append((conn, now))
            else:
                old.append(conn)
            if now - self._swept > IDLE:  # of those that nobody calls any more, too
                self._swept = now
                for address, conns in list(self._idle.items()):
                    old += [conn for conn, since in conns if now - since > IDLE]
                    self._idle[address] = [(conn, since) for conn, since in conns if now - since <= IDLE]
                    if not self._idle[address]:
                        del self._idle[address]
        for conn in old:
            conn.close()

    def _drop_idle(self, address: Address) -> None:
        """Trusts no connection to an address any more."""
        with self._lock:
            idle = self._idle.pop(address, [])
        for conn, _since in idle:
            conn.close()

    def _leave(self, at: int) -> None:
        """Goes on to the next address, unless somebody has done that meanwhile."""
        with self._lock:
            if self._at == at:
                self._at = (at + 1) % len(self._addresses)
        self._drop_idle(self._addresses[at])


def _ask(conn: _Connection, path: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Sends a request. Who refuses one may answer and close before it was read
    to its end: then the answer is there, or the want of one says what is wrong."""
    try:
        conn.request('POST', path, body=body, headers=headers)
    except (BrokenPipeError, ConnectionResetError):
        pass


def _ended(conn: _Connection) -> bool:
    """Whether the server has closed a connection that was kept."""
    with _Selector() as selector:
        selector.register(conn.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


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
