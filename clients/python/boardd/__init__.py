"""boardd from Python: a client, and workers on its boards.

:py:class:`Client` and :py:class:`Worker` block and use threads;
:py:class:`AsyncClient` and :py:class:`AsyncWorker` are for asyncio.
"""

from boardd.aio import AsyncBoard, AsyncClient, AsyncTask, AsyncWorker
from boardd.board import Board
from boardd.client import Answer, Client, DEFAULT_ADDR
from boardd.ending import new_owner
from boardd.errors import BoarddError, CancelRequested, LeaseLost, Over, Retry, Stopping, TimedOut, Trash
from boardd.messages import Claim, Event, Job, NewJob
from boardd.run import Report
from boardd.worker import Task, ThreadTask, Worker

__all__ = [
    'Answer', 'AsyncBoard', 'AsyncClient', 'AsyncTask', 'AsyncWorker', 'Board', 'BoarddError', 'CancelRequested',
    'Claim', 'Client', 'DEFAULT_ADDR', 'Event', 'Job', 'LeaseLost', 'NewJob', 'Over', 'Report', 'Retry', 'Stopping',
    'Task', 'ThreadTask', 'TimedOut', 'Trash', 'Worker', 'new_owner',
]
