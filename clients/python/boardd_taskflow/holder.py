"""Claiming jobs and ending claims, for one jobboard object."""

import time
import uuid

from taskflow import exceptions as exc
from taskflow import logging
from taskflow import states

from boardd_taskflow import claims
from boardd_taskflow import client as boardd
from boardd_taskflow import failures
from boardd_taskflow import job as boardd_job
from boardd_taskflow import keeper
from boardd_taskflow import options

LOG = logging.getLogger(__name__)

#: call -> how it is said
_DONE = {'ConsumeJobs': 'consume', 'AbandonJobs': 'abandon',
         'TrashJobs': 'trash'}


class Holder(object):
    """What one jobboard object holds, and how it comes by it."""

    def __init__(self, opts, on_lost):
        self._options = opts
        self._keeper = keeper.Keeper(opts, on_lost)
        self._client = None
        self._by_name = False  # whether an owner's name will do for a token
        self._board = opts.board_name

    def start(self, client, by_name):
        self._client, self._by_name = client, by_name
        self._keeper.start(client)

    def stop(self):
        self._keeper.stop()

    def settle(self):
        self._keeper.settle()

    def introduce(self, entity):
        self._keeper.introduce(entity)

    def claim_of(self, job, who=None):
        """Returns this process's claim on a job, if it has one.

        The object that was claimed goes before what others of this process
        did later: it stands for work that was begun under that claim.
        """
        claim = getattr(job, 'claim', None)
        if claim is None:
            claim = claims.held.get(self._board, job.uuid)
        if claim is None or (who is not None and claim.owner != who):
            return None
        return claim

    def claim(self, job, who, expiry):
        if expiry is None:
            expiry = self._options.expiry
        if expiry is not None and int(expiry * 1000.0) <= 0:
            raise ValueError("Provided expiry (when converted to"
                             " milliseconds) must be greater than zero"
                             " instead of %s" % expiry)
        message = {'owner': who, 'uuids': [job.uuid],
                   'requestId': uuid.uuid4().hex}
        lease = self._options.lease
        if expiry is not None:
            lease = max(expiry, options.MIN_LEASE)
        if lease is not None:
            message['lease'] = boardd.seconds(lease)
        if self._options.worker_labels:
            message['workerLabels'] = self._options.worker_labels
        asked_at = time.monotonic()
        try:
            with failures.translated("Can not claim job %s" % job.uuid,
                                     passing=_CLAIM_CODES):
                answer = self._client.call('ClaimJobs', message,
                                           item=_claim_error)
        except failures.Refused as e:
            self._not_claimed(job, who, expiry, e)
        granted = answer['claims'][0]
        claim = claims.Claim(granted, asked_at,
                             boardd.parse_seconds(granted.get('lease')))
        self._hold(job, claim, asked_at, expiry)

    def _hold(self, job, claim, asked_at, expiry):
        claim.kept = expiry is None
        if expiry is not None:
            _limit(claim, asked_at, expiry)
        job.claim = claim
        claims.held.add(self._board, claim)
        self._keeper.keep(claim)

    def _not_claimed(self, job, who, expiry, e):
        if e.code == 'NOT_FOUND' or (
                # Not yet, or in the trash?
                e.code == 'NOT_ELIGIBLE' and
                self._look(job).state == states.COMPLETE):
            exc.raise_with_cause(exc.NotFound, "Job %s not found to be"
                                 " claimed" % job.uuid)
        if e.code != 'ALREADY_CLAIMED':
            exc.raise_with_cause(exc.UnclaimableJob, "Job %s can not be"
                                 " claimed now: %s" % (job.uuid, e))
        if e.owner == who and expiry is not None:
            # As on a Redis jobboard: whoever claims again what is its own is
            # told so, and has the new expiry. A conductor that does not block
            # keeps its jobs in this way.
            held = claims.held.get(self._board, job.uuid)
            if held is not None and held.owner == who:
                self._extend(held, expiry)
        by = " by %s" % e.owner if e.owner else ""
        exc.raise_with_cause(exc.UnclaimableJob,
                             "Job %s already claimed%s" % (job.uuid, by))

    def finish(self, method, job, who, reason=None):
        """Ends a claim in one of three ways."""
        verb = _DONE[method]
        claim = self.claim_of(job, who)
        if claim is not None and not claim.over:
            ref = claim.ref()
        elif claim is None and self._by_name:
            ref = {'uuid': job.uuid, 'owner': who}
        else:
            self._not_held(job, who, verb)
        message = {'claims': [ref]}
        if reason:
            message['reason'] = reason
        if claim is not None:
            claim.ending = True  # so that its end is nobody's loss
        try:
            with failures.translated("Can not %s job %s" % (verb, job.uuid),
                                     passing=keeper.OVER):
                # Without a token, a repetition might meet another's claim.
                self._client.call(method, message, item=_first_error,
                                  repeatable=claim is not None)
        except failures.Refused as e:
            self._not_ended(job, who, verb, e)
        else:
            if claim is not None and getattr(job, 'claim', None) is claim:
                job.claim = None
        finally:
            if claim is not None:
                # Whoever could not end it has ended its work all the same:
                # it is free when its lease is over.
                self._keeper.drop(claim)
                claims.held.remove(self._board, claim)

    def _not_ended(self, job, who, verb, e):
        if e.code == 'NOT_FOUND':
            exc.raise_with_cause(exc.NotFound, "Job %s not found to be %sed"
                                 % (job.uuid, verb.rstrip('e')))
        if e.code == 'NOT_CLAIMED' or (e.code == 'LEASE_LOST' and
                                       not e.owner):
            _no_owner(job, verb)
        if e.code == 'INVALID':
            exc.raise_with_cause(exc.JobFailure, "Can not %s job %s: %s"
                                 % (verb, job.uuid, e))
        _other_owner(job, who, verb, e.owner)

    def _not_held(self, job, who, verb):
        """Says why a job can not be ended by one who has no claim on it."""
        standing = self._look(job)
        if standing.state == states.COMPLETE:
            raise exc.NotFound("Job %s not found to be %sed"
                               % (job.uuid, verb.rstrip('e')))
        if standing.state == states.UNCLAIMED:
            _no_owner(job, verb)
        if standing.owner == who:
            raise exc.JobFailure(
                "Can not %s job %s: %s holds it by another claim, perhaps of"
                " another process, and the board wants that claim's token"
                " (fencing = \"token\")" % (verb, job.uuid, who))
        _other_owner(job, who, verb, standing.owner)

    def _look(self, job):
        with failures.translated("Can not read job %s" % job.uuid):
            return boardd_job.Standing(read(self._client, job.uuid,
                                            boardd_job.STANDING))

    def extend(self, job, expiry):
        """Sets a claim's expiry; returns whether there was one to set."""
        claim = self.claim_of(job)
        if claim is None or claim.over:
            return False
        if int(expiry * 1000.0) > 0:
            return self._extend(claim, expiry)
        claim.over = True  # as on a Redis jobboard: at once
        self._keeper.drop(claim)
        return self._alter('AbandonJobs', claim,
                           reason=keeper.EXPIRED) is not None

    def _extend(self, claim, expiry):
        asked_at = time.monotonic()
        lease = boardd.seconds(max(expiry, options.MIN_LEASE))
        result = self._alter('ExtendClaims', claim, lease=lease)
        self._keeper.drop(claim)
        if result is None:
            return False
        claim.extended(asked_at, boardd.parse_seconds(result.get('lease')))
        claim.kept = False
        _limit(claim, asked_at, expiry)
        self._keeper.keep(claim)
        return True

    def _alter(self, method, claim, **fields):
        """Returns the result, None if the claim is over already."""
        message = dict(fields, claims=[claim.ref()])
        try:
            with failures.translated("Can not change the claim on job %s"
                                     % claim.uuid, passing=keeper.OVER):
                return self._client.call(method, message,
                                         item=_first_error)['results'][0]
        except failures.Refused:
            return None


