"""The claims that this process holds.

TaskFlow knows a holder by its name alone; boardd wants the claim's token. A
token is found again by the job's object that was claimed, and, where another
object of the same job is used (of another listing, perhaps of another
jobboard object in this process), by board and job here.
"""

import threading
import time

from boardd import forking

#: How long a claim is remembered after it has run out, in seconds: its holder
#: may come and ask.
_MEMORY = 600.0


class Claim(object):
    """One claim: a token, and until when it is good.

    Times are of this machine's monotonic clock, counted from before the call
    that granted them, so that a claim is never thought to last longer than it
    does.
    """

    def __init__(self, answer, asked_at, lease):
        self.uuid = answer['uuid']
        self.owner = answer['owner']
        self.token = answer['token']
        self.kept = False  # whether it is extended in the background
        self.ending = False  # its holder is about to end it, or has
        self.over = False  # this program has given it back by the clock
        self.lost = False
        self.ends = None  # when this program gives it back by itself
        self.extended(asked_at, lease)

    def extended(self, asked_at, lease):
        self.lease = lease
        self.deadline = (float('inf') if lease is None
                         else asked_at + lease)

    def ref(self):
        """What requests call it."""
        return {'uuid': self.uuid, 'owner': self.owner, 'token': self.token}

    def left(self):
        """Returns the seconds that it is still good for."""
        deadline = self.deadline
        if self.ends is not None:
            deadline = min(deadline, self.ends)
        return max(0.0, deadline - time.monotonic())


class Registry(object):
    """The claims of this process by board and job."""

    def __init__(self):
        self._claims = {}
        self._limit = 1000  # at which to look for those that are long over
        self.after_fork()
        forking.watch(self)

    def after_fork(self):
        self._lock = threading.Lock()

    def add(self, board, claim):
        with self._lock:
            self._claims[(board, claim.uuid)] = claim
            if len(self._claims) > self._limit:
                old = time.monotonic() - _MEMORY
                self._claims = {k: c for k, c in self._claims.items()
                                if c.deadline > old}
                self._limit = max(1000, 2 * len(self._claims))

    def get(self, board, uuid):
        with self._lock:
            return self._claims.get((board, uuid))

    def remove(self, board, claim):
        with self._lock:
            if self._claims.get((board, claim.uuid)) is claim:
                del self._claims[(board, claim.uuid)]


#: The one registry of this process.
held = Registry()
