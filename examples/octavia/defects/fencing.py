"""A worker whose claim ran out ends the work of the next one of its name.

    fencing.py HOST:PORT  of a Redis
"""

import sys
import time
import uuid

from taskflow import exceptions
from taskflow.jobs import backends

host, port = sys.argv[1].split(':')
conf = {'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'fencing-' + uuid.uuid4().hex}
with backends.backend('a', conf) as first, backends.backend('b', conf) as next_:
    job = first.post('flow')
    first.claim(job, 'worker', expiry=0.05)
    while job.state == 'CLAIMED':  # the first one hangs for longer than that
        time.sleep(0.01)
    again = next(iter(next_.iterjobs()))
    next_.claim(again, 'worker', expiry=30)
    print('the next worker has the job:', next_.find_owner(again))
    first.consume(job, 'worker')
    print('the first one, back again, has consumed it')
    try:
        next_.consume(again, 'worker')
    except exceptions.NotFound:
        print('the next one, done with its work, is told that there is no job')
    else:
        sys.exit(1)
