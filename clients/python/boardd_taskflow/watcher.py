"""The thread that tells a jobboard's listeners what happens on the board."""

import threading

from taskflow.jobs import base
from taskflow import logging
from taskflow.types import notifier

from boardd import forking

from boardd_taskflow import client as boardd
from boardd_taskflow import failures
from boardd_taskflow import job as boardd_job

LOG = logging.getLogger(__name__)

_PAGE = 1000
_MAX_EVENTS = 500

#: What a board's notifier says, beside POSTED and REMOVAL, when a claim that
#: is kept in the background was lost: the job may run elsewhere now. The
#: notification's details have the job's ``uuid`` and the ``owner``.
CLAIM_LOST = 'CLAIM_LOST'

# What an event says of a job: that it is on the board, that it is not, or that
# one has to look.
_THERE = frozenset(['POSTED', 'RESTORED'])
_GONE = frozenset(['CONSUMED', 'TRASHED', 'PURGED', 'CANCELED'])
_LOOK = frozenset(['CHANGED'])


class WatchedNotifier(notifier.Notifier):
    """A notifier that knows when somebody begins to listen."""

    def __init__(self, on_listener):
        super(WatchedNotifier, self).__init__()
        self._on_listener = on_listener

    def register(self, event_type, *args, **kwargs):
        super(WatchedNotifier, self).register(event_type, *args, **kwargs)
        if event_type != CLAIM_LOST:
            self._on_listener()

    def wants_events(self):
        """Returns whether anybody listens to what happens on the board."""
        return any(event_type != CLAIM_LOST
                   for event_type, _listeners in self.listeners_iter())


class Watcher(object):
    """Says POSTED and REMOVAL, once for each job that comes and goes.

    As on a ZooKeeper jobboard, those that are there when it begins are said to
    be posted, too. Between the listing and the events nothing is lost: the
    events go on from before it.
    """

    def __init__(self, job_of, notify):
        self._job_of = job_of
        self._notify = notify
        self._known = {}  # uuid -> job, of those on the board
        self.after_fork()
        forking.watch(self)

    def after_fork(self):
        self._lock = threading.Lock()
        self._thread = None

    def start(self, client):
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, args=(client,), name='boardd-watcher',
                    daemon=True)
                self._thread.start()

    def stop(self, timeout):
        """Waits for the thread, whose client must be closed already."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self, client):
        cursor = None
        while True:
            try:
                if cursor is None:
                    cursor = self._begin(client)
                cursor = self._follow(client, cursor)
            except failures.Closed:
                return
            except failures.Refused as e:
                # A cursor of a board that was put back, most likely.
                LOG.warning("Lost sight of board '%s', looking at it anew: %s",
                            client.board, e)
                cursor = None
            except Exception:
                LOG.warning("Could not watch board '%s', it is tried again",
                            client.board, exc_info=True)
            else:
                continue
            if client.pause(1.0):
                return

    def _begin(self, client):
        """Returns the cursor from which to go on after a look at the board."""
        cursor = client.call('ListEvents')['cursor']
        there, token = {}, ''
        while True:
            page = client.call('ListJobs', {
                'fields': boardd_job.OUTLINE, 'pageSize': _PAGE,
                'pageToken': token})
            for posting in page['jobs']:
                there[posting['uuid']] = posting
            token = page.get('nextPageToken')
            if not token:
                break
        for uuid in [u for u in self._known if u not in there]:
            self._gone(uuid)
        for posting in there.values():
            self._there(posting)
        return cursor

    def _follow(self, client, cursor):
        answer = client.call('ListEvents',
                             {'from': cursor, 'max': _MAX_EVENTS},
                             wait=boardd.MAX_WAIT)
        for event in answer['events']:
            kind, posting = event['type'], event.get('job') or {}
            if kind == 'RESYNC':
                return self._begin(client)
            if kind in _LOOK:
                self._look(client, posting['uuid'])
            elif kind in _THERE:
                self._there(posting)
            elif kind in _GONE:
                self._gone(posting['uuid'])
        return answer['cursor']

    def _look(self, client, uuid):
        answer = client.call('GetJobs', {'uuids': [uuid],
                                         'fields': boardd_job.OUTLINE})
        posting = answer['results'][0].get('job')
        if posting is None or posting['state'] in ('COMPLETE', 'TRASHED'):
            self._gone(uuid)
        else:
            self._there(posting)

    def _there(self, posting):
        if posting['uuid'] not in self._known:
            job = self._known[posting['uuid']] = self._job_of(posting)
            self._notify(base.POSTED, {'job': job})

    def _gone(self, uuid):
        job = self._known.pop(uuid, None)
        if job is not None:
            self._notify(base.REMOVAL, {'job': job})
