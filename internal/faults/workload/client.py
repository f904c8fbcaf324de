"""A client in Python of the JSON over HTTP, with the standard library alone.

It works on a board as the other clients of a load do. Before each call it writes a line
{"begin": [jobs that it is about to post]} and waits for a line of the test, which has
taken the time then and names some jobs of others. After the call it writes {"ops": [...]},
in the form of a history. It ends when its input does.
"""

import http.client
import json
import random
import sys
import time
import urllib.parse
import uuid

ADDRS, TOKEN, BOARD, NAME, SEED, PAUSE, LEASE = sys.argv[1:]
ADDRS, PAUSE, LEASE = ADDRS.split(","), float(PAUSE), float(LEASE)

KINDS = {name: number for number, name in enumerate(
    "NOT_FOUND ALREADY_CLAIMED NOT_CLAIMED NOT_OWNER LEASE_LOST NOT_ELIGIBLE ALREADY_EXISTS QUOTA_EXCEEDED INVALID UNAVAILABLE OUTCOME_UNKNOWN".split(), 1)}
KINDS.update({name: number for number, name in enumerate(
    "UNAUTHENTICATED PERMISSION_DENIED FAILED_PRECONDITION ABORTED UNSUPPORTED CORRUPT INTERRUPTED INTERNAL".split(), 32)})
CODES = {  # of whole calls; those that are not here may have done something
    "not_found": "NOT_FOUND", "already_exists": "ALREADY_EXISTS", "resource_exhausted": "QUOTA_EXCEEDED",
    "invalid_argument": "INVALID", "failed_precondition": "FAILED_PRECONDITION", "unauthenticated": "UNAUTHENTICATED",
    "permission_denied": "PERMISSION_DENIED", "aborted": "ABORTED",
}
STATES = {"UNCLAIMED": 1, "CLAIMED": 2, "COMPLETE": 3, "TRASHED": 4}
PRIORITIES = ["VERY_HIGH", "HIGH", "NORMAL", "LOW", "VERY_LOW"]
SECOND = 10 ** 9


class Failed(Exception):
    """A whole call failed: what a client may conclude of each of its items."""

    def __init__(self, outcome, kind, text):
        super().__init__(text)
        self.answer = {"outcome": outcome, "kind": KINDS[kind], "text": text}


