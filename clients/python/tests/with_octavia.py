"""Octavia itself, with boardd as its jobboard."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import octavia

from tests import base
from tests import server

#: examples/octavia/allow_boardd.py
ALLOW = os.environ['BOARDD_ALLOW']

EXPIRY = 4


class OctaviaTest(base.TestCase):

    def setUp(self):
        super(OctaviaTest, self).setUp()
        self.folder = self.makeTmpDir()
        self.notes = os.path.join(self.folder, 'notes')
        self.changed = os.path.join(self.folder, 'changed')
        token = self.file('token', server.TOKEN)
        self.conf_file = self.file('octavia.conf', '\n'.join([
            '[task_flow]',
            'persistence_connection = sqlite:///%s/books' % self.folder,
            'jobboard_enabled = True',
            'jobboard_backend_driver = boardd_taskflow_driver',
            'jobboard_backend_hosts = 127.0.0.1',
            'jobboard_backend_port = %d' % self.server.port,
            'jobboard_backend_namespace = ' + self.name,
            'jobboard_expiration_time = %d' % EXPIRY,
            '[boardd]', 'token_file = ' + token, '']))

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def change(self):
        """Has a copy of Octavia allow boardd's driver."""
        shutil.copytree(os.path.dirname(octavia.__file__),
                        os.path.join(self.changed, 'octavia'))
        config = os.path.join(self.changed, 'octavia', 'common', 'config.py')
        with open(config) as f:
            before = f.read()
        for _ in range(2):  # the second time there is nothing to do
            subprocess.check_call([sys.executable, ALLOW, config])
        with open(config) as f:
            added = f.read()
        self.assertEqual(before.count('\n') + 3, added.count('\n'))
        self.assertEqual(1, added.count('boardd_taskflow_driver'))
        code, said = self.ends(self.start('prepare', 'tables'))
        self.assertEqual(0, code, said)

    def start(self, *args, conf=None):
        env = dict(os.environ)
        env['PYTHONPATH'] = os.pathsep.join([self.changed, env['PYTHONPATH']])
        log = os.path.join(self.folder, 'log-' + args[1])
        with open(log, 'w') as f:
            process = subprocess.Popen(
                [sys.executable, '-m', 'tests.octavia_service',
                 conf or self.conf_file] + list(args), env=env, stdout=f, stderr=f,
                preexec_fn=server._die_with_parent)

        def stop():
            process.kill()
            process.wait()

        self.addCleanup(stop)
        process.log = log
        return process

    def post(self, seconds, text):
        return self.start('post', str(seconds), self.notes, text)

    def ends(self, process):
        code = process.wait(base.PATIENCE)
        with open(process.log) as f:
            return code, f.read()

    def noted(self):
        try:
            with open(self.notes) as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def test_it_is_refused_as_octavia_is(self):
        code, said = self.ends(self.post(0, 'flow'))
        self.assertNotEqual(0, code)
        self.assertIn('boardd_taskflow_driver', said)

    def test_a_flow(self):
        self.change()
        self.start('work', 'octavia-task-flow-conductor-1')
        code, said = self.ends(self.post(2.5 * EXPIRY, 'long'))
        self.assertEqual(0, code, said)
        self.assertEqual(['long'], self.noted())
        self.assertEqual(0, self.open().job_count)

    def test_a_worker_that_dies(self):
        self.change()
        first = self.start('work', 'octavia-task-flow-conductor-1')
        poster = self.post(EXPIRY, 'flow')
        board = self.open()

        def owned(name):
            return [j for j in board.iterjobs()
                    if board.find_owner(j) == name]

        self.eventually(lambda: owned('octavia-task-flow-conductor-1'),
                        'the first has it')
        first.kill()
        self.start('work', 'octavia-task-flow-conductor-2')
        self.eventually(lambda: owned('octavia-task-flow-conductor-2'),
                        'the second has it')
        code, said = self.ends(poster)
        self.assertEqual(0, code, said)
        self.assertEqual(['flow'], self.noted())

    def test_kollas_configuration(self):
        self.change()
        code, said = self.ends(self.start(
            'conf', 'kolla', conf=os.path.join(os.path.dirname(ALLOW),
                                               'kolla.conf')))
        self.assertEqual(0, code, said)
        self.assertEqual({
            'board': 'boardd', 'address': ['https://10.0.0.10:7422'],
            'board_name': 'octavia', 'lease': 30, 'timeout': 30,
            'token_file': '/etc/octavia/boardd.token',
            'ca_file': '/etc/octavia/boardd-ca.pem'}, json.loads(said))

    def test_what_it_cannot_change(self):
        spec = importlib.util.spec_from_file_location('allow_boardd', ALLOW)
        allow = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(allow)
        self.assertRaises(ValueError, allow.allow, 'choices = []\n')
