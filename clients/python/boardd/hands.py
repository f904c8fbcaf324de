"""The claims that a worker has in hand."""

import time
from typing import Any, Callable, List, Optional, Sequence, Set, Union

from boardd import client
from boardd import errors
from boardd import transport
from boardd.board import Board
from boardd.messages import Claim, Json, parse_seconds
from boardd.turns import Alarm, Turns

#: The part of a lease during which its holder may act: the rest is for what a
#: clock gains, and for the handler to stop.
_TRUST = 0.9

#: How long before the end of a job's timeout its handler is told to stop, in
#: seconds; at most an eighth of the timeout.
_TIME_TO_STOP = 15.0

_BATCH = 1000  # claims in one call


class Hand:
    """One claim in hand. ``fate`` is "in hand"; or "doubted", when nothing was
    heard in time; or "gone", when the server said so."""

    def __init__(self, claim: Claim, since: float) -> None:
        self.claim = claim
        self.since = since  # from when the lease counts
        self.lease = parse_seconds(claim.get('lease', ''))  # 0: it does not expire
        self.fate = 'in hand'
        self.stopping = False
        self.late = False
        self.canceled = False
        self.done = False  # the handler has returned
        self.heard: Optional[float] = None  # of something that may have ended it; None: the server was asked since
        self.expiry: Optional[Alarm] = None
        self.limit: Optional[Alarm] = None
        self.task: Any = None
        self.cause: Optional[errors.Over] = None  # the first one

    def over(self, cause: errors.Over) -> None:
        """Tells the handler why what it still does is for nothing."""
        self.cause = self.cause or cause
        if self.task is not None:  # or it has not begun
            self.task._end(cause)


