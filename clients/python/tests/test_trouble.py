"""Answers that are lost, servers that go and come back, wrong settings."""

from concurrent import futures
import os
import threading
import time

from taskflow import exceptions as exc
from taskflow.jobs import backends
from taskflow import states

from boardd_taskflow import options
from tests import base
from tests import server


class LostAnswerTest(base.TestCase):
    """The server did it, and the connection broke before it could say so."""

    def setUp(self):
        super(LostAnswerTest, self).setUp()
        self.line = server.Line(self.server.port)
        self.addCleanup(self.line.close)
        self.board = self.open(port=self.line.port)

    def test_post(self):
        self.line.lose_answers('PostJobs', 2)
        job = self.board.post('job')
        self.assertEqual(2, self.line.lost)
        self.assertEqual([job], list(self.board.iterjobs()))

    def test_claim(self):
        job = self.board.post('job')
        self.line.lose_answers('ClaimJobs', 2)
        self.board.claim(job, 'me')
        self.assertEqual(2, self.line.lost)
        self.assertEqual('me', self.board.find_owner(job))
        self.board.consume(job, 'me')

    def test_claim_that_is_given_up(self):
        board = self.open(port=self.line.port, timeout=3, lease=1)
        job = board.post('job')
        self.line.lose_answers('ClaimJobs', 1000)
        self.assertRaises(exc.JobFailure, board.claim, job, 'me')
        self.line.lose_answers('', 0)
        # Nobody knows of the claim, and so it does not last.
        self.eventually(lambda: job.state == states.UNCLAIMED, "it is free")

    def test_endings(self):
        for call, ending, state in (
                ('ConsumeJobs', 'consume', states.COMPLETE),
                ('AbandonJobs', 'abandon', states.UNCLAIMED),
                ('TrashJobs', 'trash', states.COMPLETE)):
            job = self.board.post('job')
            self.board.claim(job, 'me')
            self.line.lose_answers(call)
            getattr(self.board, ending)(job, 'me')
            self.assertEqual(state, job.state)
        self.assertEqual(3, self.line.lost)

    def test_extend(self):
        job = self.board.post('job')
        self.board.claim(job, 'me', expiry=20)
        self.line.lose_answers('ExtendClaims')
        self.assertIs(True, job.extend_expiry(100))
        self.assertEqual(1, self.line.lost)

    def test_an_ending_by_name_is_not_repeated(self):
        board = self.open(port=self.line.port, board_name='by-name')
        job = board.post('job')
        board.claim(job, 'me')
        from tests import test_claims
        test_claims.forget(job, board)
        self.line.lose_answers('ConsumeJobs')
        self.assertRaises(exc.JobFailure, board.consume, job, 'me')
        self.assertEqual(1, self.line.calls.count('ConsumeJobs'))

    def test_reading(self):
        job = self.board.post('job')
        self.line.lose_answers('ListJobs', 2)
        self.assertEqual([job], list(self.board.iterjobs()))
        self.line.lose_answers('GetJobs', 2)
        self.assertEqual(states.UNCLAIMED, job.state)

    def test_waits_survive_a_cut(self):
        job = self.board.post('job')
        other = self.open()
        with self.thread(job.wait):
            self.eventually(lambda: 'GetJobs' in self.line.calls, "a call")
            self.line.cut()
            other.claim(job, 'me')
            other.consume(job, 'me')

    def test_claims_survive_a_cut(self):
        board = self.open(port=self.line.port, lease=6)
        job = board.post('job')
        board.claim(job, 'me')
        first = job.claim.deadline
        end = time.monotonic() + 3
        while time.monotonic() < end:
            self.line.cut()
            time.sleep(0.1)
        self.eventually(lambda: job.claim.deadline > first, "an extension")
        self.assertFalse(job.claim.lost)
        board.consume(job, 'me')


