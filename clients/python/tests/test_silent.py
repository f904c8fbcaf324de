"""Servers that keep their connections and answer nothing.

No call here has a time of its own within which the test would end, so that it
is the sign of life that decides.
"""

import asyncio
import glob
import http.server
import os
import signal
import socket
import threading
import time
import unittest.mock

import boardd
from boardd import silent
from tests import boards
from tests import server
from tests import test_tls

#: How long a call may take that nobody answers, in seconds.
LONG = 3600.0


class TestCase(boards.TestCase):

    def setUp(self):
        super().setUp()
        self.name = server.board_name()
        self.stopped = self.other()
        self.there = self.client(self.server.port).board(self.name)

    def other(self, extra=''):
        """Returns another server, which can be stopped."""
        other = server.Server([self.name], extra)
        self.addCleanup(other.close)
        self.addCleanup(os.kill, other.process.pid, signal.SIGCONT)
        return other

    def client(self, *ports, **options):
        addr = ','.join('http://127.0.0.1:%d' % port for port in ports)
        client = boardd.Client(addr, server.TOKEN, call_timeout=LONG, **options)
        self.addCleanup(client.close)
        return client

    def stop(self):
        """Stops the other server, and waits until none of its threads runs."""
        pid = self.stopped.process.pid
        os.kill(pid, signal.SIGSTOP)
        while any(self.runs(thread) for thread in glob.glob('/proc/%d/task/*/stat' % pid)):
            time.sleep(0.001)  # nobody announces it

    @staticmethod
    def runs(thread):
        try:
            with open(thread) as text:  # "ID (NAME) STATE ..."
                return text.read().rpartition(') ')[2][:1] not in ('T', 'Z', 'X')
        except OSError:
            return False  # it has ended

    def in_time(self, call):
        """Returns what a call returns that must not take for ever."""
        came = []
        thread = threading.Thread(target=lambda: came.append(call()), daemon=True)
        thread.start()
        thread.join(120)
        self.assertFalse(thread.is_alive(), 'it waits for the server that was stopped')
        result, = came
        return result


class StoppedTest(TestCase):

    def test_calls_go_on_at_the_next_address(self):
        board = self.client(self.stopped.port, self.server.port).board(self.name)
        first = board.post('before')
        self.stop()
        posted = self.in_time(lambda: [board.post('after')])[0]
        self.assertEqual(self.there.get(posted['uuid'])['name'], 'after')
        self.fails('NOT_FOUND', self.there.get, first['uuid'])

    def test_a_call_that_waits(self):
        board = self.client(self.stopped.port, self.server.port).board(self.name)
        board.count()
        posted = self.there.post('there')
        self.stop()
        claim, = self.in_time(lambda: board.claim('me', wait=30))
        self.assertEqual(claim['uuid'], posted['uuid'])

    def test_nobody_knows_what_came_of_it(self):
        board = self.client(self.stopped.port, self.server.port, retry_for=0).board(self.name)
        board.count()
        self.stop()
        failed = self.in_time(lambda: self.fails('OUTCOME_UNKNOWN', board.post, 'x'))
        self.assertRegex(str(failed), 'has stopped answering')
        self.assertEqual(failed.changed, 'unknown')
        self.assertEqual(board.count()['unclaimed'], '0')  # at the next one

    def test_asyncio(self):
        addr = 'http://127.0.0.1:%d,http://127.0.0.1:%d' % (self.stopped.port, self.server.port)

        async def post():
            async with boardd.AsyncClient(addr, server.TOKEN, call_timeout=LONG) as client:
                board = client.board(self.name)
                await board.count()
                self.stop()
                return await asyncio.gather(*[board.post('n%d' % i) for i in range(10)])
        jobs = self.in_time(lambda: asyncio.run(post()))
        self.assertEqual({job['uuid'] for job in jobs}, {job['uuid'] for job in self.there.list()})


