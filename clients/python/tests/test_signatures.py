"""What TaskFlow's own two jobboards and their jobs have, this one has as well.

Compared is what is installed, so that a newer TaskFlow with something more
fails here. What is not the same is in README.md's table, and the table is held
against the code.
"""

import functools
import inspect
import os
import re
import socket

from taskflow import exceptions as exc
from taskflow.jobs import backends
from taskflow.jobs import base as taskflow_base
from taskflow.jobs.backends import impl_redis
from taskflow.jobs.backends import impl_zookeeper

import boardd_taskflow
from boardd_taskflow import claims
from boardd_taskflow import names
from boardd_taskflow import watcher
from tests import base

BOARDS = (impl_redis.RedisJobBoard, impl_zookeeper.ZookeeperJobBoard)
JOBS = (impl_redis.RedisJob, impl_zookeeper.ZookeeperJob)


def public(thing):
    """Returns the names of what an object or a class shows."""
    return {n for n in dir(thing) if not n.startswith('_')}


def parameters(function):
    return list(inspect.signature(function).parameters.values())


def differing(theirs, ours, what):
    """Yields the parameters of a method of TaskFlow's that ours has not, or
    has with another default, as ``what(name=)``, and how."""
    mine = parameters(ours)
    for position, wanted in enumerate(parameters(theirs)):
        shown = '%s(%s=)' % (what, wanted.name)
        found = [p for p in mine if p.name == wanted.name]
        if not found:
            yield shown, "is missing"
        elif found[0].kind != wanted.kind:
            yield shown, "is of another kind"
        elif found[0].default != wanted.default:
            yield shown, "has another default"
        elif what != 'Board' and mine.index(found[0]) != position:
            yield shown, "is in another place"


def compare(theirs, ours, what):
    """Returns what a class of TaskFlow's has and ours has not: name -> how."""
    found = {}
    for name in public(theirs):
        shown = '%s.%s' % (what, name)
        if not hasattr(ours, name):
            found[shown] = "is missing"
            continue
        value, own = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(value):
            found.update(differing(value, own, shown))
        elif type(value) is not type(own) and not is_property(value, own):
            found[shown] = "is something else"
        elif isinstance(value, (bytes, str)) and value != own:
            found[shown] = "has another value"
    return found


def is_property(value, own):
    # TaskFlow's cached properties are classes of their own.
    return isinstance(own, property) and hasattr(value, '__get__')


def compare_all(boards=BOARDS, jobs=JOBS):
    found = {}
    for board in boards:
        found.update(compare(board, boardd_taskflow.BoarddJobBoard, 'board'))
        found.update(differing(board.__init__,
                               boardd_taskflow.BoarddJobBoard.__init__,
                               'Board'))
    for job in jobs:
        found.update(compare(job, boardd_taskflow.BoarddJob, 'job'))
    return found


