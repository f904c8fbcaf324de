"""A job's details between Python and the board.

Details that JSON says exactly travel as JSON, so that filters, policies, the
command line and people can read them. Everything else that TaskFlow's own
jobboards carry (bytes, dates, sets, large numbers) travels as TaskFlow's
msgpack, which a board keeps byte for byte.
"""

import base64
import math

from oslo_serialization import jsonutils
from oslo_serialization import msgpackutils

from taskflow.utils import misc

# What every reader of JSON holds exactly.
_MAX_INT = (1 << 53) - 1
_MAX_DEPTH = 60


def _exact(value, depth):
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is str:
        return _is_unicode(value)
    if kind is int:
        return -_MAX_INT <= value <= _MAX_INT
    if kind is float:
        return math.isfinite(value)
    if depth > _MAX_DEPTH:
        return False
    if kind is list:
        return all(_exact(v, depth + 1) for v in value)
    if kind is dict:
        return all(type(k) is str and _is_unicode(k) and _exact(v, depth + 1)
                   for k, v in value.items())
    return False


def _is_unicode(text):
    try:
        text.encode('utf-8')
    except UnicodeEncodeError:
        return False
    return True


def write(details, form):
    """Returns the members of a posting that carry details.

    :param form: ``auto``, ``json`` or ``msgpack``
    :raises ValueError: if what was written could not be read again. TaskFlow's
                        own boards take such postings, and lose them when
                        somebody lists them.
    """
    details = details or {}
    if form == 'auto':
        form = 'json' if _exact(details, 1) else 'msgpack'
        if form == 'json':
            return {'details': details}
    try:
        if form == 'json':
            # As with ZooKeeper: what JSON has no word for becomes text.
            return {'details': jsonutils.loads(jsonutils.dumps(details))}
        data = msgpackutils.dumps(details)
        misc.decode_msgpack(data)
    except Exception as e:  # whatever the encoder and its handlers raise
        raise ValueError("these details can not be kept: %s" % e)
    return {'detailsRaw': {'encoding': 'msgpack',
                           'data': base64.b64encode(data).decode('ascii')}}


def read(posting):
    """Returns the details of a job as the server shows it.

    :raises ValueError: if they are not what TaskFlow can read
    """
    raw = posting.get('detailsRaw')
    if raw is None:
        return posting.get('details') or {}
    data = base64.b64decode(raw.get('data', ''))
    if raw.get('encoding') == 'msgpack':
        return misc.decode_msgpack(data)
    return misc.decode_json(data)
