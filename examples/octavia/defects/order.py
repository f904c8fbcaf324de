"""TaskFlow says: the oldest job first, and those of higher priority before.

    order.py redis HOST:PORT
    order.py zookeeper HOST:PORT
"""

import sys
import time
import uuid

from taskflow.jobs import backends

kind, address = sys.argv[1:]
host, port = address.split(':')
name = 'order-' + uuid.uuid4().hex
with backends.backend(name, {
        'board': kind, 'host': host, 'port': int(port), 'namespace': name,
        'hosts': address, 'path': '/' + name + '/jobs'}) as board:
    for number, priority in enumerate(['NORMAL', 'LOW', 'NORMAL', 'HIGH'], 1):
        board.post('%d-%s' % (number, priority), priority=priority)
    jobs = []
    while len(jobs) < 4:  # ZooKeeper's watches tell of them a little later
        jobs = [job.name for job in board.iterjobs(ensure_fresh=True)]
        time.sleep(0.05)

print('documented: 4-HIGH 1-NORMAL 3-NORMAL 2-LOW')
print('listed:    ', *jobs)
sys.exit(jobs == ['4-HIGH', '1-NORMAL', '3-NORMAL', '2-LOW'])
