"""Calls of the API, repeated while the server is not reachable."""

import json
import os
import random
import threading
import time
from typing import Any, Callable, FrozenSet, Mapping, NamedTuple, Optional, Tuple

from boardd import address
from boardd import errors
from boardd import straight
from boardd import transport
from boardd.messages import Json, seconds

#: Where a boardd listens that was told nothing else.
DEFAULT_ADDR = 'http://127.0.0.1:7422'

_PATH = '/boardd.v1.BoardService/'

#: The calls that change nothing.
READS: FrozenSet[str] = frozenset([
    'GetJobs', 'ListJobs', 'CountJobs', 'ListEvents', 'ExplainJob', 'ReadLog', 'GetBook', 'ListEntities', 'ListBoards',
    'GetBoard', 'WhoAmI', 'GetSchedule', 'ListSchedules', 'GetBatch', 'ListBatches'])

_AGAIN = frozenset(['UNAVAILABLE', 'INTERRUPTED', 'OUTCOME_UNKNOWN'])

# Of these it is not sure that they are the server's own word.
_DOUBTFUL = _AGAIN | frozenset(['INTERNAL', 'ABORTED', 'QUOTA_EXCEEDED'])


# What to do about a token.
_NO_TOKEN = '; give Client a token or a token_file, or set BOARDD_TOKEN or BOARDD_TOKEN_FILE'
_OTHER_TOKEN = '; is it the right one in what Client was given, BOARDD_TOKEN or BOARDD_TOKEN_FILE?'


class Answer(NamedTuple):
    """What came of a call."""

    message: Json
    unsure: bool  # the answer to an earlier try was lost, which may have made the change
    tries: int


class _Failed(NamedTuple):
    error: errors.BoarddError
    answered: bool  # the server itself said so
    sent: bool  # the request left this machine, or may have
    pause: float  # for which the server wants to be left alone
    token: str = ''  # that it was asked with

    @property
    def lost(self) -> bool:
        """What the request asks for may have been done all the same, here or
        at a server to which it was passed on."""
        return self.sent and not self.answered or self.error.kind == 'OUTCOME_UNKNOWN'


