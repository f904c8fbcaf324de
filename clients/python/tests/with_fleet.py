"""Three servers on one Redis that serve their boards together, and clients
that are told of one of them alone.

BOARDD_REDIS is the address of the Redis, BOARDD_PLUGINS the driver's folder.
"""

import asyncio
import itertools
import json
import threading
import urllib.request

import boardd
from tests import boards
from tests import server

_fleets = itertools.count()


class TestCase(boards.TestCase):

    def setUp(self):
        super(boards.TestCase, self).setUp()  # without the server that others share
        fleet = next(_fleets)
        self.names = ['fleet%d-%d' % (fleet, n) for n in range(6)]
        self.name = self.names[3]
        self.members = [server.Member(self.names) for _ in range(3)]
        for member in self.members:
            self.addCleanup(member.close)
        self.eventually(self.settled, 'each board is open on one server')
        self.owner = self.owner_of(self.name)
        self.known = next(m for m in self.members if m is not self.owner)
        self.front = server.Line(self.known.server.port)  # what the client is told of
        self.addCleanup(self.front.close)
        self.addr = 'http://127.0.0.1:%d' % self.front.port

    def ask(self, member, service, method, request):
        headers = {'Authorization': 'Bearer ' + server.TOKEN, 'Content-Type': 'application/json'}
        url = '%s/boardd.v1.%s/%s' % (member.addr, service, method)
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode(), headers)) as answer:
            return json.load(answer)

    def settled(self):
        """Whether the servers that run, and no others, live, and each board is open on one of them."""
        running = [m for m in self.members if m.server.process.poll() is None]
        try:
            lists = [self.ask(m, 'AdminService', 'ListServers', {})['servers'] for m in running]
        except OSError:
            return False
        return all(len([s for s in seen if s['live']]) == len(running) and
                   sum(int(s['boards']) for s in seen if s['live']) == len(self.names) for seen in lists)

    def owner_of(self, name, among=None):
        addr = self.ask((among or self.members)[0], 'BoardService', 'GetBoard', {'board': name})['board']['server']
        return next(m for m in self.members if m.addr == addr)

    def drain(self, member, undo=False):
        self.ask(self.known, 'AdminService', 'DrainServer', {'server': member.addr, 'undo': undo})

    def calls(self, line):
        return [call for call in list(line.calls) if call != 'healthz']

    def goes_straight(self, count, member):
        """Waits until calls are made at a server, and nowhere else."""
        def so():
            before, there = len(self.calls(self.front)), len(self.calls(member.line))
            count()
            return len(self.calls(self.front)) == before and len(self.calls(member.line)) > there
        self.eventually(so, 'calls go straight to the board\'s server')

    def client(self, **options):
        client = boardd.Client(self.addr, server.TOKEN, **options)
        self.addCleanup(client.close)
        return client


class Watching:
    """A watch in a thread, and the jobs whose posts it saw."""

    def __init__(self, board):
        self.posts, self.others = [], []
        self._events = board.watch(board.cursor())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        for event in self._events:
            if event['type'] == 'POSTED':
                self.posts.append(event['job']['uuid'])
            elif event['type'] == 'RESYNC':
                self.others.append(event)


class FleetTest(TestCase):

    def test_through_a_kill_and_a_drain(self):
        board = self.client().board(self.name)
        self.goes_straight(board.count, self.owner)
        watching = Watching(board)  # of the same client: a wait that is passed on says only at its end to whom
        worked = []
        working = boards.Working(self, board, lambda task: worked.append(task.uuid), concurrency=4)
        posted = [board.post('x')['uuid'] for _ in range(20)]
        self.eventually(lambda: set(worked) == set(posted), 'they are worked')
        # The owner is killed; the client knows one server that had to pass its calls on.
        self.owner.server.kill()
        posted += [board.post('x')['uuid'] for _ in range(20)]
        self.eventually(lambda: set(worked) == set(posted), 'they are worked')
        left = [m for m in self.members if m is not self.owner]
        self.eventually(lambda: self.owner_of(self.name, left) is not self.owner, 'it is noticed')
        now = self.owner_of(self.name, left)
        if now is not self.known:
            self.goes_straight(board.count, now)
        self.owner.server.start()
        self.eventually(self.settled, 'it is back')
        self.goes_straight(board.count, self.owner)
        # The board moves while calls wait.
        self.drain(self.owner)
        self.eventually(lambda: self.owner_of(self.name, left) is not self.owner, 'it has moved')
        posted += [board.post('x')['uuid'] for _ in range(20)]
        self.eventually(lambda: set(worked) == set(posted), 'they are worked')
        self.drain(self.owner, undo=True)
        self.eventually(lambda: self.owner_of(self.name, left) is self.owner, 'it has come back')
        self.goes_straight(board.count, self.owner)
        # The one that it was told of is needed no more.
        self.known.server.kill()
        posted += [board.post('x')['uuid'] for _ in range(20)]
        self.eventually(lambda: set(worked) == set(posted), 'they are worked')
        self.eventually(lambda: len(watching.posts) >= len(posted), 'all are seen')
        working.worker.stop()
        working.join()
        self.assertIsNone(working.error)
        self.assertEqual(sorted(watching.posts), sorted(posted))
        self.assertEqual(watching.others, [])
        self.assertEqual(sorted(worked), sorted(posted))  # nothing was done twice
        self.assertEqual(set(working.endings()), {'CONSUMED'})

    def test_a_wait_that_moves(self):
        board = self.client(retry_for=0).board(self.name)
        self.goes_straight(board.count, self.owner)
        claimed = []
        with_wait = threading.Thread(target=lambda: claimed.extend(board.claim('me', wait=60)), daemon=True)
        with_wait.start()
        self.eventually(lambda: 'ClaimJobs' in self.owner.line.calls, 'it waits')
        self.drain(self.owner)
        self.eventually(lambda: 'ClaimJobs' in self.front.calls, 'it waits elsewhere')
        posted = self.client().board(self.name).post('x')
        with_wait.join(60)
        self.assertEqual([claim['uuid'] for claim in claimed], [posted['uuid']])
        self.assertEqual(self.owner.line.calls.count('ClaimJobs'), 1)

    def test_asyncio(self):
        async def main():
            async with boardd.AsyncClient(self.addr, server.TOKEN) as client:
                board = client.board(self.name)
                await board.count()
                await asyncio.to_thread(self.goes_straight, client.client.board(self.name).count, self.owner)
                worked = []

                async def handle(task):
                    worked.append(task.uuid)
                worker = boardd.AsyncWorker(board, handle, concurrency=4)
                run = asyncio.create_task(worker.run())
                posted = await asyncio.gather(*[board.post('x') for _ in range(20)])
                await asyncio.to_thread(self.owner.server.kill)
                posted += await asyncio.gather(*[board.post('x') for _ in range(20)])
                await asyncio.to_thread(self.eventually, lambda: len(worked) >= len(posted), 'they are worked')
                worker.stop()
                await run
                return worked, [job['uuid'] for job in posted]
        worked, posted = asyncio.run(main())
        self.assertEqual(sorted(worked), sorted(posted))