class ServerTest(base.TestCase):
    """Servers of the tests' own, which are stopped and killed."""

    def setUp(self):
        super(ServerTest, self).setUp()
        self.server = server.Server([self.name])
        self.addCleanup(self.server.close)

    def test_killed_and_started_again(self):
        board = self.open(timeout=60)
        jobs = [board.post('job') for _ in range(3)]
        board.claim(jobs[0], 'me')
        self.server.kill()
        done = []
        with self.thread(lambda: done.append(board.post('while it is gone'))):
            time.sleep(0.3)
            self.server.start()
        self.assertEqual(4, len(list(board.iterjobs())))
        self.assertEqual('me', board.find_owner(jobs[0]))
        board.consume(jobs[0], 'me')
        self.assertEqual(jobs[1:] + done, list(board.iterjobs()))

    def test_gone(self):
        board = self.open()
        job = board.post('job')
        self.server.kill()
        board._options.timeout = 0.5
        for call in (lambda: job.state, lambda: board.job_count,
                     lambda: board.post('job'),
                     lambda: list(board.iterjobs()),
                     lambda: board.claim(job, 'me'),
                     lambda: board.consume(job, 'me'),
                     lambda: self.open(timeout=0.5)):
            e = self.assertRaises(exc.JobFailure, call)
            self.assertNotIsInstance(e, exc.UnclaimableJob)
        self.assertTrue(board.connected)

    def test_the_other_address(self):
        other = server.Server([self.name])
        self.addCleanup(other.close)
        board = self.open(host=None, port=None, timeout=60, address=[
            '127.0.0.1:%d' % self.server.port,
            'http://127.0.0.1:%d' % other.port])
        board.post('job')
        self.server.kill()
        self.assertEqual(0, board.job_count)  # another store, for the test
        self.assertEqual(0, board.job_count)

    def test_lost_by_a_long_absence(self):
        board = self.open(lease=1, timeout=60)
        job = board.post('job')
        board.claim(job, 'me')
        claim = job.claim
        self.server.kill()
        self.eventually(lambda: claim.lost, "the loss is noticed")
        self.server.start()
        self.eventually(lambda: job.state == states.UNCLAIMED, "it is free")
        self.assertRaises(exc.NotFound, board.consume, job, 'me')


