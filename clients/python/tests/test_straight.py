"""The way to the server that has a board: which address is called, and which
is never sent the token."""

import http.server
import json
import ssl
import threading
import unittest.mock

import boardd
from boardd import address
from boardd import straight
from boardd import transport
from tests import boards
from tests import test_tls

TOKEN = 'the-token'


class Clock:
    """Stands for the module time, and goes on when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class Door(http.server.ThreadingHTTPServer):
    """A server of a fleet, as far as a client sees one."""

    daemon_threads = True

    def __init__(self, test, name):
        super().__init__(('127.0.0.1', 0), Handler)
        self.test = test
        self.name = name
        self.tells = {}  # headers of its answers
        self.status = 200
        self.body = b'{"unclaimed":"0"}'
        self.sick = False
        self.lively = threading.Event()  # until then it answers no sign of life
        self.lively.set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        test.addCleanup(self.close)

    @property
    def addr(self):
        return 'http://127.0.0.1:%d' % self.server_port

    def passes(self, to):
        self.tells = {'Boardd-Server': 'http://inside', 'Boardd-Public': to.addr}

    def moves(self, to):
        self.status, self.body = 503, b'{"code":"unavailable","message":"it has moved"}'
        self.tells = {'Boardd-Moved': 'http://inside', 'Boardd-Moved-Public': to.addr if to else ''}

    def serves(self):
        self.status, self.body, self.tells = 200, b'{"unclaimed":"0"}', {}

    def close(self):
        """Is gone: nobody listens there."""
        if self.socket.fileno() >= 0:
            self.shutdown()
            self.server_close()

    def handle_error(self, request, client_address):
        pass  # a caller that has gone


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.server.test.note(self.server.name + self.path)
        if self.headers['Authorization']:
            self.server.test.leaks.append(self.server.name)
        self.server.lively.wait(60)
        self.answer(404 if self.server.sick else 200, {}, b'ok')

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        door = self.server
        door.test.note(door.name)
        self.answer(door.status, dict({'Content-Type': 'application/json'}, **door.tells), door.body)

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Connection', 'close')  # so that one which is gone is gone
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class DoorsTest(boards.TestCase):

    def setUp(self):
        super().setUp()
        self.asked, self.leaks, self.lock = [], [], threading.Lock()
        self.clock = Clock()
        patched = unittest.mock.patch.object(straight, 'time', self.clock)
        patched.start()
        self.addCleanup(patched.stop)
        self.addCleanup(lambda: self.assertEqual(self.leaks, []))

    def note(self, what):
        with self.lock:
            self.asked.append(what)

    def doors(self, *names):
        return [Door(self, name) for name in names]

    def at(self, *given, **options):
        client = boardd.Client(','.join(door.addr for door in given), TOKEN, **options)
        self.addCleanup(client.close)
        self.straights = client._transport._straights
        return client.board('b')

    def counts(self, board, *want):
        """Makes a call, and says whom it must have asked, the signs of life last."""
        board.count()
        self.settles(want)

    def settles(self, want):
        self.eventually(lambda: not any(place.asking for place in self.straights._places.values()), 'all was asked')
        with self.lock:
            asked, self.asked[:] = list(self.asked), []
        self.assertEqual(sorted(asked, key=lambda what: what.endswith('/healthz')), list(want))

    def test_it_follows_the_board(self):
        front, one, two = self.doors('front', 'one', 'two')
        front.passes(one)
        board = self.at(front)
        self.counts(board, 'front', 'one/healthz')
        self.counts(board, 'one')
        one.passes(two)  # the board has moved
        self.counts(board, 'one', 'two/healthz')
        self.counts(board, 'two')
        two.close()
        front.serves()
        self.counts(board, 'front')  # in the same call
        self.counts(board, 'front')
        front.passes(two)  # it is to go to the one that is gone, which is not asked all the time
        self.counts(board, 'front')
        self.clock.now += 4.9
        self.counts(board, 'front')

    def test_around_the_given(self):
        front, one, two = self.doors('front', 'one', 'two')
        front.passes(one)
        board = self.at(front)
        self.counts(board, 'front', 'one/healthz')
        one.passes(two)
        self.counts(board, 'one', 'two/healthz')
        front.close()
        two.close()
        one.serves()
        self.counts(board, 'one')  # which is known, and passes on what is not its own
        self.counts(board, 'one')
        one.passes(two)  # so that another one is to be found, but is not
        self.counts(board, 'one')
        one.serves()
        self.counts(board, 'one')

    def test_one_that_comes_back(self):
        front, one = self.doors('front', 'one')
        front.passes(one)
        one.sick = True
        board = self.at(front)
        self.counts(board, 'front', 'one/healthz')
        for pause in (5, 10, 20, 40, 80, 160, 300, 300):
            self.clock.now += pause - 0.5
            self.counts(board, 'front')
            self.clock.now += 1
            self.counts(board, 'front', 'one/healthz')
        one.sick = False
        self.clock.now += 301
        self.counts(board, 'front', 'one/healthz')
        self.counts(board, 'one')
        one.tells = {'Boardd-Server': 'http://inside'}  # the next one is not to be reached straight
        self.counts(board, 'one')
        self.counts(board, 'front')

    def test_a_board_that_moves(self):
        front, other, one, two = self.doors('front', 'other', 'one', 'two')
        front.passes(one)
        board = self.at(front, other)
        self.counts(board, 'front', 'one/healthz')
        one.moves(two)
        front.passes(two)
        two.lively.clear()  # so that the call goes on before it is known
        board.count()
        two.lively.set()
        self.settles(['one', 'front', 'two/healthz'])
        self.counts(board, 'two')
        one.serves()
        two.moves(one)
        self.counts(board, 'two', 'one')  # which is known
        one.status, one.body = 503, b'{"code":"unavailable"}'  # nothing is said but that it cannot serve
        front.serves()
        self.counts(board, 'one', 'front')
        front.moves(None)
        self.counts(board, 'front', 'other')  # it says not where

    def test_another_one_than_was_meant(self):
        for status, form in ((401, 'application/json'), (421, 'application/json'), (502, 'text/html'), (302, 'text/html'),
                             (200, 'text/html'), (404, 'text/plain')):
            with self.subTest(status=status):
                front, one = self.doors('front', 'one')
                front.passes(one)
                one.status, one.tells, one.body = status, {'Content-Type': form}, b'{"code":"unauthenticated"}'
                board = self.at(front)
                self.counts(board, 'front', 'one/healthz')
                self.counts(board, 'one', 'front')
                self.counts(board, 'front')

    def test_a_call_is_tried_once(self):
        front, one = self.doors('front', 'one')
        front.passes(one)
        board = self.at(front, retry_for=0)
        self.counts(board, 'front', 'one/healthz')
        one.close()
        front.serves()
        self.counts(board, 'front')
        front.close()
        self.fails('UNAVAILABLE', board.count)

    def test_by_tls(self):
        """With the roots that the client was given, though it was given no address with https."""
        front, one = self.doors('front', 'one')
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(test_tls.path('server.pem'), test_tls.path('server-key.pem'))
        one.socket = tls.wrap_socket(one.socket, server_side=True)
        front.tells = {'Boardd-Server': 'http://inside', 'Boardd-Public': 'https://localhost:%d' % one.server_port}
        board = self.at(front, ca_file=test_tls.path('ca.pem'))
        self.counts(board, 'front', 'one/healthz')
        self.counts(board, 'one')
        board = self.at(front)  # whose roots do not vouch for it
        self.counts(board, 'front')
        self.counts(board, 'front')

    def test_it_stays(self):
        front, one = self.doors('front', 'one')
        front.passes(one)
        board = self.at(front, stay_at_addr=True)
        self.counts(board, 'front')
        self.counts(board, 'front')

    def test_calls_of_no_board(self):
        front, one = self.doors('front', 'one')
        front.passes(one)
        board = self.at(front)
        board.client.call('WhoAmI', {})
        self.settles(['front'])

    def test_a_file_that_is_read_again(self):
        """A token that another server does not know is no reason to read it again."""
        front, one = self.doors('front', 'one')
        front.passes(one)
        board = self.at(front)
        self.counts(board, 'front', 'one/healthz')
        one.status, one.body = 401, b'{"code":"unauthenticated","message":"no"}'
        with unittest.mock.patch.object(board.client, '_renew') as renew:
            self.counts(board, 'one', 'front')
        renew.assert_not_called()

    def test_what_was_not_sent_the_token(self):
        front, one = self.doors('front', 'one')
        for named in ('http://u:p@127.0.0.1:%d', 'http://127.0.0.1:%d/x', 'http://127.0.0.1:%d?x', 'ftp://127.0.0.1:%d',
                      '127.0.0.1:%d', 'http://127.1:%d', 'http://2130706433:%d'):
            front.tells = {'Boardd-Server': 'http://inside', 'Boardd-Public': named % one.server_port}
            board = self.at(front)
            self.counts(board, 'front')
            self.counts(board, 'front')

    def test_bounds(self):
        front, one = self.doors('front', 'one')
        board = self.at(front)
        one.sick = True
        with unittest.mock.patch.multiple(straight, MAX_BOARDS=3, MAX_PLACES=2):
            for n in range(5):
                front.tells = {'Boardd-Server': 'http://inside', 'Boardd-Public': one.addr}
                board.client.board('b%d' % n).count()
            self.assertEqual(sorted(self.straights._boards), ['b2', 'b3', 'b4'])
            for n in range(5):
                front.tells = {'Boardd-Server': 'http://inside', 'Boardd-Public': 'http://127.0.0.1:%d' % (n + 1)}
                board.client.board('c%d' % n).count()
            self.assertEqual(len(self.straights._places), 2)
            self.assertLessEqual(len(self.straights._boards), 3)

    def test_what_a_server_that_passed_it_on_does_not_know(self):
        """Its OUTCOME_UNKNOWN is no refusal: the next one's does not say that nothing was done."""
        front, = self.doors('front')
        answers = [(503, 'OUTCOME_UNKNOWN', 'unavailable'), (400, 'INVALID', 'invalid_argument')]

        def post(*_, **__):
            status, kind, code = answers.pop(0)
            details = [{'type': 'boardd.v1.Error', 'debug': {'code': kind, 'message': kind}}]
            return status, {}, json.dumps({'code': code, 'details': details}).encode()
        board = self.at(front)
        with unittest.mock.patch.object(board.client._transport, 'post', post):
            self.assertEqual(self.fails('OUTCOME_UNKNOWN', board.post, 'x').changed, 'unknown')


