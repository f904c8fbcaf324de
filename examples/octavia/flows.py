"""Posts flows on a jobboard and works on them, in the way that Octavia does.

    flows.py octavia.conf work NAME            a worker, until it is interrupted
    flows.py octavia.conf post [--jobs 3]      posts, and waits until all are done

It is for trying boardd beside Octavia without an Octavia, and is no part of it. What
of Octavia's use of TaskFlow it does, in the same order and with the same arguments:

  * The poster saves a logbook with one flow in the database, then posts a job that
    has the logbook and, as its details, what the flow is given ("store"). After that it
    waits for every job that is on the board, one after another.
  * The worker is TaskFlow's blocking conductor: it has one job at a time. It claims
    with an expiry, and extends it whenever a task, a retry or the flow changes its
    state. When a job is done, its logbook is deleted.
  * Beside it a thread opens a jobboard of its own four times in each expiry, goes
    through all jobs, and extends those of its conductor that are half over.
"""

import argparse
import configparser
import contextlib
import functools
import sys
import threading
import time

from oslo_utils import uuidutils
from taskflow.conductors.backends import impl_blocking
from taskflow import engines
from taskflow import exceptions
from taskflow.jobs import backends as job_backends
from taskflow.listeners import base as listeners
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistence_backends
from taskflow.persistence import models
from taskflow import states
from taskflow import task


class Boot(task.Task):
    """Takes as long as a virtual machine does."""

    def execute(self, seconds):
        time.sleep(seconds)


class Plug(task.Task):

    def execute(self, loadbalancer_id):
        return 'port-of-' + loadbalancer_id


class MarkActive(task.Task):

    def execute(self, loadbalancer_id, fail):
        if fail:
            raise RuntimeError('the amphora of %s does not answer'
                               % loadbalancer_id)


def create_load_balancer():
    return linear_flow.Flow('create-load-balancer').add(
        Boot('boot'), Plug('plug'), MarkActive('mark-active'))


# The engine finds the factory again by its module, whatever this program was
# started as.
create_load_balancer.__module__ = 'flows'
sys.modules.setdefault('flows', sys.modules[__name__])


class Settings(object):
    """The section [task_flow] of an octavia.conf."""

    def __init__(self, path):
        parser = configparser.ConfigParser(interpolation=None)
        with open(path) as f:
            parser.read_file(f)
        self._values = parser['task_flow']
        self.engine = self._values.get('engine', 'parallel')
        self.max_workers = self._values.getint('max_workers', 5)
        self.expiration_time = self._values.getfloat(
            'jobboard_expiration_time', 30)
        self.save_logbook = self._values.getboolean(
            'jobboard_save_logbook', False)
        self.namespace = self._values.get(
            'jobboard_backend_namespace', 'octavia_jobboard')

    def persistence(self):
        return {'connection': self._values['persistence_connection']}

    def board(self):
        of = self._values.get
        conf = {
            'board': 'redis',
            'host': of('jobboard_backend_hosts', '127.0.0.1').split(',')[0],
            'port': int(of('jobboard_backend_port', '6379')),
            'db': int(of('jobboard_redis_backend_db', '0')),
            'namespace': self.namespace,
            'sentinel': of('jobboard_redis_sentinel'),
        }
        for name in ('username', 'password'):
            if of('jobboard_backend_' + name) is not None:
                conf[name] = of('jobboard_backend_' + name)
        conf.update(self._pairs('jobboard_redis_backend_ssl_options'))
        sentinel = self._pairs('jobboard_redis_sentinel_ssl_options')
        if 'ssl' in sentinel:
            sentinel['ssl'] = sentinel['ssl'].lower() == 'true'
        if of('jobboard_redis_sentinel_password') is not None:
            sentinel['password'] = of('jobboard_redis_sentinel_password')
        conf['sentinel_kwargs'] = sentinel
        return conf

    def _pairs(self, name):
        pairs = self._values.get(name, '')
        return dict(p.strip().split(':', 1) for p in pairs.split(',') if p)


@contextlib.contextmanager
def opened(settings):
    """The database of the logbooks, and the jobboard."""
    with contextlib.closing(persistence_backends.fetch(
            settings.persistence())) as persistence:
        with contextlib.closing(persistence.get_connection()) as connection:
            connection.validate()
        with job_backends.backend(settings.namespace, settings.board(),
                                  persistence=persistence) as board:
            yield persistence, board


