"""The package's sources can be read by the oldest Python that it promises."""

import ast
import os

import boardd_taskflow
from tests import base


class SourceTest(base.TestCase):

    def test_python_3_9(self):
        folder = os.path.dirname(boardd_taskflow.__file__)
        names = [n for n in os.listdir(folder) if n.endswith('.py')]
        self.assertTrue(len(names) > 5)
        for name in names:
            with open(os.path.join(folder, name), encoding='utf-8') as f:
                ast.parse(f.read(), name, feature_version=(3, 9))
