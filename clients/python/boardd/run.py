"""One run of a worker, whatever runs its handlers.

Two calls of Work are under way at most: a trip, which brings endings and comes
back with claims, and a wait, which stands in line for claims, or for notices
alone where every handler is busy. Leases are extended by calls of their own,
so that a trip that hangs costs no claim. One thread decides; each call has a
thread of its own, which tells that one what came of it.
"""

import os
import socket
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from boardd import client
from boardd import errors
from boardd import outage
from boardd import transport
from boardd.board import Board, new_uuid
from boardd.ending import Conclusion, conclude, reason_of, unbegun
from boardd.hands import Hand, Hands
from boardd.messages import Claim, Json, parse_seconds, seconds
from boardd.turns import Alarm, Turns

_HUSH = 0.1  # before it waits for notices alone: most jobs end sooner than one comes
_MOST = 1000  # items in one call, and claims that it asks for
_PRESENCE = 180.0  # for which the worker is listed after it was last heard of
_SHORTLY = 1.0  # what stands for "no more"
_FOR_GOOD = ('UNAUTHENTICATED', 'PERMISSION_DENIED', 'NOT_FOUND')


class Report(NamedTuple):
    """How one job ended: CONSUMED, TRASHED, ABANDONED, CANCELED, or LOST, when
    the claim ended before the worker could end it."""

    claim: Claim
    ending: str
    error: Optional[BaseException]  # what the handler raised, or why the claim was lost


class Options:
    """What a worker is made of; see :py:class:`boardd.Worker`."""

    def __init__(self, board: Board, owner: str, names: Sequence[str], filter: str, labels: Optional[Dict[str, str]],
                 concurrency: int, lease: Optional[float], timeout: Optional[float], version: str,
                 max_jobs: Optional[int], until_empty: bool, report: Optional[Callable[[Report], None]],
                 warn: Optional[Callable[[str], None]]) -> None:
        if concurrency < 1:
            raise errors.BoarddError('INVALID', 'Worker', 'concurrency: want a whole number from 1 on, got %r' % concurrency)
        self.board = board
        self.owner = owner
        self.names = list(names)
        self.filter = filter
        self.labels = dict(labels or {})
        self.concurrency = concurrency
        self.lease = lease
        self.timeout = timeout
        self.version = version
        self.max_jobs = max_jobs
        self.until_empty = until_empty
        self.reports = report is not None
        self.report = _guarded('report', report)
        self.warn = _guarded('warn', warn or outage.log.warning)


def _guarded(name: str, told: Optional[Callable[[Any], None]]) -> Callable[[Any], None]:
    """Calls a function of the program's, whose failure must not take the claims
    in hand with it: it is logged."""
    def call(what: Any) -> None:
        try:
            if told is not None:
                told(what)
        except Exception:
            outage.log.exception("the worker's function %r failed; the worker goes on", name)
    return call


class _Delivery(NamedTuple):
    ending: Json
    done: Callable[[Optional[errors.BoarddError]], None]
    alone: bool = False  # it is brought by a trip of its own


class _Wait:
    def __init__(self, asked: int, busy: bool, left: int, request: Json) -> None:
        self.asked = asked
        self.busy = busy  # claims were in hand as it was sent
        self.left = left  # claims that had been ended then
        self.request = request
        self.cut = transport.Cut()


