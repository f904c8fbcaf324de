"""Order, pages, waiting, and what iteration costs."""

import time

from taskflow import exceptions as exc
from taskflow.jobs import base as jobs_base
from taskflow import states

from boardd_taskflow import failures
from boardd_taskflow import listing
from tests import base
from tests import server


class ListingTest(base.TestCase):

    def test_order(self):
        board = self.open()
        posted = ('LOW', 'NORMAL', 'VERY_HIGH', 'NORMAL', 'HIGH', 'VERY_LOW',
                  'VERY_HIGH', 'LOW')
        jobs = [board.post(str(n), priority=p) for n, p in enumerate(posted)]
        want = ['2', '6', '4', '1', '3', '0', '7', '5']
        found = list(board.iterjobs())
        self.assertEqual(want, [j.name for j in found])
        self.assertEqual(found, sorted(jobs))
        self.assertEqual(jobs_base.JobPriority.VERY_HIGH, found[0].priority)
        self.assertEqual([1, 2, 3, 4, 5, 6, 7, 8],
                         [j.sequence - jobs[0].sequence + 1 for j in jobs])
        # What is given back keeps its place.
        board.claim(found[0], 'me')
        board.abandon(found[0], 'me')
        self.assertEqual(want, [j.name for j in board.iterjobs()])

    def test_iterator(self):
        board = self.open()
        board.post('job')
        it = board.iterjobs(only_unclaimed=True, ensure_fresh=True)
        self.assertIsInstance(it, jobs_base.JobBoardIterator)
        self.assertIs(board, it.board)
        self.assertTrue(it.only_unclaimed)
        self.assertTrue(it.ensure_fresh)
        self.assertEqual(1, len(list(it)))
        self.assertEqual([], list(it))  # exhausted is exhausted

    def test_states_come_with_the_listing(self):
        line = server.Line(self.server.port)
        self.addCleanup(line.close)
        board = self.open(port=line.port)
        for n in range(20):
            job = board.post('job')
            if n % 2:
                board.claim(job, 'me')
        del line.calls[:]
        self.assertEqual(20, len(list(board.iterjobs())))
        self.assertEqual(['ListJobs'], line.calls)
        del line.calls[:]
        self.assertEqual(10, len(list(board.iterjobs(only_unclaimed=True))))
        self.assertEqual(['ListJobs'], line.calls)

    def test_many(self):
        board = self.open()
        posted = [board.post('job', details={'n': n}) for n in range(150)]
        found = list(board.iterjobs())
        self.assertEqual([j.uuid for j in posted], [j.uuid for j in found])
        self.assertEqual(list(range(150)), [j.details['n'] for j in found])
        self.assertEqual(150, board.job_count)

    def test_whoever_posts_while_iterating_comes_to_an_end(self):
        board = self.open()
        for _ in range(listing._FIRST + 5):
            board.post('job')
        seen = 0
        for job in board.iterjobs():
            board.post('another')
            seen += 1
        self.assertTrue(seen >= listing._FIRST + 5)

    def test_an_order_that_changes_on_the_way(self):
        board = self.open()
        posted = [board.post('job') for _ in range(listing._FIRST + 5)]
        list_jobs, refused = board.list_jobs, []

        def once(*args, **kwargs):
            if kwargs.get('page_token') and not refused:
                refused.append(True)
                raise failures.Refused('aborted', 'the order is another one')
            return list_jobs(*args, **kwargs)

        board.list_jobs = once
        self.assertEqual(posted, list(board.iterjobs()))
        self.assertEqual([True], refused)

    def test_old_states_are_looked_up_again(self):
        board, other = self.open(), self.open()
        jobs = [board.post('job') for _ in range(3)]
        it = board.iterjobs(only_unclaimed=True)
        self.assertEqual(jobs[0], next(it))
        other.claim(jobs[1], 'other')
        time.sleep(listing.FRESH + 0.1)
        self.assertEqual(jobs[2], next(it))

    def test_large_details(self):
        board = self.open()
        text = 'x' * (1 << 20)
        for _ in range(8):
            board.post('job', details={'text': text})
        found = list(board.iterjobs())
        self.assertEqual([text] * 8, [j.details['text'] for j in found])

    def test_wait(self):
        board, other = self.open(), self.open()
        self.assertRaises(exc.NotFound, board.wait, 0)
        self.assertRaises(exc.NotFound, board.wait, 0.05)
        found = []
        with self.thread(lambda: found.extend(board.wait())):
            job = other.post('job')
        self.assertEqual([job], found)
        other.claim(job, 'me')
        self.assertEqual([job], list(board.wait(0)))  # claimed ones count

    def test_job_wait(self):
        board, other = self.open(), self.open()
        for ending in ('consume', 'trash'):
            job = board.post('job')
            self.assertIs(False, job.wait(0))
            answers = []
            with self.thread(lambda: answers.append(job.wait())):
                other.claim(job, 'me')
                getattr(other, ending)(job, 'me')
            self.assertEqual([True], answers)
            self.assertIs(True, job.wait(0))

    def test_job_wait_asks_once(self):
        line = server.Line(self.server.port)
        self.addCleanup(line.close)
        board, other = self.open(port=line.port), self.open()
        job = board.post('job')
        del line.calls[:]
        with self.thread(job.wait):
            self.eventually(lambda: line.calls, "a call")
            time.sleep(0.5)
            other.claim(job, 'me')
            other.consume(job, 'me')
        self.assertEqual(['GetJobs'], line.calls)

    def test_close_ends_waits(self):
        board = self.open()
        job = board.post('job')
        raised = []

        def wait():
            try:
                job.wait()
            except exc.JobFailure as e:
                raised.append(e)

        with self.thread(wait):
            time.sleep(0.2)
            began = time.monotonic()
            board.close()
        self.assertEqual(1, len(raised))
        # Far less than the wait that the server was asked for.
        self.assertTrue(time.monotonic() - began < 20)

    def test_forgotten(self):
        board = self.open()
        job = board.post('job')
        job._uuid = 'ce327feb-53a5-44f8-a1ad-534c564477af'
        self.assertEqual(states.COMPLETE, job.state)
        self.assertIs(True, job.wait(0))
        self.assertIsNone(job.last_modified)
        self.assertRaises(exc.NotFound, board.claim, job, 'me')
