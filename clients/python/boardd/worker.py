"""A worker whose handlers run in threads."""

import threading
from typing import Any, Callable, Dict, Optional, Sequence

from boardd import errors
from boardd.board import Board
from boardd.ending import new_owner
from boardd.hands import Hand
from boardd.messages import Claim, Job, Json
from boardd.run import Options, Report, Run


class Task:
    """A claim, as its handler has it. What the handler still does is for
    nothing from when :py:attr:`cause` is set."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        #: Why it is over: a LeaseLost, CancelRequested, TimedOut or Stopping;
        #: None while the handler may go on.
        self.cause: Optional[errors.Over] = None

    @property
    def job(self) -> Job:
        return self.claim['job']

    @property
    def uuid(self) -> str:
        return self.claim['uuid']

    @property
    def details(self) -> Json:
        return self.job.get('details') or {}

    def check(self) -> None:
        """Raises the cause, if there is one. Call it as often as there is an
        occasion."""
        if self.cause is not None:
            raise self.cause

    def _end(self, cause: errors.Over) -> bool:
        """Notes the first cause; returns whether it was that."""
        if self.cause is not None:
            return False
        self.cause = cause
        return True


class ThreadTask(Task):
    """A claim, as a handler in a thread has it."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self._over = threading.Event()

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Sleeps; returns early, and True, when it is over."""
        return self._over.wait(seconds)

    def _end(self, cause: errors.Over) -> bool:
        first = super()._end(cause)
        self._over.set()
        return first


class Worker:
    """Claims jobs of one board, runs a handler on each in a thread, keeps the
    claims alive meanwhile, and ends them by what the handler did:

    - it returns: the job is consumed
    - it raises CancelRequested, or anything once that is the cause: the job is canceled
    - it raises Trash: the job is set aside for a person
    - it raises Retry: the job is given back, and the attempt is refunded
    - it raises anything once TimedOut is the cause: it is given back with the reason "timeout"; the attempt counts
    - it raises anything once Stopping is the cause: it is given back at once, and the attempt is refunded
    - it raises anything else: it is given back, to be tried again after the board's back-off, or where the board sets
      none after 1 s, doubled for each attempt up to 5 min

    The task's cause is set before the claim's lease can run out, and at once when the claim was taken away or the
    worker's token was revoked (LeaseLost); when the job is to be canceled (CancelRequested); when it has run for as
    long as it may (TimedOut); and when the worker stops (Stopping). A job runs at least once: a handler may see one
    again whose claim was lost.

    :param owner: None: a name that no other worker has
    :param names: only jobs of these names
    :param filter: only jobs that it fits: FIELD OP VALUE, joined by AND
    :param labels: describe the worker to the board's policies
    :param concurrency: handlers at the same time
    :param lease: seconds; None: the board's
    :param timeout: seconds for which a handler may run; None: for as long as the job's timeout lets it
    :param version: shown to people
    :param max_jobs: run() returns after so many
    :param until_empty: run() returns when there is nothing to claim and nothing in hand
    :param report: is told how each job ended. None: those that failed, were set aside or lost are logged
    :param warn: is told what passes, such as a server that cannot be reached. None: that is logged

    What is logged goes to the logger ``boardd``, and so to standard error where the program sets nothing.
    """

    def __init__(self, board: Board, handler: Callable[[ThreadTask], Any], *, owner: Optional[str] = None,
                 names: Sequence[str] = (), filter: str = '', labels: Optional[Dict[str, str]] = None,
                 concurrency: int = 1, lease: Optional[float] = None, timeout: Optional[float] = None,
                 version: str = '', max_jobs: Optional[int] = None, until_empty: bool = False,
                 report: Optional[Callable[[Report], None]] = None,
                 warn: Optional[Callable[[str], None]] = None) -> None:
        if not callable(handler):
            raise errors.BoarddError('INVALID', 'Worker', 'handler: want a function of a task, got %r' % (handler,))
        self.owner = owner or new_owner()
        self._handler = handler
        self._options = Options(board, self.owner, names, filter, labels, concurrency, lease, timeout, version,
                                max_jobs, until_empty, report, warn)
        self._run: Optional[Run] = None
        self._stopped = False

    def run(self) -> None:
        """Works until :py:meth:`stop` is called, there is nothing more to do
        by max_jobs or until_empty, or the server refuses the worker for good,
        which is the error then. It returns when every handler has returned,
        and goes on extending their leases until then."""
        run = Run(self._options, self._start)
        self._run = run
        if self._stopped:
            run.stop()
        run.work()

    def stop(self) -> None:
        """Claims no more, tells the handlers, and gives back what they leave
        undone with the attempt refunded. Any thread may call it, and a
        signal's handler."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    def _start(self, hand: Hand, returned: Callable[[Optional[BaseException]], None]) -> None:
        task = hand.task = ThreadTask(hand.claim)
        if hand.cause is not None:
            task._end(hand.cause)

        def thread() -> None:
            try:
                task.check()
                self._handler(task)
            except BaseException as e:  # one bad job must not take the others' claims with it
                returned(e)
            else:
                returned(None)
        threading.Thread(target=thread, name='boardd-job', daemon=True).start()
