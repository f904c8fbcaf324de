"""Iteration over the jobs of a board."""

import collections
import time

from taskflow.jobs import base

from boardd_taskflow import failures

#: After how many seconds a job's state is asked for again before it is given
#: out: a program may work for hours between one job and the next.
FRESH = 1.0

# The first jobs come with all they have, since most programs take one of them
# and are busy then. Of those after them only the uuids are listed, in one go,
# so that whoever posts while iterating does not iterate for ever; what they
# have is fetched so many at a time.
_FIRST = 32
_CHUNK = 64
_PAGE = 1000


class JobIterator(base.JobBoardIterator):
    """The jobs of a board, highest priority first, the oldest before others.

    States come with the listing. ``ensure_fresh`` changes nothing: every
    listing is of the present.
    """

    def __init__(self, board, logger, only_unclaimed=False,
                 ensure_fresh=False, page=None):
        """:param page: the answer of a listing that was made already"""
        super(JobIterator, self).__init__(
            board, logger, only_unclaimed=only_unclaimed,
            ensure_fresh=ensure_fresh)
        self._next_page = ''
        self._rest = collections.deque()  # uuids
        self._given = set()  # uuids
        if page is not None:
            self._take_page(page)

    def __next__(self):
        while True:
            job = self._next_job()
            if job is not None:
                return job
            if not self._fill():
                raise StopIteration

    def _next_job(self):
        if self.only_unclaimed:
            allowed = self._UNCLAIMED_JOB_STATES
        else:
            allowed = self._JOB_STATES
        while self._jobs:
            if time.monotonic() - self._jobs[0].standing.seen_at > FRESH:
                self._board.look_again(self._jobs)
            job = self._jobs.popleft()
            if job.standing.state in allowed:
                return job
        return None

    def _fill(self):
        """Gets more jobs; returns whether there may be some."""
        if not self._fetched:
            self._take_page(self._board.list_jobs(
                self._states(), page_size=_FIRST))
            return True
        if self._next_page:
            self._list_rest()
            return True
        if not self._rest:
            return False
        chunk = [self._rest.popleft()
                 for _ in range(min(_CHUNK, len(self._rest)))]
        self._take(self._board.read_jobs(chunk))
        return True

    def _states(self):
        if self.only_unclaimed:
            return ['UNCLAIMED']
        return ['UNCLAIMED', 'CLAIMED']

    def _take_page(self, page):
        self._fetched = True
        self._next_page = page.get('nextPageToken') or ''
        self._take(page['jobs'])

    def _take(self, postings):
        for posting in postings:
            self._given.add(posting['uuid'])
            try:
                self._jobs.append(self._board.job_of(posting))
            except ValueError as e:
                # Whoever posted it did so by another way. It stays on the
                # board, for a person to look at, and is in nobody's way.
                self._logger.warning("Job %s is left out: can not read its"
                                     " details: %s", posting['uuid'], e)

    def _list_rest(self):
        token, self._next_page = self._next_page, ''
        while True:
            try:
                page = self._board.list_jobs(self._states(), page_size=_PAGE,
                                             page_token=token,
                                             fields=['uuid'])
            except failures.Refused as e:
                # The board has another order now: begin once more.
                if e.code != 'aborted' or not token:
                    raise
                self._rest.clear()
                token = ''
                continue
            self._rest.extend(p['uuid'] for p in page['jobs']
                              if p['uuid'] not in self._given)
            token = page.get('nextPageToken')
            if not token:
                return
