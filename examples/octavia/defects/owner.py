"""Whoever asks for the owner of a job that nobody has gets an exception.

    owner.py HOST:PORT  of a Redis
"""

import sys
import uuid

from taskflow.jobs import backends

host, port = sys.argv[1].split(':')
with backends.backend('owner', {
        'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'owner-' + uuid.uuid4().hex}) as board:
    job = board.post('flow')
    try:
        print('the owner of a job that nobody has:', board.find_owner(job))
    except TypeError:
        print('the owner of a job that nobody has: TypeError')
    else:
        sys.exit(1)
