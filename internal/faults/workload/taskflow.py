"""Real TaskFlow on the board of a load, as its own programs are: on the store itself.

It connects and writes a line. Then it posts, claims, consumes and abandons. Before each call it writes a line {"begin": []}
and waits for a line of the test, which has taken the time then. After the call it writes
{"ops": [...]}, in the form of a history. It ends when its input does.
"""

import json
import random
import sys
import time
import uuid

from oslo_utils import uuidutils
from taskflow import exceptions
from taskflow.jobs import backends

CONF, NAME, SEED, PAUSE, LEASE = sys.argv[1:]
CONF, PAUSE, LEASE = json.loads(CONF), float(PAUSE), float(LEASE)
PRIORITIES = ["VERY_HIGH", "HIGH", "NORMAL", "LOW", "VERY_LOW"]
NOT_FOUND, ALREADY_CLAIMED, LEASE_LOST = 1, 2, 5
SECOND = 10 ** 9


class Client:
    def __init__(self):
        self.random = random.Random("taskflow " + SEED)  # other uuids than the client in Python has
        self.board, self.calls, self.claims = None, 0, []

    def connected(self):
        if self.board is None or not self.board.connected:
            self.close()
            board = backends.fetch(NAME, CONF)
            board.connect()
            self.board = board
        return self.board

    def close(self):
        board, self.board = self.board, None
        if board is not None:
            try:
                board.close()
            except Exception as e:
                print(repr(e), file=sys.stderr)

    def call(self, op, do):
        """Makes a call between its two lines, and returns whether it was done. Of a post
        that failed nobody knows whether it was made; of the others nothing was done if
        TaskFlow says why it may not."""
        say({"begin": []})
        op = dict(op, client=NAME, outside=True, outcome="done")
        try:
            do()
        except exceptions.UnclaimableJob as e:
            op.update(outcome="refused", kind=ALREADY_CLAIMED, text=str(e))
        except exceptions.NotFound as e:
            op.update(outcome="refused", kind=NOT_FOUND, text=str(e))
        except Exception as e:
            refused = "not owned by" in str(e)
            op.update(outcome="refused" if refused else "unknown", kind=LEASE_LOST if refused else 10, text=repr(e))
        if op["call"] == "post" and op["outcome"] != "done":
            op.update(outcome="unknown")
        print(json.dumps({"ops": [op]}), flush=True)
        return op["outcome"] == "done"

    def post(self, board):
        one = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        number, priority = self.random.randint(1, 1000), self.random.randint(1, 5)
        uuidutils.generate_uuid = lambda dashed=True: one  # so that a post whose answer is lost is known
        op = {"call": "post", "job": one, "posting": 'taskflow {"n":%d}' % number, "priority": priority}
        self.call(op, lambda: board.post("taskflow", details={"n": number}, priority=PRIORITIES[priority - 1]))

    def claim(self, board, job):
        self.calls += 1
        who = "%s, call %d" % (NAME, self.calls)
        op = {"call": "claim", "job": job.uuid, "owner": who, "granted": NAME + ": " + who}
        if CONF["board"] == "redis":
            lease = round(self.random.uniform(1, LEASE), 3)
            done = self.call(dict(op, lease=int(lease * SECOND)), lambda: board.claim(job, who, expiry=lease))
        else:  # it lasts as long as TaskFlow's session
            done = self.call(op, lambda: board.claim(job, who))
        if done:
            self.claims.append((job, who))

    def end(self, board):
        job, who = self.claims.pop(0)
        do = self.random.choice(["consume", "consume", "abandon"])
        op = {"call": do, "job": job.uuid, "token": NAME + ": " + who}
        self.call(op, lambda: getattr(board, do)(job, who))

    def step(self):
        board = self.connected()
        roll = self.random.randrange(10)
        if roll < 3:
            self.post(board)
        elif roll < 6 and self.claims:
            self.end(board)
        elif jobs := list(board.iterjobs(only_unclaimed=True, ensure_fresh=True)):
            self.claim(board, self.random.choice(jobs))

    def run(self):
        self.connected()
        say({"begin": []})
        while True:
            try:
                self.step()
            except Exception as e:  # the store cannot be reached: nothing was called
                print(repr(e), file=sys.stderr)
                say({"begin": []})
            time.sleep(self.random.uniform(0, 4 * PAUSE))


CLIENT = Client()


def say(line):
    print(json.dumps(line), flush=True)
    if not sys.stdin.readline():
        CLIENT.close()
        sys.exit(0)


CLIENT.run()
