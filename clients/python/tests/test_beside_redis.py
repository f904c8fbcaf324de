"""One board, for programs on boardd and programs still on TaskFlow's Redis.

It needs a board on Redis, and is left out where there is none.
"""

from taskflow import exceptions as exc
from taskflow.jobs import backends
from taskflow import states

from tests import base
from tests import server
from tests import test_details


class BesideRedisTest(base.TestCase):

    def setUp(self):
        super(BesideRedisTest, self).setUp()
        if not server.REDIS:
            self.skipTest("BOARDD_REDIS is not set")
        host, port = server.REDIS.split(':')
        self.theirs = backends.fetch('jobs', {
            'board': 'redis', 'host': host, 'port': port,
            'namespace': self.server.namespace(self.name)})
        self.theirs.connect()
        self.addCleanup(self.theirs.close)
        self.ours = self.open()

    def check(self, poster, worker):
        posted = poster.post('job', details=test_details.RICH,
                             priority='HIGH')
        found = []

        def seen():
            found[:] = worker.iterjobs(only_unclaimed=True)
            return found

        self.eventually(seen, "the worker sees it")
        job = base.only(found)
        self.assertEqual(posted.uuid, job.uuid)
        self.assertEqual(test_details.RICH, job.details)
        self.assertEqual(posted.priority, job.priority)
        self.assertEqual(posted.created_on, job.created_on)
        worker.claim(job, 'worker')
        self.assertEqual('worker', poster.find_owner(posted))
        self.assertEqual(states.CLAIMED, posted.state)
        self.assertRaises(exc.UnclaimableJob, poster.claim, posted, 'poster')
        self.assertRaises(exc.JobFailure, poster.consume, posted, 'poster')
        worker.abandon(job, 'worker')
        self.assertEqual(states.UNCLAIMED, posted.state)
        worker.claim(job, 'worker', expiry=60)
        self.assertTrue(0 < posted.expires_in() <= 62)
        worker.consume(job, 'worker')
        self.assertTrue(posted.wait(base.PATIENCE))
        self.assertEqual(0, poster.job_count)

    def test_posted_there(self):
        self.check(self.theirs, self.ours)

    def test_posted_here(self):
        self.check(self.ours, self.theirs)

    def test_a_claim_of_theirs_ends_ours(self):
        job = self.ours.post('job')
        self.ours.claim(job, 'worker', expiry=1)
        self.eventually(lambda: job.state == states.UNCLAIMED, "it expires")
        other = base.only(self.theirs.iterjobs())
        self.theirs.claim(other, 'worker')  # of the same name
        self.assertIs(False, job.extend_expiry(100))
        self.assertRaises((exc.JobFailure, exc.NotFound), self.ours.consume,
                          job, 'worker')
        self.theirs.consume(other, 'worker')
