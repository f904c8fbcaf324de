"""How claims end."""

import os
import socket
from typing import Optional

from boardd import client
from boardd import errors
from boardd.hands import Hand
from boardd.messages import Json, seconds

#: What a server keeps of a reason, at most, in bytes.
_MAX_REASON = 4096


def new_owner() -> str:
    """Returns a name for a worker that no other one has: HOST-PID-RANDOM."""
    return '%s-%d-%s' % (socket.gethostname()[:200] or 'worker', os.getpid(), os.urandom(4).hex())


class Conclusion:
    """What becomes of a claim, and what is sent for it; None: nothing."""

    def __init__(self, ending: str, message: Optional[Json] = None) -> None:
        self.ending = ending
        self.message = message


def conclude(hand: Hand, error: Optional[BaseException], board_backs_off: bool) -> Conclusion:
    """Says how a claim ends by what its handler raised; None: it returned."""
    message: Json = {'uuid': hand.claim['uuid'], 'token': hand.claim['token']}
    if error is None:
        # Worth a try even where the lease seemed lost: only the token decides.
        return Conclusion('CONSUMED', dict(message, how='CONSUME'))
    if hand.fate != 'in hand':
        return Conclusion('LOST')
    if hand.canceled or isinstance(error, errors.CancelRequested):
        return Conclusion('CANCELED', dict(message, how='CANCEL'))
    message['reason'] = reason_of(error)
    if isinstance(error, errors.Trash) and not hand.late:
        return Conclusion('TRASHED', dict(message, how='TRASH'))
    message['how'] = 'ABANDON'
    if hand.stopping:
        return Conclusion('ABANDONED', dict(message, refundAttempt=True, retryAfter=seconds(0)))
    if not board_backs_off:
        # Then this does: from 1 s on, doubled for each attempt, up to 5 min.
        message['retryAfter'] = seconds(client.doubled(max(0, hand.claim['attempt'] - 1), 1.0, 300.0))
    if hand.late:
        message['reason'] = 'timeout'  # as the server calls it
    elif isinstance(error, errors.Retry):
        message['refundAttempt'] = True
        if error.after is not None:
            message['retryAfter'] = seconds(error.after)
    return Conclusion('ABANDONED', message)


def unbegun(hand: Hand) -> Json:
    """The end of a claim whose handler has not begun."""
    return {'uuid': hand.claim['uuid'], 'token': hand.claim['token'], 'how': 'ABANDON', 'reason': 'the worker stops',
            'refundAttempt': True, 'retryAfter': seconds(0)}


def reason_of(error: BaseException) -> str:
    """The text of what a handler raised, as far as a board keeps it."""
    text = str(error) or type(error).__name__
    return text.encode('utf-8', 'replace')[:_MAX_REASON].decode('utf-8', 'ignore')
