"""Claims that last as long as the program does, and how they are lost."""

import os
import time

from taskflow import exceptions as exc
from taskflow import states
from taskflow.types import entity

import boardd_taskflow
from boardd_taskflow import claims
from boardd_taskflow import keeper
from boardd_taskflow import options
from tests import base
from tests import server


class KeepingTest(base.TestCase):

    def test_kept_beyond_its_lease(self):
        line = server.Line(self.server.port)
        self.addCleanup(line.close)
        board = self.open(port=line.port, lease=4)
        job = board.post('job')
        board.claim(job, 'me')
        first = job.claim.deadline
        self.eventually(lambda: time.monotonic() > first, "its lease is over")
        # At each third of the lease, and not all the time.
        self.assertTrue(1 <= line.calls.count('ExtendClaims') <= 4,
                        line.calls)
        self.assertEqual('me', board.find_owner(job))
        board.consume(job, 'me')

    def test_the_boards_own_lease(self):
        board = self.open(board_name='quick')  # lease = "3s"
        job = board.post('job')
        board.claim(job, 'me')
        self.assertEqual(3, job.claim.lease)
        first = job.claim.deadline
        self.eventually(lambda: job.claim.deadline > first, "an extension")
        board.consume(job, 'me')

    def test_many_go_along(self):
        batches = []

        class Client(object):
            def call(self, method, message, within):
                batches.append(len(message['claims']))
                return {'results': [{'lease': '30s'}] * batches[-1]}

        kept = keeper.Keeper(options.Options({}), None)
        now = time.monotonic()
        for n in range(1050):  # claimed one after another, within four seconds
            claim = claims.Claim({'uuid': 'u', 'owner': 'me', 'token': 't'},
                                 now - 10 + 4 * n / 1050.0, 30)
            claim.kept = True
            kept.keep(claim)
        kept.start(Client())
        self.addCleanup(kept.stop)
        self.eventually(lambda: len(batches) >= 2, "two calls")
        self.assertEqual([1000, 50], batches)

    def test_an_explicit_expiry_is_the_callers(self):
        board = self.open()
        job = board.post('job')
        board.claim(job, 'me', expiry=1)
        self.eventually(lambda: job.state == states.UNCLAIMED, "it expires")
        self.assertRaises(exc.NotFound, board.consume, job, 'me')

    def test_the_expiry_of_the_configuration(self):
        board = self.open(expiry='1')
        job = board.post('job')
        board.claim(job, 'me')
        self.assertFalse(job.claim.kept)
        self.eventually(lambda: job.state == states.UNCLAIMED, "it expires")

    def test_extend_expiry_ends_the_keeping(self):
        board = self.open(lease=30)
        job = board.post('job')
        board.claim(job, 'me')
        self.assertIs(True, job.extend_expiry(1))
        self.eventually(lambda: job.state == states.UNCLAIMED, "it expires")

    def test_short_expiries(self):
        board = self.open()
        job = board.post('job')
        board.claim(job, 'me', expiry=0.3)
        time.sleep(0.4)
        self.assertEqual(states.UNCLAIMED, job.state)
        # Without anybody who asks here, too.
        board.claim(job, 'me', expiry=0.2)
        other = self.open()
        self.eventually(lambda: other.find_owner(job) is None, "it is over")

        # Extended in time, it goes on.
        def extended():
            board.claim(job, 'me', expiry=0.9)
            return job.extend_expiry(100)

        self.eventually(extended, "the machine is quick enough for once")
        time.sleep(1)
        self.assertEqual(states.CLAIMED, job.state)

    def test_closing_ends_the_keeping(self):
        board, other = self.open(lease=1), self.open()
        job = board.post('job')
        board.claim(job, 'me')
        board.close()
        self.eventually(lambda: other.find_owner(job) is None, "it is free")

    def test_connecting_again_goes_on(self):
        board = self.open(lease=4)
        job = board.post('job')
        board.claim(job, 'me')
        board.close()
        board.connect()
        first = job.claim.deadline
        self.eventually(lambda: time.monotonic() > first, "its lease is over")
        board.consume(job, 'me')

    def test_losing_one(self):
        board = self.open(lease=6)
        lost = []
        board.notifier.register(boardd_taskflow.CLAIM_LOST,
                                lambda event, details: lost.append(details))
        job, other = board.post('job'), board.post('other')
        board.claim(job, 'me')
        board.claim(other, 'me')
        self.release(board, job)
        self.eventually(lambda: lost, "somebody is told")
        self.assertEqual([{'uuid': job.uuid, 'owner': 'me'}], lost)
        self.assertTrue(job.claim.lost)
        self.assertFalse(other.claim.lost)
        self.assertRaises(exc.NotFound, board.consume, job, 'me')
        board.consume(other, 'me')
        time.sleep(0.5)
        self.assertEqual(1, len(lost))  # an end of one's own is no loss

    def test_an_extension_that_meets_the_end_is_no_loss(self):
        lost = []
        kept = keeper.Keeper(options.Options({'lease': 30}), lost.append)
        for ending in (False, True):
            claim = claims.Claim({'uuid': 'u', 'owner': 'me', 'token': 't'},
                                 time.monotonic(), 30)
            claim.kept, claim.ending = True, ending
            kept.keep(claim)
            kept._extended(claim, 0, {'error': {'code': 'LEASE_LOST'}})
            self.assertEqual({}, kept._claims)
            self.assertEqual(1, len(lost))

    def test_release_then_another(self):
        board = self.open()
        job = board.post('job')
        board.claim(job, 'me')
        self.release(board, job)
        board.claim(base.only(self.open().iterjobs()), 'you')
        self.assertRaises(exc.JobFailure, board.consume, job, 'me')

    def release(self, board, job):
        board._client.call('ReleaseJobs', {'uuids': [job.uuid],
                                           'reason': 'a test'})

    def test_a_child_does_not_touch_its_parents_connections(self):
        board = self.open()
        job = board.post('job')
        board.claim(job, 'me')
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                board.post('of the child')
                mine = base.only(j for j in board.iterjobs(
                    only_unclaimed=True))
                board.claim(mine, 'child')
                board.consume(mine, 'child')
                code = 0 if board.find_owner(job) == 'me' else 2
            finally:
                os._exit(code)
        for _ in range(50):
            self.assertEqual('me', board.find_owner(job))
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        board.consume(job, 'me')


class EntityTest(base.TestCase):

    def test_repeated_until_close(self):
        board = self.open(entity_ttl=4)
        board.register_entity(entity.Entity('conductor', 'me@host:1',
                                            {'hostname': 'host', 'pid': 1}))
        board.register_entity(entity.Entity('conductor', 'me@host:1',
                                            {'hostname': 'host', 'pid': 1}))
        first = base.only(self.entities())
        self.assertEqual('conductor', first['kind'])
        self.assertEqual('me@host:1', first['name'])
        self.assertEqual({'hostname': 'host', 'pid': 1}, first['metadata'])
        self.eventually(lambda: self.seen_at() > first['expiresAt'],
                        "it is repeated for longer than it lasts")
        board.close()
        self.eventually(lambda: not self.entities(), "it is gone")

    def seen_at(self):
        entities = self.entities()
        return entities[0]['seenAt'] if entities else ''

    def entities(self):
        return self.open()._client.call('ListEntities')['entities']

    def test_bad_ones(self):
        board = self.open()
        self.assertRaises(exc.JobFailure, board.register_entity,
                          entity.Entity('a/b', 'c', {}))
        self.assertRaises(exc.JobFailure, board.register_entity,
                          entity.Entity('a', '', {}))
