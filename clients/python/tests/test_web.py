"""The example in examples/web-python, as a process of its own; and the code of docs/python.md."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest.mock
import urllib.error
import urllib.request

from tests import boards
from tests import server

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
PROGRAM = os.environ.get('BOARDD_EXAMPLE', os.path.join(_ROOT, 'examples', 'web-python', 'main.py'))
PAGE = os.environ.get('BOARDD_PAGE', os.path.join(_ROOT, 'docs', 'python.md'))


class WebTest(boards.TestCase):

    def setUp(self):
        super().setUp()
        self.env = {'BOARDD_ADDR': 'http://127.0.0.1:%d' % self.server.port, 'BOARDD_TOKEN': server.TOKEN,
                    'BOARDD_BOARD': server.board_name()}

    def ask(self, path, data=None, headers={}):
        request = urllib.request.Request('http://127.0.0.1:%s%s' % (self.port, path), data, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    def test_program(self):
        program = subprocess.Popen([sys.executable, PROGRAM], env=dict(os.environ, PORT='0', **self.env),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=server._die_with_parent)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.port = program.stdout.readline().split()[-1]

        key = '6f2c1a52-6d4a-4d5e-9d2b-0123456789ab'
        for _ in range(2):
            self.assertEqual(self.ask('/texts', b'four words, no more', {'Idempotency-Key': key}), (202, {'job': key}))
        self.assertEqual(self.ask('/texts', b'another text', {'Idempotency-Key': key})[0], 409)
        done = {'state': 'COMPLETE', 'reason': '', 'words': 4}
        self.eventually(lambda: self.ask('/texts/' + key)[1] == done, 'the words are counted')

        empty = self.ask('/texts', b'')[1]['job']
        aside = {'state': 'TRASHED', 'reason': 'there is no text', 'words': None}
        self.eventually(lambda: self.ask('/texts/' + empty)[1] == aside, 'the empty one is set aside')
        self.assertEqual(self.ask('/texts/00000000-0000-4000-8000-000000000000')[0], 404)

        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(), 0)

    def test_page(self):
        with open(PAGE, encoding='utf-8') as f:
            blocks = re.findall(r'```python\n(.*?)```', f.read(), re.S)
        self.assertGreater(len(blocks), 2)
        with unittest.mock.patch.dict(os.environ, self.env):
            names = {}
            for block in blocks:
                exec(compile(block, PAGE, 'exec'), names)
        self.assertEqual(names['resized'], ['/a.png', '/b.png'])
        self.assertEqual(names['again']['uuid'], names['first']['uuid'])
        self.assertEqual(names['worked'], ['photo', 'photo', 'album'])
        self.assertEqual((names['batch']['done'], names['batch']['consumed']), (True, '2'))
