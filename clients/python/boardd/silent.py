"""Servers that have stopped answering.

A server whose process is stopped keeps its connections, so that a call to it
would be waited for as long as any. Among several servers it is therefore asked
whether it is alive: AFTER seconds after a call began that asks for no wait, and
every AGAIN seconds while calls are under way. With no answer within FOR seconds
all calls to it fail at once, and are made at the next server.
"""

import threading
import time
from typing import Callable, Set

AFTER = 2.0
AGAIN = 10.0
FOR = 3.0


class Attended:
    """A call that was not answered yet.

    :param fail: breaks its connection
    """

    def __init__(self, due: float, fail: Callable[[], None]) -> None:
        self.due = due  # when the server is asked because of it
        self.silent = False  # the server has stopped answering
        self.fail = fail


class Ear:
    """Listens to one server while calls to it are under way, in a thread.

    :param alive: asks the server for a sign of life, for FOR seconds at most
    :param leave: is called when there was none
    """

    def __init__(self, alive: Callable[[], bool], leave: Callable[[], None]) -> None:
        self._alive = alive
        self._leave = leave
        self._lock = threading.Lock()
        self._calls: Set[Attended] = set()
        self._listening = False
        self._closed = threading.Event()

    def listen(self, waits: bool, fail: Callable[[], None]) -> Attended:
        """Attends to a call until answered() is called.

        :param waits: whether it asks the server to wait
        """
        call = Attended(time.monotonic() + (AGAIN if waits else AFTER), fail)
        with self._lock:
            self._calls.add(call)
            begin, self._listening = not self._listening, True
        if begin:
            threading.Thread(target=self._listen, name='boardd-ear', daemon=True).start()
        return call

    def answered(self, call: Attended) -> None:
        with self._lock:
            self._calls.discard(call)

    def close(self) -> None:
        """Ends the thread: calls are not attended to any more."""
        self._closed.set()

    def _listen(self) -> None:
        while not self._closed.wait(AFTER):
            with self._lock:
                if not self._calls:
                    self._listening = False
                    return
                due = min(call.due for call in self._calls)
            if time.monotonic() >= due:
                self._look()

    def _look(self) -> None:
        alive = self._alive()
        if not alive:
            self._leave()  # first: what fails is made again at once
        again = time.monotonic() + AGAIN
        with self._lock:
            for call in self._calls:
                call.due = again
                if not alive:
                    call.silent = True
                    call.fail()
