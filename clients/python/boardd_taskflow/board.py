"""A TaskFlow jobboard that is kept by a boardd server."""

import threading
import time

from oslo_serialization import jsonutils
from oslo_utils import uuidutils

from taskflow import exceptions as exc
from taskflow.jobs import base
from taskflow import logging
from taskflow import states

from boardd_taskflow import client as boardd
from boardd_taskflow import details as job_details
from boardd_taskflow import failures
from boardd_taskflow import holder
from boardd_taskflow import job as boardd_job
from boardd_taskflow import listing
from boardd_taskflow import names
from boardd_taskflow import options
from boardd_taskflow import watcher

LOG = logging.getLogger(__name__)


class BoarddJobBoard(names.BoardNames, base.NotifyingJobBoard):
    """A jobboard that is kept by a boardd server.

    The server says who has a job, for how long, and which is next; see
    :py:mod:`boardd_taskflow.options` for the configuration. A claim without an
    ``expiry`` lasts as long as this program does and has the board connected:
    a thread extends it. A claim with one is extended by the caller, as on a
    Redis jobboard.

    All methods may be called by several threads at once.
    """

    def __init__(self, name, conf, client=None, persistence=None,
                 emit_notifications=True):
        """Makes a jobboard that is not connected yet.

        :param client: what a program has to speak to a store with; nothing
                       is done with it
        :param persistence: where logbooks are loaded from
        :param emit_notifications: whether listeners hear anything
        """
        super(BoarddJobBoard, self).__init__(name, conf)
        self._options = options.Options(conf)
        if client is not None:
            LOG.warning("Jobboard '%s' has its own connection to boardd, and"
                        " leaves the given client %r alone", name, client)
        self._emit_notifications = bool(emit_notifications)
        # Where logbooks are loaded from: a posting has only their names.
        self._persistence = persistence
        self._lock = threading.RLock()  # of connecting and closing
        self._client = None
        self._encoding = self._options.details
        self._holder = holder.Holder(self._options, self._on_lost)
        self._watcher = watcher.Watcher(self._outline_of, self._notify)
        self.notifier = watcher.WatchedNotifier(self._watch)

    # Connecting.

    @property
    def connected(self):
        return self._client is not None

    def connect(self, timeout=None):
        """Asks the server whether the board is there and may be used.

        :param timeout: seconds to try for; the option ``timeout`` if absent
        """
        within = None if timeout is None else float(timeout)
        with self._lock:
            self.close()
            what = ("Can not connect to board '%s' of boardd"
                    % self._options.board_name)
            with failures.translated(what):
                try:
                    client = boardd.Client(self._options)
                except (OSError, ValueError):  # a file of the configuration
                    exc.raise_with_cause(exc.JobFailure, what)
                try:
                    shown = client.call('GetBoard', within=within)['board']
                except BaseException:
                    client.close()
                    raise
            if not shown.get('ready', True):
                LOG.warning("Board '%s' is not ready now: %s",
                            self._options.board_name, shown.get('problem'))
            self._client = client
            self._holder.start(client, shown.get('fencing') == 'owner')
            if self._emit_notifications and self.notifier.wants_events():
                self._watcher.start(client)

    def close(self):
        """Ends the connection, and with it what is done in the background.

        Claims without an expiry are extended no more, and the jobs free when
        the leases are over, unless this object is connected again before.
        """
        with self._lock:
            client, self._client = self._client, None
            if client is None:
                return
            client.close()
            self._holder.stop()
            self._watcher.stop(self._options.timeout)

    def _live(self):
        """Returns the client, once what is due by the clock is done."""
        client = self._client
        if client is None:
            raise failures.Closed()
        self._holder.settle()
        return client

    # Posting and listing.

    def post(self, name, book=None, details=None,
             priority=base.JobPriority.NORMAL):
        priority = base.JobPriority.convert(priority)
        uuid = uuidutils.generate_uuid()
        posting = {'uuid': uuid, 'name': name, 'priority': priority.value}
        if book is not None:
            posting['book'] = {'uuid': book.uuid, 'name': book.name}
        with failures.translated("New job %s could not be posted" % uuid):
            answer = self._post(posting, details)
        job = boardd_job.BoarddJob(self, answer, backend=self._persistence,
                                   book=book, details=details or {})
        return job

    def _post(self, posting, details):
        """The posting has its own uuid: repeated, it is still one job."""
        def send(form):
            try:
                carried = job_details.write(details, form)
            except ValueError:
                exc.raise_with_cause(exc.JobFailure, "New job %s could not be"
                                     " posted" % posting['uuid'])
            answer = self._live().call(
                'PostJobs', {'jobs': [dict(posting, **carried)]},
                item=lambda a: a['results'][0].get('error'))
            return answer['results'][0]['job']

        try:
            return send(self._encoding)
        except failures.Refused as e:
            # A store without msgpack, or one with nothing else.
            other = _OTHER.get((self._encoding, e.code, e.field))
            if other is None or 'encoding' not in str(e):
                raise
            self._encoding = other
            return send(other)

    def iterjobs(self, only_unclaimed=False, ensure_fresh=False):
        return listing.JobIterator(self, LOG, only_unclaimed=only_unclaimed,
                                   ensure_fresh=ensure_fresh)

    def wait(self, timeout=None, initial_delay=0.005, max_delay=1.0,
             sleep_func=time.sleep):
        """Waits until there are jobs; returns an iterator of them.

        The server tells as soon as it is so. Nothing is asked again and again,
        and the delays are not used.
        """
        if initial_delay > max_delay:
            raise ValueError("Initial delay %s must be less than or equal"
                             " to the provided max delay %s"
                             % (initial_delay, max_delay))
        began = time.monotonic()
        end = None if timeout is None else began + timeout
        while True:
            page = self.list_jobs(['UNCLAIMED', 'CLAIMED'], wait=_wait(end),
                                  within=self._patience(end))
            if page['jobs']:
                return listing.JobIterator(self, LOG, page=page)
            if end is not None and time.monotonic() >= end:
                raise exc.NotFound("Expired waiting for jobs to arrive;"
                                   " waited %s seconds"
                                   % (time.monotonic() - began))

    @property
    def job_count(self):
        with failures.translated("Can not count the jobs"):
            answer = self._live().call('CountJobs')
        return int(answer['unclaimed']) + int(answer['claimed'])

    def find_owner(self, job):
        """Returns who holds the job, or None."""
        return boardd_job.Standing(self.look(job, boardd_job.STANDING)).owner

    # Claiming, and the three ways to end it.

    @base.check_who
    def claim(self, job, who, expiry=None):
        """Claims a job.

        :param expiry: seconds after which the claim ends unless
                       :py:meth:`.BoarddJob.extend_expiry` is called before;
                       without it, the claim is kept in the background
        """
        with failures.translated("Can not claim job %s" % job.uuid):
            self._live()
        self._holder.claim(job, who, expiry)

    @base.check_who
    def consume(self, job, who):
        self._finish('ConsumeJobs', job, who)

    @base.check_who
    def abandon(self, job, who):
        self._finish('AbandonJobs', job, who)

    @base.check_who
    def trash(self, job, who):
        self._finish('TrashJobs', job, who, reason='trashed by %s' % who)

    def _finish(self, method, job, who, reason=None):
        with failures.translated("Can not end the claim on job %s" % job.uuid):
            self._live()
        self._holder.finish(method, job, who, reason)

    # Who works here.

    def register_entity(self, entity):
        """Says that an entity is there, again and again until close()."""
        shown = {'kind': entity.kind, 'name': entity.name,
                 'metadata': jsonutils.to_primitive(entity.metadata or {})}
        with failures.translated("Can not register entity %s" % entity.name):
            self._live().call('RegisterEntity', {
                'entity': shown,
                'ttl': boardd.seconds(self._options.entity_ttl)})
        self._holder.introduce(shown)

    # What jobs and iterators ask.

    def job_of(self, posting):
        """Returns the job of a posting that the server has shown."""
        return boardd_job.BoarddJob(self, posting, backend=self._persistence)

    def _outline_of(self, posting):
        return boardd_job.BoarddJob(self, posting, backend=self._persistence,
                                    outline=True)

    def list_jobs(self, wanted, wait=0.0, page_size=None, page_token=None,
                  fields=None, within=None):
        """Returns a page of jobs as the server shows them."""
        message = {'states': wanted}
        if page_size:
            message['pageSize'] = page_size
        if page_token:
            message['pageToken'] = page_token
        if fields:
            message['fields'] = fields
        with failures.translated("Can not list the jobs",
                                 passing=('aborted',)):
            return self._live().call('ListJobs', message, wait=wait,
                                     within=within)

    def read_jobs(self, uuids, fields=None):
        """Returns the jobs of some uuids that the server still knows."""
        message = {'uuids': list(uuids)}
        if fields:
            message['fields'] = fields
        with failures.translated("Can not read jobs"):
            client = self._live()
            results = client.call('GetJobs', message)['results']
            found = []
            for uuid, result in zip(message['uuids'], results):
                posting = result.get('job')
                if (result.get('error') or {}).get('code') == 'QUOTA_EXCEEDED':
                    # More details than one answer has: this one by itself.
                    posting = holder.read(client, uuid, fields)
                if posting is not None:
                    found.append(posting)
            return found

    def look(self, job, fields=None):
        """Returns a job as it is now, None if the server has forgotten it."""
        with failures.translated("Can not read job %s" % job.uuid):
            return holder.read(self._live(), job.uuid, fields)

    def look_again(self, jobs):
        """Notes on jobs how they stand now."""
        found = {p['uuid']: p for p in self.read_jobs(
            [j.uuid for j in jobs], boardd_job.STANDING)}
        for job in jobs:
            job.standing = boardd_job.Standing(found.get(job.uuid))

    def wait_for(self, job, timeout=None):
        """Waits until a job is complete; returns whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            with failures.translated("Can not wait for job %s" % job.uuid):
                results = self._live().call('GetJobs', {
                    'uuids': [job.uuid], 'fields': boardd_job.STANDING,
                }, wait=_wait(end), within=self._patience(end))['results']
            if results:
                job.standing = boardd_job.Standing(results[0].get('job'))
                if job.standing.state == states.COMPLETE:
                    return True
            if end is not None and time.monotonic() >= end:
                return False

    def _patience(self, end):
        """How long to try to reach a server, for one who waits until end."""
        if end is None:
            return None
        return min(self._options.timeout,
                   max(_MIN_PATIENCE, end - time.monotonic()))

    def claim_of(self, job):
        return self._holder.claim_of(job)

    def extend(self, job, expiry):
        with failures.translated("Can not extend the claim on job %s"
                                 % job.uuid):
            self._live()
        return self._holder.extend(job, expiry)

    def server_time(self):
        client = self._client
        return time.time() if client is None else client.now()

    # What listeners hear.

    def _watch(self):
        with self._lock:
            if self._client is not None and self._emit_notifications:
                self._watcher.start(self._client)

    def _notify(self, event, details):
        self.notifier.notify(event, details)

    def _on_lost(self, claim):
        if self._emit_notifications:
            self.notifier.notify(watcher.CLAIM_LOST, {'uuid': claim.uuid,
                                                      'owner': claim.owner})


def _wait(end):
    """How long to let the server hold its answer, at most."""
    if end is None:
        return boardd.MAX_WAIT
    return min(boardd.MAX_WAIT, max(0.0, end - time.monotonic()))


#: The shortest time for which a server is tried, in seconds, by whoever waits
#: for less.
_MIN_PATIENCE = 5.0

# (encoding, code of the refusal, its field) -> the encoding to try then.
_OTHER = {
    ('auto', 'INVALID', 'detailsRaw'): 'json',
    ('auto', 'INVALID', 'details'): 'msgpack',
}
