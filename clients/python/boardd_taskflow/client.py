"""Calls of boardd's API, repeated where that is safe."""

import email.utils
import json
import random
import threading
import time

from boardd import transport

from boardd_taskflow import failures

_PATH = '/boardd.v1.BoardService/'

#: The longest single wait that a server is asked for, in seconds. It grants a
#: minute; less keeps connections through middle boxes alive.
MAX_WAIT = 30.0

#: The shortest time that one attempt gets, in seconds.
_MIN_ATTEMPT = 1.0


class Client(object):
    """One board of one server."""

    def __init__(self, options):
        self.board = options.board_name
        self._options = options
        self._transport = transport.Transport(
            options.addresses, options.connect_timeout, options.ca_file,
            options.cert_file, options.key_file)
        self._closed = threading.Event()
        self._secret = options.secret()
        self._skew = None  # the server's clock less ours, in seconds

    def close(self):
        self._closed.set()
        self._transport.close()

    def now(self):
        """Returns the server's time of day, to about a second."""
        return time.time() + (self._skew or 0.0)

    def pause(self, seconds):
        """Sleeps; returns whether the client was closed meanwhile."""
        return self._closed.wait(seconds)

    def call(self, method, message=None, wait=0.0, item=None,
             repeatable=True, within=None):
        """Returns the answer of a call.

        What fails in a way that may pass is repeated, for as long as the
        option ``timeout`` says, with the same message: so that it is the same
        posting, the same claim, the same token.

        :param wait: seconds for which the server may hold the answer
        :param item: picks the error of the one item, if there is one, out of
                     the answer
        :param repeatable: whether doing it twice is the same as once
        :param within: seconds instead of the option ``timeout``
        """
        budget = self._options.timeout if within is None else within
        end = time.monotonic() + budget + wait
        attempt = max(min(_MIN_ATTEMPT, budget), budget / 3.0)
        body = dict(message or {}, board=self.board)
        if wait > 0:
            body['wait'] = seconds(wait)
        data = json.dumps(body, separators=(',', ':')).encode('ascii')
        delays = _delays()
        while True:
            try:
                return self._attempt(method, data, attempt, wait, item,
                                     repeatable)
            except (failures.Broken, failures.Refused) as e:
                delay = next(delays)
                if isinstance(e, failures.Refused) and e.after:
                    delay = max(delay, e.after)
                if (not _may_repeat(e, repeatable) or
                        time.monotonic() + delay > end):
                    raise
                if self.pause(delay):
                    raise failures.Closed()

    def _attempt(self, method, data, timeout, wait, item, repeatable):
        if self._closed.is_set():
            raise failures.Closed()
        try:
            secret = self._secret
            status, headers, answer = self._transport.post(
                _PATH + method, data, self._headers(timeout + wait, secret),
                timeout + wait, fresh=not repeatable, waits=wait > 0)
        except failures.Broken:
            if self._closed.is_set():
                raise failures.Closed()
            raise
        self._note_time(headers)
        if status != 200:
            raise self._refused(status, headers, answer, secret)
        try:
            answer = json.loads(answer)
        except ValueError as e:
            raise failures.Broken("the answer is no JSON: %s" % e, sent=True)
        error = item(answer) if item is not None else None
        if error:
            raise failures.Refused.of_item(error)
        return answer

    def _headers(self, deadline, secret):
        headers = {
            'Content-Type': 'application/json',
            'Connect-Protocol-Version': '1',
            'Connect-Timeout-Ms': str(int(deadline * 1000)),
        }
        if secret:
            headers['Authorization'] = 'Bearer ' + secret
        return headers

    def _refused(self, status, headers, answer, secret):
        try:
            error = json.loads(answer)
            code, message = error['code'], error.get('message') or ''
        except (ValueError, KeyError, TypeError):
            # Not boardd's words: something stands between.
            return failures.Broken("HTTP status %d" % status, sent=True)
        after = None
        if code == 'resource_exhausted':
            try:
                after = float(headers.get('Retry-After', ''))
            except ValueError:
                after = 1.0
        elif code == 'unauthenticated' and self._renew_secret(secret):
            code, after = 'resource_exhausted', 0.0  # again, with the new
        return failures.Refused(code, message, after=after)

    def _renew_secret(self, refused):
        """Returns whether there is another token than the one that was
        refused. Of several calls that were refused with that one, the first
        finds it in the file."""
        if self._secret != refused:
            return True
        try:
            secret = self._options.secret()
        except (OSError, ValueError):
            return False
        self._secret = secret
        return secret != refused

    def _note_time(self, headers):
        if self._skew is not None:
            return
        try:
            date = email.utils.parsedate_to_datetime(headers.get('Date'))
            self._skew = date.timestamp() + 0.5 - time.time()
        except (TypeError, ValueError, AttributeError):
            pass  # then ours is as good as any


def _may_repeat(e, repeatable):
    if isinstance(e, failures.Broken):
        return repeatable or not e.sent
    if e.code in failures.Refused.UNCHANGED:
        return True
    return repeatable and e.code in failures.Refused.UNKNOWN


def _delays():
    """Yields how long to sleep before each repetition: the first is at once,
    since a kept connection may only have been old."""
    yield 0.0
    delay = 0.05
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, 2.0)


def seconds(value):
    """Writes a duration as requests do."""
    return '%.3fs' % value


def parse_seconds(text):
    """Reads a duration of an answer, None for none."""
    return float(text[:-1]) if text else None