class Run:
    """:param start: begins the handler of a hand, and calls what it is given
                  with what the handler raised, in any thread
    """

    def __init__(self, options: Options,
                 start: Callable[[Hand, Callable[[Optional[BaseException]], None]], None]) -> None:
        self._o = options
        self._start = start
        self._turns = Turns(self._decide)
        self._hands = Hands(self._turns, options.board, options.lease, options.timeout, options.warn)
        self._outage = outage.Outage(options.warn)
        self._over = transport.Cut()  # of everything in the background
        self._outbox: List[_Delivery] = []
        self._free = options.concurrency  # handlers that may start
        self._reserved = 0  # claims that calls under way ask for
        self._started = 0
        self._left = 0  # claims that were ended
        self._trip = False  # one is under way
        self._wait: Optional[_Wait] = None
        self._quiet = Alarm(self._turns, self._hush)
        self._again = Alarm(self._turns, lambda: None)
        self._hushed = False  # it is time to wait for notices alone
        self._retry_at = 0.0
        self._failed = 0  # waits in a row
        self._missed = False  # notices, perhaps
        self._dry = False  # nothing to claim until a claim in hand has ended
        self._learned = False
        self._closing = False  # it claims no more
        self._off = False  # the server said that it may not
        self._lease = options.lease or 0.0  # asked for or the board's; 0: not known, or none
        self._backs_off = False  # the board does
        self._finished = False  # it starts no handler any more
        self._error: Optional[errors.BoarddError] = None

    def work(self) -> None:
        """Works until it is over, in this thread."""
        shown = threading.Thread(target=self._show, name='boardd-presence', daemon=True)
        self._learn(0)
        interrupted: Optional[BaseException] = None
        self._quiet.set(time.monotonic() + _HUSH)
        shown.start()
        try:
            while True:
                try:
                    self._turns.run(self._is_over)
                    break
                except KeyboardInterrupt as e:
                    if interrupted is not None:
                        raise  # whoever insists gets no farewell
                    interrupted = e
                    self.stop()
        finally:
            for cut in (self._over, self._hands.cut):
                cut.cut()
            self._hands.leave()
            if self._wait is not None:
                self._wait.cut.cut()
            self._turns.join()
            shown.join()
        if interrupted is not None:
            raise interrupted
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Claims no more, tells the handlers, and gives back what has not
        begun. Any thread may call it, and a signal's handler."""
        self._turns.put(self._stop)

    def _stop(self) -> None:
        self._closing = True
        self._hands.stop_all()
        if self._wait is not None:
            self._wait.cut.cut()

    def _is_over(self) -> bool:
        return self._finished and not self._hands.all and not self._trip

    def _learn(self, failed: int) -> None:
        """Asks for the board's lease and back-off."""
        def then(answer: Any, error: Optional[BaseException]) -> None:
            if error is None:
                board = answer.message['board']
                self._backs_off = parse_seconds(board.get('backoff', '')) > 0
                self._lease = self._lease or parse_seconds(board.get('lease', ''))
            elif isinstance(error, errors.BoarddError) and error.retryable:
                if not self._closing:
                    self._refused_for_now(failed, error)
                    again = Alarm(self._turns, lambda: self._learn(failed + 1))
                    again.set(time.monotonic() + client.backoff(failed, 0.5, 30.0))
                return
            elif not isinstance(error, errors.BoarddError) or error.kind != 'PERMISSION_DENIED':
                self._finish(_as_error(error))
                return
            self._learned = True  # or the token is narrow: claims tell their lease
        request = {'board': self._o.board.name}
        self._turns.go(lambda: self._o.board.client.call('GetBoard', request, cut=self._over, tried=self._outage.tried), then)

    def _show(self) -> None:
        """Keeps the worker among those who work on the board. No claim
        depends on it."""
        o = self._o
        metadata = {'labels': o.labels, 'names': o.names, 'filter': o.filter, 'concurrency': o.concurrency,
                    'host': socket.gethostname(), 'pid': os.getpid(), 'version': o.version}
        request: Json = {'board': o.board.name, 'entity': {'kind': 'worker', 'name': o.owner, 'metadata': metadata}}
        failed = 0
        while not self._over.done:
            pause = _PRESENCE / 3
            try:
                o.board.client.call('RegisterEntity', dict(request, ttl=seconds(_PRESENCE)), cut=self._over)
                failed = 0
            except errors.BoarddError as e:
                if not e.retryable:
                    return
                failed += 1
                pause = client.backoff(failed - 1, 1.0, pause)
            self._over.wait(pause)
        try:  # unheard, it runs out by itself
            o.board.client.call('RegisterEntity', dict(request, ttl=seconds(_SHORTLY)), within=1.0)
        except errors.BoarddError:
            pass

    def _hush(self) -> None:
        self._hushed = True

    def _claimable(self) -> int:
        """How many claims may be asked for now."""
        if self._closing or len(self._outbox) > 4 * self._o.concurrency + 256:
            return 0
        n = self._free - self._reserved
        if self._o.max_jobs is not None:
            n = min(n, self._o.max_jobs - self._started - self._reserved)
        return max(0, min(n, _MOST))

    def _decide(self) -> None:
        """Sends what there is to send."""
        if self._outbox and not self._trip:
            self._send_trip()
        n = self._claimable() if self._learned else 0
        if not self._off and time.monotonic() >= self._retry_at:
            if self._wait is None and not self._trip and n > 0 and not self._dry:
                self._send_wait(n)
            elif self._wait is None and self._hushed and self._hands.all:
                self._send_wait(0)
            elif self._wait is not None and not self._wait.asked and not self._trip and n > 0 and not self._dry:
                self._wait.cut.cut()
        if self._o.max_jobs is not None and self._started >= self._o.max_jobs:
            self._closing = True
        if self._closing and not self._trip and (self._wait is None or not self._wait.asked):
            self._finish(None)

    def _finish(self, error: Optional[errors.BoarddError]) -> None:
        """Starts no handler any more."""
        if not self._finished:
            self._closing, self._finished, self._error = True, True, error

    def _request(self, max: int, endings: Sequence[Json] = ()) -> Json:
        o = self._o
        request: Json = {'board': o.board.name, 'owner': o.owner, 'names': o.names, 'filter': o.filter,
                         'workerLabels': o.labels, 'max': max, 'endings': list(endings)}
        if max > 0:
            request['requestId'] = new_uuid()
        if o.lease is not None:
            request['lease'] = seconds(o.lease)
        return request

    def _send_trip(self) -> None:
        n = 1 if self._outbox[0].alone else _MOST
        brought, self._outbox = self._outbox[:n], self._outbox[n:]
        asked = self._claimable()
        request = self._request(asked, [d.ending for d in brought])
        sent = time.monotonic()
        self._trip = True
        self._reserved += asked

        def then(answer: Any, error: Optional[BaseException]) -> None:
            self._trip = False
            self._reserved -= asked
            if error is not None:
                failed = _as_error(error)
                if failed.kind == 'INVALID' and len(brought) > 1:  # perhaps one of them alone
                    self._outbox = [d._replace(alone=True) for d in brought] + self._outbox
                    return
                self._missed = True
                for delivery in brought:
                    delivery.done(failed)
                if failed.kind in _FOR_GOOD:
                    self._refused(failed)
                return
            for delivery, ended in zip(brought, answer.message['ended']):
                refused = ended.get('error')
                delivery.done(errors.refused_later(errors.of_item('Work', ended['uuid'], refused), answer.unsure)
                              if refused else None)
            self._make_up(answer.tries)
            self._take(answer.message, sent)
        self._turns.go(lambda: self._o.board.client.call('Work', request, cut=self._over, tried=self._outage.tried), then)

    def _send_wait(self, asked: int) -> None:
        busy = bool(self._hands.all or self._trip or self._outbox)
        wait = _Wait(asked, busy, self._left, self._request(asked))
        # A lease counts from before the call, so that a third of it at most may go by unused.
        patience = min(30.0, self._lease / 3) if self._lease > 0 else 5.0
        if asked and self._o.until_empty:
            patience = 0.0
        sent = time.monotonic()
        self._wait = wait
        self._reserved += asked

        def call() -> Any:
            board = self._o.board
            try:
                return board.client.call('Work', wait.request, wait=patience, cut=wait.cut, tried=self._outage.tried)
            except errors.BoarddError:
                if not wait.cut.done or not asked:
                    raise
            # It was called off, and may have been given claims: nobody else would have these until their leases ran out.
            return board.client.call('Work', wait.request, within=5.0, cut=self._over)

        def then(answer: Any, error: Optional[BaseException]) -> None:
            self._wait = None
            self._reserved -= asked
            self._hushed = False
            self._quiet.set(time.monotonic() + _HUSH)
            if error is None:
                self._answered(wait, answer, sent)
            elif not wait.cut.done:
                self._wait_failed(_as_error(error))
            else:  # an answer may have been on its way
                self._missed = True
        self._turns.go(call, then)

    def _answered(self, wait: _Wait, answer: 'client.Answer', sent: float) -> None:
        self._failed = 0
        self._make_up(answer.tries)
        self._take(answer.message, sent)
        if not self._o.until_empty or not wait.asked or answer.message['claims']:
            return
        # A handler may give its job back, or post another, before it is done.
        self._dry = self._left == wait.left
        if not wait.busy:
            self._finish(None)

    def _make_up(self, tries: int) -> None:
        """Asks about every claim where the answer to an earlier call, or to an earlier
        try of this one, was lost: there may have been notices in it."""
        if self._missed or tries > 1:
            self._hands.check_all()
        self._missed = False

    def _wait_failed(self, error: errors.BoarddError) -> None:
        if not error.retryable:
            self._refused(error)
        elif not self._closing:
            pause = client.backoff(self._failed, 0.5, 30.0)
            self._failed += 1
            self._missed = True
            self._refused_for_now(self._failed - 1, error)
            self._retry_at = time.monotonic() + pause
            self._again.set(self._retry_at)

    def _refused_for_now(self, failed: int, error: errors.BoarddError) -> None:
        """Says, of the first try of some that fail in a row, that the server
        answers and refuses for now: the others fail as it is away."""
        if failed == 0 and error.kind in ('QUOTA_EXCEEDED', 'INTERNAL'):
            self._o.warn('the server refuses for now; the worker goes on trying: %s' % error)

    def _refused(self, error: errors.BoarddError) -> None:
        """The server says for good that it may not work."""
        self._off = True
        if error.kind == 'UNAUTHENTICATED':
            self._hands.refuse(error)
        self._finish(error)

    def _take(self, answer: Json, sent: float) -> None:
        """Begins with claims, or gives them back where it is too late for that."""
        for notice in answer['notices']:
            self._hands.notice(notice)
        for claim in answer['claims']:
            hand = self._hands.add(claim, sent)
            if self._closing:
                self._give_back(hand)
                continue
            self._lease = hand.lease or self._lease
            self._started += 1
            self._free -= 1
            self._hands.begin(hand)
            self._start(hand, lambda error, hand=hand: self._turns.put(lambda: self._returned(hand, error)))  # type: ignore[misc]

    def _returned(self, hand: Hand, error: Optional[BaseException]) -> None:
        self._hands.finished(hand)
        self._free += 1
        end = conclude(hand, error, self._backs_off)
        if end.message is None:
            self._let_go(hand, error)
            return
        until = time.monotonic() + max(30.0, hand.since + hand.lease - time.monotonic())
        self._insist(hand, end, error, until, 0)

    def _insist(self, hand: Hand, end: Conclusion, error: Optional[BaseException], until: float, failed: int) -> None:
        """Repeats the end of a claim until the server has taken it or refused
        it for good. The lease is extended meanwhile."""
        def done(refused: Optional[errors.BoarddError]) -> None:
            pause = client.backoff(failed, 0.05, 2.0)
            if refused is not None and refused.retryable and time.monotonic() + pause <= until:
                again = Alarm(self._turns, lambda: self._insist(hand, end, error, until, failed + 1))
                again.set(time.monotonic() + pause)
                return
            self._ended(hand, end.ending if refused is None else 'LOST', error if refused is None else refused)
        assert end.message is not None
        self._outbox.append(_Delivery(end.message, done))

    def _let_go(self, hand: Hand, error: Optional[BaseException]) -> None:
        """Gives back a claim that this machine could not keep up, though the
        server may still count on it. It is a courtesy: the lease ends anyway."""
        if hand.fate != 'doubted':
            self._ended(hand, 'LOST', error)
            return
        reason = reason_of(error) if error is not None else ''
        self._turns.go(lambda: self._o.board.abandon(hand.claim, reason=reason, refund_attempt=True, within=5.0),
                       lambda _answer, _error: self._ended(hand, 'LOST', error))

    def _ended(self, hand: Hand, ending: str, error: Optional[BaseException]) -> None:
        self._removed(hand)
        if not self._o.reports:
            outage.failed(hand.claim, ending, error, hand.stopping)
        self._o.report(Report(hand.claim, ending, error))

    def _removed(self, hand: Hand) -> None:
        self._hands.remove(hand)
        self._left += 1
        self._dry = False

    def _give_back(self, hand: Hand) -> None:
        """Gives back a claim whose handler has not begun."""
        self._hands.finished(hand)
        self._outbox.append(_Delivery(unbegun(hand), lambda _refused: self._removed(hand)))


def _as_error(error: Optional[BaseException]) -> errors.BoarddError:
    if isinstance(error, errors.BoarddError):
        return error
    return errors.BoarddError('INTERNAL', 'Work', repr(error), changed='unknown')
