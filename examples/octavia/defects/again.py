"""A flow that fails in a certain way is claimed again at once, for ever.

    again.py HOST:PORT  of a Redis
"""

import functools
import logging
import sys
import uuid

from taskflow.conductors import backends as conductors
from taskflow import engines
from taskflow import exceptions
from taskflow.jobs import backends
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models
from taskflow import task


class Broken(task.Task):

    def execute(self):
        raise exceptions.ExecutionFailure('the amphora does not answer')


def make_flow():
    return linear_flow.Flow('flow').add(Broken())


sys.modules['again'] = sys.modules[__name__]
make_flow.__module__ = 'again'  # where the engine finds it
logging.getLogger('taskflow').setLevel(logging.CRITICAL)

host, port = sys.argv[1].split(':')
persistence = persistences.fetch({'connection': 'memory'})
with backends.backend('again', {
        'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'again-' + uuid.uuid4().hex},
        persistence=persistence) as board:
    book = models.LogBook('flow')
    flow = models.FlowDetail('flow', uuid.uuid4().hex)
    book.add(flow)
    persistence.get_connection().save_logbook(book)
    engines.save_factory_details(flow, make_flow, (), {}, backend=persistence)
    board.post('flow', book=book)

    claims = []

    def claim(inner, job, who):
        claims.append(job)
        if len(claims) == 100:
            conductor.stop()
        return inner(job, who)

    board.claim = functools.partial(claim, board.claim)
    conductor = conductors.fetch('blocking', 'worker', board,
                                 persistence=persistence)
    slept = []
    conductor._wait_timeout.wait = slept.append
    conductor.run()
    print('claims of the one job:', len(claims))
    print('pauses between them:', len(slept))
    sys.exit(len(claims) < 100)