def table():
    """Returns README.md's table: name -> what it is here."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in ('../source', '..'):
        path = os.path.join(here, folder, 'README.md')
        if os.path.exists(path):
            break
    with open(path, encoding='utf-8') as f:
        part = f.read().split("\n## What TaskFlow's own boards have\n")[1]
    rows = {}
    for line in part.split('\n## ')[0].splitlines():
        cells = [c.strip() for c in line.strip('|').split('|')]
        for name in re.findall('`([^`]+)`', cells[0]):
            if line.startswith('|'):
                assert name not in rows, name
                rows[name] = cells[1]
    return rows


class SignaturesTest(base.TestCase):

    def test_nothing_is_missing(self):
        """What differs is said in the table, and nothing else differs."""
        rows, differs = table(), compare_all()
        absent = {'board.' + n for n in names.ABSENT}
        self.assertEqual(absent, {n for n, how in differs.items()
                                  if how == "is missing"})
        self.assertEqual({'board.connect(timeout=)'}, set(differs) - absent)
        self.assertEqual(set(), set(differs) - set(rows))

    def test_a_difference_is_found(self):
        class Board(impl_redis.RedisJobBoard):
            NEWER = b'newer'
            KEY_PIECE_SEP = b'/'

            def __init__(self, name, conf, newer=None):
                pass

            @property
            def newer(self):
                pass

            def wait(self, timeout=60, initial_delay=0.005, newer=None):
                pass

        class Job(impl_redis.RedisJob):
            key = 'no property'

            def newer(self):
                pass

        before = compare_all()
        after = compare_all(BOARDS + (Board,), JOBS + (Job,))
        self.assertEqual({
            'board.NEWER': "is missing", 'board.newer': "is missing",
            'board.KEY_PIECE_SEP': "has another value",
            'board.wait(timeout=)': "has another default",
            'board.wait(newer=)': "is missing",
            'Board(newer=)': "is missing",
            'job.key': "is something else", 'job.newer': "is missing",
        }, {n: how for n, how in after.items() if n not in before})

    def test_the_table(self):
        """Each row is of something that TaskFlow has, and of nothing else."""
        theirs = {'Job(...)'}
        for what, classes in (('board', BOARDS), ('job', JOBS)):
            for cls in classes:
                theirs |= {'%s.%s' % (what, n) for n in public(cls)}
                theirs |= {'%s.%s(%s=)' % (what, n, p.name)
                           for n in public(cls)
                           if inspect.isfunction(getattr(cls, n))
                           for p in parameters(getattr(cls, n))[1:]}
        for cls in BOARDS:
            theirs |= {'Board(%s=)' % p.name
                       for p in parameters(cls.__init__)[1:]}
        rows = table()
        self.assertEqual(set(), set(rows) - theirs)
        # Whatever is not of every jobboard is in a row.
        common = {'board.' + n for n in public(taskflow_base.JobBoard)}
        common |= {'job.' + n for n in public(taskflow_base.Job)}
        special = {n for n in theirs if '(' not in n} - common
        special |= {'Board(%s=)' % p.name for cls in BOARDS
                    for p in parameters(cls.__init__)[3:]}
        special |= {'board.wait(%s=)' % p.name for cls in BOARDS
                    for p in parameters(cls.wait)[2:]}
        self.assertEqual(set(), special - set(rows))
        for name, why in names.ABSENT.items():
            self.assertEqual("not here: " + why, rows['board.' + name])
        self.assertEqual("not here: " + names.MADE_BY_BOARD, rows['Job(...)'])
        said = {n for n, text in rows.items() if text.startswith("not here")}
        self.assertEqual({'board.' + n for n in names.ABSENT} | {'Job(...)'},
                         said)

    def test_what_is_not_here_says_why(self):
        board = self.make()
        for name, why in names.ABSENT.items():
            e = self.assertRaises(AttributeError, getattr, board, name)
            self.assertIn(why, str(e))
        e = self.assertRaises(AttributeError, getattr, board, 'nonesuch')
        self.assertIn("nonesuch", str(e))
        job = boardd_taskflow.BoarddJob
        for args, more in (((board, 'name', 1, b'key'), {}),
                           ((board, 'name', None, '/jobs/job1'), {}),
                           ((board,), {'name': 'n', 'sequence': 1, 'key': b''}),
                           ((board,), {'uuid': 'u'})):
            e = self.assertRaises(TypeError, job, *args, **more)
            self.assertIn(names.MADE_BY_BOARD, str(e))


class ArgumentsTest(base.TestCase):
    """What TaskFlow's constructors and waits take."""

    def test_a_client_is_left_alone(self):
        class Client(object):
            def __getattr__(self, name):
                raise AssertionError("the client was used: " + name)

        with self.assertLogs('boardd_taskflow.board', 'WARNING') as logs:
            board = backends.fetch('jobs', self.conf(), client=Client())
        self.addCleanup(board.close)
        self.assertIn("leaves the given client", logs.output[0])
        board.connect(timeout=60)
        job = board.post('job')
        self.assertEqual([job], list(board.iterjobs()))

    def test_by_position(self):
        board = boardd_taskflow.BoarddJobBoard('jobs', self.conf(), None,
                                               'persistence', False)
        self.addCleanup(board.close)
        board.connect()
        self.assertEqual('persistence', board.post('job')._backend)

    def test_emit_notifications(self):
        silent = backends.fetch('jobs', self.conf(), emit_notifications=False)
        self.addCleanup(silent.close)
        silent.connect()
        loud = self.open()
        heard = {silent: [], loud: []}
        for board in (silent, loud):
            for event in (taskflow_base.POSTED, watcher.CLAIM_LOST):
                board.notifier.register(
                    event, functools.partial(
                        lambda b, e, details: heard[b].append(e), board))
        self.assertIsNone(silent._watcher._thread)
        loud.post('job')
        self.eventually(lambda: heard[loud], "an event")
        silent._on_lost(claims.Claim({'uuid': 'u', 'owner': 'me',
                                      'token': 't'}, 0.0, None))
        self.assertEqual([], heard[silent])

    def test_connect_gives_up_in_time(self):
        gone = socket.create_server(('127.0.0.1', 0))
        port = gone.getsockname()[1]
        gone.close()
        board = self.make(port=port, timeout=3600.0)
        self.assertRaises(exc.JobFailure, board.connect, timeout=0.5)

    def test_wait(self):
        def never(seconds):
            raise AssertionError("slept")

        board = self.open()
        self.assertRaises(ValueError, board.wait, initial_delay=2, max_delay=1)
        self.assertRaises(exc.NotFound, board.wait, 0.01, 0.005, 1.0, never)
        job = board.post('job')
        self.assertEqual([job], list(board.wait(
            timeout=60, initial_delay=0.001, max_delay=0.1,
            sleep_func=never)))


