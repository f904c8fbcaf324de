"""What TaskFlow's own jobboards and jobs say of where they are kept.

A program that moves here may print these names, compare them, or make keys of
them, so they are made as TaskFlow makes them. Only the server knows where a
board really lies; the options ``namespace`` and ``path`` let the names be
those of the store for a program that looks into it as well.
"""

import posixpath

from taskflow.utils import misc

_NO_CLIENT = "the connection is to a server of boardd, and not to a store"
_NO_SCRIPT = "what a script on Redis does and says is the server's work"
_NO_DEFAULT = "the board's name stands here where the configuration has none"

#: What TaskFlow's jobboards have and these do not: name -> why.
ABSENT = {
    'CLIENT_CONF_TRANSFERS': _NO_CLIENT,
    'DEFAULT_NAMESPACE': _NO_DEFAULT,
    'DEFAULT_PATH': _NO_DEFAULT,
    'MIN_REDIS_VERSION': _NO_CLIENT,
    'MIN_ZK_VERSION': _NO_CLIENT,
    'NO_FETCH_STATES': _NO_CLIENT,
    'SCRIPT_ALREADY_CLAIMED': _NO_SCRIPT,
    'SCRIPT_NOT_EXPECTED_OWNER': _NO_SCRIPT,
    'SCRIPT_STATUS_ERROR': _NO_SCRIPT,
    'SCRIPT_STATUS_OK': _NO_SCRIPT,
    'SCRIPT_TEMPLATES': _NO_SCRIPT,
    'SCRIPT_UNKNOWN_JOB': _NO_SCRIPT,
    'SCRIPT_UNKNOWN_OWNER': _NO_SCRIPT,
    'STATE_HISTORY_LENGTH': _NO_CLIENT,
}

#: Why nobody makes a job but its board.
MADE_BY_BOARD = "its board makes a job: call post, iterjobs or wait"


class BoardNames(object):
    """The names of a jobboard, by its ``_options``."""

    OWNED_POSTFIX = b'.owned'
    LAST_MODIFIED_POSTFIX = b'.last_modified'
    NAMESPACE_SEP = b':'
    KEY_PIECE_SEP = b'.'

    LOCK_POSTFIX = '.lock'
    TRASH_FOLDER = '.trash'
    ENTITY_FOLDER = '.entities'
    JOB_PREFIX = 'job'

    def __getattr__(self, name):
        # Only asked for what is not there otherwise.
        why = ": " + ABSENT[name] if name in ABSENT else ""
        raise AttributeError("%r has no attribute %r%s"
                             % (type(self).__name__, name, why))

    @property
    def namespace(self):
        """What all keys begin with."""
        if self._options.namespace is not None:
            return self._options.namespace
        return self._options.board_name.encode('ascii')

    def join(self, key_piece, *more_key_pieces):
        """Returns a key of one or several pieces, beginning with the
        namespace."""
        pieces = [misc.binary_encode(p)
                  for p in (key_piece,) + more_key_pieces]
        return (misc.binary_encode(self.namespace) + self.NAMESPACE_SEP +
                self.KEY_PIECE_SEP.join(pieces))

    @property
    def listings_key(self):
        """The key of the hash of all jobs."""
        return self.join(b'listings')

    @property
    def trash_key(self):
        """The key of the hash of the jobs in the trash."""
        return self.join(b'trash')

    @property
    def sequence_key(self):
        """The key of the number of the last job."""
        return self.join(b'sequence')

    @property
    def path(self):
        """The path under which all jobs are."""
        if self._options.path is not None:
            return self._options.path
        return '/' + self._options.board_name

    @property
    def trash_path(self):
        """The path under which the jobs in the trash are."""
        return self._beside(self.TRASH_FOLDER)

    @property
    def entity_path(self):
        """The path under which conductors are."""
        return self._beside(self.ENTITY_FOLDER)

    def _beside(self, folder):
        # TaskFlow's rule: each occurrence of the last part is replaced.
        return self.path.replace(posixpath.basename(self.path), folder)


class JobNames(object):
    """The names of a job, by its board's."""

    @property
    def key(self):
        """The job's field in the hashes of its board."""
        return self._uuid.encode('latin-1')

    @property
    def owner_key(self):
        """The key of the job's owner."""
        return self._board.join(self.key + self._board.OWNED_POSTFIX)

    @property
    def last_modified_key(self):
        """The key of when the job was changed last."""
        return self._board.join(self.key + self._board.LAST_MODIFIED_POSTFIX)

    @property
    def path(self):
        """The path of the job."""
        name = '%s%010d' % (self._board.JOB_PREFIX, self._sequence)
        return posixpath.join(self._board.path, name)

    @property
    def lock_path(self):
        """The path of the job's owner."""
        return self.path + self._board.LOCK_POSTFIX

    @property
    def root(self):
        """The path of the jobs' folder."""
        return self.path[:-len(posixpath.basename(self.path))]
