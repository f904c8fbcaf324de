"""What the conductors of the tests run."""

import os
import time

from taskflow.patterns import linear_flow
from taskflow import task


class Note(task.Task):
    """Writes what it was given into the file that it was given."""

    def execute(self, path, text):
        with open(path, 'a') as f:
            f.write(text + '\n')


class Dawdle(task.Task):
    """Works for longer than a claim lasts if nobody extends it."""

    def execute(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.05)


class DieOnce(task.Task):
    """Ends its process, as kill -9 does, the first time."""

    def execute(self, path):
        try:
            os.close(os.open(path + '.died', os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), 9)


class Fail(task.Task):
    def execute(self):
        raise RuntimeError("this job is bad")


def noting():
    return linear_flow.Flow('noting').add(Note())


def dawdling():
    return linear_flow.Flow('dawdling').add(Dawdle(), Note())


def dying():
    return linear_flow.Flow('dying').add(DieOnce(), Note())


def failing():
    return linear_flow.Flow('failing').add(Fail())
