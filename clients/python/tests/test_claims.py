"""What each operation does in each state of a job."""

import time

from taskflow import exceptions as exc
from taskflow import states

import boardd_taskflow
from tests import base

ENDINGS = ('consume', 'abandon', 'trash')


class StatesTest(base.TestCase):
    """Rows: operations. Columns: unclaimed, mine, somebody else's, gone."""

    def setUp(self):
        super(StatesTest, self).setUp()
        self.board = self.open()
        self.other = self.open()

    def job_in(self, state):
        self.board.post('job')
        job = base.only(self.board.iterjobs(only_unclaimed=True))
        if state == 'abandoned':
            self.board.claim(job, 'me')
            self.board.abandon(job, 'me')
        elif state == 'expired':
            self.board.claim(job, 'me', expiry=0.05)
            time.sleep(0.1)
        elif state == 'mine':
            self.board.claim(job, 'me')
        elif state == 'others':
            self.other.claim(base.only(self.other.iterjobs()), 'you')
        elif state == 'consumed':
            self.board.claim(job, 'me')
            self.board.consume(job, 'me')
        elif state == 'trashed':
            self.board.claim(job, 'me')
            self.board.trash(job, 'me')
        return job

    def each(self, *kinds):
        """Yields a job in each state, alone on the board."""
        for kind in kinds:
            yield kind, self.job_in(kind)
            for job in self.board.iterjobs():
                owner = self.board.find_owner(job)
                if owner is None:
                    self.board.claim(job, 'sweeper')
                    owner = 'sweeper'
                self.board.consume(job, owner)

    def test_claim(self):
        for state, want in (('unclaimed', None), ('abandoned', None),
                            ('expired', None),
                            ('mine', exc.UnclaimableJob),
                            ('others', exc.UnclaimableJob),
                            ('consumed', exc.NotFound),
                            ('trashed', exc.NotFound)):
            for _, job in self.each(state):
                if want is None:
                    self.board.claim(job, 'me')
                    self.assertEqual('me', self.board.find_owner(job))
                else:
                    self.assertRaises(want, self.board.claim, job, 'me')

    def test_claim_names_the_owner(self):
        job = self.job_in('others')
        e = self.assertRaises(exc.UnclaimableJob, self.board.claim, job, 'me')
        self.assertIn('already claimed by you', str(e))

    def test_endings_without_a_claim(self):
        for ending in ENDINGS:
            end = getattr(self.board, ending)
            for state, job in self.each('unclaimed', 'abandoned', 'expired'):
                e = self.assertRaises(exc.NotFound, end, job, 'me')
                self.assertIn('determine the owner', str(e), state)
            for _, job in self.each('consumed', 'trashed'):
                e = self.assertRaises(exc.NotFound, end, job, 'me')
                self.assertIn('not found', str(e))

    def test_endings_of_another(self):
        for ending in ENDINGS:
            for _, job in self.each('others'):
                e = self.assertRaises(exc.JobFailure,
                                      getattr(self.board, ending), job, 'me')
                self.assertNotIsInstance(e, exc.UnclaimableJob)
                self.assertIn('actively owned by you', str(e))
                self.assertEqual(states.CLAIMED, job.state)

    def test_endings_of_mine(self):
        for ending, want in (('consume', states.COMPLETE),
                             ('abandon', states.UNCLAIMED),
                             ('trash', states.COMPLETE)):
            for _, job in self.each('mine'):
                getattr(self.board, ending)(job, 'me')
                self.assertEqual(want, job.state)

    def test_endings_by_another_name(self):
        job = self.job_in('mine')
        for ending in ENDINGS:
            e = self.assertRaises(exc.JobFailure, getattr(self.board, ending),
                                  job, 'myself')
            self.assertIn('actively owned by me', str(e))

    def test_state_and_owner(self):
        for kind, state, owner in (('unclaimed', states.UNCLAIMED, None),
                                   ('abandoned', states.UNCLAIMED, None),
                                   ('expired', states.UNCLAIMED, None),
                                   ('mine', states.CLAIMED, 'me'),
                                   ('others', states.CLAIMED, 'you'),
                                   ('consumed', states.COMPLETE, None),
                                   ('trashed', states.COMPLETE, None)):
            for _, job in self.each(kind):
                self.assertEqual(state, job.state, kind)
                self.assertEqual(owner, self.board.find_owner(job), kind)

    def test_expires_in_and_extend(self):
        for kind in ('unclaimed', 'abandoned', 'expired', 'consumed',
                     'trashed'):
            for _, job in self.each(kind):
                self.assertEqual(boardd_taskflow.KEY_NOT_FOUND,
                                 job.expires_in())
                self.assertIs(False, job.extend_expiry(10), kind)
        for _, job in self.each('others'):
            # Redis would let anybody do it, and 0 would end another's claim.
            stranger = Stranger(job)
            self.assertIs(False, stranger.extend_expiry(0))
            self.assertEqual(states.CLAIMED, job.state)

    def test_extend(self):
        job = self.job_in('unclaimed')
        self.board.claim(job, 'me', expiry=20)
        self.assertTrue(0 < job.expires_in() <= 20)
        self.assertIs(True, job.extend_expiry(500))
        self.assertTrue(400 < job.expires_in() <= 500)
        # By an object of another listing of another jobboard, too.
        again = base.only(self.other.iterjobs())
        self.assertTrue(400 < again.expires_in() <= 500)
        self.assertIs(True, again.extend_expiry(1000))
        self.assertTrue(900 < job.expires_in() <= 1000)
        self.assertIs(True, job.extend_expiry(0))
        self.assertEqual(states.UNCLAIMED, job.state)
        self.assertIs(False, job.extend_expiry(10))

    def test_expiry_of_another_process(self):
        job = self.job_in('unclaimed')
        self.board.claim(job, 'me', expiry=100)
        self.assertTrue(50 < Stranger(job).expires_in() <= 102)

    def test_same_owner_extends(self):
        job = self.job_in('unclaimed')
        self.board.claim(job, 'me', expiry=20)
        again = base.only(self.board.iterjobs())
        self.assertRaises(exc.UnclaimableJob, self.board.claim, again, 'me')
        self.assertTrue(job.expires_in() <= 20)
        self.assertRaises(exc.UnclaimableJob, self.board.claim, again, 'me',
                          expiry=500)
        self.assertTrue(400 < job.expires_in() <= 500)
        self.board.consume(job, 'me')

    def test_bad_arguments(self):
        job = self.job_in('unclaimed')
        for call in (self.board.claim, self.board.consume,
                     self.board.abandon, self.board.trash):
            self.assertRaises(TypeError, call, job, None)
            self.assertRaises(ValueError, call, job, '')
        for expiry in (0, -1, 0.0001):
            self.assertRaises(ValueError, self.board.claim, job, 'me',
                              expiry=expiry)
        self.assertRaises(ValueError, self.board.post, 'job',
                          priority='URGENT')
        self.assertRaises(exc.JobFailure, self.board.claim, job, 'x' * 257)
        self.assertRaises(exc.JobFailure, self.board.post, 'x' * 257)

    def test_not_connected(self):
        job = self.job_in('mine')
        self.board.close()
        self.board.close()
        for call in (lambda: job.state, lambda: job.last_modified,
                     lambda: job.wait(0.1), lambda: job.expires_in(),
                     lambda: job.extend_expiry(1),
                     lambda: self.board.job_count,
                     lambda: self.board.post('job'),
                     lambda: list(self.board.iterjobs()),
                     lambda: self.board.wait(0.1),
                     lambda: self.board.find_owner(job),
                     lambda: self.board.claim(job, 'me'),
                     lambda: self.board.consume(job, 'me'),
                     lambda: self.board.abandon(job, 'me'),
                     lambda: self.board.trash(job, 'me')):
            self.assertRaises(exc.JobFailure, call)
        self.board.connect()
        self.assertEqual(states.CLAIMED, job.state)
        self.board.consume(job, 'me')

    def test_dates(self):
        job = self.board.post('job')
        self.assertIsNone(job.created_on.tzinfo)
        self.assertEqual(job.created_on,
                         base.only(self.board.iterjobs()).created_on)
        self.board.claim(job, 'me')
        claimed = job.last_modified
        self.assertTrue(claimed >= job.created_on)
        self.board.abandon(job, 'me')
        self.assertTrue(job.last_modified >= claimed)


