"""What can go wrong between this program and a server.

These stay inside of the package; :py:func:`translated` says them in TaskFlow's
exceptions.
"""

import contextlib

from boardd.transport import Broken
from taskflow import exceptions as exc


class Refused(Exception):
    """The server said no, to a call or to the one item of a call.

    ``code`` is the code of an item (``NOT_FOUND``) or of a call in Connect's
    spelling (``not_found``).
    """

    def __init__(self, code, message, owner=None, field=None, after=None):
        super(Refused, self).__init__(message)
        self.code = code
        self.owner = owner
        self.field = field
        self.after = after  # seconds that the server wants to be left alone

    #: Nothing was changed, and it may be otherwise in a moment.
    UNCHANGED = frozenset(['UNAVAILABLE', 'resource_exhausted'])

    #: It may be done or not; whoever repeats it finds out.
    UNKNOWN = frozenset(['OUTCOME_UNKNOWN', 'unavailable', 'canceled',
                         'deadline_exceeded'])

    @classmethod
    def of_item(cls, error):
        return cls(error.get('code', 'INVALID'),
                   error.get('message') or 'no reason given',
                   owner=error.get('owner') or None,
                   field=error.get('field') or None)


class Closed(Exception):
    """The jobboard is not connected."""


@contextlib.contextmanager
def translated(what, passing=()):
    """Says what goes wrong inside in TaskFlow's words.

    :param what: what could not be done
    :param passing: codes of refusals that the caller looks at itself
    """
    try:
        yield
    except Closed:
        exc.raise_with_cause(exc.JobFailure, "%s, the jobboard is not"
                             " connected" % what)
    except Broken as e:
        exc.raise_with_cause(exc.JobFailure, "%s, boardd did not answer: %s"
                             % (what, e))
    except Refused as e:
        if e.code in passing:
            raise
        exc.raise_with_cause(exc.JobFailure, "%s, boardd refused it: %s (%s)"
                             % (what, e, e.code))
