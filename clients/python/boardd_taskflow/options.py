"""What may stand in a jobboard's configuration, and what it means.

A program's configuration is checked as a whole before anything is sent: a name
that does not exist is an error, since a misspelled ``token_fil`` would look
like a server that refuses everybody.
"""

import difflib
import re
from urllib import parse

from oslo_utils import strutils

DEFAULT_PORT = 7422

#: The shortest lease that a board grants, in seconds. A claim with a shorter
#: expiry is given back by this program when its time is up.
MIN_LEASE = 1.0

_BOARD_NAME = re.compile(r'[a-z0-9][a-z0-9._-]{0,62}\Z')


def _text(value):
    if isinstance(value, bytes):
        value = value.decode('utf-8')
    if not isinstance(value, str) or not value:
        raise ValueError("want a non-empty text")
    return value


def _texts(value):
    if isinstance(value, (str, bytes)):
        value = [v.strip() for v in _text(value).split(',')]
    texts = [_text(v) for v in value]
    if not texts:
        raise ValueError("want at least one address")
    return texts


def _port(value):
    port = int(value)
    if not 0 < port < 65536:
        raise ValueError("want a port from 1 to 65535")
    return port


def _seconds(value):
    seconds = float(value)
    if not 0 < seconds < float('inf'):
        raise ValueError("want seconds, more than 0")
    return seconds


def _lease(value):
    lease = _seconds(value)
    if lease < MIN_LEASE:
        raise ValueError("want at least %g seconds" % MIN_LEASE)
    return lease


def _board_name(value):
    if not _BOARD_NAME.match(_text(value)):
        raise ValueError("want 1 to 63 of a-z, 0-9, '.', '_' and '-', not"
                         " beginning with a sign")
    return _text(value)


def _namespace(value):
    _text(value)
    return value  # text or bytes, as TaskFlow has it


def _path(value):
    parts = _text(value).split('/')
    if parts[0] or not all(p not in ('', '.', '..') for p in parts[1:]):
        raise ValueError("want an absolute path, such as /jobs")
    return _text(value)


def _labels(value):
    if isinstance(value, str):
        pairs = [p.partition('=') for p in value.split(',')]
        if not all(eq for _key, eq, _value in pairs):
            raise ValueError("want KEY=VALUE,KEY=VALUE")
        value = {key.strip(): text.strip() for key, _eq, text in pairs}
    if not all(isinstance(t, str) for pair in dict(value).items()
               for t in pair):
        raise ValueError("want texts as keys and values")
    return dict(value)


def _details(value):
    if value not in ('auto', 'json', 'msgpack'):
        raise ValueError("want auto, json or msgpack")
    return value


#: name -> (converter, default)
OPTIONS = {
    # Where the server is. Several addresses (a list, or one text with commas)
    # are hosts of the same boards: the next one is asked when one is gone.
    'address': (_texts, None),
    'host': (_text, None),
    'port': (_port, DEFAULT_PORT),
    'ssl': (strutils.bool_from_string, None),
    'ca_file': (_text, None),
    'cert_file': (_text, None),
    'key_file': (_text, None),
    # Who asks, and for which board.
    'token': (_text, None),
    'token_file': (_text, None),
    'board_name': (_board_name, 'default'),
    # What the names of keys and paths begin with, see boardd_taskflow.names.
    'namespace': (_namespace, None),
    'path': (_path, None),
    # For how long, in seconds.
    'timeout': (_seconds, 30.0),
    'connect_timeout': (_seconds, 10.0),
    'lease': (_lease, None),
    'expiry': (_seconds, None),
    'entity_ttl': (_lease, 60.0),
    # What the board's policies are told of this worker.
    'worker_labels': (_labels, None),
    # How details travel where the board leaves the choice.
    'details': (_details, 'auto'),
}

# What TaskFlow itself puts into a configuration.
_TASKFLOWS = ('board', 'hostname')


class Options(object):
    """A configuration that was found to be right."""

    def __init__(self, conf):
        unknown = sorted(set(conf) - set(OPTIONS) - set(_TASKFLOWS))
        if unknown:
            raise ValueError(_unknown(unknown[0]))
        for name, (convert, default) in OPTIONS.items():
            value = conf.get(name)
            if value is None:
                value = default
            else:
                try:
                    value = convert(value)
                except (TypeError, ValueError, UnicodeDecodeError) as e:
                    shown = '(hidden)' if name == 'token' else repr(value)
                    raise ValueError("boardd jobboard: %s = %s: %s"
                                     % (name, shown, e))
            setattr(self, name, value)
        _exclude(conf, 'token', 'token_file')
        _exclude(conf, 'address', 'host')
        for name in ('namespace', 'path'):
            # In TaskFlow's configurations it says which board.
            if conf.get(name) is not None and conf.get('board_name') is None:
                raise ValueError("boardd jobboard: %s = %r names no board: say"
                                 " which with board_name"
                                 % (name, conf[name]))
        if self.key_file and not self.cert_file:
            raise ValueError("boardd jobboard: key_file without cert_file")
        self.addresses = [self._address(a) for a in self._given(conf)]

    def _given(self, conf):
        if self.address:
            return self.address
        host = self.host or conf.get('hostname') or '127.0.0.1'
        if not self.host and host.endswith(':%d' % self.port):
            # A URI as TaskFlow takes it apart: the port is in the name, too.
            host = host.rpartition(':')[0]
        if ':' in host and not host.startswith('['):
            host = '[%s]' % host
        return ['%s:%d' % (host, self.port)]

    def _address(self, text):
        """Returns (whether by TLS, host, port)."""
        if '//' not in text:
            secure = self.ssl
            if secure is None:
                secure = bool(self.ca_file or self.cert_file)
            text = ('https://' if secure else 'http://') + text
        try:
            url = parse.urlsplit(text)
            host, port = url.hostname, url.port
        except ValueError as e:
            raise ValueError("boardd jobboard: address = %r: %s" % (text, e))
        if url.scheme not in ('http', 'https') or not host:
            raise ValueError("boardd jobboard: address = %r: want"
                             " http://HOST:PORT or https://HOST:PORT" % text)
        if url.path.strip('/') or url.query or url.fragment or url.username:
            raise ValueError("boardd jobboard: address = %r: want nothing"
                             " beside the host and the port" % text)
        if self.ssl is not None and self.ssl != (url.scheme == 'https'):
            raise ValueError("boardd jobboard: address = %r does not agree"
                             " with ssl = %s" % (text, self.ssl))
        return (url.scheme == 'https', host, port or DEFAULT_PORT)

    def secret(self):
        """Returns the token as it is now, or None."""
        if self.token_file is None:
            return self.token
        with open(self.token_file, encoding='utf-8') as f:
            return f.read().strip()


def _exclude(conf, one, other):
    if conf.get(one) is not None and conf.get(other) is not None:
        raise ValueError("boardd jobboard: want either %s or %s, got both"
                         % (one, other))


def _unknown(name):
    near = difflib.get_close_matches(str(name), OPTIONS, n=1)
    hint = ", did you mean %r?" % near[0] if near else ""
    return ("boardd jobboard: there is no option %r%s (want some of %s)"
            % (name, hint or '', ', '.join(sorted(OPTIONS))))
