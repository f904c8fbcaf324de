"""Real servers for the tests, and a line to them that can be cut.

BOARDD_PROGRAM is the server. Its boards are in the embedded store, or, where
BOARDD_REDIS is the address of a Redis and BOARDD_PLUGINS the folder of the
driver, in that.
"""

import atexit
import ctypes
import itertools
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

REDIS = os.environ.get('BOARDD_REDIS')
PLUGINS = os.environ.get('BOARDD_PLUGINS')
PROGRAM = os.environ.get('BOARDD_PROGRAM', 'boardd')
TOKEN = 'a-token-for-the-tests'
BOARDS = 200

_EMBEDDED = '''
backend "main" {
  driver = "embedded"
}
'''

_REDIS = '''
plugin_dir = "%s"
backend "main" {
  driver = "redis"
  config = { address = "%s" }
}
''' % (PLUGINS, REDIS)

_TENANT = '''
tenant "default" {
  token "python" {
    roles  = ["poster", "worker", "tenant-admin"]
    secret = "%s"
  }
}
''' % TOKEN

# Boards that are not as all others are.
_SPECIAL = {
    'by-name': 'fencing = "owner"',
    'quick': 'lease = "3s"',
    'short': 'lease = "2s"\n  max_lease = "2s"',
    'paused': '',
}

_instances = itertools.count()

# Where folders are made, asked for before any test runs: TaskFlow's tests have
# a place each for theirs, which is gone after the test, and servers are shared.
_TEMPORARY = tempfile.gettempdir()


def _config(boards, extra, instance):
    parts = [_REDIS if REDIS else _EMBEDDED, _TENANT, extra]
    special = dict(_SPECIAL, **{name: '' for name in boards})
    for name, lines in special.items():
        if REDIS:
            lines += ('\n  config = { namespace = "%s" }'
                      % _namespace(instance, name))
        parts.append('board "%s" {\n  backend = "main"\n  %s\n}\n'
                     % (name, lines))
    return ''.join(parts)


def _namespace(instance, name):
    return '%s-%s' % (instance, name)


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Server(object):
    """A boardd in a process of its own, with a folder of its own."""

    def __init__(self, boards, extra='', config=None, port=0):
        self._dir = tempfile.TemporaryDirectory(prefix='boardd-python-',
                                                dir=_TEMPORARY)
        self._config = os.path.join(self._dir.name, 'boardd.hcl')
        self._instance = '%d-%d' % (os.getpid(), next(_instances))
        with open(self._config, 'w') as f:
            f.write(config or _config(boards, extra, self._instance))
        self.port = port
        self.dir = self._dir.name
        self.process = None
        self.start()

    def start(self):
        ready = os.path.join(self._dir.name, 'ready')
        if os.path.exists(ready):
            os.remove(ready)
        with open(os.path.join(self._dir.name, 'log'), 'ab') as log:
            self.process = subprocess.Popen(
                [PROGRAM, 'serve', '--config', self._config, '--listen',
                 '127.0.0.1:%d' % self.port, '--ready-file', ready,
                 '--data', os.path.join(self._dir.name, 'data')],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=_die_with_parent)
        while not (os.path.exists(ready) and os.path.getsize(ready)):
            if self.process.poll() is not None:
                raise RuntimeError("boardd did not start:\n" + self.log())
            time.sleep(0.01)  # the file is the only word that there is
        with open(ready) as f:
            self.port = int(f.read().strip().rsplit(':', 1)[1])

    def namespace(self, name):
        """Returns where in Redis the board of a name is."""
        return _namespace(self._instance, name)

    def log(self):
        with open(os.path.join(self._dir.name, 'log')) as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def close(self):
        self.stop()
        self._dir.cleanup()


_FLEET = '''
plugin_dir = "%(plugins)s"
advertise  = "http://127.0.0.1:%(port)d"
fleet {
  public = "http://127.0.0.1:%(public)d"
}
token "root" {
  roles  = ["operator"]
  secret = "%(token)s"
}
backend "main" {
  driver = "redis"
  config = { address = "%(redis)s" }
}
catalog {
  backend = "main"
}
%(boards)s
'''


class Member(object):
    """A server of a fleet on Redis, and the line at which clients may go
    straight to it."""

    def __init__(self, boards):
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        self.line = Line(port)
        text = ''.join('board "%s" {\n  backend = "main"\n}\n' % name for name in boards)
        config = _FLEET % {'plugins': PLUGINS, 'port': port, 'public': self.line.port, 'token': TOKEN, 'redis': REDIS,
                           'boards': text}
        self.server = Server([], config=config, port=port)
        self.addr = 'http://127.0.0.1:%d' % port

    def close(self):
        self.line.close()
        self.server.close()


_shared = None
_names = itertools.count()


def shared():
    """Returns the server that all tests share who do nothing to it."""
    global _shared
    if _shared is None:
        _shared = Server(['b%d' % n for n in range(BOARDS)])
        atexit.register(_shared.close)
    return _shared


def board_name():
    """Returns the name of a board that no other test has."""
    n = next(_names)
    if n >= BOARDS:
        raise RuntimeError("the tests need more than %d boards" % BOARDS)
    return 'b%d' % n


class Line(object):
    """A connection to a server that loses what it is told to lose.

    ``lose_answers`` is how many answers to a call are thrown away, with the
    connection, after the server has done what it was asked for.
    """

    def __init__(self, port):
        self._to = port
        self._call = None
        self._lose = 0
        self._lock = threading.Lock()
        self.lost = 0
        self.calls = []  # the paths of all requests
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = self._listener.getsockname()[1]
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answers(self, call, count=1):
        with self._lock:
            self._call, self._lose = call.encode(), count

    def cut(self):
        """Cuts every connection that there is."""
        with self._lock:
            conns = list(self._open)
        for conn in conns:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(('127.0.0.1', self._to))
            except OSError:  # the server is gone just now
                here.close()
                continue
            with self._lock:
                self._open |= {here, there}
            pair = {'lose': False}
            for args in ((here, there, pair, True), (there, here, pair,
                                                     False)):
                threading.Thread(target=self._copy, args=args,
                                 daemon=True).start()

    def _copy(self, source, target, pair, requests):
        try:
            while True:
                data = source.recv(1 << 16)
                if not data:
                    break
                if requests:
                    self._note(data, pair)
                elif pair['lose']:
                    self.lost += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for conn in (source, target):
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _note(self, data, pair):
        head = data.split(b'\r\n', 1)[0]
        if not head.startswith((b'POST ', b'GET ')):
            return
        with self._lock:
            self.calls.append(head.split(b' ')[1].rsplit(b'/', 1)[1].decode())
            if self._lose and head.split(b' ')[1].endswith(b'/' + self._call):
                self._lose -= 1
                pair['lose'] = True