_CLAIM_CODES = frozenset(['NOT_FOUND', 'ALREADY_CLAIMED', 'NOT_ELIGIBLE',
                          'QUOTA_EXCEEDED', 'resource_exhausted'])


def _limit(claim, asked_at, expiry):
    """Notes an expiry that is not the lease that the board granted."""
    claim.ends = None
    if expiry < options.MIN_LEASE:
        claim.ends = asked_at + expiry
    elif claim.lease is not None and claim.lease < expiry - 0.001:
        LOG.warning("Job %s was claimed for %g seconds, and the board grants"
                    " no more than %g", claim.uuid, expiry, claim.lease)


def _claim_error(answer):
    if answer['claims']:
        return None
    for failure in answer['failures']:
        return failure.get('error')
    return {'code': 'UNAVAILABLE', 'message': 'no claim and no reason'}


def _first_error(answer):
    return answer['results'][0].get('error')


def read(client, job_uuid, fields=None):
    """Returns a job as the server shows it, None if it has forgotten it."""
    message = {'uuids': [job_uuid]}
    if fields:
        message['fields'] = fields
    try:
        answer = client.call('GetJobs', message, item=_first_error)
    except failures.Refused as e:
        if e.code == 'NOT_FOUND':
            return None
        raise
    return answer['results'][0]['job']


def _no_owner(job, verb):
    exc.raise_with_cause(exc.NotFound, "Can not %s job %s which we can not"
                         " determine the owner of" % (verb, job.uuid))


def _other_owner(job, who, verb, owner):
    active = " (it is actively owned by %s)" % owner if owner else ""
    exc.raise_with_cause(exc.JobFailure, "Can not %s job %s which is not owned"
                         " by %s%s" % (verb, job.uuid, who, active))