class Stranger(object):
    """A job as a process sees it that has no claim."""

    def __new__(cls, job):
        stranger = boardd_taskflow.BoarddJob(job.board, {
            'uuid': job.uuid, 'state': 'CLAIMED'})
        board = job.board

        class Board(object):
            claim_of = staticmethod(lambda job: None)
            extend = staticmethod(lambda job, expiry: False)
            look = board.look
            server_time = board.server_time

        stranger._board = Board
        return stranger


class FencingTest(base.TestCase):

    def test_expired_then_claimed_by_another(self):
        first, second = self.open(), self.open()
        first.post('job')
        mine = base.only(first.iterjobs())
        first.claim(mine, 'a', expiry=0.05)
        time.sleep(0.1)
        self.assertEqual(states.UNCLAIMED, mine.state)
        yours = base.only(second.iterjobs())
        second.claim(yours, 'b')
        for ending in ENDINGS:
            e = self.assertRaises(exc.JobFailure, getattr(first, ending), mine,
                                  'a')
            self.assertIn('actively owned by b', str(e))
        self.assertIs(False, mine.extend_expiry(100))
        self.assertEqual('b', first.find_owner(mine))
        second.consume(yours, 'b')

    def test_claimed_anew_under_the_same_name(self):
        # TaskFlow's own boards can not tell the two workers from each other.
        first, second = self.open(), self.open()
        first.post('job')
        old = base.only(first.iterjobs())
        first.claim(old, 'worker', expiry=0.05)
        time.sleep(0.1)
        first.job_count
        new = base.only(second.iterjobs())
        second.claim(new, 'worker')
        self.assertRaises(exc.JobFailure, first.consume, old, 'worker')
        self.assertEqual(states.CLAIMED, new.state)
        second.consume(new, 'worker')

    def test_by_name(self):
        # Two processes of one name, where the board is made for that.
        board = self.open(board_name='by-name')
        job = board.post('job')
        board.claim(job, 'me')
        forget(job, board)
        board.consume(job, 'me')
        self.assertRaises(exc.NotFound, board.consume, job, 'me')
        job = board.post('job')
        self.assertRaises(exc.NotFound, board.consume, job, 'me')
        board.claim(job, 'me')
        forget(job, board)
        self.assertRaises(exc.JobFailure, board.abandon, job, 'you')
        board.trash(job, 'me')

    def test_token_of_another_process(self):
        board = self.open()
        job = board.post('job')
        board.claim(job, 'me')
        forget(job, board)
        e = self.assertRaises(exc.JobFailure, board.consume, job, 'me')
        self.assertIn('fencing', str(e))


def forget(job, board):
    from boardd_taskflow import claims
    claims.held.remove(board._options.board_name, job.claim)
    job.claim = None
