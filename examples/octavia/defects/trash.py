"""A job that was given up is the same, to who waits for it, as one that is done.

    trash.py HOST:PORT  of a Redis
"""

import sys
import uuid

from taskflow.jobs import backends

host, port = sys.argv[1].split(':')
with backends.backend('trash', {
        'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'trash-' + uuid.uuid4().hex}) as board:
    job = board.post('flow')
    board.claim(job, 'worker')
    board.trash(job, 'worker')
    print('a job in the trash is', job.state)
    done = job.wait(timeout=1)
    print('who waits for it is told that it is done:', done)
    left = board._client.exists(job.last_modified_key)
    print('keys that nobody deletes any more:', left)
    sys.exit(not (done and left))
