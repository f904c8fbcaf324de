"""What the tests of the package boardd share."""

import json
import threading
import time
import unittest
import urllib.request

import boardd
from tests import server


class TestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.server = server.shared()

    def open(self, port=None, name=None, token=server.TOKEN, **options):
        """Returns a board that no other test has."""
        client = boardd.Client('http://127.0.0.1:%d' % (port or self.server.port), token, **options)
        self.addCleanup(client.close)
        return client.board(name or server.board_name())

    def line(self, to=None):
        line = server.Line((to or self.server).port)
        self.addCleanup(line.close)
        return line

    def admin(self, method, request):
        """Makes a call of the administrators'."""
        headers = {'Authorization': 'Bearer ' + server.TOKEN, 'Content-Type': 'application/json'}
        url = 'http://127.0.0.1:%d/boardd.v1.AdminService/%s' % (self.server.port, method)
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode(), headers)) as answer:
            return json.load(answer)

    def fails(self, kind, call, *args, **kwargs):
        """Returns the error of a call, which is of a kind."""
        with self.assertRaises(boardd.BoarddError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.kind, kind, caught.exception)
        return caught.exception

    def eventually(self, so, what):
        for _ in range(12000):
            if so():
                return
            time.sleep(0.01)
        self.fail('it never came to be that ' + what)


class Working:
    """A worker that runs in a thread, with what it reports."""

    def __init__(self, test, board, handler, **options):
        self.reports = []
        self.error = None
        self.worker = boardd.Worker(board, handler, report=self.reports.append, **options)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        test.addCleanup(self.worker.stop)

    def _run(self):
        try:
            self.worker.run()
        except boardd.BoarddError as e:
            self.error = e

    def join(self):
        self._thread.join(240)
        assert not self._thread.is_alive(), 'the worker did not end'

    def endings(self):
        return [r.ending for r in self.reports]


class Endless:
    """A handler that goes on until it is over."""

    def __init__(self):
        self.begun = threading.Event()
        self.task = None

    def __call__(self, task):
        self.task = task
        self.begun.set()
        task.wait()
        task.check()

    def cause(self, test):
        """Waits for why it is over."""
        test.assertTrue(self.begun.wait(60))
        test.assertTrue(self.task.wait(60))
        return type(self.task.cause)