class Client:
    """Calls a server with one token. It may be used by many threads at once.

    :param addr: ``http://HOST:PORT`` or ``https://HOST:PORT``, several servers of the same boards with commas between
                 them. None: BOARDD_ADDR, or DEFAULT_ADDR
    :param token: sent with every call. None: BOARDD_TOKEN, or no token
    :param token_file: a file with the token, read again when the server refuses it. None: BOARDD_TOKEN_FILE, unless a
                       token is given
    :param ca_file: certificates to trust instead of the system's, as PEM
    :param cert_file: our own certificate, with ``key_file``
    :param call_timeout: seconds of one try of a call, beyond what it asks the server to wait
    :param retry_for: seconds for which a call is repeated while the server is not reachable. 0: it is tried once
    :param stay_at_addr: make every call at addr. Otherwise, where several servers share their boards and say where
                         clients may go straight to each of them, calls of a board go there once a server of addr has
                         said so: with the same certificates, and never with less encryption than to addr
    """

    def __init__(self, addr: Optional[str] = None, token: Optional[str] = None, *, token_file: Optional[str] = None,
                 ca_file: Optional[str] = None, cert_file: Optional[str] = None, key_file: Optional[str] = None,
                 call_timeout: float = 30.0, retry_for: float = 30.0, stay_at_addr: bool = False) -> None:
        env = os.environ
        if token is None and token_file is None:
            token = env.get('BOARDD_TOKEN')
            token_file = None if token else env.get('BOARDD_TOKEN_FILE') or None
        self._token_file = token_file
        self._token = token or ''
        if token_file is not None and not token:
            self._token = self._read_token(token_file)
        _check_token(self._token)
        self._call_timeout = call_timeout
        self._retry_for = retry_for
        self._stays = stay_at_addr
        addresses = [_address(a.strip()) for a in (addr or env.get('BOARDD_ADDR') or DEFAULT_ADDR).split(',')]
        self._servers = len(addresses)
        self._closed = threading.Event()
        try:
            self._transport = transport.Transport(addresses, ca_file=ca_file, cert_file=cert_file, key_file=key_file)
        except OSError as e:  # which says neither the file nor what it was for
            given = {'ca_file': ca_file, 'cert_file': cert_file, 'key_file': key_file}
            files = ', '.join('%s %r' % (name, path) for name, path in given.items() if path)
            raise errors.BoarddError('INVALID', 'Client', '%s: want files of PEM that can be read and belong together: %s' % (files, e)) from e

    def board(self, name: Optional[str] = None) -> 'board.Board':
        """Returns the board of a name; None: BOARDD_BOARD, or ``default``.
        Nothing is asked of the server."""
        return board.Board(self, name or os.environ.get('BOARDD_BOARD') or 'default')

    def close(self) -> None:
        """Closes the connections. Calls that wait, and later ones, fail as
        INTERRUPTED."""
        self._closed.set()
        self._transport.close()

    def call(self, method: str, request: Mapping[str, Any], *, wait: float = 0.0, within: Optional[float] = None,
             cut: Optional[transport.Cut] = None,
             tried: Optional[Callable[[float, Optional[errors.BoarddError]], None]] = None) -> Answer:
        """Makes any unary call of the API, and makes it again while the
        server is not reachable. That is safe as every change that a request
        asks for is named by it: by a uuid, a claim's token, or a request id.

        :param wait: seconds for which the server may hold the answer
        :param within: seconds for everything, instead of what the client has
        :param cut: lets another thread end the call; it fails as INTERRUPTED then
        :param tried: is told of each try, from when on it failed and why; None: the server answered
        """
        body = dict(request)
        if wait > 0:
            body['wait'] = seconds(wait)
        data = json.dumps(body, separators=(',', ':'), allow_nan=False).encode('utf-8')
        until = time.monotonic() + (self._retry_for + wait if within is None else within)
        of = request.get('board')
        board = of if isinstance(of, str) and not self._stays else ''
        unsure, reloaded, hurried, tries, counted = False, False, False, 0, 0
        while True:
            if self._closed.is_set() or cut is not None and cut.done:
                raise errors.BoarddError('INTERRUPTED', method, 'gave up before the server answered',
                                         changed='unknown' if unsure else 'no')
            tries += 1
            timeout = self._call_timeout + wait
            if within is not None:
                timeout = max(0.05, min(timeout, until - time.monotonic()))
            way = straight.Way(board)
            began = time.monotonic()
            answer, failed = self._try(method, data, timeout, wait > 0, cut, way)
            if tried is not None:
                # Where the server was to wait, it may have done that.
                tried(began if wait <= 0 else time.monotonic(), failed.error if failed and failed.error.kind in _AGAIN else None)
            if failed is None:
                return Answer(answer, unsure, tries)
            unsure = unsure or method not in READS and failed.lost
            error = failed.error
            if way.old:
                continue  # there, on a new connection
            hurried = not hurried and way.again(error.kind in _AGAIN)
            if hurried:
                continue  # the addresses that were given have not been tried
            counted += 1
            if error.kind == 'UNAUTHENTICATED' and not reloaded:
                reloaded = True
                if self._renew(failed.token):
                    continue
            pause = 0.0
            if counted % self._servers == 0:  # no other one is left to ask
                pause = max(failed.pause, backoff(counted // self._servers - 1, 0.05, 2.0))
            ended = self._closed.is_set() or cut is not None and cut.done
            if not ended and (error.kind not in _AGAIN or time.monotonic() + pause > until):
                raise _in_doubt(error, unsure)
            if cut is None:
                self._closed.wait(pause)
            else:
                cut.wait(pause)

    def _try(self, method: str, data: bytes, timeout: float, waits: bool, cut: Optional[transport.Cut],
             way: straight.Way) -> Tuple[Json, Optional[_Failed]]:
        headers = {
            'Content-Type': 'application/json',
            'Connect-Protocol-Version': '1',
            'Connect-Timeout-Ms': str(int(timeout * 1000)),
        }
        token = self._token
        if token:
            headers['Authorization'] = 'Bearer ' + token
        try:
            status, got, text = self._transport.post(_PATH + method, data, headers, timeout, waits=waits, cut=cut, way=way)
        except transport.Broken as e:
            return {}, _Failed(errors.BoarddError('UNAVAILABLE', method, str(e)), False, e.sent, 0.0)
        if status == 400 and b'HTTP request to an HTTPS server' in text:
            wrong = 'the server speaks TLS: want https:// in place of http://'
            return {}, _Failed(errors.BoarddError('UNAVAILABLE', method, wrong), False, False, 0.0)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if status == 200 and way.strange:
            answer = None  # it is not the server's
        if status == 200 and isinstance(answer, dict):
            return answer, None
        return {}, _failed(method, status, got, answer, _OTHER_TOKEN if token else _NO_TOKEN)._replace(token=token)

    def _read_token(self, path: str) -> str:
        with open(path, encoding='utf-8') as f:
            return f.read().strip()

    def _renew(self, refused: str) -> bool:
        """Returns whether there is another token than the one that was
        refused. Of several calls that were refused with that one, the first
        finds it in the file."""
        if self._token != refused:
            return True
        if self._token_file is None:
            return False
        try:
            token = self._read_token(self._token_file)
            _check_token(token)
        except (OSError, ValueError, errors.BoarddError):
            return False  # the old one may be good again
        self._token = token
        return token != refused


def _failed(method: str, status: int, headers: Any, answer: Any, advice: str) -> _Failed:
    try:
        pause = max(0.0, float(headers.get('Retry-After') or 0))
    except ValueError:
        pause = 0.0
    if not isinstance(answer, dict) or 'code' not in answer:
        # Not boardd's words: something stands between.
        return _Failed(errors.BoarddError('UNAVAILABLE', method, 'HTTP status %d' % status), False, True, pause)
    for detail in answer.get('details') or []:
        said = detail.get('debug') if detail.get('type') == 'boardd.v1.Error' else None
        if said and said.get('code'):
            kind = said['code']
            changed = 'unknown' if kind in ('INTERRUPTED', 'INTERNAL') else ''
            message = said.get('message') or answer.get('message') or ''
            error = errors.BoarddError(kind, method, _advised(kind, message, advice), owner=said.get('owner') or None, field=said.get('field') or None, changed=changed)
            return _Failed(error, True, True, pause)
    kind = errors.OF_CONNECT.get(answer['code'], 'INTERNAL')
    error = errors.BoarddError(kind, method, _advised(kind, answer.get('message') or '', advice))
    return _Failed(error, kind not in _DOUBTFUL, True, pause)


def _advised(kind: str, message: str, advice: str) -> str:
    return message + advice if kind == 'UNAUTHENTICATED' else message


def _in_doubt(error: errors.BoarddError, unsure: bool) -> errors.BoarddError:
    """Of a call of which an earlier try may have made the change, that a later
    one was refused says nothing of it."""
    if not unsure or error.changed == 'unknown':
        return error
    return errors.BoarddError('OUTCOME_UNKNOWN', error.op,
                              'the answer to a try was lost, which may have done it: %s' % error, job=error.job)


def _check_token(token: str) -> None:
    """Refuses what is no token, without saying what it is."""
    if not all('!' <= c <= '~' for c in token):
        raise errors.BoarddError('INVALID', 'Client', 'token: want one line without blanks, as boardd token create'
                                 ' prints it; it has other characters')


def _address(text: str) -> address.Address:
    try:
        return address.given(text)
    except ValueError:
        wrong = 'addr: want http://HOST:PORT or https://HOST:PORT, got %r' % text
        raise errors.BoarddError('INVALID', 'Client', wrong) from None


def doubled(attempt: int, first: float, most: float) -> float:
    """A pause that doubles with each attempt from 0 on, up to the most."""
    return min(most, first * float(2 ** min(attempt, 40)))


def backoff(attempt: int, first: float, most: float) -> float:
    """The same, with up to a half taken off by chance, so that many clients
    don't come back at the same moment."""
    return doubled(attempt, first, most) * random.uniform(0.5, 1.0)


from boardd import board  # noqa: E402  (each knows the other)
