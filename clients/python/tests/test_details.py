"""Details come back as they were posted, whoever posted them."""

import base64
import datetime
import itertools
import json
import urllib.request
import uuid

from oslo_serialization import msgpackutils
from taskflow import exceptions as exc

from boardd_taskflow import details
from tests import base
from tests import server

PLAIN = {'a': 1, 'b': -1.5, 'c': None, 'd': [True, {'e': 'ü\u2028"'}],
         'f': (1 << 53) - 1, '': {}}

RICH = {
    'bytes': b'\x00\xff',
    'datetime': datetime.datetime(2026, 2, 28, 6, 54, 9, 637999),
    'uuid': uuid.UUID('ce327feb-53a5-44f8-a1ad-534c564477af'),
    'set': {1, 2, 3},
    'frozenset': frozenset(['a']),
    'large': (1 << 64) - 1,
    'infinity': float('inf'),
    'deep': {'plain': PLAIN},
}


class DetailsTest(base.TestCase):

    def test_round_trip(self):
        board, other = self.open(), self.open()
        for posted in (None, {}, PLAIN, RICH):
            job = board.post('job', details=posted)
            found = base.only(other.iterjobs())
            self.assertEqual(posted or {}, job.details)
            self.assertEqual(posted or {}, found.details)
            other.claim(found, 'me')
            other.consume(found, 'me')

    def test_tuples_become_lists(self):  # as on a Redis jobboard
        board = self.open()
        board.post('job', details={'t': (1, 'a')})
        self.assertEqual({'t': [1, 'a']},
                         base.only(board.iterjobs()).details)

    def test_counts(self):
        board = self.open()
        board.post('job', details={'count': itertools.count(5)})
        self.assertEqual(5, next(base.only(board.iterjobs()).details['count']))

    def test_form(self):
        for value, form in ((PLAIN, 'details'), ({}, 'details'),
                            (RICH, 'detailsRaw'),
                            ({'n': 1 << 53}, 'detailsRaw'),
                            ({'n': (1,)}, 'detailsRaw'),
                            ({'n': float('nan')}, 'detailsRaw'),
                            ({'n': nested(59)}, 'details'),
                            ({'n': nested(80)}, 'detailsRaw')):
            self.assertEqual([form], list(details.write(value, 'auto')))
        self.assertEqual(['detailsRaw'], list(details.write(PLAIN,
                                                            'msgpack')))
        self.assertEqual({'details': {'b': 'text', 'set': [1]}},
                         details.write({'b': b'text', 'set': {1}}, 'json'))

    def test_deep(self):
        board = self.open()
        for depth in (58, 59, 60, 61, 62, 63, 64, 65, 100):
            board.post('job', details={'n': nested(depth)})
            job = base.only(board.iterjobs())
            self.assertEqual({'n': nested(depth)}, job.details)
            board.claim(job, 'me')
            board.consume(job, 'me')

    def test_what_nobody_could_read_is_refused(self):
        # TaskFlow's own boards take these, and lose the jobs.
        zone = datetime.timezone(datetime.timedelta(hours=2))
        board = self.open()
        for bad in ({1: 'a'}, {'n': {None: 1}}, {'n': 1 << 64},
                    {'n': object},
                    {'t': datetime.datetime(2026, 1, 1, tzinfo=zone)}):
            self.assertRaises(exc.JobFailure, board.post, 'job', details=bad)
        self.assertEqual(0, board.job_count)

    def test_forms_of_others(self):
        board = self.open()
        for raw, want in (
                (('json', b'{"a": [1e300, "\\u00fc"]}'), {'a': [1e300, 'ü']}),
                (('msgpack', msgpackutils.dumps(RICH)), RICH)):
            self.post_raw(*raw)
            job = base.only(board.iterjobs())
            self.assertEqual(want, job.details)
            board.claim(job, 'me')
            board.consume(job, 'me')

    def test_one_unreadable_job_hides_no_other(self):
        if server.REDIS:
            self.skipTest("boardd itself refuses such a posting there")
        board = self.open()
        board.post('before')
        self.post_raw('msgpack', b'\x81\xc1')
        self.post_raw('msgpack', b'\x81\x01\x02')
        board.post('after')
        self.assertEqual(['before', 'after'],
                         [j.name for j in board.iterjobs()])
        self.assertEqual(4, board.job_count)  # it is still there

    def post_raw(self, encoding, data):
        body = json.dumps({'board': self.name, 'jobs': [{
            'name': 'raw', 'detailsRaw': {
                'encoding': encoding,
                'data': base64.b64encode(data).decode()}}]}).encode()
        request = urllib.request.Request(
            'http://127.0.0.1:%d/boardd.v1.BoardService/PostJobs'
            % self.server.port, data=body, headers={
                'Content-Type': 'application/json',
                'Authorization': 'Bearer ' + server.TOKEN})
        with urllib.request.urlopen(request) as answer:
            result, = json.load(answer)['results']
        self.assertNotIn('error', result)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value
