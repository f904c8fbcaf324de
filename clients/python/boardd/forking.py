"""What has to be done anew in a child process.

Threads do not survive a fork, a lock may be held by one of them, and a socket
that two processes write to is of no use to either.
"""

import os
from typing import Any
import weakref

_known: 'weakref.WeakSet[Any]' = weakref.WeakSet()


def watch(thing: Any) -> None:
    """Calls ``thing.after_fork()`` in each child of this process."""
    _known.add(thing)


def _in_child() -> None:
    for thing in list(_known):
        thing.after_fork()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_in_child)
