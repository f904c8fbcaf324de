"""The client of the package boardd, against real servers."""

import ast
import concurrent.futures
import datetime
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import urllib.request

import boardd
from boardd import client as boardd_client
from boardd import messages
from tests import boards
from tests import server


class ClientTest(boards.TestCase):

    def test_post_claim_consume(self):
        board = self.open()
        due = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
        job = board.post('resize', {'path': '/ä.png', 'n': 3}, labels={'a': 'b'}, priority='HIGH', timeout=90.5,
                         not_before=due)
        self.assertEqual((job['details'], job['timeout'], job['priority']), ({'path': '/ä.png', 'n': 3}, '90.5s', 'HIGH'))
        claim, = board.claim('me', lease=5)
        self.assertEqual((claim['uuid'], claim['lease']), (job['uuid'], '5s'))
        self.assertEqual(board.claim('you'), [])
        board.consume(claim)
        board.consume(claim)  # answers as it did before
        ended = board.ended(job['uuid'])
        self.assertEqual((ended['state'], ended['outcome']), ('COMPLETE', 'CONSUMED'))

    def test_several_end(self):
        board = self.open()
        for name in 'abcdef':
            board.post(name)
        claims = board.claim('me', max=6)
        self.assertEqual(board.consume(claims[:2]), [None, None])
        gone, ended = board.abandon([claims[0], claims[2]], reason='later')
        self.assertEqual((gone.kind, gone.job, ended), ('LEASE_LOST', claims[0]['uuid'], None))
        self.assertEqual(board.trash(tuple(claims[3:5]), 'odd'), [None, None])
        board.consume(claims[5])
        self.assertEqual((board.count()['trashed'], board.count()['unclaimed']), ('2', '1'))

    def test_ended_in_vain(self):
        board = self.open()
        self.assertIsNone(board.ended(board.post('x')['uuid'], timeout=0.01))

    def test_post_again(self):
        board = self.open()
        jobs = [{'name': 'once'}]
        first, = board.post_all(jobs)
        again, = board.post_all(jobs)
        self.assertEqual(first['uuid'], again['uuid'])
        self.assertEqual(board.count()['unclaimed'], '1')
        e = self.fails('ALREADY_EXISTS', board.post, 'other', uuid=first['uuid'])
        self.assertEqual((e.job, e.changed, e.retryable), (first['uuid'], 'no', False))

    def test_one_fails_alone(self):
        board = self.open()
        good, bad, last = board.post_all([{'name': 'a'}, {'name': ''}, {'name': 'b'}])
        self.assertEqual((good['name'], bad.kind, last['name']), ('a', 'INVALID', 'b'))
        found, lost = board.get_all([good['uuid'], '00000000-0000-4000-8000-000000000000'])
        self.assertEqual((found['name'], lost.kind), ('a', 'NOT_FOUND'))

    def test_claim_by_uuid(self):
        board = self.open()
        a, b = board.post('a')['uuid'], board.post('b')['uuid']
        board.claim('you', uuids=[b])
        self.assertEqual(self.fails('ALREADY_CLAIMED', board.claim, 'me', uuids=[a, b]).job, b)
        job = board.get(a)
        self.assertEqual((job['state'], job['attempt']), ('UNCLAIMED', 0))

    def test_list(self):
        board = self.open()
        board.post_all([{'name': 'n%d' % i, 'labels': {'even': str(i % 2 == 0)}} for i in range(25)])
        names = [job['name'] for job in board.list(page_size=4, filter='labels.even = True')]
        self.assertEqual(names, ['n%d' % i for i in range(0, 25, 2)])

    def test_wrong(self):
        board = self.open()
        self.assertEqual(self.fails('INVALID', board.claim, 'me', filter='priority ~ 3').field, 'filter')
        self.assertRegex(str(self.fails('UNAUTHENTICATED', self.open(token='wrong').count)), 'is it the right one in')
        self.assertRegex(str(self.fails('UNAUTHENTICATED', self.open(token='').count)), 'give Client a token or')
        self.fails('NOT_FOUND', self.open(name='missing').count)
        for addr in ('localhost:7422', 'http://a/b', 'ftp://a'):
            self.assertRegex(str(self.fails('INVALID', boardd.Client, addr)), 'want http://HOST:PORT')

    def test_wrong_address(self):
        away = boardd.Client('http://127.0.0.1:1', 'x', retry_for=0).board()
        self.assertRegex(str(self.fails('UNAVAILABLE', away.count)), 'refused; is a boardd running there')
        plain = boardd.Client('https://127.0.0.1:%d' % self.server.port, 'x', retry_for=0).board()
        failed = self.fails('UNAVAILABLE', plain.post, 'x')
        self.assertRegex(str(failed), 'speaks no TLS: want http:// in place of https://')
        self.assertEqual(failed.changed, 'no')

    def test_wrong_handler(self):
        for worker in (boardd.Worker, boardd.AsyncWorker):
            self.assertRegex(str(self.fails('INVALID', worker, self.open(), None)), 'handler: want a function')

    def test_environment(self):
        env = {'BOARDD_ADDR': 'http://127.0.0.1:%d' % self.server.port, 'BOARDD_TOKEN': server.TOKEN, 'BOARDD_BOARD': 'b0'}
        with unittest.mock.patch.dict(os.environ, env):
            board = boardd.Client().board()
            self.assertEqual(board.name, 'b0')
            board.count()
            self.fails('UNAUTHENTICATED', boardd.Client(token='').board().count)

    def test_token_file(self):
        with tempfile.NamedTemporaryFile('w', suffix='.token') as f:
            f.write('old\n')
            f.flush()
            board = self.open(token=None, token_file=f.name)
            f.seek(0)
            f.write(server.TOKEN)
            f.flush()
            self.assertEqual(board.count()['unclaimed'], '0')

    def test_token_file_under_calls(self):
        with tempfile.NamedTemporaryFile('w', suffix='.token') as f:
            f.write('old')
            f.flush()
            board = self.open(token=None, token_file=f.name)
            f.seek(0)
            f.write(server.TOKEN)
            f.flush()
            post, both = board.client._transport.post, threading.Barrier(2, timeout=60)

            def held(path, data, headers, *args, **more):
                if headers['Authorization'] == 'Bearer old':
                    both.wait()
                return post(path, data, headers, *args, **more)
            with unittest.mock.patch.object(board.client._transport, 'post', held):
                with concurrent.futures.ThreadPoolExecutor() as threads:
                    counts = [threads.submit(board.count) for _ in range(2)]
                    self.assertEqual([count.result()['unclaimed'] for count in counts], ['0', '0'])

    def test_lost_answers(self):
        line = self.line()
        board = self.open(line.port)
        line.lose_answers('PostJobs', 2)
        board.post('once')
        line.lose_answers('ClaimJobs', 2)
        board.claim('me')
        counts = board.count()
        self.assertEqual((counts['unclaimed'], counts['claimed'], line.lost), ('0', '1', 4))

    def test_what_was_changed(self):
        line = self.line()
        board = self.open(line.port, retry_for=0)
        line.lose_answers('PostJobs')
        e = self.fails('OUTCOME_UNKNOWN', board.post, 'x')
        self.assertEqual((e.changed, e.retryable), ('unknown', True))
        line.lose_answers('CountJobs')
        self.assertEqual(self.fails('UNAVAILABLE', board.count).changed, 'no')
        with unittest.mock.patch.object(boardd_client, 'DEFAULT_ADDR', 'http://127.0.0.1:1'):
            nowhere = boardd.Client(token='x', retry_for=0).board('b')
        self.assertEqual(self.fails('UNAVAILABLE', nowhere.post, 'x').changed, 'no')

    def test_next_server(self):
        client = boardd.Client('http://127.0.0.1:1,http://127.0.0.1:%d' % self.server.port, server.TOKEN)
        self.addCleanup(client.close)
        board = client.board(server.board_name())
        board.post('there')
        self.assertEqual(board.count()['unclaimed'], '1')

    def test_watch(self):
        mine = server.Server(['b'])
        self.addCleanup(mine.close)
        line = self.line(mine)
        board = self.open(line.port, 'b')
        board.post('before')
        seen, posted = [], []
        events = board.watch(board.cursor())

        def watch():
            for event in events:
                seen.append((event['type'], event['job']['uuid']))
                if len(seen) == 6:
                    return
        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        for i in range(6):
            posted.append(('POSTED', board.post('n%d' % i)['uuid']))
            if i == 1:
                self.eventually(lambda: len(seen) == 2, 'the first are seen')
            if i in (2, 3):
                line.cut()
            if i == 4:
                mine.kill()
                mine.start()
        watching.join(60)
        self.assertEqual(seen, posted)


