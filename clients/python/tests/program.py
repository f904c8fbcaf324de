"""A conductor in a process of its own: CONF-AS-JSON FOLDER NAME."""

import json
import sys

from taskflow.conductors import backends as conductor_backends
from taskflow.jobs import backends as job_backends
from taskflow.persistence import backends as persistence_backends


def main():
    conf, folder, name = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
    persistence = persistence_backends.fetch({'connection': 'dir',
                                              'path': folder})
    persistence.get_connection().upgrade()
    with job_backends.backend('jobs', conf, persistence=persistence) as board:
        conductor_backends.fetch('blocking', name, board,
                                 persistence=persistence, engine='serial',
                                 wait_timeout=0.1).run()


if __name__ == '__main__':
    main()
