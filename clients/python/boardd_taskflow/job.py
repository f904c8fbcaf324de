"""A job on a board of boardd."""

import datetime
import enum
import functools
import time

from taskflow import exceptions as exc
from taskflow.jobs import base
from taskflow import states

from boardd_taskflow import details as job_details
from boardd_taskflow import names


class UnknownExpire(enum.IntEnum):
    """What :py:meth:`.BoarddJob.expires_in` says instead of seconds."""

    #: The claim does not expire.
    DOES_NOT_EXPIRE = -1

    #: Nobody holds the job.
    KEY_NOT_FOUND = -2


DOES_NOT_EXPIRE = UnknownExpire.DOES_NOT_EXPIRE
KEY_NOT_FOUND = UnknownExpire.KEY_NOT_FOUND

#: The order of claims: the first goes first.
_PRIORITIES = (base.JobPriority.VERY_HIGH, base.JobPriority.HIGH,
               base.JobPriority.NORMAL, base.JobPriority.LOW,
               base.JobPriority.VERY_LOW)

_STATES = {
    'UNCLAIMED': states.UNCLAIMED,
    'CLAIMED': states.CLAIMED,
    # To TaskFlow a job that is off the board is complete, wherever it went.
    'TRASHED': states.COMPLETE,
    'COMPLETE': states.COMPLETE,
}

#: The fields of a job that tell how it stands.
STANDING = ['uuid', 'state', 'owner', 'leaseExpiresAt', 'modifiedAt']

#: The fields of a job but its details.
OUTLINE = STANDING + ['name', 'priority', 'sequence', 'createdAt', 'book']


class Standing(object):
    """How a job stood when the server was asked."""

    def __init__(self, posting):
        posting = posting or {'state': 'COMPLETE'}  # forgotten: it has ended
        self.seen_at = time.monotonic()
        self.state = _STATES[posting['state']]
        claimed = self.state == states.CLAIMED
        self.owner = (posting.get('owner') or None) if claimed else None
        self.lease_expires_at = (parse_time(posting.get('leaseExpiresAt'))
                                 if claimed else None)
        self.modified_at = parse_time(posting.get('modifiedAt'))


@functools.total_ordering
class BoarddJob(names.JobNames, base.Job):
    """A job on a board of boardd.

    Jobs of one board sort in the order in which they are to be claimed: higher
    priorities first, and among equals the oldest.
    """

    def __init__(self, board, posting=None, backend=None, book=None,
                 details=None, outline=False, **taskflows):
        """Takes a job as the server shows it.

        :param details: what to have instead of the posting's details
        :param outline: whether the posting comes without its details, which
                        are fetched then when somebody wants them
        :raises ValueError: if its details can not be read
        :raises TypeError: for what TaskFlow's own jobs are made of
        """
        if taskflows or not isinstance(posting, dict):
            raise TypeError(names.MADE_BY_BOARD)
        super(BoarddJob, self).__init__(
            board, posting.get('name', ''), uuid=posting['uuid'],
            details=details, backend=backend, book=book,
            book_data=posting.get('book'))
        self._read = not outline
        if details is None and not outline:
            self._details = job_details.read(posting)
        self._priority = base.JobPriority.convert(
            posting.get('priority') or base.JobPriority.NORMAL)
        self._sequence = int(posting.get('sequence') or 0)
        self._created_on = parse_time(posting.get('createdAt'))
        self.standing = Standing(posting)
        self.claim = None  # of this very object, see boardd_taskflow.claims

    @property
    def details(self):
        """A dictionary of any details associated with this job."""
        if not self._read:
            posting = self.board.look(self)
            try:
                self._details = job_details.read(posting or {})
            except ValueError:
                exc.raise_with_cause(exc.JobFailure, "Can not read the details"
                                     " of job %s" % self.uuid)
            self._read = True
        return self._details

    @property
    def priority(self):
        return self._priority

    @property
    def sequence(self):
        """The number of the job on its board, which grows with each post."""
        return self._sequence

    @property
    def created_on(self):
        return self._created_on

    @property
    def last_modified(self):
        """When it was posted, claimed or given back last, in UTC."""
        return self._look().modified_at

    @property
    def state(self):
        return self._look().state

    def _look(self):
        self.standing = Standing(self.board.look(self, STANDING))
        return self.standing

    def wait(self, timeout=None, delay=0.01, delay_multiplier=2.0,
             max_delay=60.0, sleep_func=time.sleep):
        """Waits until the job is complete; returns whether it is.

        The server tells as soon as it is so. Nothing is asked again and again,
        and the delays are not used.
        """
        return self.board.wait_for(self, timeout)

    def expires_in(self):
        """How many seconds until the claim expires.

        Returns the number of seconds, or
        :attr:`~.UnknownExpire.DOES_NOT_EXPIRE`, or
        :attr:`~.UnknownExpire.KEY_NOT_FOUND` if nobody holds the job. It is
        exact for a claim of this process; for another's it is as good as the
        server's time of day is known here, which is about a second.
        """
        standing = self._look()
        if standing.state != states.CLAIMED:
            return KEY_NOT_FOUND
        if standing.lease_expires_at is None:
            return DOES_NOT_EXPIRE
        claim = self.board.claim_of(self)
        if claim is not None and claim.owner == standing.owner:
            return claim.left()
        now = datetime.datetime.fromtimestamp(self.board.server_time(),
                                              datetime.timezone.utc)
        left = standing.lease_expires_at - now.replace(tzinfo=None)
        return max(0.0, left.total_seconds())

    def extend_expiry(self, expiry):
        """Sets the expiry of this process's claim on this job, from now on.

        A claim that was kept in the background has the expiry alone then.
        Returns ``True`` if that was done, ``False`` if this process has no
        claim on the job, or has it no longer.
        """
        return self.board.extend(self, expiry)

    def _key(self):
        return (_PRIORITIES.index(self._priority), self._sequence, self._uuid)

    def __lt__(self, other):
        if not isinstance(other, BoarddJob):
            return NotImplemented
        return self._key() < other._key()

    def __eq__(self, other):
        if not isinstance(other, BoarddJob):
            return NotImplemented
        return self._uuid == other._uuid

    def __hash__(self):
        return hash(self._uuid)


def parse_time(text):
    """Reads a time of an answer, as TaskFlow has them: UTC, without a zone."""
    if not text:
        return None
    whole, _, fraction = text.rstrip('Z').partition('.')
    date, _, clock = whole.partition('T')
    # By hand: strptime may fail when several threads are the first to use it.
    return datetime.datetime(*[int(n) for n in date.split('-')],
                             *[int(n) for n in clock.split(':')],
                             int((fraction + '000000')[:6]))
