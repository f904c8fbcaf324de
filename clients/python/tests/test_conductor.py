"""Real conductors with real logbooks."""

import collections
import json
import os
import subprocess
import sys
import threading
import time

from taskflow.conductors import backends as conductor_backends
from taskflow import engines
from taskflow.persistence import backends as persistence_backends
from taskflow.persistence import models
from taskflow import states

from tests import base
from tests import flows
from tests import octavia


class ConductorCase(base.TestCase):

    def setUp(self):
        super(ConductorCase, self).setUp()
        self.folder = self.makeTmpDir()
        self.path = os.path.join(self.folder, 'notes')
        self.persistence_conf = {'connection': 'dir', 'path': self.folder}
        self.persistence = persistence_backends.fetch(self.persistence_conf)
        self.persistence.get_connection().upgrade()

    def post(self, board, text, factory=flows.noting, **store):
        book = models.LogBook(text)
        flow = models.FlowDetail(text, book.uuid)
        book.add(flow)
        self.persistence.get_connection().save_logbook(book)
        engines.save_factory_details(flow, factory, [], {},
                                     backend=self.persistence)
        store.update(path=self.path, text=text)
        return board.post(text, book=book, details={'store': store})

    def notes(self):
        try:
            with open(self.path) as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def run_conductor(self, board, kind='blocking', name='conductor'):
        conductor = conductor_backends.fetch(
            kind, name, board, persistence=self.persistence, engine='serial',
            wait_timeout=0.1)
        thread = threading.Thread(target=conductor.run, daemon=True)
        thread.start()

        def stop():
            conductor.stop()
            thread.join(base.PATIENCE)
            self.assertFalse(thread.is_alive())

        self.addCleanup(stop)
        return conductor


class ConductorTest(ConductorCase):

    def check(self, kind):
        board, poster = self.open(persistence=self.persistence), self.open()
        jobs = [self.post(poster, 'job%d' % n) for n in range(5)]
        self.run_conductor(board, kind)
        jobs += [self.post(poster, 'late%d' % n) for n in range(5)]
        for job in jobs:
            self.assertTrue(job.wait(base.PATIENCE))
        self.assertEqual(sorted(j.name for j in jobs), sorted(self.notes()))
        self.assertEqual(0, board.job_count)

    def test_blocking(self):
        self.check('blocking')

    def test_nonblocking(self):
        self.check('nonblocking')

    def test_it_says_that_it_is_there(self):
        board = self.open(persistence=self.persistence)
        conductor = self.run_conductor(board)
        self.eventually(
            lambda: [e['name'] for e in board._client.call(
                'ListEntities')['entities']] == [conductor.conductor.name],
            "it is registered")

    def test_a_flow_that_is_longer_than_its_lease(self):
        for kind in ('blocking', 'nonblocking'):
            self.name = base.server.board_name()
            poster = self.open()
            boards = [self.open(persistence=self.persistence, lease=4)
                      for _ in range(2)]
            job = self.post(poster, kind, flows.dawdling, seconds=6)
            for n, board in enumerate(boards):  # the second one looks on
                self.run_conductor(board, kind, 'conductor%d' % n)
            self.assertTrue(job.wait(base.PATIENCE))
            self.assertEqual([kind], self.notes()[-1:])
        self.assertEqual(['blocking', 'nonblocking'], self.notes())

    def test_a_bad_job_is_consumed(self):  # as TaskFlow has it
        board = self.open(persistence=self.persistence)
        job = self.post(self.open(), 'bad', flows.failing)
        self.run_conductor(board)
        self.assertTrue(job.wait(base.PATIENCE))

    def test_several_drain_one_board(self):
        poster = self.open()
        jobs = [self.post(poster, 'job%d' % n) for n in range(30)]
        for n in range(3):
            self.run_conductor(self.open(persistence=self.persistence),
                               name='conductor%d' % n)
        for job in jobs:
            self.assertTrue(job.wait(base.PATIENCE))
        self.assertEqual({j.name: 1 for j in jobs},
                         dict(collections.Counter(self.notes())))

    def test_the_server_restarts_under_a_conductor(self):
        self.server = base.server.Server([self.name])
        self.addCleanup(self.server.close)
        board = self.open(persistence=self.persistence, timeout=60)
        poster = self.open(timeout=60)
        conductor = self.run_conductor(board)
        first = self.post(poster, 'first')
        self.assertTrue(first.wait(base.PATIENCE))
        self.server.kill()
        time.sleep(0.5)
        self.server.start()
        second = self.post(poster, 'second')
        self.assertTrue(second.wait(base.PATIENCE))
        self.assertTrue(conductor.dispatching)
        self.assertEqual(['first', 'second'], self.notes())


class DeathTest(ConductorCase):

    def start(self, name):
        process = subprocess.Popen(
            [sys.executable, '-m', 'tests.program',
             json.dumps(self.conf(lease=2)), self.folder, name],
            preexec_fn=base.server._die_with_parent)

        def stop():
            process.kill()
            process.wait()

        self.addCleanup(stop)
        return process

    def test_another_goes_on_with_the_job(self):
        board = self.open()
        job = self.post(board, 'job', flows.dying)
        first = self.start('first')
        self.assertEqual(-9, first.wait(base.PATIENCE))
        self.assertEqual([], self.notes())
        self.start('second')
        self.assertTrue(job.wait(base.PATIENCE))
        self.assertEqual(['job'], self.notes())


class OctaviaTest(ConductorCase):

    def test_its_pattern(self):
        expiry = 4
        service = octavia.Service(self.conf(), self.persistence_conf, expiry)
        with self.thread(lambda: service.run('conductor')):
            try:
                # The first job outlasts the expiry with no task that changes.
                for name, factory in (('long', flows.dawdling),
                                      ('short', flows.noting)):
                    service.post(name, factory, {'seconds': 2 * expiry,
                                                 'path': self.path,
                                                 'text': name})
            finally:
                service.stop()
        self.assertEqual(['long', 'short'], self.notes())
        self.assertTrue(service.extended >= 1, service.extended)
        board = self.open()
        self.assertEqual(0, board.job_count)

    def test_the_poster_waits_for_all(self):
        board = self.open()
        job = board.post('of another')
        board.claim(job, 'another')
        service = octavia.Service(self.conf(), self.persistence_conf, 30)
        waits = threading.Event()

        def post():
            service.post('mine', flows.noting, {'path': self.path,
                                                'text': 'mine'})
            waits.set()

        with self.thread(post):
            mine = []

            def posted():
                mine[:] = [j for j in board.iterjobs() if j.name == 'mine']
                return mine

            self.eventually(posted, "it is posted")
            board.claim(mine[0], 'me')
            board.consume(mine[0], 'me')
            self.assertFalse(waits.is_set())
            board.consume(job, 'another')
        self.assertTrue(waits.is_set())
        self.assertEqual(states.COMPLETE, job.state)