class SettingsTest(base.TestCase):

    def test_refusals_of_the_server(self):
        for more, word in (({'token': 'wrong-wrong-wrong-wrong'}, 'unauth'),
                           ({'token': None}, 'unauth'),
                           ({'board_name': 'nowhere'}, 'nowhere'),
                           ({'token': None, 'token_file': '/nowhere/at-all'},
                            'connect')):
            board = self.make(**more)
            e = self.assertRaises(exc.JobFailure, board.connect)
            self.assertIn(word, str(e))
            self.assertFalse(board.connected)

    def test_wrong_settings(self):
        for more, word in (({'token_fil': 'x'}, "did you mean 'token_file'"),
                           ({'name_space': 'x'}, "did you mean 'namespace'"),
                           ({'timeout': 'soon'}, 'timeout'),
                           ({'timeout': 0}, 'timeout'),
                           ({'lease': 0.5}, 'lease'),
                           ({'expiry': -1}, 'expiry'),
                           ({'board_name': 'A B'}, 'board_name'),
                           ({'board_name': 'x' * 64}, 'board_name'),
                           ({'details': 'xml'}, 'details'),
                           ({'token_file': 'x'}, 'either token or'),
                           ({'address': 'x'}, 'either address or'),
                           ({'host': None, 'address': 'ftp://x'}, 'address'),
                           ({'host': None, 'address': 'http://x/y'},
                            'address'),
                           ({'host': None, 'address': 'http://x:y'},
                            'address'),
                           ({'host': None, 'address': []}, 'address'),
                           ({'host': None, 'address': 'http://x',
                             'ssl': 'true'}, 'ssl'),
                           ({'key_file': 'x'}, 'key_file'),
                           ({'worker_labels': 'x'}, 'worker_labels'),
                           ({'worker_labels': {'x': 1}}, 'worker_labels'),
                           ({'port': 70000}, 'port')):
            e = self.assertRaises(ValueError, self.make, **more)
            self.assertIn(word, str(e))
            self.assertNotIn(server.TOKEN, str(e))

    def test_addresses(self):
        for conf, want in (
                ({}, [(False, '127.0.0.1', 7422)]),
                ({'host': 'h'}, [(False, 'h', 7422)]),
                ({'host': '::1', 'port': '8'}, [(False, '::1', 8)]),
                ({'hostname': '::1:8', 'port': 8}, [(False, '::1', 8)]),
                ({'hostname': 'h'}, [(False, 'h', 7422)]),
                ({'host': 'h', 'ssl': 'yes'}, [(True, 'h', 7422)]),
                ({'host': 'h', 'ca_file': 'f'}, [(True, 'h', 7422)]),
                ({'address': 'https://h, http://i:9,j:10'},
                 [(True, 'h', 7422), (False, 'i', 9), (False, 'j', 10)]),
                ({'address': ['[::1]:9']}, [(False, '::1', 9)])):
            self.assertEqual(want, options.Options(conf).addresses)

    def test_worker_labels(self):
        for given in ('zone=a, size=b=c', {'zone': 'a', 'size': 'b=c'}):
            board = self.open(worker_labels=given)
            self.assertEqual({'zone': 'a', 'size': 'b=c'},
                             board._options.worker_labels)
            board.claim(board.post('job'), 'me')

    def test_a_uri(self):
        board = backends.fetch('jobs', 'boardd://127.0.0.1:%d/?token=%s'
                               '&board_name=%s&timeout=20'
                               % (self.server.port, server.TOKEN, self.name))
        self.addCleanup(board.close)
        board.connect()
        self.assertEqual(0, board.job_count)

    def test_a_token_that_is_changed(self):
        path = os.path.join(self.makeTmpDir(), 'token')
        write(path, server.TOKEN + '\n')
        board = self.open(token=None, token_file=path)
        board._client._secret = 'an-old-token-of-yesterday'
        self.assertEqual(0, board.job_count)
        write(path, 'not-a-token-of-the-server')
        board._client._secret = 'an-old-token-of-yesterday'
        self.assertRaises(exc.JobFailure, lambda: board.job_count)

    def test_a_token_that_is_changed_under_calls(self):
        path = os.path.join(self.makeTmpDir(), 'token')
        write(path, server.TOKEN)
        client = self.open(token=None, token_file=path)._client
        client._secret = 'an-old-token-of-yesterday'
        post, both = client._transport.post, threading.Barrier(2, timeout=60)

        def held(path, data, headers, *args, **more):
            if headers['Authorization'].endswith('of-yesterday'):
                both.wait()
            return post(path, data, headers, *args, **more)
        client._transport.post = held
        with futures.ThreadPoolExecutor() as threads:
            calls = [threads.submit(client.call, 'CountJobs')
                     for _ in range(2)]
            for call in calls:
                call.result()

    def test_a_paused_board(self):
        board = self.open(board_name='paused')
        job = board.post('job')
        board._client.call('PauseBoard', {'reason': 'a test'})
        e = self.assertRaises(exc.UnclaimableJob, board.claim, job, 'me')
        self.assertIn('paused', str(e))
        board._client.call('ResumeBoard')
        board.claim(job, 'me')

    def test_a_board_with_a_longest_lease(self):
        board = self.open(board_name='short')
        job = board.post('job')
        board.claim(job, 'me', expiry=1000)
        self.assertTrue(job.expires_in() <= 2)
        board.consume(job, 'me')


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


class ThreadsTest(base.TestCase):

    def test_each_job_is_claimed_once(self):
        board = self.open()
        jobs = [board.post('job') for _ in range(40)]
        won = []

        def work(name, board):
            for job in board.iterjobs(only_unclaimed=True):
                try:
                    board.claim(job, name)
                except (exc.UnclaimableJob, exc.NotFound):
                    continue
                won.append(job.uuid)
                board.consume(job, name)

        threads = [threading.Thread(target=work, args=('w%d' % n, b))
                   for n, b in enumerate([board, board, self.open(),
                                          self.open()])]
        for t in threads:
            t.start()
        for t in threads:
            t.join(base.PATIENCE)
        self.assertEqual(sorted(j.uuid for j in jobs), sorted(won))
        self.assertEqual(0, board.job_count)
