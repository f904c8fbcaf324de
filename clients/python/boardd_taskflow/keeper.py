"""The thread that keeps what this program holds on a board.

It extends claims that were made without an expiry, gives back those whose
expiry is shorter than a board's shortest lease, and says again and again that
an entity is there. A jobboard object has at most one, and only while there is
something to keep.
"""

import threading
import time

from taskflow import logging

from boardd import forking

from boardd_taskflow import client as boardd
from boardd_taskflow import failures

LOG = logging.getLogger(__name__)

# Parts of a lease: what goes by before it is extended, how long that is tried,
# after what it is tried once more if it failed, and how much earlier it may be
# because another one is extended.
_EXTEND_AFTER = 1.0 / 3
_TRY_FOR = 1.0 / 6
_AGAIN_AFTER = 1.0 / 12
_ALONG = 1.0 / 6

#: The codes by which a board says that a claim is over.
OVER = frozenset(['LEASE_LOST', 'NOT_OWNER', 'NOT_CLAIMED', 'NOT_FOUND',
                  'INVALID'])

_MAX_BATCH = 1000  # claims of one call

EXPIRED = 'the expiry that it was claimed with has passed'


class Keeper(object):
    """Keeps claims and entities; ``on_lost(claim)`` hears of what is lost."""

    def __init__(self, options, on_lost):
        self._options = options
        self._on_lost = on_lost
        self._client = None
        self._claims = {}  # claim -> when it is its turn
        self._entities = {}  # (kind, name) -> [entity, when it is its turn]
        self.after_fork()
        forking.watch(self)

    def after_fork(self):
        # The parent goes on with what it held; here nothing is kept.
        self._cond = threading.Condition()
        self._ending = threading.Lock()
        self._thread = None
        self._claims = {}
        self._entities = {}

    def start(self, client):
        """Begins to keep, with what stop() left."""
        with self._cond:
            self._client = client
            self._wake()

    def stop(self):
        """Keeps nothing any more until start(); the thread is gone then."""
        with self._cond:
            self._client = None
            thread, self._thread = self._thread, None
            self._entities.clear()
            self._cond.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._options.timeout)

    def keep(self, claim):
        """Extends a claim, or ends it early, from now on."""
        with self._cond:
            if claim.ends is not None:
                self._claims[claim] = claim.ends
            elif claim.kept and claim.lease is not None:
                self._claims[claim] = (claim.deadline -
                                       claim.lease * (1 - _EXTEND_AFTER))
            self._wake()

    def drop(self, claim):
        with self._cond:
            self._claims.pop(claim, None)

    def introduce(self, entity):
        """Repeats an entity that the board has been told of."""
        turn = time.monotonic() + self._options.entity_ttl * _EXTEND_AFTER
        with self._cond:
            self._entities[(entity['kind'], entity['name'])] = [entity, turn]
            self._wake()

    def settle(self):
        """Gives back what is due to be, so that a caller sees it done."""
        with self._cond:
            now = time.monotonic()
            due = [c for c in self._claims
                   if c.ends is not None and c.ends <= now]
        for claim in due:
            self._give_back(self._client, claim)

    def _wake(self):
        if self._client is None or not (self._claims or self._entities):
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, args=(self._client,),
                name='boardd-keeper', daemon=True)
            self._thread.start()
        self._cond.notify_all()

    def _run(self, client):
        while True:
            with self._cond:
                work = self._next(client)
            if work is None:
                return
            short, long, entities = work
            try:
                for claim in short:
                    self._give_back(client, claim)
                for start in range(0, len(long), _MAX_BATCH):
                    self._extend(client, long[start:start + _MAX_BATCH])
                for entity in entities:
                    self._introduce(client, entity)
            except failures.Closed:
                return
            except Exception:
                LOG.exception("Keeping claims on a board of boardd failed,"
                              " it is tried again")
                if client.pause(1.0):
                    return

    def _next(self, client):
        """Waits until it is somebody's turn: claims to end, claims to extend,
        entities to repeat. None: there is nothing to keep here any more."""
        while self._client is client:
            now = time.monotonic()
            turns = list(self._claims.values())
            turns.extend(turn for _entity, turn in self._entities.values())
            if not turns:
                self._thread = None
                return None
            first = min(turns)
            if first <= now:
                return self._due(now)
            self._cond.wait(min(first - now, 60.0))
        return None

    def _due(self, now):
        short = [c for c, turn in self._claims.items()
                 if c.ends is not None and turn <= now]
        long = [(c, turn) for c, turn in self._claims.items()
                if c.ends is None]
        if any(turn <= now for _claim, turn in long):
            # Those whose turn is soon go along, and from then on with it.
            long = [c for c, turn in long
                    if turn <= now + c.lease * _ALONG]
        else:
            long = []
        return short, long, [e for e, turn in self._entities.values()
                             if turn <= now]

    def _extend(self, client, batch):
        asked_at = time.monotonic()
        message = {'claims': [c.ref() for c in batch]}
        if self._options.lease is not None:
            message['lease'] = boardd.seconds(self._options.lease)
        within = max(1.0, min(c.lease for c in batch) * _TRY_FOR)
        try:
            answer = client.call('ExtendClaims', message, within=within)
            results = answer['results']
        except (failures.Broken, failures.Refused) as e:
            LOG.warning("Could not extend %s claims on board '%s': %s",
                        len(batch), client.board, e)
            results = [{'error': {'code': 'UNAVAILABLE'}}] * len(batch)
        for claim, result in zip(batch, results):
            self._extended(claim, asked_at, result)

    def _extended(self, claim, asked_at, result):
        code = (result.get('error') or {}).get('code')
        now = time.monotonic()
        with self._cond:
            if claim not in self._claims:
                return
            if code is None:
                claim.extended(asked_at, boardd.parse_seconds(result['lease']))
                self._claims[claim] = asked_at + claim.lease * _EXTEND_AFTER
                return
            if code not in OVER and now < claim.deadline:
                self._claims[claim] = min(now + claim.lease * _AGAIN_AFTER,
                                          claim.deadline)
                return
            del self._claims[claim]
            if claim.ending:
                return
            claim.lost = True
        LOG.warning("The claim of '%s' on job %s is lost: %s", claim.owner,
                    claim.uuid, (result.get('error') or {}).get('message') or
                    "it ran out and could not be extended")
        self._on_lost(claim)

    def _give_back(self, client, claim):
        with self._ending:  # the second one waits until it is done
            with self._cond:
                if self._claims.get(claim) is None or client is None:
                    return
            try:
                client.call('AbandonJobs', {'claims': [claim.ref()],
                                            'reason': EXPIRED}, within=1.0)
            except (failures.Broken, failures.Refused) as e:
                # Then it runs out by itself, a little later.
                LOG.debug("Could not give back job %s: %s", claim.uuid, e)
            claim.over = True
            self.drop(claim)

    def _introduce(self, client, entity):
        try:
            client.call('RegisterEntity', {
                'entity': entity,
                'ttl': boardd.seconds(self._options.entity_ttl),
            }, within=self._options.entity_ttl * _TRY_FOR)
        except (failures.Broken, failures.Refused) as e:
            LOG.warning("Could not say on board '%s' that %s %s is there: %s",
                        client.board, entity['kind'], entity['name'], e)
        with self._cond:
            key = (entity['kind'], entity['name'])
            if key in self._entities:
                self._entities[key][1] = (time.monotonic() + _EXTEND_AFTER *
                                          self._options.entity_ttl)
