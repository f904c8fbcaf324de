"""TLS, with certificates on both sides.

BOARDD_CERTIFICATES names a folder with ca.pem, server.pem, server-key.pem,
client.pem and client-key.pem.
"""

import os

from taskflow import exceptions as exc
from taskflow import states

from tests import base
from tests import server

FOLDER = os.environ.get('BOARDD_CERTIFICATES', '')

_TLS = '''
tls {
  cert_file      = "%(folder)s/server.pem"
  key_file       = "%(folder)s/server-key.pem"
  client_ca_file = "%(folder)s/ca.pem"
}
''' % {'folder': FOLDER}


def path(name):
    return os.path.join(FOLDER, name)


class TLSTest(base.TestCase):

    def setUp(self):
        super(TLSTest, self).setUp()
        if not FOLDER:
            self.fail("BOARDD_CERTIFICATES is not set")
        self.server = server.Server([self.name], _TLS)
        self.addCleanup(self.server.close)

    def test_both_sides(self):
        board = self.open(ca_file=path('ca.pem'), cert_file=path('client.pem'),
                          key_file=path('client-key.pem'))
        job = board.post('job')
        with self.thread(job.wait):
            board.claim(job, 'me')
            board.consume(job, 'me')
        self.assertEqual(states.COMPLETE, job.state)

    def test_close_ends_a_wait(self):
        board = self.open(ca_file=path('ca.pem'), cert_file=path('client.pem'),
                          key_file=path('client-key.pem'))
        job = board.post('job')
        raised = []

        def wait():
            try:
                job.wait()
            except exc.JobFailure as e:
                raised.append(e)

        with self.thread(wait):
            self.eventually(lambda: board._client._transport._waiting,
                            "it waits")
            board.close()
        self.assertEqual(1, len(raised))

    def test_refused(self):
        for more, word in (
                ({'ssl': True}, 'CERTIFICATE_VERIFY_FAILED'),
                ({'ca_file': path('ca.pem')}, ''),  # no certificate of ours
                ({'ca_file': path('nowhere.pem')}, 'connect'),
                ({'ca_file': path('ca.pem'),
                  'cert_file': path('client.pem'),
                  'key_file': path('server-key.pem')}, 'connect'),
                ({}, '')):  # no TLS
            board = self.make(timeout=2, **more)
            e = self.assertRaises(exc.JobFailure, board.connect)
            self.assertIn(word, str(e))
