"""Octavia's own conductor and poster, without the rest of Octavia.

    octavia_service CONF prepare
    octavia_service CONF work NAME
    octavia_service CONF post SECONDS PATH TEXT
    octavia_service CONF conf kolla

It is started as Octavia starts it: the driver of jobboards is found by its
entry point, whose name is the option's.
"""

import json
import sys

from octavia.common import base_taskflow
from octavia.common import config  # noqa: has the options
from octavia.controller.worker.v2 import taskflow_jobboard_driver
from oslo_config import cfg
from stevedore import driver

from tests import flows


def driver_of(persistence):
    found = driver.DriverManager(
        namespace='octavia.worker.jobboard_driver',
        name=cfg.CONF.task_flow.jobboard_backend_driver,
        invoke_args=(persistence,), invoke_on_load=True)
    return found.driver


def controller():
    persistence = taskflow_jobboard_driver.MysqlPersistenceDriver()
    return base_taskflow.TaskFlowServiceController(driver_of(persistence))


def main():
    cfg.CONF(args=[], project='octavia', default_config_files=[sys.argv[1]])
    command, args = sys.argv[2], sys.argv[3:]
    if command == 'prepare':  # as octavia-db-manage upgrade_persistence does
        taskflow_jobboard_driver.MysqlPersistenceDriver().initialize()
        return
    if command == 'conf':
        print(json.dumps(driver_of(None).conf()))
        return
    if command == 'work':
        controller().run_conductor(args[0])
        return
    controller().run_poster(flows.dawdling, store={
        'seconds': float(args[0]), 'path': args[1], 'text': args[2]})


if __name__ == '__main__':
    main()