class Hands:
    """Extends leases, and tells the handlers of claims that it can't be sure
    of any longer. Everything here is called by the thread that decides."""

    def __init__(self, turns: Turns, board: Board, lease: Optional[float], timeout: Optional[float],
                 warn: Callable[[str], None]) -> None:
        self.all: Set[Hand] = set()
        self.cut = transport.Cut()
        self._turns = turns
        self._board = board
        self._lease = lease
        self._timeout = timeout
        self._warn = warn
        self._alarm = Alarm(turns, self._extend_due)
        self._extending = False
        self._failed = 0
        self._not_before = 0.0

    def add(self, claim: Claim, sent: float) -> Hand:
        """Takes a claim in hand that was asked for at a time."""
        hand = Hand(claim, sent)
        self.all.add(hand)
        if hand.lease > 0:
            hand.expiry = Alarm(self._turns, lambda: self._lose(hand, 'doubted', 'the lease could not be extended in time'))
            if time.monotonic() >= sent + hand.lease * _TRUST:
                self._lose(hand, 'doubted', 'the claim was granted too late to be used')
            else:
                hand.expiry.set(sent + hand.lease * _TRUST)
        self._schedule()
        return hand

    def begin(self, hand: Hand) -> None:
        """Notes that the handler of a claim starts."""
        ends = []
        if self._timeout is not None:
            ends.append(time.monotonic() + self._timeout)
        whole = parse_seconds(hand.claim.get('job', {}).get('timeout', ''))
        if whole > 0:  # which counts from the claim; at its end the server takes the claim away
            ends.append(hand.since + whole - min(whole / 8, _TIME_TO_STOP))
        if ends:
            hand.limit = Alarm(self._turns, lambda: self._time_out(hand))
            hand.limit.set(min(ends))

    def finished(self, hand: Hand) -> None:
        """Notes that the handler has returned: from now on the worker itself
        ends the claim."""
        hand.done = True
        hand.heard = None
        if hand.limit is not None:
            hand.limit.clear()

    def remove(self, hand: Hand) -> None:
        self.all.discard(hand)
        for alarm in (hand.expiry, hand.limit):
            if alarm is not None:
                alarm.drop()
        self._schedule()

    def stop_all(self) -> None:
        for hand in self.all:
            hand.stopping = True
            hand.over(errors.Stopping('the worker stops'))

    def refuse(self, error: errors.BoarddError) -> None:
        """The server accepts nothing more from this worker: the claims are
        useless, though their leases last."""
        for hand in self.all:
            self._lose(hand, 'gone', 'the server refuses this worker: %s' % error)

    def leave(self) -> None:
        """Nobody keeps the claims any more."""
        for hand in self.all:
            self._lose(hand, 'doubted', 'the worker has ended')

    def check_all(self) -> None:
        """Asks about every claim: a notice may have been missed."""
        for hand in self.all:
            self._ask(hand)

    def notice(self, notice: Json) -> None:
        for hand in self.all:
            known = hand.claim['token'] == notice['token']
            if hand.done or hand.claim['uuid'] != notice['uuid'] or not known and notice['token']:
                continue
            if known and notice['what'] == 'CANCEL':
                self._cancel(hand)
            elif known and notice['what'] == 'LOST':
                self._lose(hand, 'gone', 'the claim ended: %s' % notice['reason'])
            else:
                self._ask(hand)  # a hint: the extension decides

    def _ask(self, hand: Hand) -> None:
        if not hand.done and not hand.canceled and hand.lease > 0:
            hand.heard = time.monotonic()
            self._schedule()

    def _cancel(self, hand: Hand) -> None:
        hand.canceled = True
        hand.over(errors.CancelRequested('the job is to be canceled'))

    def _time_out(self, hand: Hand) -> None:
        if hand.fate == 'in hand':
            hand.late = True
            hand.over(errors.TimedOut('the handler has run for as long as it may'))

    def _lose(self, hand: Hand, fate: str, why: str) -> None:
        if hand.fate == 'in hand':
            hand.fate = fate
            hand.over(errors.LeaseLost(why))

    def _schedule(self) -> None:
        """Sets the alarm to when the first lease has used a third of itself."""
        if self._extending:
            return  # which comes back here
        due = [0.0 if h.heard is not None else h.since + h.lease / 3
               for h in self.all if h.lease > 0 and h.fate == 'in hand']
        if due:
            self._alarm.set(max(min(due), self._not_before))
        else:
            self._alarm.clear()

    def _extend_due(self) -> None:
        """Extends every lease that is due, and those that soon will be."""
        now = time.monotonic()
        due = [h for h in self.all if h.lease > 0 and h.fate == 'in hand'
               and (h.heard is not None or now >= h.since + h.lease / 6)]
        if not due:
            self._schedule()
            return
        self._extending = True
        # A call that hangs must leave time for another one.
        within = min([60.0] + [h.lease / 4 for h in due])
        self._extend(due, within, True)

    def _extend(self, due: List[Hand], within: float, well: bool) -> None:
        batch, rest = due[:_BATCH], due[_BATCH:]
        sent = time.monotonic()

        def then(results: Any, error: Optional[BaseException]) -> None:
            fine = self._extended(batch, sent, results, error) and well
            if rest:
                self._extend(rest, within, fine)
                return
            self._failed = 0 if fine else self._failed + 1
            self._not_before = 0.0 if fine else time.monotonic() + client.backoff(self._failed - 1, 0.1, 1.0)
            self._extending = False
            self._schedule()
        claims = [h.claim for h in batch]
        self._turns.go(lambda: self._board.extend(claims, self._lease, within=within, cut=self.cut), then)

    def _extended(self, batch: Sequence[Hand], sent: float, results: Sequence[Union[Json, errors.BoarddError]],
                  error: Optional[BaseException]) -> bool:
        """Returns whether no other try is due."""
        if error is not None:
            if isinstance(error, errors.BoarddError) and error.kind in ('UNAUTHENTICATED', 'PERMISSION_DENIED', 'NOT_FOUND'):
                self.refuse(error)
                return True
            if not isinstance(error, errors.BoarddError) or not error.retryable:  # otherwise the server was away, which is told once
                self._warn('extending %d leases failed: %s' % (len(batch), error))
            return False
        return all([self._extended_one(hand, sent, result) for hand, result in zip(batch, results)])

    def _extended_one(self, hand: Hand, sent: float, result: Union[Json, errors.BoarddError]) -> bool:
        if isinstance(result, errors.BoarddError):
            if result.kind in ('LEASE_LOST', 'NOT_FOUND', 'NOT_OWNER', 'NOT_CLAIMED'):
                self._lose(hand, 'gone', 'the claim ended: %s' % result)
                return True
            if not result.retryable:
                self._warn('extending the lease of job %s failed: %s' % (hand.claim['uuid'], result))
            return False  # the lease stands as it was: there is time for another try
        if hand.heard is not None and hand.heard <= sent:
            hand.heard = None
        hand.since = sent
        hand.lease = parse_seconds(result.get('lease', ''))
        if hand.expiry is not None and hand in self.all:
            if hand.lease <= 0:
                hand.expiry.clear()
            elif hand.fate == 'in hand':
                hand.expiry.set(sent + hand.lease * _TRUST)
        if result.get('cancelRequested') and not hand.done:
            self._cancel(hand)
        return True
