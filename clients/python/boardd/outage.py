"""What a worker says by itself."""

import logging
import threading
import time
from typing import Any, Callable, Optional

from boardd import errors
from boardd.ending import reason_of
from boardd.messages import Claim

#: It writes to standard error where the program has set nothing.
log = logging.getLogger('boardd')

# For how long, in seconds, calls may fail without a word: a server that is
# started anew is back by then.
_BLIP = 3.0

_BECAME = {'ABANDONED': 'given back', 'TRASHED': 'set aside', 'LOST': 'left alone, as its claim was lost'}


class Outage:
    """Says once that a server cannot be reached, and once that it answers
    again. Any thread may call it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = threading.Lock()
        self._since: Optional[float] = None  # None: the last try did not fail
        self._told = False

    def tried(self, began: float, error: Optional[errors.BoarddError]) -> None:
        """Takes note of a try of a call."""
        now = time.monotonic()
        with self._lock:
            since, told = self._since, self._told
            if error is None:
                self._since, self._told = None, False
            else:
                self._since = began if since is None else since
                self._told = told or now - self._since >= _BLIP
            tell = self._told and not told
        if tell:
            self._warn('the server cannot be reached; the worker goes on trying: %s' % error)
        elif error is None and told and since is not None:
            self._warn('the server answers again, after %.0f s' % (now - since))


def failed(claim: Claim, ending: str, error: Optional[BaseException], stopping: bool) -> None:
    """Says how a job ended that failed. What the handler chose to give back
    did not, and one that is not wanted any more."""
    if ending not in _BECAME or error is None:
        return
    if ending != 'LOST' and (stopping or isinstance(error, errors.Retry)):
        return
    # Where a handler meant what it raised, nobody has to look for the place.
    trace: Any = None if ending == 'LOST' or isinstance(error, (errors.Over, errors.Trash)) else error
    log.warning('job %s (%s) failed at attempt %d, and was %s: %s', claim['uuid'], claim['job']['name'], claim['attempt'],
                _BECAME[ending], reason_of(error), exc_info=trace)