class Client:
    def __init__(self):
        self.random = random.Random(int(SEED))
        self.at, self.connection = 0, None
        self.calls, self.claims, self.posted = 0, [], []

    def post(self, method, request):
        """Makes a call once and returns its answer."""
        body = json.dumps(dict(request, board=BOARD), separators=(",", ":"))
        head = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
        try:
            if self.connection is None:
                host = urllib.parse.urlsplit(ADDRS[self.at % len(ADDRS)]).netloc
                connection = http.client.HTTPConnection(host, timeout=1)
                try:
                    connection.connect()
                except OSError as e:
                    self.at += 1
                    raise Failed("refused", "UNAVAILABLE", str(e)) from e
                self.connection = connection
            self.connection.request("POST", "/boardd.v1.BoardService/" + method, body, head)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as e:
            self.connection, self.at = None, self.at + 1
            raise Failed("unknown", "UNAVAILABLE", repr(e)) from e
        if answer.status == 200:
            return json.loads(text)
        try:
            code = json.loads(text).get("code", "")
        except ValueError:
            code = ""
        if code in CODES:
            raise Failed("refused", CODES[code], text.decode())
        raise Failed("unknown", "UNAVAILABLE", text.decode(errors="replace"))

    def call(self, method, request, items, given, posting=()):
        """Makes a call between its two lines. given makes the ops of an answer; items are
        the ops as far as they are known without one."""
        others = say({"begin": list(posting)})
        try:
            ops = given(self.post(method, request))
        except Failed as e:
            ops = [dict(op, **e.answer) for op in items]
        print(json.dumps({"ops": [dict({"client": NAME}, **op) for op in ops]}), flush=True)
        return ops, others

    def uuid(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def lease(self):
        return round(self.random.uniform(1, LEASE), 3)

    def post_jobs(self, again=()):
        jobs = list(again) or [
            {"uuid": self.uuid(), "name": "python", "priority": self.random.randint(1, 5), "details": {"n": self.random.randrange(1000)}}
            for _ in range(self.random.choice([1, 1, 3]))]
        self.posted = (self.posted + [job for job in jobs if job not in self.posted])[-20:]
        items = [{"call": "post", "job": job["uuid"], "posting": short(job), "priority": job["priority"]} for job in jobs]

        def given(answer):
            ops = []
            for op, result in zip(items, answer["results"]):
                op = settle(op, result)
                if op["outcome"] == "done":
                    op["sequence"] = int(result["job"].get("sequence", 0))
                ops.append(op)
            return ops

        wire = [dict(job, priority=PRIORITIES[job["priority"] - 1]) for job in jobs]
        self.call("PostJobs", {"jobs": wire}, items, given, [dict(job, details=json.dumps(job["details"], separators=(",", ":"))) for job in jobs])

    def claim(self, uuids=()):
        self.calls += 1
        lease = self.lease()
        item = {"call": "claim", "owner": f"{NAME}, call {self.calls}", "request": self.uuid(), "lease": int(lease * SECOND)}
        if not uuids:
            item["best"] = True
        request = {"owner": item["owner"], "requestId": item["request"], "lease": f"{lease:.3f}s"}
        request.update({"uuids": list(uuids)} if uuids else {"max": self.random.randint(1, 2)})

        def given(answer):
            ops = []
            for c in answer.get("claims", []):
                ops.append(dict(item, outcome="done", job=c["uuid"], granted=c["token"], generation=int(c.get("generation", 0)), epoch=int(c.get("epoch", 0))))
                self.claims.append({"uuid": c["uuid"], "token": c["token"]})
            for f in answer.get("failures", []):
                ops.append(settle(dict(item, job=f["uuid"]), f))
            return ops or [dict(item, outcome="done")]

        self.call("ClaimJobs", request, [dict(item, job=one) for one in uuids] or [item], given)

    def end(self, method, call, more, request=None):
        """Makes a call about a claim by its token, and sometimes makes it again."""
        if not self.claims:
            return
        claim = self.claims[0]
        item = dict({"call": call, "job": claim["uuid"], "token": claim["token"]}, **more)
        for _ in range(self.random.choice([1, 1, 1, 2])):
            ops, _ = self.call(method, dict({"claims": [claim]}, **(request or {})), [item], lambda answer: [settle(item, answer["results"][0])])
        if call != "extend" and ops[0]["outcome"] != "unknown":
            self.claims.pop(0)
        self.claims = self.claims[-6:]

    def extend(self):
        lease = self.lease()
        self.end("ExtendClaims", "extend", {"lease": int(lease * SECOND)}, {"lease": f"{lease:.3f}s"})

    def get(self, uuids):
        items = [{"call": "get", "job": one} for one in uuids]

        def given(answer):
            return [show(settle(op, result), result.get("job", {})) for op, result in zip(items, answer["results"])]

        return self.call("GetJobs", {"uuids": list(uuids)}, items, given)[1]

    def run(self):
        others = []
        while True:
            roll = self.random.randrange(10)
            if roll < 3:
                self.post_jobs()
            elif roll < 5:
                self.claim()
            elif roll < 6 and others:
                self.claim(others[:1])
            elif roll < 7:
                self.end("ConsumeJobs", "consume", {})
            elif roll < 8:
                self.end("AbandonJobs", "abandon", {}, {"retryAfter": "0s"})
            elif roll < 9:
                self.extend()
            elif self.posted:
                self.post_jobs([self.random.choice(self.posted)])
            if wanted := (others or [job["uuid"] for job in self.posted[-1:]]):
                others = self.get(wanted)
            time.sleep(self.random.uniform(0, 2 * PAUSE))


def settle(op, result):
    """Puts into an op what its client may conclude from the answer of an item."""
    error = result.get("error")
    if error is None:
        return dict(op, outcome="done")
    unknown = error["code"] in ("OUTCOME_UNKNOWN", "INTERRUPTED", "INTERNAL")
    return dict(op, outcome="unknown" if unknown else "refused", kind=KINDS[error["code"]], text=error.get("message", ""))


def show(op, job):
    if op["outcome"] != "done":
        return op
    op.update(state=STATES[job["state"]], sequence=int(job.get("sequence", 0)), owners=[a["owner"] for a in job.get("attempts", []) if a.get("owner")])
    if job["state"] == "CLAIMED":
        op["holder"] = job.get("owner", "")
    if job["state"] != "COMPLETE":
        op["shown"] = short(job)
    return op


def short(job):
    return job["name"] + " " + json.dumps(job["details"], separators=(",", ":"))


def say(line):
    print(json.dumps(line), flush=True)
    answer = sys.stdin.readline()
    if not answer:
        sys.exit(0)
    return json.loads(answer)


Client().run()
