"""What the tests share."""

import contextlib
import threading
import time

from taskflow.jobs import backends
from taskflow import test

from tests import server

#: After how many seconds a test gives up on what should come at once. Long,
#: since the machine may be busy; nothing waits for it to pass.
PATIENCE = 60


class TestCase(test.TestCase):
    """A test with boards of its own on the shared server."""

    def setUp(self):
        super(TestCase, self).setUp()
        self.server = server.shared()
        self.name = server.board_name()

    def conf(self, **more):
        conf = {'board': 'boardd', 'host': '127.0.0.1',
                'port': self.server.port, 'token': server.TOKEN,
                'board_name': self.name}
        conf.update(more)
        return {k: v for k, v in conf.items() if v is not None}

    def make(self, persistence=None, **more):
        """Returns a jobboard, as a program gets one, not yet connected."""
        board = backends.fetch('jobs', self.conf(**more),
                               persistence=persistence)
        self.addCleanup(board.close)
        return board

    def open(self, persistence=None, **more):
        board = self.make(persistence=persistence, **more)
        board.connect()
        return board

    def eventually(self, check, what):
        """Waits until check() is true."""
        end = time.monotonic() + PATIENCE
        while not check():
            if time.monotonic() > end:
                self.fail("never: " + what)
            time.sleep(0.01)

    @contextlib.contextmanager
    def thread(self, target):
        """Runs something beside the block, and raises what it raised."""
        raised = []

        def run():
            try:
                target()
            except BaseException as e:
                raised.append(e)

        t = threading.Thread(target=run, daemon=True)
        t.start()
        yield t
        t.join(PATIENCE)
        self.assertFalse(t.is_alive())
        if raised:
            raise raised[0]


def only(jobs):
    """Returns the one job of an iterable."""
    job, = list(jobs)
    return job
