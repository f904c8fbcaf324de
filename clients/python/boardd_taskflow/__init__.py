"""A TaskFlow jobboard that is kept by a boardd server.

TaskFlow finds it by the name ``boardd``::

    taskflow.jobs.backends.fetch('jobs', {
        'board': 'boardd',
        'address': 'https://boards.example.org:7422',
        'token_file': '/etc/myprogram/boardd.token',
        'board_name': 'octavia',
    })

See :py:mod:`boardd_taskflow.options` for what else may stand in the
configuration.
"""

from boardd_taskflow.board import BoarddJobBoard
from boardd_taskflow.job import BoarddJob
from boardd_taskflow.job import DOES_NOT_EXPIRE
from boardd_taskflow.job import KEY_NOT_FOUND
from boardd_taskflow.watcher import CLAIM_LOST

__all__ = [
    'BoarddJob',
    'BoarddJobBoard',
    'CLAIM_LOST',
    'DOES_NOT_EXPIRE',
    'KEY_NOT_FOUND',
]