class KeptTest(boards.TestCase):
    """Connections that are kept."""

    def test_one_that_the_server_has_closed(self):
        line = self.line()
        board = self.open(line.port, retry_for=0)
        board.count()
        line.cut()
        board.post('x')  # which would not be tried again
        self.assertEqual(line.calls, ['CountJobs', 'PostJobs'])

    def test_old_ones_are_closed(self):
        board = self.open()
        board.count()
        kept = board.client._transport
        kept._idle[address.Address(False, 'gone', 1)] = [(conn, since - transport.IDLE - 1) for conn, since in list(kept._idle.values())[0]]
        kept._idle = {place: conns for place, conns in kept._idle.items() if place.host == 'gone'}
        (old, _), = list(kept._idle.values())[0]
        kept._swept = 0.0
        board.count()
        self.assertIsNone(old.sock)
        self.assertEqual([place.host for place in kept._idle], ['127.0.0.1'])


class TrustTest(unittest.TestCase):

    def test_which_addresses_may_have_the_token(self):
        for given, named, trusted in (
                ('http://front', 'http://one', True),
                ('http://front', 'https://one', True),
                ('https://front', 'https://one', True),
                ('https://front', 'http://one', False),
                ('http://front,https://other', 'http://one', False),
                ('https://front', 'https://one:444', True),
                ('http://front', 'http://localhost:1', False),
                ('http://front', 'http://LOCALHOST.', False),
                ('http://front', 'http://127.0.0.2', False),
                ('http://front', 'http://a.localhost', False),
                ('http://front', 'http://[::1]:80', False),
                ('http://front', 'http://[::ffff:127.0.0.1]:80', False),
                ('http://front', 'http://[::]:80', False),
                ('http://front', 'http://0.0.0.0', False),
                ('http://localhost', 'http://127.0.0.1:1', True),
                ('http://front', 'http://u:p@one', False),
                ('http://front', 'http://one?x=1', False),
                ('http://front', 'http://one?', False),
                ('http://front', 'http://one#x', False),
                ('http://front', 'http://one/', False),
                ('http://front', 'http://10.0.0.1', True),
                ('http://front', 'http://[2001:db8::1]:7422', True),
                ('http://front', 'http://127.1', False),
                ('http://front', 'http://2130706433', False),
                ('http://front', 'http://0x7f.1', False),
                ('http://front', 'http://0x7f000001.', False),
                ('http://front', 'http://one.0xab.example', True),
                ('http://localhost', 'http://127.1', False),
                ('http://front', 'ftp://one', False),
                ('http://front', 'one', False),
                ('http://front', 'http:one', False),
                ('http://front', 'http://', False),
                ('http://front', 'http://one:x', False),
                ('http://front', 'http://one:99999', False),
                ('http://front', ' http://one', False),
                ('http://front', 'http://one\n', False),
                ('http://front', '', False)):
            with self.subTest(given=given, named=named):
                other = address.named(named)
                known = [address.given(text) for text in given.split(',')]
                self.assertEqual(other is not None and address.trusts(known, other), trusted)