class TLSTest(TestCase):

    def test_one_that_never_agrees_on_the_encryption(self):
        self.stopped, other = self.other(test_tls._TLS), self.other(test_tls._TLS)
        addr = 'https://localhost:%d,https://localhost:%d' % (self.stopped.port, other.port)
        client = boardd.Client(addr, server.TOKEN, call_timeout=LONG, ca_file=test_tls.path('ca.pem'),
                               cert_file=test_tls.path('client.pem'), key_file=test_tls.path('client-key.pem'))
        self.addCleanup(client.close)
        client._transport._connect_timeout = LONG
        self.stop()
        board = client.board(self.name)
        posted = self.in_time(lambda: board.post('there'))
        self.assertEqual(board.get(posted['uuid'])['name'], 'there')


    def test_without_tls(self):
        secure = self.other(test_tls._TLS)
        client = boardd.Client('http://127.0.0.1:%d' % secure.port, server.TOKEN, retry_for=0)
        failed = self.fails('UNAVAILABLE', client.board(self.name).post, 'x')
        self.assertRegex(str(failed), 'speaks TLS: want https:// in place of http://')
        self.assertEqual(failed.changed, 'no')


class WorkerTest(TestCase):

    def test_it_goes_on_at_the_next_address(self):
        board = self.client(self.stopped.port, self.server.port).board(self.name)
        self.there.post('there')
        working = boards.Working(self, board, lambda task: None, max_jobs=1)
        self.eventually(lambda: self.client(self.stopped.port).board(self.name).call('ListEntities')['entities'], 'it works')
        self.stop()
        working.join()
        self.assertEqual(working.endings(), ['CONSUMED'])


class Draining(http.server.BaseHTTPRequestHandler):
    """A server, or what stands before it, that cannot serve now."""

    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.server.asked += 1
        self.send_response(503)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


class CannotServeTest(TestCase):

    def test_it_is_left(self):
        draining = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Draining)
        draining.asked = 0
        self.addCleanup(draining.server_close)
        threading.Thread(target=draining.serve_forever, daemon=True).start()
        self.addCleanup(draining.shutdown)
        board = self.client(draining.server_port, self.server.port).board(self.name)
        self.assertEqual([board.count()['unclaimed'] for _ in range(3)], ['0'] * 3)
        self.assertEqual(draining.asked, 1)


class RefusedEarlyTest(TestCase):

    def test_what_was_said_is_heard(self):
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)

        def refuse():
            conn, _from = listener.accept()
            conn.recv(1)
            conn.sendall(b'HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
            conn.close()  # with most of the request unread, which resets the connection
        threading.Thread(target=refuse, daemon=True).start()
        board = self.client(listener.getsockname()[1], retry_for=0).board(self.name)
        with self.assertRaises(boardd.BoarddError) as caught:
            board.post('large', 'x' * (16 << 20))
        self.assertRegex(str(caught.exception), '413')


class AliveTest(TestCase):

    def test_a_slow_answer_is_waited_for(self):
        with unittest.mock.patch.multiple(silent, AFTER=0.05, AGAIN=0.1):
            line = self.line(self.stopped)
            board = self.client(line.port, self.server.port).board(self.name)
            claimed = []

            def claim():
                claimed.extend(board.claim('me', wait=60))
            waiting = threading.Thread(target=claim, daemon=True)
            waiting.start()
            self.eventually(lambda: line.calls.count('healthz') > 2, 'it is asked again and again')
            posted = self.client(self.stopped.port).board(self.name).post('here')
            waiting.join(60)
        self.assertEqual([c['uuid'] for c in claimed], [posted['uuid']])
        self.assertEqual(line.calls.count('ClaimJobs'), 1)

    def test_one_address_is_not_asked(self):
        with unittest.mock.patch.multiple(silent, AFTER=0.05, AGAIN=0.1):
            line = self.line()
            board = self.client(line.port).board(self.name)
            self.assertEqual(board.claim('me', wait=1), [])
        self.assertEqual(line.calls, ['ClaimJobs'])
