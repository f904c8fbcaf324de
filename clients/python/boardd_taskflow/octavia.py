"""boardd as the jobboard of OpenStack Octavia.

Octavia finds it by the entry point ``boardd_taskflow_driver``, with this in
octavia.conf::

    [task_flow]
    jobboard_enabled = True
    jobboard_backend_driver = boardd_taskflow_driver
    jobboard_backend_hosts = 10.0.0.11,10.0.0.12
    jobboard_backend_port = 7422
    jobboard_backend_namespace = octavia_jobboard

    [boardd]
    token_file = /etc/octavia/boardd.token
    ca_file = /etc/octavia/boardd-ca.pem
"""

from oslo_config import cfg
from taskflow.jobs import backends

CONF = cfg.CONF

GROUP = 'boardd'

OPTIONS = [
    cfg.StrOpt('board_name',
               help='Name of the board; [task_flow] '
                    'jobboard_backend_namespace if it is not given.'),
    cfg.StrOpt('token_file',
               help='File with the token; [task_flow] '
                    'jobboard_backend_password is the token if it is not '
                    'given.'),
    cfg.BoolOpt('ssl', default=False,
                help='Whether to use TLS where no certificate is given '
                     'here, with the authorities of the system.'),
    cfg.StrOpt('ca_file',
               help='Certificates of the authorities that vouch for the '
                    'servers, instead of the authorities of the system.'),
    cfg.StrOpt('cert_file', help='Our own certificate.'),
    cfg.StrOpt('key_file', help='The key of our own certificate.'),
    cfg.FloatOpt('timeout', default=30, min=1,
                 help='Seconds for which a call is tried before it fails.'),
]


class BoarddTaskFlowDriver(object):
    """What Octavia wants of a driver of jobboards.

    Octavia's conductor claims without an expiry then: the jobboard keeps its
    claims as long as its process lives, and they end as long after that as
    ``jobboard_expiration_time`` says.
    """

    def __init__(self, persistence_driver):
        self.persistence_driver = persistence_driver
        CONF.register_opts(OPTIONS, group=GROUP)

    def job_board(self, persistence):
        name = CONF.task_flow.jobboard_backend_namespace
        return backends.backend(name, self.conf(), persistence=persistence)

    def conf(self):
        """Returns the jobboard's configuration."""
        octavia, own = CONF.task_flow, CONF[GROUP]
        secure = own.ssl or own.ca_file or own.cert_file
        conf = {
            'board': 'boardd',
            'address': ['%s://%s:%d' % ('https' if secure else 'http',
                                        _in_url(host),
                                        octavia.jobboard_backend_port)
                        for host in octavia.jobboard_backend_hosts],
            'board_name': own.board_name or octavia.jobboard_backend_namespace,
            'lease': octavia.jobboard_expiration_time,
            'timeout': own.timeout,
        }
        if own.token_file:
            conf['token_file'] = own.token_file
        elif octavia.jobboard_backend_password:
            conf['token'] = octavia.jobboard_backend_password
        for option in ('ca_file', 'cert_file', 'key_file'):
            if own[option]:
                conf[option] = own[option]
        return conf

    def shutdown(self):
        """Octavia says that it ends: each jobboard was closed already."""


def _in_url(host):
    return '[%s]' % host if ':' in host else host
