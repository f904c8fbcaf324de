"""What a worker says by itself, against real servers."""

import os
import socket
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import boardd
from boardd import outage
from tests import boards
from tests import server


class LoggedTest(boards.TestCase):

    def logged(self, error):
        """Returns what is logged of a job whose handler raises an error."""
        board = self.open()
        board.post('n')

        def handler(_):
            raise error
        with self.assertLogs('boardd', 'WARNING') as logs:
            outage.log.warning('the first line')
            boardd.Worker(board, handler, max_jobs=1).run()
        return [line.partition(' (n) ')[2] for line in logs.output[1:]]

    def test_what_failed(self):
        bug, = self.logged(ValueError('boom'))
        self.assertTrue(bug.startswith('failed at attempt 1, and was given back: boom\nTraceback'), bug)
        self.assertIn('test_outage.py', bug)
        self.assertEqual(self.logged(boardd.Trash('no path')), ['failed at attempt 1, and was set aside: no path'])

    def test_what_did_not_fail(self):
        for error in (boardd.Retry('the disk is full'), boardd.CancelRequested('not wanted')):
            self.assertEqual(self.logged(error), [])

    def test_what_is_reported(self):
        board = self.open()
        board.post('n')
        reports = []

        def handler(_):
            raise ValueError('boom')
        with self.assertLogs('boardd', 'WARNING') as logs:
            outage.log.warning('the first line')
            boardd.Worker(board, handler, max_jobs=1, report=reports.append).run()
        self.assertEqual((len(logs.output), [r.ending for r in reports]), (1, ['ABANDONED']))

    def test_a_program_that_sets_nothing(self):
        board = self.open()
        board.post('n')
        program = ('import boardd\n'
                   'def h(task): raise ValueError("boom")\n'
                   'boardd.Worker(boardd.Client().board(%r), h, max_jobs=1).run()' % board.name)
        env = dict(os.environ, BOARDD_ADDR='http://127.0.0.1:%d' % self.server.port, BOARDD_TOKEN=server.TOKEN)
        run = subprocess.run([sys.executable, '-c', program], env=env, capture_output=True, text=True, check=True)
        self.assertIn('given back: boom\nTraceback', run.stderr)


class OutageTest(unittest.TestCase):

    def test_is_told_once(self):
        told = []
        o = outage.Outage(told.append)
        error = boardd.BoarddError('UNAVAILABLE', 'Work', 'refused')
        now = time.monotonic()
        o.tried(now, error)  # which may pass at once
        o.tried(now, None)
        self.assertEqual(told, [])
        for _ in range(3):
            o.tried(now - 10, error)
        for _ in range(3):
            o.tried(now, None)
        self.assertEqual([line.partition(';')[0].partition(',')[0] for line in told],
                         ['the server cannot be reached', 'the server answers again'])

    def test_a_worker_whose_server_is_away(self):
        with socket.socket() as closed:  # nobody listens there
            closed.bind(('127.0.0.1', 0))
            told, first = [], threading.Event()

            def warn(line):
                told.append(line)
                first.set()
            client = boardd.Client('http://127.0.0.1:%d' % closed.getsockname()[1], server.TOKEN)
            self.addCleanup(client.close)
            worker = boardd.Worker(client.board('b'), lambda task: None, warn=warn)
            with unittest.mock.patch.object(outage, '_BLIP', 0.0):
                run = threading.Thread(target=worker.run, daemon=True)
                run.start()
                self.assertTrue(first.wait(60))
                worker.stop()
                run.join(60)
        self.assertFalse(run.is_alive())
        self.assertEqual(len(told), 1, told)
        self.assertIn('cannot be reached', told[0])


if __name__ == '__main__':
    unittest.main()
