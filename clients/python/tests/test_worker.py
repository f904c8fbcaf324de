"""The worker of the package boardd, against real servers."""

import os
import signal
import threading
import time
import unittest.mock

import boardd
from boardd import ending
from boardd import run
from tests import boards
from tests import server


class WorkerTest(boards.TestCase):

    def post(self, board, n):
        return [job['uuid'] for job in board.post_all([{'name': 'n%d' % i} for i in range(n)])]

    def state(self, board, uuid):
        job = board.get(uuid)
        return job['state'], job['attempt']

    def test_every_job_once(self):
        board = self.open()
        uuids = self.post(board, 60)
        seen, running, most, together = [], [], [], threading.Event()

        def handler(task):
            running.append(1)
            most.append(len(running))
            if most[-1] == 4:
                together.set()
            seen.append(task.uuid)
            self.assertTrue(together.wait(60), 'no four of them run at the same time')
            running.pop()
        work = boards.Working(self, board, handler, concurrency=4, until_empty=True)
        work.join()
        self.assertEqual(sorted(seen), sorted(uuids))
        self.assertEqual(max(most), 4)
        self.assertEqual(work.endings(), ['CONSUMED'] * 60)
        self.assertEqual(board.count()['claimed'], '0')

    def test_what_a_handler_raises(self):
        board = self.open()
        raised = {'trash': boardd.Trash('no such picture'), 'retry': boardd.Retry('the disk is full'),
                  'later': boardd.Retry('not before the hour', after=3600.0), 'cancel': boardd.CancelRequested('no'),
                  'other': ValueError('ä' * 5000)}
        uuids = {name: board.post(name)['uuid'] for name in raised}

        def handler(task):
            raise raised[task.job['name']]
        work = boards.Working(self, board, handler, max_jobs=5, concurrency=5)
        work.join()
        self.assertEqual({r.claim['job']['name']: (r.ending, r.error) for r in work.reports}, {
            'trash': ('TRASHED', raised['trash']), 'retry': ('ABANDONED', raised['retry']),
            'later': ('ABANDONED', raised['later']), 'cancel': ('CANCELED', raised['cancel']),
            'other': ('ABANDONED', raised['other'])})
        jobs = {name: board.get(uuid) for name, uuid in uuids.items()}
        self.assertEqual([jobs[n]['attempt'] for n in ('retry', 'later', 'other')], [0, 0, 1])
        self.assertEqual([jobs[n]['lastReason'] for n in ('trash', 'retry')], ['no such picture', 'the disk is full'])
        self.assertTrue(jobs['other']['lastReason'].startswith('ä' * 200))
        self.assertEqual((jobs['trash']['state'], jobs['cancel']['outcome']), ('TRASHED', 'CANCELED'))
        self.assertGreater(jobs['later']['notBefore'], jobs['retry']['notBefore'])

    def test_wrong_delays(self):
        class Unspeakable(Exception):
            def __str__(self):
                raise RuntimeError('no words')
        board = self.open()
        raised = {'inf': boardd.Retry('x', after=float('inf')), 'nan': boardd.Retry('x', after=float('nan')),
                  'negative': boardd.Retry('x', after=-1.0), 'text': boardd.Retry('x', after='5'),
                  'none': boardd.Retry('x', after=[]), 'unspeakable': Unspeakable()}
        uuids = {name: board.post(name)['uuid'] for name in raised}
        self.post(board, 2)
        together = threading.Barrier(8, timeout=60)

        def handler(task):
            together.wait()
            if task.job['name'] in raised:
                raise raised[task.job['name']]
        work = boards.Working(self, board, handler, max_jobs=8, concurrency=8)
        work.join()
        self.assertEqual(sorted(work.endings()), ['ABANDONED'] * 6 + ['CONSUMED'] * 2)
        self.assertEqual({name: self.state(board, uuid) for name, uuid in uuids.items()},
                         {name: ('UNCLAIMED', 1 if name == 'unspeakable' else 0) for name in raised})

    def test_an_ending_that_is_refused(self):
        board = self.open()
        self.post(board, 7)
        bad = board.post('bad')['uuid']
        together = threading.Barrier(8, timeout=60)

        def handler(task):
            together.wait()
            if task.uuid == bad:
                raise boardd.Retry('x', after=1.0)
        with unittest.mock.patch.object(ending, '_delay', lambda after: -1.0):
            work = boards.Working(self, board, handler, max_jobs=8, concurrency=8)
            work.join()
        self.assertEqual(sorted(work.endings()), ['CONSUMED'] * 7 + ['LOST'])

    def test_report_and_warn_that_fail(self):
        def fails(_):
            raise RuntimeError('of the program')
        board = self.open()
        uuids = self.post(board, 3)
        worker = boardd.Worker(board, lambda task: None, report=fails, warn=fails, max_jobs=3)
        with self.assertLogs('boardd', 'ERROR'):
            worker.run()
        self.assertEqual([self.state(board, uuid)[0] for uuid in uuids], ['COMPLETE'] * 3)

    def test_what_ends_the_worker_is_told(self):
        board = self.open()
        self.post(board, 2)
        told, second = [], threading.Event()

        def handler(task):
            if task.job['name'] == 'n0':
                second.wait(60)
                return
            second.set()
            task.wait(60)
            told.append(task.cause)
            ended.set()
        ended = threading.Event()
        worker = boardd.Worker(board, handler, concurrency=2)
        with unittest.mock.patch.object(run.Run, '_returned', side_effect=RuntimeError('broken')):
            self.assertRaises(RuntimeError, worker.run)
        self.assertTrue(ended.wait(60))
        self.assertIsInstance(told[0], boardd.LeaseLost)

    def test_extends(self):
        board = self.open()
        uuid, = self.post(board, 1)

        def handler(task):
            seen = {task.claim['leaseExpiresAt']}
            while len(seen) < 5:
                self.assertFalse(task.wait(0.02))
                seen.add(board.get(uuid)['leaseExpiresAt'])
        work = boards.Working(self, board, handler, max_jobs=1, lease=4.0)
        work.join()
        self.assertEqual([(r.claim['attempt'], r.ending) for r in work.reports], [(1, 'CONSUMED')])

    def test_canceled(self):
        board = self.open()
        uuid, = self.post(board, 1)
        handler = boards.Endless()
        work = boards.Working(self, board, handler, max_jobs=1)
        self.assertTrue(handler.begun.wait(60))
        board.cancel(uuid, force=True)
        self.assertIs(handler.cause(self), boardd.CancelRequested)
        work.join()
        self.assertEqual((work.endings(), board.get(uuid)['outcome']), (['CANCELED'], 'CANCELED'))

    def test_taken_away(self):
        board = self.open()
        uuid, = self.post(board, 1)
        handler = boards.Endless()
        work = boards.Working(self, board, handler, max_jobs=1)
        self.assertTrue(handler.begun.wait(60))
        board.call('ReleaseJobs', {'uuids': [uuid], 'reason': 'test'})
        self.assertIs(handler.cause(self), boardd.LeaseLost)
        work.join()
        self.assertEqual(work.endings(), ['LOST'])
        self.assertEqual(board.claim('next')[0]['uuid'], uuid)

    def test_timeouts(self):
        board = self.open()
        uuids = board.post('worker')['uuid'], board.post('job', timeout=4.0)['uuid']
        for options in ({'names': ['worker'], 'timeout': 0.05}, {'names': ['job']}):
            handler = boards.Endless()
            work = boards.Working(self, board, handler, max_jobs=1, **options)
            self.assertIs(handler.cause(self), boardd.TimedOut)
            work.join()
            self.assertEqual(work.endings(), ['ABANDONED'])
        for uuid in uuids:
            job = board.get(uuid)
            self.assertEqual((job['attempt'], job['lastReason']), (1, 'timeout'))

    def test_stops(self):
        board = self.open()
        uuid, = self.post(board, 1)
        handler = boards.Endless()
        work = boards.Working(self, board, handler, concurrency=2)
        self.assertTrue(handler.begun.wait(60))
        work.worker.stop()
        self.assertIs(handler.cause(self), boardd.Stopping)
        work.join()
        self.assertEqual((work.endings(), self.state(board, uuid)), (['ABANDONED'], ('UNCLAIMED', 0)))

    def test_stops_as_a_job_comes(self):
        board = self.open()
        for i in range(10):
            work = boards.Working(self, board, lambda task: None)
            self.eventually(lambda: work.worker.owner in self.workers(board), 'the worker waits')
            posting = threading.Thread(target=board.post, args=('x',), kwargs={'uuid': '00000000-0000-4000-8000-%012d' % i})
            posting.start()
            time.sleep((i % 5) / 1000)
            work.worker.stop()
            work.join()
            posting.join()
            uuid = '00000000-0000-4000-8000-%012d' % i
            if work.reports:
                self.assertEqual(board.get(uuid)['state'], 'COMPLETE')
            else:
                self.assertEqual(self.state(board, uuid), ('UNCLAIMED', 0))
                board.cancel(uuid)

    def workers(self, board):
        return [e['name'] for e in board.call('ListEntities')['entities']]

    def test_is_listed(self):
        board = self.open()
        work = boards.Working(self, board, lambda task: None, owner='me', labels={'gpu': 'yes'})
        self.eventually(lambda: self.workers(board) == ['me'], 'it is listed')
        work.worker.stop()
        work.join()
        self.eventually(lambda: not self.workers(board), 'it is listed no more')

    def test_lost_answers(self):
        line = self.line()
        board = self.open(line.port)
        uuids = self.post(board, 40)
        seen = []
        line.lose_answers('Work', 5)
        work = boards.Working(self, board, lambda task: seen.append(task.uuid), concurrency=3, until_empty=True)
        work.join()
        self.assertEqual((line.lost, sorted(seen)), (5, sorted(uuids)))
        self.assertEqual(work.endings(), ['CONSUMED'] * 40)

    def test_notices_lost(self):
        # They are lost with the first answer to a call that brings an ending, or with
        # that to a wait that the worker called off as a handler came free.
        for called_off in False, True:
            board = self.open()
            endless, told, waits = boards.Endless(), threading.Event(), threading.Event()
            long, short = self.post(board, 2)
            call = board.client.call

            def lossy(method, request, **options):
                if method == 'Work' and not request['max'] and not request['endings'] and told.is_set():
                    waits.set()
                answer = call(method, request, **options)
                if method == 'Work':
                    if answer.message['notices']:
                        told.set()
                    answer.message['notices'] = []
                    if request['endings'] and not called_off:
                        answer = answer._replace(tries=2)
                return answer

            def handler(task):
                if task.uuid == long:
                    endless(task)
                elif task.uuid == short:
                    self.assertTrue(endless.begun.wait(60))
                    board.cancel(long, force=True)
                    self.assertTrue(waits.wait(60))

            with unittest.mock.patch.object(board.client, 'call', lossy):
                work = boards.Working(self, board, handler, concurrency=2, max_jobs=3 if called_off else 2, lease=3600.0)
                if called_off:  # the next wait ends with a job
                    self.eventually(lambda: work.reports, 'the short job has ended')
                    self.post(board, 1)
                self.assertIs(endless.cause(self), boardd.CancelRequested)
                work.join()

    def test_cuts(self):
        line = self.line()
        board = self.open(line.port)
        uuids = self.post(board, 40)
        seen = []

        def handler(task):
            seen.append(task.uuid)
            if len(seen) % 5 == 0:
                line.cut()
        work = boards.Working(self, board, handler, concurrency=3, max_jobs=40)
        work.join()
        self.assertEqual(sorted(seen), sorted(uuids))
        self.assertEqual(work.endings(), ['CONSUMED'] * 40)

    def test_server_killed(self):
        mine = server.Server(['b'])
        self.addCleanup(mine.close)
        board = self.open(mine.port, 'b')
        self.post(board, 30)
        seen = []

        def handler(task):
            seen.append(task.uuid)
            if len(seen) in (10, 20):
                mine.kill()
                mine.start()
        work = boards.Working(self, board, handler, concurrency=2, max_jobs=30)
        work.join()
        counts = board.count()
        self.assertEqual((len(set(seen)), counts['unclaimed'], counts['claimed']), (30, '0', '0'))
        self.assertEqual(work.endings(), ['CONSUMED'] * 30)

    def test_server_frozen(self):
        mine = server.Server(['b'])
        self.addCleanup(mine.close)
        board = self.open(mine.port, 'b')
        uuid, = self.post(board, 1)
        handler, runs = boards.Endless(), []

        def once(task):
            runs.append(task)
            if len(runs) == 1:
                handler(task)
        work = boards.Working(self, board, once, max_jobs=2, lease=4.0)
        self.assertTrue(handler.begun.wait(60))
        mine.process.send_signal(signal.SIGSTOP)
        try:
            self.assertIs(handler.cause(self), boardd.LeaseLost)
        finally:
            mine.process.send_signal(signal.SIGCONT)
        work.join()
        self.assertEqual((work.endings(), board.get(uuid)['state']), (['LOST', 'CONSUMED'], 'COMPLETE'))

    def test_token_revoked(self):
        board = self.open()
        secret = self.admin('CreateToken', {'name': 'short-lived', 'roles': ['worker']})['secret']
        self.post(board, 1)
        handler = boards.Endless()
        work = boards.Working(self, self.open(name=board.name, token=secret), handler, concurrency=2)
        self.assertTrue(handler.begun.wait(60))
        self.admin('RevokeToken', {'name': 'short-lived'})
        self.assertIs(handler.cause(self), boardd.LeaseLost)
        work.join()
        self.assertEqual((work.endings(), work.error.kind), (['LOST'], 'UNAUTHENTICATED'))

    def test_may_not_work(self):
        board = self.open()
        secret = self.admin('CreateToken', {'name': 'reader', 'roles': ['viewer']})['secret']
        worker = boardd.Worker(self.open(name=board.name, token=secret), lambda task: None)
        self.fails('PERMISSION_DENIED', worker.run)
        self.fails('INVALID', boardd.Worker, board, lambda task: None, concurrency=0)

    def test_interrupted_from_the_keyboard(self):
        board = self.open()
        uuid, = self.post(board, 1)
        handler = boards.Endless()

        def interrupt():
            handler.begun.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        with self.assertRaises(KeyboardInterrupt):
            boardd.Worker(board, handler).run()
        self.assertIs(handler.cause(self), boardd.Stopping)
        self.assertEqual(self.state(board, uuid), ('UNCLAIMED', 0))
