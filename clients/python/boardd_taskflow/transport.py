"""HTTP connections to a server, kept open between calls."""

import http.client
import socket
import ssl
import threading
import time

from boardd_taskflow import failures
from boardd_taskflow import forking

#: How long a connection may lie idle, in seconds, before it is not trusted any
#: more. A server or something between may have dropped it without a word.
IDLE = 20.0

#: The largest answer that is read, in bytes: more than a server sends.
MAX_ANSWER = 256 << 20


class Transport(object):
    """Posts bodies to the first of some addresses that answers."""

    def __init__(self, options):
        self._addresses = options.addresses
        self._connect_timeout = options.connect_timeout
        self._tls = None
        if any(secure for secure, _host, _port in self._addresses):
            self._tls = ssl.create_default_context(cafile=options.ca_file)
            if options.cert_file:
                self._tls.load_cert_chain(options.cert_file, options.key_file)
        self._at = 0  # of the addresses
        self._closed = False
        self.after_fork()
        forking.watch(self)

    def after_fork(self):
        self._lock = threading.Lock()
        self._idle = []  # (connection, since when), the newest last
        self._waiting = set()  # connections that close() may cut

    def close(self):
        """Closes what is idle and cuts what waits; the rest ends by itself."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            waiting = list(self._waiting)
        for conn, _since in idle:
            conn.close()
        for conn in waiting:
            _cut(conn)

    def post(self, path, body, headers, timeout, fresh=False, waits=False):
        """Returns (status, headers, body of the answer).

        :param timeout: seconds of silence after which there is no answer
        :param fresh: whether to take no connection that was used before, since
                      one that the server has closed cannot be told from one
                      that it closed after it had read the request
        :param waits: whether close() may cut it short
        """
        conn, reused = self._take(fresh)
        with self._lock:
            if waits and not self._closed:
                self._waiting.add(conn)
        try:
            return self._exchange(conn, path, body, headers, timeout)
        except failures.Broken:
            self._give_up(another=not reused)
            raise
        finally:
            with self._lock:
                self._waiting.discard(conn)

    def _exchange(self, conn, path, body, headers, timeout):
        try:
            if conn.sock is None:
                conn.timeout = min(self._connect_timeout, timeout)
                conn.connect()
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise failures.Broken("can not connect to %s: %s"
                                  % (_name(conn), e or type(e).__name__),
                                  sent=False)
        try:
            conn.sock.settimeout(timeout)
            conn.request('POST', path, body=body, headers=headers)
            answer = conn.getresponse()
            data = answer.read(MAX_ANSWER + 1)
            if len(data) > MAX_ANSWER:
                raise http.client.HTTPException("the answer is too large")
        except (OSError, http.client.HTTPException, ValueError,
                AttributeError) as e:  # the last two: cut by close()
            conn.close()
            raise failures.Broken("no answer from %s: %s"
                                  % (_name(conn), e or type(e).__name__),
                                  sent=True)
        except BaseException:
            conn.close()  # an answer that still comes is not the next one's
            raise
        self._put(conn, keep=not answer.will_close)
        return answer.status, answer.headers, data

    def _take(self, fresh):
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

    def _put(self, conn, keep):
        with self._lock:
            if keep and not self._closed:
                self._idle.append((conn, time.monotonic()))
                return
        conn.close()

    def _give_up(self, another):
        """Trusts no connection any more, and perhaps not the address."""
        with self._lock:
            if another:
                self._at = (self._at + 1) % len(self._addresses)
            idle, self._idle = self._idle, []
        for conn, _since in idle:
            conn.close()


def _cut(conn):
    sock = conn.sock
    if sock is not None:
        try:
            # Past TLS, which would say goodbye under the reader's feet.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass


def _name(conn):
    return '%s:%s' % (conn.host, conn.port)