class NamesTest(base.TestCase):
    """The names are those that TaskFlow makes of the same configuration."""

    def setUp(self):
        super(NamesTest, self).setUp()
        self.redis = impl_redis.RedisJobBoard('r', {'namespace': 'a:b'})
        self.addCleanup(self.redis.close)
        self.zookeeper = impl_zookeeper.ZookeeperJobBoard(
            'z', {'path': '/jobs/of/jobs'})
        self.addCleanup(self.zookeeper.close)
        self.board = self.open(namespace='a:b', path='/jobs/of/jobs')

    def test_of_a_board(self):
        for theirs, attributes in (
                (self.redis, ('namespace', 'listings_key', 'trash_key',
                              'sequence_key')),
                (self.zookeeper, ('path', 'trash_path', 'entity_path'))):
            for name in attributes:
                self.assertEqual(getattr(theirs, name),
                                 getattr(self.board, name), name)
        for pieces in ((b'a',), ('a', b'b', 'c')):
            self.assertEqual(self.redis.join(*pieces),
                             self.board.join(*pieces))

    def test_of_a_job(self):
        job = self.board.post('job')
        self.redis._redis_version = (7, 0)
        theirs = impl_redis.RedisJob(self.redis, 'job', job.sequence,
                                     job.uuid.encode('ascii'), uuid=job.uuid)
        for name in ('key', 'owner_key', 'last_modified_key', 'sequence'):
            self.assertEqual(getattr(theirs, name), getattr(job, name), name)
        theirs = impl_zookeeper.ZookeeperJob(
            self.zookeeper, 'job', None,
            '/jobs/of/jobs/job%010d' % job.sequence, uuid=job.uuid)
        for name in ('path', 'lock_path', 'root', 'sequence'):
            self.assertEqual(getattr(theirs, name), getattr(job, name), name)

    def test_without_a_configuration_the_board_has_its_name(self):
        board = self.open()
        self.assertEqual(self.name.encode('ascii'), board.namespace)
        self.assertEqual(self.name.encode('ascii') + b':listings',
                         board.listings_key)
        self.assertEqual('/' + self.name, board.path)
        self.assertNotEqual(board.listings_key, self.board.listings_key)

    def test_wrong_names(self):
        for more, said in (({'path': 'jobs'}, "absolute"),
                           ({'path': '/jobs/'}, "absolute"),
                           ({'path': '/jobs/../other'}, "absolute"),
                           ({'namespace': ''}, "non-empty")):
            e = self.assertRaises(ValueError, self.make, **more)
            self.assertIn(said, str(e))
        for name, value in (('path', '/jobs'), ('namespace', 'jobs')):
            # As a configuration of TaskFlow's that says which board.
            e = self.assertRaises(ValueError, self.make, board_name=None,
                                  **{name: value})
            self.assertIn("board_name", str(e))
