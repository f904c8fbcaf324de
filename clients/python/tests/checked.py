"""The worker that `boardd client check` judges; docs/writing-a-client.md says
what it has to do. With the argument "asyncio" it is the one for that."""

import asyncio
import signal
import sys
import time

import boardd

_RAISED = {'trash': boardd.Trash('no good'), 'retry': boardd.Retry('not now'), 'fail': ValueError('failed')}
_WHY = {boardd.LeaseLost: 'LOST', boardd.CancelRequested: 'CANCEL', boardd.TimedOut: 'TIMEOUT', boardd.Stopping: 'STOP'}

seen = set()


def say(*words):
    # In one piece: print writes each word by itself, and other threads between them.
    sys.stdout.write(' '.join(words) + '\n')
    sys.stdout.flush()


def begin(task):
    """Returns whether the job is to be held."""
    say('begin', task.uuid)
    name = task.job['name']
    if name in _RAISED:
        raise _RAISED[name]
    held = name == 'hold' and task.uuid not in seen
    seen.add(task.uuid)
    return held


def handle(task):
    if begin(task):
        task.wait()
        say('over', task.uuid, _WHY[type(task.cause)])
        task.check()
    elif task.job['name'] == 'busy':
        time.sleep(4)


async def handle_async(task):
    try:
        if begin(task):
            await asyncio.get_running_loop().create_future()
        elif task.job['name'] == 'busy':
            time.sleep(4)  # the loop stands still, and the lease goes on
    except asyncio.CancelledError:
        say('over', task.uuid, _WHY[type(task.cause)])
        raise


async def main_async():
    async with boardd.AsyncClient() as client:
        worker = boardd.AsyncWorker(client.board(), handle_async, concurrency=3)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


def main():
    worker = boardd.Worker(boardd.Client().board(), handle, concurrency=3)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == '__main__':
    if sys.argv[1:] == ['asyncio']:
        asyncio.run(main_async())
    else:
        main()
