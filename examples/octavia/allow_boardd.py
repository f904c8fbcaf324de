"""Lets Octavia's option jobboard_backend_driver be boardd_taskflow_driver.

    allow_boardd.py octavia/common/config.py

Octavia finds drivers of jobboards by their entry points, and the package boardd brings
one. But the option has a list of the names that it may have. This adds the name to the
list, in that file and nowhere else, and does nothing where it stands there. In a clone
of Octavia, `git diff` shows the change to propose.
"""

import ast
import sys

FIRST = "[('redis_taskflow_driver',"
NAME = 'boardd_taskflow_driver'


def allow(text):
    """Returns the text of config.py with the name among the choices."""
    if "'%s'" % NAME in text:
        return text
    if text.count(FIRST) != 1:
        raise ValueError('want one list of choices that begins with %s, and '
                         'there are %d' % (FIRST, text.count(FIRST)))
    at = text.index(FIRST) + 1
    indent = ' ' * (at - text.rindex('\n', 0, at) - 1)
    added = ("('%s',\n%s 'Driver that will use boardd to store job '\n"
             "%s 'states.'),\n%s" % (NAME, indent, indent, indent))
    changed = text[:at] + added + text[at:]
    ast.parse(changed)
    return changed


def main():
    if len(sys.argv) != 2:
        sys.exit('want the path of octavia/common/config.py')
    with open(sys.argv[1], encoding='utf-8') as f:
        text = f.read()
    try:
        changed = allow(text)
    except ValueError as e:
        sys.exit('%s: %s' % (sys.argv[1], e))
    if changed != text:
        with open(sys.argv[1], 'w', encoding='utf-8') as f:
            f.write(changed)


if __name__ == '__main__':
    main()
