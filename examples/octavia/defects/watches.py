"""Jobboards that were opened and closed on one client go on to ask ZooKeeper.

    watches.py HOST:PORT  of a ZooKeeper
"""

import sys
import threading
import uuid

from taskflow.jobs import backends
from taskflow.utils import kazoo_utils

path = '/watches-' + uuid.uuid4().hex + '/jobs'
client = kazoo_utils.make_client({'hosts': sys.argv[1]})
client.start()
for _ in range(20):
    with backends.backend('watches', {'board': 'zookeeper', 'path': path},
                          client=client):
        pass

asked, enough = [], threading.Event()
inner = client.get_children


def get_children(at, *args, **kwargs):
    if at == path:
        asked.append(at)
        if len(asked) >= 20:
            enough.set()
    return inner(at, *args, **kwargs)


client.get_children = get_children
client.create(path + '/job', b'{}', sequence=True)
enough.wait(10)
print('open jobboards: 0')
print('listings of the board after one post: %d or more' % len(asked)
      if len(asked) >= 20 else 'listings of the board: %d' % len(asked))
client.stop()
sys.exit(len(asked) < 20)
