"""A claim is extended, shortened and ended by somebody who does not have it.

    extend.py HOST:PORT  of a Redis
"""

import sys
import uuid

from taskflow.jobs import backends

host, port = sys.argv[1].split(':')
conf = {'board': 'redis', 'host': host, 'port': int(port),
        'namespace': 'extend-' + uuid.uuid4().hex}
with backends.backend('a', conf) as of_owner, \
        backends.backend('b', conf) as of_stranger:
    job = of_owner.post('flow')
    of_owner.claim(job, 'owner', expiry=30)
    seen = next(iter(of_stranger.iterjobs()))
    print('a stranger extends the claim by an hour:', seen.extend_expiry(3600))
    print('the owner has it for more than 30 s:', job.expires_in() > 30)
    ended = seen.extend_expiry(0)
    print('a stranger extends the claim by nothing:', ended)
    print('the job is', job.state)
    sys.exit(not ended)