def prepare(settings):
    """Makes the tables of the logbooks, once."""
    with contextlib.closing(persistence_backends.fetch(
            settings.persistence())) as persistence:
        with contextlib.closing(persistence.get_connection()) as connection:
            connection.upgrade()


def post(settings, store):
    """Posts one flow, and returns the job's name."""
    with opened(settings) as (persistence, board):
        flow_id = uuidutils.generate_uuid()
        name = '-'.join([create_load_balancer.__name__, flow_id])
        book = models.LogBook(name)
        flow = models.FlowDetail(name, flow_id)
        book.add(flow)
        persistence.get_connection().save_logbook(book)
        engines.save_factory_details(flow, create_load_balancer, (), {},
                                     backend=persistence)
        board.post(name, book=book, details={'store': store})
        return name


def wait(settings):
    """Waits for every job that is on the board now."""
    with opened(settings) as (_persistence, board):
        for job in board.iterjobs():
            job.wait()


class Extending(listeners.Listener):
    """Extends the claim whenever something of the flow changes its state."""

    def __init__(self, engine, job, seconds):
        super(Extending, self).__init__(engine)
        self._job, self._seconds = job, seconds

    def _extend(self, state, details):
        self._job.extend_expiry(self._seconds)

    _task_receiver = _flow_receiver = _retry_receiver = _extend


class Conductor(impl_blocking.BlockingConductor):

    def __init__(self, settings, *args, **kwargs):
        super(Conductor, self).__init__(*args, **kwargs)
        self.settings = settings

    def _listeners_from_job(self, job, engine):
        return super(Conductor, self)._listeners_from_job(job, engine) + [
            Extending(engine, job, self.settings.expiration_time)]

    def _on_job_done(self, job, future):
        super(Conductor, self)._on_job_done(job, future)
        print('done', job.name, flush=True)
        if (job.book and not self.settings.save_logbook and
                job.state == states.COMPLETE):
            with contextlib.suppress(exceptions.NotFound):
                self._persistence.get_connection().destroy_logbook(
                    job.book.uuid)


def keep(settings, name, stopped):
    """Extends what a conductor holds, as long as it is not stopped."""
    expiry = settings.expiration_time
    while not stopped.wait(expiry / 4.0):
        with opened(settings) as (_persistence, board):
            for job in board.iterjobs():
                try:
                    owner = board.find_owner(job)
                except TypeError:  # on Redis, of a job that nobody has
                    continue
                if owner == name and job.expires_in() < expiry / 2.0:
                    job.extend_expiry(expiry)


def work(settings, name):
    with opened(settings) as (persistence, board):
        conductor = Conductor(
            settings, name, board, persistence=persistence,
            engine=settings.engine,
            engine_options={'max_workers': settings.max_workers})
        board.claim = functools.partial(board.claim,
                                        expiry=settings.expiration_time)
        stopped = threading.Event()
        keeper = threading.Thread(target=keep, daemon=True,
                                  args=(settings, name, stopped))
        keeper.start()
        print('works as', name, flush=True)
        try:
            conductor.run()
        except KeyboardInterrupt:
            pass
        finally:
            stopped.set()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('conf', help='an octavia.conf')
    commands = parser.add_subparsers(dest='command', required=True)
    worker = commands.add_parser('work')
    worker.add_argument('name', help='whom the jobs are claimed as')
    poster = commands.add_parser('post')
    poster.add_argument('--jobs', type=int, default=3)
    poster.add_argument('--seconds', type=float, default=1.0,
                        help='how long a flow takes')
    poster.add_argument('--fail', action='store_true',
                        help='the last task of each flow fails')
    poster.add_argument('--no-wait', action='store_true')
    asked = parser.parse_args()
    settings = Settings(asked.conf)
    prepare(settings)
    if asked.command == 'work':
        work(settings, asked.name)
        return
    for _ in range(asked.jobs):
        print('posted', post(settings, {
            'loadbalancer_id': uuidutils.generate_uuid(),
            'seconds': asked.seconds, 'fail': asked.fail}), flush=True)
    if not asked.no_wait:
        wait(settings)


if __name__ == '__main__':
    main()
