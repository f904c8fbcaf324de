"""How Octavia uses a jobboard, without Octavia.

Its conductor claims with an expiry of 30 s, extends its job whenever a task
changes its state, and has a thread that opens a jobboard of its own four times
in each expiry, looks at every job and extends its own. Its poster waits for
all jobs on the board, one after another. The expiry is what a test says.
"""

import contextlib
import functools
import threading

from taskflow.conductors.backends import impl_blocking
from taskflow import engines
from taskflow.jobs import backends as job_backends
from taskflow.listeners import base as listeners
from taskflow.persistence import backends as persistence_backends
from taskflow.persistence import models


class ExtendExpiryListener(listeners.Listener):

    def __init__(self, engine, job, expiry):
        super(ExtendExpiryListener, self).__init__(engine)
        self.job, self.expiry = job, expiry

    def _task_receiver(self, state, details):
        self.job.extend_expiry(self.expiry)

    _flow_receiver = _retry_receiver = _task_receiver


class Conductor(impl_blocking.BlockingConductor):

    expiry = 30

    def _listeners_from_job(self, job, engine):
        return super(Conductor, self)._listeners_from_job(job, engine) + [
            ExtendExpiryListener(engine, job, self.expiry)]


class Service(object):

    def __init__(self, board_conf, persistence_conf, expiry):
        self._board_conf = board_conf
        self._persistence_conf = persistence_conf
        self._expiry = expiry
        self._done = threading.Event()
        self.extended = 0
        self.conductor = None

    @contextlib.contextmanager
    def _open(self):
        with contextlib.closing(persistence_backends.fetch(
                self._persistence_conf)) as persistence:
            with contextlib.closing(persistence.get_connection()) as conn:
                conn.upgrade()
            with job_backends.backend('octavia_jobboard', self._board_conf,
                                      persistence=persistence) as board:
                yield persistence, board

    def post(self, name, factory, store):
        with self._open() as (persistence, board):
            book = models.LogBook(name)
            flow = models.FlowDetail(name, book.uuid)
            book.add(flow)
            persistence.get_connection().save_logbook(book)
            engines.save_factory_details(flow, factory, [], {},
                                         backend=persistence)
            board.post(name, book=book, details={'store': store})
            for job in board.iterjobs():
                job.wait()

    def run(self, name):
        with self._open() as (persistence, board):
            self.conductor = Conductor(name, board, persistence=persistence,
                                       engine='serial', wait_timeout=0.1)
            self.conductor.expiry = self._expiry
            board.claim = functools.partial(board.claim, expiry=self._expiry)
            waiter = threading.Thread(target=self._waiter, args=(name,),
                                      daemon=True)
            waiter.start()
            self.conductor.run()
            self._done.set()
            waiter.join()

    def stop(self):
        self.conductor.stop()
        self._done.set()

    def _waiter(self, name):
        while not self._done.wait(self._expiry / 4.0):
            with self._open() as (_persistence, board):
                for job in board.iterjobs():
                    try:
                        owner = board.find_owner(job)
                    except TypeError:
                        continue
                    if owner == name and job.expires_in() < self._expiry / 2.0:
                        self.extended += bool(job.extend_expiry(self._expiry))
