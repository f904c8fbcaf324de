"""Two boards side by side have one trash, and the second job does not go there.

    siblings.py HOST:PORT  of a ZooKeeper
"""

import sys
import time
import uuid

from taskflow import exceptions
from taskflow.jobs import backends

path = '/siblings-' + uuid.uuid4().hex
failed = 0
for name in ('north', 'south'):
    with backends.backend(name, {
            'board': 'zookeeper', 'hosts': sys.argv[1],
            'path': path + '/' + name}) as board:
        board.post('flow')
        jobs = []
        while not jobs:
            jobs = list(board.iterjobs(ensure_fresh=True))
            time.sleep(0.05)
        board.claim(jobs[0], 'worker')
        try:
            board.trash(jobs[0], 'worker')
            print(name + ': the job is in', board.trash_path[len(path):])
        except exceptions.JobFailure:
            failed += 1
            print(name + ': the job is', jobs[0].state, 'and stays so')
sys.exit(not failed)