class SchemaTest(boards.TestCase):
    """What is written here by hand is what the server's schema says."""

    def setUp(self):
        super().setUp()
        with urllib.request.urlopen('http://127.0.0.1:%d/boardd.proto' % self.server.port) as answer:
            self.schema = answer.read().decode()

    def test_reads(self):
        reads = re.findall(r'rpc (\w+)\(\w+\) returns \(\w+\) \{\s*option idempotency_level = NO_SIDE_EFFECTS', self.schema)
        self.assertEqual(boardd_client.READS, set(reads))

    def test_messages(self):
        for name in ('Error', 'Book', 'Prerequisite', 'NewOperation', 'Unique', 'NewJob', 'Job', 'Claim', 'Event'):
            body = re.search(r'\nmessage %s \{\n(.*?)\n\}' % name, self.schema, re.S).group(1)
            fields = re.findall(r'^  [\w .<>,]+? (\w+) = \d+', body, re.M)
            json = {re.sub('_(.)', lambda m: m.group(1).upper(), f) for f in fields if f != 'given_fields'}
            self.assertEqual(set(getattr(messages, name).__annotations__), json, name)


class WrongInputTest(boards.TestCase):

    def test_it_is_named(self):
        board = boardd.Client('http://127.0.0.1:1', 't', retry_for=0).board('b')
        for call, said in (
                (lambda: boardd.Client('https://x', ca_file='/nowhere.pem'), "ca_file '/nowhere.pem'.*No such file"),
                (lambda: boardd.Client('https://x', cert_file='/nowhere.pem', key_file='/key.pem'), "cert_file '/nowhere.pem', key_file '/key.pem'"),
                (lambda: board.post('x', not_before='tomorrow'), "not_before: want a datetime.datetime, got 'tomorrow'"),
                (lambda: board.post('x', timeout='5s'), "want a number of seconds, such as 1.5, got '5s'"),
                (lambda: board.claim('me', lease=True), 'want a number of seconds, such as 1.5, got True')):
            self.assertRegex(str(self.fails('INVALID', call)), said)

    def test_a_token_is_in_no_error(self):
        for token in ('secret\nsecret', 'secret secret', 's\xe9cret'):
            failed = self.fails('INVALID', boardd.Client, 'http://127.0.0.1:1', token)
            self.assertRegex(str(failed), 'token: want one line without blanks')
            self.assertNotIn('cret', str(failed))


class SourceTest(unittest.TestCase):

    def test_python_3_9(self):
        folder = os.path.dirname(boardd.__file__)
        names = [n for n in os.listdir(folder) if n.endswith('.py')]
        self.assertGreater(len(names), 10)
        for name in names:
            with open(os.path.join(folder, name), encoding='utf-8') as f:
                ast.parse(f.read(), name, feature_version=(3, 9))

    def test_standard_library_only(self):
        code = ('import sys; before = set(sys.modules); import boardd; print(sorted({m.partition(".")[0] for m in'
                ' set(sys.modules) - before} - set(sys.stdlib_module_names)))')
        said = subprocess.run([sys.executable, '-c', code], check=True, capture_output=True, text=True)
        self.assertEqual(said.stdout.strip(), "['boardd']")
