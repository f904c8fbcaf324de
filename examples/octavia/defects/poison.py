"""A posting that TaskFlow writes and cannot read ends a conductor, and counts as done.

    poison.py HOST:PORT  of a Redis
"""

import sys
import uuid

from taskflow.conductors import backends as conductors
from taskflow import exceptions
from taskflow.jobs import backends
from taskflow.persistence import backends as persistences

host, port = sys.argv[1].split(':')
persistence = persistences.fetch({'connection': 'memory'})
with backends.backend('poison', {
        'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'poison-' + uuid.uuid4().hex},
        persistence=persistence) as board:
    job = board.post('flow', details={'ports': {80: 'http'}})
    print('it was posted, and is', job.state)
    conductor = conductors.fetch('blocking', 'worker', board,
                                 persistence=persistence)
    try:
        conductor.run(max_dispatches=1)
    except exceptions.JobFailure:
        print('the conductor ended with a JobFailure')
    else:
        sys.exit(1)
    print('jobs on the board:', board.job_count)
    print('who waits for the job is told that it is done:', job.wait(timeout=1))
