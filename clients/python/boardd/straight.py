"""The way to the server that has a board.

Several servers may serve the boards together, each board on one of them. A
call at another one is passed on, and its answer says whose the board is and
where that server is to be reached; from then on calls of the board go straight
there. That is only a shortcut: as soon as it fails, or the board is somebody
else's, they go to the addresses that the client was given. If none of those is
reachable, they go to any server that was named before: each passes on what is
not its own.
"""

import threading
import time
from typing import Any, Callable, Dict, Optional, Sequence

from boardd import address
from boardd import silent

# The headers in which a server says so.
_SERVER = 'Boardd-Server'  # who gave the answer, if not the server that was called
_PUBLIC = 'Boardd-Public'  # beside it: where that server is to be reached
_MOVED = 'Boardd-Moved'  # of an error: whose the board is now
_THERE = 'Boardd-Moved-Public'  # beside it: where that server is to be reached

#: Bounds of what is kept of that.
MAX_BOARDS = 10000
MAX_PLACES = 256

#: How long a server is left alone at which calls could not be made, in seconds: doubled each time.
FIRST = 5.0
MOST = 300.0

# The content types in which the API answers.
_FORMS = frozenset(['application/json', 'application/proto'])


class Place:
    """One server that said where it is to be reached. Its Straights' lock guards it."""

    def __init__(self, where: address.Address, ear: silent.Ear) -> None:
        self.address = where
        self.ear = ear
        self.boards = 0  # that are there
        self.works = False  # it has answered
        self.asking = False  # whether it does
        self.until = 0.0  # it is left alone
        self.failed = 0  # how often calls failed there since one was made


class Way:
    """The way of one request.

    :param board: that it is about; empty: none
    """

    def __init__(self, board: str = '') -> None:
        self.board = board
        self.straight: Optional[Place] = None  # where it went; None: to one of the addresses that were given
        self.around = False  # none of those was reachable, and straight is any server that is known
        self.strange = False  # it went straight, and the answer is not of the server that it was to
        self.moved = False  # the answer is an error, and says whose the board is now
        self.old = False  # it failed on a connection that was kept, and may only have been too old

    def again(self, repeatable: bool) -> bool:
        """Whether a failed request may be made at another address at once: it
        took a shortcut, or was told of one."""
        return self.strange or (self.straight is not None or self.moved) and repeatable


def strange(status: int, headers: Any) -> bool:
    """Whether an answer is rather that of a server of other boards, or of
    something between, than of the one that was to be reached."""
    form = (headers.get('Content-Type') or '').partition(';')[0].strip().lower()
    return status in (401, 421, 502, 504) or status < 200 or 300 <= status < 400 or form not in _FORMS


def names_another(headers: Any) -> bool:
    """Whether an answer says who can serve, and where."""
    return bool(headers.get(_PUBLIC) or headers.get(_THERE))


class Straights:
    """Which boards are to be reached straight at which server.

    :param known: the addresses that the client was given
    :param alive: asks an address whether there is a server, for silent.FOR
                  seconds at most, and without the token
    """

    def __init__(self, known: Sequence[address.Address], alive: Callable[[address.Address], bool]) -> None:
        self._known = known
        self._alive = alive
        self._closed = False
        self.after_fork()

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._boards: Dict[str, Place] = {}
        self._places: Dict[address.Address, Place] = {}

    def close(self) -> None:
        """Asks nobody any more."""
        with self._lock:
            self._closed = True
            places = list(self._places.values())
        for place in places:
            place.ear.close()

    def of(self, board: str) -> Optional[Place]:
        """Where calls of a board go straight to."""
        with self._lock:
            place = self._boards.get(board)
            if place is None or place.works:
                return place
            self._ask(place)
            return None

    def any(self) -> Optional[Place]:
        """A server that answered when it was last asked."""
        with self._lock:
            return next((place for place in self._places.values() if place.works), None)

    def learn(self, way: Way, status: int, headers: Any) -> None:
        """Takes note of what an answer says of whose the board is."""
        way.moved = bool(headers.get(_MOVED))
        with self._lock:
            if way.moved:
                self._put(way.board, headers.get(_THERE) or '')
            elif headers.get(_SERVER):
                self._put(way.board, headers.get(_PUBLIC) or '')
            elif way.around and way.straight is not None and status == 200:
                self._give(way.board, way.straight)
            elif status == (200 if way.straight is None else 503):
                self._drop(way.board)  # it is the board of the server that was called, or of nobody known

    def done(self, place: Place) -> None:
        """Notes that a call was answered at a server."""
        with self._lock:
            place.failed = 0

    def fail(self, place: Place) -> None:
        """Notes that a call could not be made at a server."""
        with self._lock:
            if place.works:
                self._leave(place)

    def _put(self, board: str, text: str) -> None:
        """Has calls of a board go to an address, once that has answered; if
        there is none, or it is not to be trusted, to those that were given."""
        named = address.named(text)
        place = self._boards.get(board)
        if place is not None and place.address == named:
            return
        self._drop(board)
        if named is None or not address.trusts(self._known, named):
            return
        place = self._places.get(named) or self._new(named)
        if place is None:
            return
        self._give(board, place)
        self._ask(place)

    def _give(self, board: str, place: Place) -> None:
        """Has calls of a board go to a place."""
        self._drop(board)
        while len(self._boards) >= MAX_BOARDS:
            self._drop(next(iter(self._boards)))
        self._boards[board] = place
        place.boards += 1

    def _new(self, where: address.Address) -> Optional[Place]:
        """A place that was not known, if there is room for it."""
        for known, place in list(self._places.items()):
            if len(self._places) < MAX_PLACES:
                break
            if place.boards == 0:
                del self._places[known]
        if len(self._places) >= MAX_PLACES:
            return None
        place = Place(where, silent.Ear(lambda: self._alive(where), lambda: self.fail(place)))
        self._places[where] = place
        return place

    def _drop(self, board: str) -> None:
        """Has calls of a board go to the addresses that the client was given."""
        place = self._boards.pop(board, None)
        if place is not None:
            place.boards -= 1

    def _ask(self, place: Place) -> None:
        """Looks whether a server can be reached, unless that is known, so that
        no call has to find out that it cannot."""
        if self._closed or place.works or place.asking or time.monotonic() < place.until:
            return
        place.asking = True
        threading.Thread(target=self._look, args=(place,), name='boardd-ask', daemon=True).start()

    def _look(self, place: Place) -> None:
        works = self._alive(place.address)
        with self._lock:
            place.asking = False
            if works:
                place.works = True
            else:
                self._leave(place)

    def _leave(self, place: Place) -> None:
        """Leaves a server alone for a while."""
        place.works = False
        place.until = time.monotonic() + min(MOST, FIRST * float(2 ** min(place.failed, 40)))
        place.failed += 1
