"""Who waits for a job may hear a minute late that it is done.

    late.py HOST:PORT  of a Redis
"""

import sys
import uuid

from taskflow.jobs import backends

host, port = sys.argv[1].split(':')
with backends.backend('late', {
        'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'late-' + uuid.uuid4().hex}) as board:
    job = board.post('flow')
    board.claim(job, 'worker')
    pauses = []

    def sleep(seconds):  # the flow takes two minutes, and no time here
        if sum(pauses) < 120 <= sum(pauses) + seconds:
            board.consume(job, 'worker')
        pauses.append(seconds)

    job.wait(sleep_func=sleep)
    late = sum(pauses) - 120
    print('after 120 s the job was done, and %d s later this was noticed' % late)
    sys.exit(late < 10)
