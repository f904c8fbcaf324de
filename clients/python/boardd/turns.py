"""One thread that decides, and others that tell it what happened."""

import heapq
import itertools
import queue
import threading
import time
from typing import Any, Callable, List, Optional, Tuple


class Alarm:
    """Calls a function once, at a time that may be moved."""

    def __init__(self, turns: 'Turns', ring: Callable[[], None]) -> None:
        self._turns = turns
        self.ring = ring
        self.at: Optional[float] = None

    def set(self, at: float) -> None:
        self.at = at
        self._turns.remember(self, at)

    def clear(self) -> None:
        self.at = None

    def drop(self) -> None:
        """Clears it for good: what it would call is not kept."""
        self.at = None
        self.ring = _nothing


def _nothing() -> None:
    pass


class Turns:
    """Runs what happened in the one thread that calls :py:meth:`run`, so that
    what it decides by needs no lock. Times are of the monotonic clock."""

    def __init__(self, after_each: Callable[[], None]) -> None:
        # Unlike Queue's, its put may be called by a signal's handler.
        self._happened: 'queue.SimpleQueue[Callable[[], None]]' = queue.SimpleQueue()
        self._alarms: List[Tuple[float, int, Alarm]] = []
        self._numbers = itertools.count()
        self._after_each = after_each
        self._threads: List[threading.Thread] = []

    def put(self, turn: Callable[[], None]) -> None:
        """Has a turn taken soon. Any thread may call it."""
        self._happened.put(turn)

    def go(self, what: Callable[[], Any], then: Callable[[Any, Optional[BaseException]], None]) -> None:
        """Does something in a thread of its own, and takes what came of it as a turn."""
        def thread() -> None:
            try:
                result = what()
            except BaseException as e:
                error = e  # the name ends with the block
                self.put(lambda: then(None, error))
            else:
                self.put(lambda: then(result, None))
        started = threading.Thread(target=thread, name='boardd-call', daemon=True)
        started.start()
        self._threads = [t for t in self._threads if t.is_alive()] + [started]

    def remember(self, alarm: Alarm, at: float) -> None:
        heapq.heappush(self._alarms, (at, next(self._numbers), alarm))

    def run(self, done: Callable[[], bool]) -> None:
        """Takes turns until it is done."""
        while not done():
            turn = self._next()
            if turn is not None:
                turn()
            self._after_each()

    def join(self) -> None:
        """Waits for the threads of calls, which somebody has cut."""
        for thread in self._threads:
            thread.join()

    def _next(self) -> Optional[Callable[[], None]]:
        now = time.monotonic()
        while self._alarms and self._alarms[0][0] <= now:
            at, _, alarm = heapq.heappop(self._alarms)
            if alarm.at == at:  # it was not moved meanwhile
                alarm.at = None
                return alarm.ring
        wait = min(self._alarms[0][0] - now, 3600.0) if self._alarms else 3600.0
        try:
            return self._happened.get(timeout=wait)
        except queue.Empty:
            return None
