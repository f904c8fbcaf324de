"""What listeners hear."""

import collections

from taskflow.jobs import base as jobs_base

from boardd_taskflow import failures
from boardd_taskflow import watcher
from tests import base
from tests import server


class WatchingTest(base.TestCase):

    def listen(self, board):
        heard = []
        for event in (jobs_base.POSTED, jobs_base.REMOVAL):
            board.notifier.register(
                event, lambda event, details: heard.append(
                    (event, details['job'])))
        return heard

    def names(self, heard):
        return [(event, job.name) for event, job in heard]

    def test_each_event_once(self):
        board, other = self.open(), self.open()
        before = other.post('before')
        heard, others = self.listen(board), self.listen(other)
        for got in (heard, others):  # or it may be over when they first look
            self.eventually(lambda: got, "the job that is there")
        own = board.post('own', details={'b': b'raw'})
        foreign = other.post('foreign')
        for job, ending in ((before, 'consume'), (own, 'trash'),
                            (foreign, 'consume')):
            other.claim(job, 'me')
            getattr(other, ending)(job, 'me')
        want = collections.Counter(
            (event, name) for name in ('before', 'own', 'foreign')
            for event in (jobs_base.POSTED, jobs_base.REMOVAL))
        for got in (heard, others):
            self.eventually(lambda: len(got) >= 6, "six events")
            self.assertEqual(want, collections.Counter(self.names(got)))
            for name in ('before', 'own', 'foreign'):
                self.assertEqual([jobs_base.POSTED, jobs_base.REMOVAL],
                                 [e for e, n in self.names(got) if n == name])

    def test_claiming_is_no_event(self):
        board = self.open()
        heard = self.listen(board)
        job = board.post('job')
        board.claim(job, 'me')
        board.abandon(job, 'me')
        last = board.post('last')
        self.eventually(lambda: len(heard) >= 2, "two events")
        self.assertEqual([(jobs_base.POSTED, job), (jobs_base.POSTED, last)],
                         heard)

    def test_jobs_of_events_are_whole(self):
        board, other = self.open(), self.open()
        heard = self.listen(board)
        posted = other.post('job', details={'b': b'raw'}, priority='HIGH')
        self.eventually(lambda: heard, "an event")
        _event, job = heard[0]
        self.assertEqual(posted, job)
        self.assertEqual({'b': b'raw'}, job.details)
        self.assertEqual(jobs_base.JobPriority.HIGH, job.priority)
        self.assertEqual(posted.created_on, job.created_on)
        board.claim(job, 'me')  # as a listener may
        board.consume(job, 'me')
        self.eventually(lambda: len(heard) == 2, "the removal")

    def test_restored(self):
        board = self.open()
        heard = self.listen(board)
        job = board.post('job')
        self.eventually(lambda: heard, "the post")
        board.claim(job, 'me')
        board.trash(job, 'me')
        board._client.call('RestoreJobs', {'uuids': [job.uuid]})
        self.eventually(lambda: len(heard) == 3, "three events")
        self.assertEqual(['POSTED', 'REMOVAL', 'POSTED'],
                         [e for e, _ in heard])

    def test_registered_before_connecting(self):
        board = self.make()
        heard = self.listen(board)
        board.connect()
        board.post('job')
        self.eventually(lambda: heard, "an event")

    def test_connecting_again(self):
        board, other = self.open(), self.open()
        heard = self.listen(board)
        first = board.post('first')
        self.eventually(lambda: heard, "an event")
        board.close()
        other.claim(first, 'me')
        other.consume(first, 'me')
        other.post('second')
        board.connect()
        self.eventually(lambda: len(heard) >= 3, "what has changed")
        self.assertEqual([('POSTED', 'first'), ('REMOVAL', 'first'),
                          ('POSTED', 'second')], self.names(heard))

    def test_cuts_and_restarts(self):
        self.server = server.Server([self.name])
        self.addCleanup(self.server.close)
        line = server.Line(self.server.port)
        self.addCleanup(line.close)
        board, poster = self.open(port=line.port), self.open(timeout=60)
        heard = self.listen(board)
        for n in range(10):
            poster.post(str(n))
            line.cut()
        self.eventually(lambda: len(heard) >= 10, "ten events")
        self.server.kill()
        self.server.start()
        poster.post('10')
        self.eventually(lambda: len(heard) >= 11, "one more")
        self.assertEqual([str(n) for n in range(11)],
                         [name for _, name in self.names(heard)])

    def test_what_happened_while_nobody_could_see(self):
        listed = [['a', 'b'], ['b', 'c']]
        events = iter([
            {'events': [], 'cursor': '1.1'},
            {'events': [{'type': 'RESYNC', 'cursor': '1.9'}],
             'cursor': '1.9'},
            {'events': [], 'cursor': '1.9'},
            {'events': [{'type': 'CHANGED', 'job': {'uuid': 'c'}},
                        {'type': 'CHANGED', 'job': {'uuid': 'd'}}],
             'cursor': '1.12'},
            failures.Closed(),
        ])

        class Client(object):
            board = 'b'

            def call(self, method, message=None, wait=0):
                if method == 'ListEvents':
                    answer = next(events)
                    if isinstance(answer, Exception):
                        raise answer
                    return answer
                if method == 'ListJobs':
                    return {'jobs': [{'uuid': u} for u in listed.pop(0)]}
                uuid, = message['uuids']
                state = 'TRASHED' if uuid == 'c' else 'CLAIMED'
                return {'results': [{'job': {'uuid': uuid, 'state': state}}]}

        heard = []
        watcher.Watcher(lambda posting: posting['uuid'],
                        lambda event, details: heard.append(
                            (event, details['job'])))._run(Client())
        self.assertEqual([('POSTED', 'a'), ('POSTED', 'b'), ('REMOVAL', 'a'),
                          ('POSTED', 'c'), ('REMOVAL', 'c'), ('POSTED', 'd')],
                         heard)

    def test_nobody_listens_nobody_asks(self):
        line = server.Line(self.server.port)
        self.addCleanup(line.close)
        board = self.open(port=line.port)
        board.post('job')
        self.assertNotIn('ListEvents', line.calls)

    def test_a_listener_that_fails_or_closes(self):
        board = self.open()
        heard = self.listen(board)

        def fail(event, details):
            raise RuntimeError("a listener's own trouble")

        board.notifier.register(jobs_base.POSTED, fail)
        board.post('one')
        board.post('two')
        self.eventually(lambda: len(heard) == 2, "both events")
        board.notifier.register(jobs_base.POSTED,
                                lambda event, details: board.close())
        self.open().post('three')
        self.eventually(lambda: not board.connected, "it is closed")
