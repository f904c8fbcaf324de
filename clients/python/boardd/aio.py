"""The same for programs on asyncio.

Calls are made by threads, as the standard library has no HTTP for asyncio; a
worker's handlers are tasks of the program's own loop.
"""

import asyncio
import concurrent.futures
import threading
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from boardd import client
from boardd import errors
from boardd.board import Board, Ended
from boardd.ending import new_owner
from boardd.hands import Hand
from boardd.messages import Claim, Event, Job, Json, NewJob
from boardd.run import Options, Report, Run
from boardd.worker import Task

_T = TypeVar('_T')


class AsyncClient:
    """A Client for asyncio; it takes what that takes.

    :param threads: how many calls may be under way at once
    """

    def __init__(self, addr: Optional[str] = None, token: Optional[str] = None, *, threads: int = 32,
                 **options: Any) -> None:
        self.client = client.Client(addr, token, **options)
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, 'boardd-call')

    def board(self, name: Optional[str] = None) -> 'AsyncBoard':
        return AsyncBoard(self, self.client.board(name))

    async def do(self, call: Callable[[], _T]) -> _T:
        """Makes a call of the client that blocks. One that is canceled goes
        on in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def close(self) -> None:
        """Closes the connections, and cuts the calls that wait."""
        self.client.close()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def __aenter__(self) -> 'AsyncClient':
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBoard:
    """A Board for asyncio: its methods are that one's, and take the same."""

    def __init__(self, client: AsyncClient, board: Board) -> None:
        self.client = client
        self.board = board
        self.name = board.name

    async def call(self, method: str, request: Optional[Json] = None, *, wait: float = 0.0) -> Json:
        return await self.client.do(lambda: self.board.call(method, request, wait=wait))

    async def post(self, name: str, details: Optional[Json] = None, **more: Any) -> Job:
        return await self.client.do(lambda: self.board.post(name, details, **more))

    async def post_all(self, jobs: Sequence[NewJob]) -> List[Union[Job, errors.BoarddError]]:
        return await self.client.do(lambda: self.board.post_all(jobs))

    async def get(self, uuid: str) -> Job:
        return await self.client.do(lambda: self.board.get(uuid))

    async def get_all(self, uuids: Sequence[str], fields: Sequence[str] = ()) -> List[Union[Job, errors.BoarddError]]:
        return await self.client.do(lambda: self.board.get_all(uuids, fields))

    async def ended(self, uuid: str, timeout: Optional[float] = None) -> Optional[Job]:
        return await self.client.do(lambda: self.board.ended(uuid, timeout))

    async def count(self) -> Json:
        return await self.client.do(self.board.count)

    async def claim(self, owner: str, **options: Any) -> List[Claim]:
        return await self.client.do(lambda: self.board.claim(owner, **options))

    async def consume(self, claims: Union[Claim, Sequence[Claim]]) -> Ended:
        return await self.client.do(lambda: self.board.consume(claims))

    async def abandon(self, claims: Union[Claim, Sequence[Claim]], **options: Any) -> Ended:
        return await self.client.do(lambda: self.board.abandon(claims, **options))

    async def trash(self, claims: Union[Claim, Sequence[Claim]], reason: str = '') -> Ended:
        return await self.client.do(lambda: self.board.trash(claims, reason))

    async def cancel(self, uuid: str, force: bool = False) -> None:
        await self.client.do(lambda: self.board.cancel(uuid, force))

    async def list(self, **options: Any) -> AsyncIterator[Job]:
        jobs = self.board.list(**options)
        async for job in self._each(jobs):
            yield job

    async def watch(self, cursor: Optional[str] = None) -> AsyncIterator[Event]:
        events = self.board.watch(cursor)
        async for event in self._each(events):
            yield event

    async def _each(self, things: Any) -> AsyncIterator[Any]:
        nothing = object()
        while True:
            thing = await self.client.do(lambda: next(things, nothing))
            if thing is nothing:
                return
            yield thing


class AsyncTask(Task):
    """A claim, as a handler on a loop has it. When it is over, the handler is
    canceled, as asyncio does it: an await in it raises CancelledError."""

    def __init__(self, claim: Claim, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(claim)
        self._loop = loop
        self._running: Optional['asyncio.Future[None]'] = None

    def _end(self, cause: errors.Over) -> bool:
        first = super()._end(cause)
        if first:
            self._loop.call_soon_threadsafe(self._cancel)
        return first

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()


class AsyncWorker:
    """A Worker whose handlers are coroutines; it takes what that takes, and
    has its rules. A handler that computes for long without an await holds the
    loop up, and no lease: these are extended by threads."""

    def __init__(self, board: AsyncBoard, handler: Callable[[AsyncTask], Awaitable[Any]], *,
                 owner: Optional[str] = None, names: Sequence[str] = (), filter: str = '',
                 labels: Optional[Dict[str, str]] = None, concurrency: int = 1, lease: Optional[float] = None,
                 timeout: Optional[float] = None, version: str = '', max_jobs: Optional[int] = None,
                 until_empty: bool = False, report: Optional[Callable[[Report], None]] = None,
                 warn: Optional[Callable[[str], None]] = None) -> None:
        if not callable(handler):
            raise errors.BoarddError('INVALID', 'Worker', 'handler: want a function of a task, got %r' % (handler,))
        self.owner = owner or new_owner()
        self._handler = handler
        self._report = report
        self._options = Options(board.board, self.owner, names, filter, labels, concurrency, lease, timeout, version,
                                max_jobs, until_empty, self._reported if report else None, warn)
        self._run: Optional[Run] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._stopped = False

    async def run(self) -> None:
        """As Worker.run. Where the task that awaits it is canceled, the
        worker stops, and that is awaited."""
        loop = self._loop = asyncio.get_running_loop()
        run = self._run = Run(self._options, self._start)
        if self._stopped:
            run.stop()
        done: 'asyncio.Future[None]' = loop.create_future()

        def work() -> None:
            try:
                run.work()
            except BaseException as e:
                error = e
                loop.call_soon_threadsafe(lambda: done.set_exception(error))
            else:
                loop.call_soon_threadsafe(lambda: done.set_result(None))
        threading.Thread(target=work, name='boardd-worker', daemon=True).start()
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            run.stop()
            await asyncio.wait([done])
            raise

    def stop(self) -> None:
        """As Worker.stop."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    def _reported(self, report: Report) -> None:
        assert self._loop is not None and self._report is not None
        self._loop.call_soon_threadsafe(self._report, report)

    def _start(self, hand: Hand, returned: Callable[[Optional[BaseException]], None]) -> None:
        assert self._loop is not None
        task = hand.task = AsyncTask(hand.claim, self._loop)
        if hand.cause is not None:
            task._end(hand.cause)

        async def handle() -> None:
            task.check()
            await self._handler(task)

        def ended(running: 'asyncio.Future[None]') -> None:
            if running.cancelled():
                returned(task.cause or asyncio.CancelledError())
            else:
                returned(running.exception())

        def begin() -> None:
            task._running = asyncio.ensure_future(handle())
            task._running.add_done_callback(ended)  # which is called also where it never began
        self._loop.call_soon_threadsafe(begin)
