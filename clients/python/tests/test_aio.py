"""The package boardd on asyncio, against real servers."""

import asyncio
import unittest

import boardd
from tests import server


class AioTest(unittest.IsolatedAsyncioTestCase):

    async def asyncSetUp(self):
        self.server = server.shared()
        self.client = boardd.AsyncClient('http://127.0.0.1:%d' % self.server.port, server.TOKEN)
        self.addAsyncCleanup(self.client.close)
        self.board = self.client.board(server.board_name())

    async def endless(self, task):
        self.task = task
        self.begun.set()
        await asyncio.get_running_loop().create_future()

    def working(self, handler, **options):
        self.begun = asyncio.Event()
        self.reports = []
        worker = boardd.AsyncWorker(self.board, handler, report=self.reports.append, **options)
        return worker, asyncio.ensure_future(worker.run())

    async def test_calls(self):
        job = await self.board.post('resize', {'n': 1}, labels={'a': 'b'})
        self.assertEqual((await self.board.get(job['uuid']))['details'], {'n': 1})
        self.assertEqual([j['uuid'] async for j in self.board.list(filter='labels.a = b')], [job['uuid']])
        claim, = await self.board.claim('me')
        ended = asyncio.ensure_future(self.board.ended(job['uuid']))
        await self.board.consume(claim)
        self.assertEqual((await ended)['outcome'], 'CONSUMED')
        with self.assertRaises(boardd.BoarddError) as caught:
            await self.board.get('00000000-0000-4000-8000-000000000000')
        self.assertEqual(caught.exception.kind, 'NOT_FOUND')

    async def test_close(self):
        job = await self.board.post('x')
        waiting = asyncio.ensure_future(self.board.ended(job['uuid']))
        await self.board.count()
        await self.client.close()
        with self.assertRaises(boardd.BoarddError) as caught:
            await waiting
        self.assertEqual(caught.exception.kind, 'INTERRUPTED')

    async def test_watch(self):
        cursor = (await self.board.call('ListEvents'))['cursor']
        posted = [(await self.board.post('n%d' % i))['uuid'] for i in range(3)]
        seen = []
        async for event in self.board.watch(cursor):
            seen.append(event['job']['uuid'])
            if len(seen) == 3:
                break
        self.assertEqual(seen, posted)

    async def test_every_job_once(self):
        posted = await self.board.post_all([{'name': 'n%d' % i} for i in range(50)])
        seen, running, most, together = [], [], [], asyncio.Event()

        async def handler(task):
            running.append(1)
            most.append(len(running))
            if most[-1] == 20:
                together.set()
            seen.append(task.uuid)
            await asyncio.wait_for(together.wait(), 60)
            running.pop()
        _, run = self.working(handler, concurrency=20, until_empty=True)
        await run
        self.assertEqual((sorted(seen), max(most)), (sorted(j['uuid'] for j in posted), 20))
        self.assertEqual([r.ending for r in self.reports], ['CONSUMED'] * 50)

    async def test_raises(self):
        job = await self.board.post('x')

        async def handler(task):
            raise boardd.Trash('broken')
        _, run = self.working(handler, max_jobs=1)
        await run
        job = await self.board.get(job['uuid'])
        self.assertEqual((job['state'], job['lastReason']), ('TRASHED', 'broken'))

    async def test_canceled(self):
        job = await self.board.post('x')
        _, run = self.working(self.endless, max_jobs=1)
        await self.begun.wait()
        await self.board.cancel(job['uuid'], force=True)
        await run
        self.assertIsInstance(self.task.cause, boardd.CancelRequested)
        self.assertEqual([r.ending for r in self.reports], ['CANCELED'])

    async def test_stops(self):
        job = await self.board.post('x')
        worker, run = self.working(self.endless, concurrency=2)
        await self.begun.wait()
        worker.stop()
        await run
        job = await self.board.get(job['uuid'])
        self.assertEqual((job['state'], job['attempt']), ('UNCLAIMED', 0))

    async def test_is_canceled_itself(self):
        job = await self.board.post('x')
        _, run = self.working(self.endless)
        await self.begun.wait()
        run.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await run
        job = await self.board.get(job['uuid'])
        self.assertEqual((job['state'], job['attempt']), ('UNCLAIMED', 0))
