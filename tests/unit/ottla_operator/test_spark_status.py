"""The status of a SparkApplication, and what its pods say."""

import msgspec
import pytest
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.spark_driver import (
    LAST_LINES_MAX,
    DriverState,
    driver_of,
    executors_obstacle,
    executors_running,
    last_words,
)
from ottla_operator.plans.spark_phases import Event, Phase
from ottla_operator.plans.spark_status import Situation, after, spark_status
from ottla_operator.resources.spark_application import ApplicationState, SparkApplicationStatus
from support.spark_samples import NOW, UID, application

LOG = """\
26/01/05 12:00:00 INFO SparkContext: Running Spark version 4.0.0
Traceback (most recent call last):
  File "/opt/app.py", line 7, in <module>
    raise ValueError("no such column")
ValueError: no such column
org.apache.spark.SparkUserAppException: User application exited with 1
\tat org.apache.spark.deploy.PythonRunner$.main(PythonRunner.scala:124)
\t... 12 more
26/01/05 12:00:01 INFO ShutdownHookManager: Shutdown hook called
26/01/05 12:00:01 INFO ShutdownHookManager: Deleting directory /tmp/spark-1
"""


def conditions_of(phase, *, error=None, situation=None, before=None, attempts=1):
    status = SparkApplicationStatus(
        application_state=ApplicationState(state=phase.value, error_message=error), execution_attempts=attempts
    )
    one = application(status=msgspec.to_builtins(before) if before else None, generation=3)
    made = spark_status(one, status, situation or Situation(), now=NOW)
    assert made.observed_generation == 3
    return {one.type: (one.status, one.reason, one.message) for one in made.conditions}


@pytest.mark.parametrize(
    ("phase", "situation", "ready", "succeeded"),
    [
        (
            Phase.WAITING,
            Situation(waiting_for=Obstacle("TopicsMissing", "…")),
            ("False", "TopicsMissing"),
            ("Unknown", "Unfinished"),
        ),
        (Phase.SUBMITTED, Situation(), ("False", "DriverStarting"), ("Unknown", "Unfinished")),
        (
            Phase.SUBMITTED,
            Situation(obstacle=Obstacle("ImageMissing", "…")),
            ("False", "ImageMissing"),
            ("Unknown", "Unfinished"),
        ),
        (Phase.RUNNING, Situation(executors=0), ("False", "ExecutorsStarting"), ("Unknown", "Unfinished")),
        (Phase.RUNNING, Situation(executors=1), ("True", "Running"), ("Unknown", "Unfinished")),
        (Phase.COMPLETED, Situation(), ("True", "Completed"), ("True", "Completed")),
        (Phase.PENDING_RERUN, Situation(), ("False", "RunAgain"), ("Unknown", "Unfinished")),
        (Phase.FAILED, Situation(), ("False", "Failed"), ("False", "Failed")),
    ],
)
def test_conditions(phase, situation, ready, succeeded):
    found = conditions_of(phase, situation=situation)
    assert found["Ready"][:2] == ready
    assert found["Succeeded"][:2] == succeeded


def test_a_running_program_that_gives_its_executors_back_stays_ready():
    was = spark_status(
        application(),
        SparkApplicationStatus(application_state=ApplicationState(state="Running")),
        Situation(executors=1),
        now=NOW,
    )
    now = conditions_of(Phase.RUNNING, situation=Situation(executors=0), before=was)
    assert now["Ready"][:2] == ("True", "Running")


def test_the_last_words_are_in_the_conditions():
    error = "pod sessions-driver failed with exit code 1 (Error):\nValueError: no such column"
    assert "ValueError: no such column" in conditions_of(Phase.FAILED, error=error)["Ready"][2]
    assert conditions_of(Phase.FAILED, error=error)["Succeeded"][2] == error
    again = conditions_of(Phase.PENDING_RERUN, error=error, attempts=2)["Ready"][2]
    assert again.startswith("the program is run again after 5 s (so far 2 runs); pod sessions-driver failed")


def test_what_an_event_leaves_in_the_status():
    def follow(event, phase, status=None, failure=""):
        one = application(status=status)
        return msgspec.to_builtins(after(one, event, phase, driver="sessions-driver", failure=failure, now=NOW))

    submitted = follow(Event.KAFKA_READY, Phase.SUBMITTED)
    assert submitted["executionAttempts"] == 1 and submitted["driverInfo"] == {"podName": "sessions-driver"}
    failed = follow(Event.DRIVER_FAILED, Phase.FAILING, submitted, "oops")
    assert failed["applicationState"] == {"state": "Failing", "errorMessage": "oops"}
    assert failed["terminationTime"] == "2026-01-05T12:00:00Z"
    again = follow(Event.KAFKA_READY, Phase.SUBMITTED, failed)
    assert (again["executionAttempts"], again["applicationState"]["errorMessage"]) == (2, "oops")
    assert follow(Event.DRIVER_SUCCEEDED, Phase.SUCCEEDING, again)["applicationState"] == {"state": "Succeeding"}
    changed = follow(Event.SPEC_CHANGED, Phase.PENDING_RERUN, again)
    assert "executionAttempts" not in changed and "terminationTime" not in changed


def test_last_words_leave_out_what_spark_always_says():
    assert last_words(LOG).splitlines()[-2:] == [
        "ValueError: no such column",
        "org.apache.spark.SparkUserAppException: User application exited with 1",
    ]
    assert "INFO" not in last_words(LOG)
    only_ordinary = "26/01/05 12:00:00 INFO SparkContext: Running\n"
    assert last_words(only_ordinary) == only_ordinary.strip()
    assert len(last_words("x\n" * 100).splitlines()) == LAST_LINES_MAX
    assert last_words("") == ""


def pod(**status):
    metadata = {
        "name": "sessions-driver",
        "uid": "d",
        "annotations": {"ottla.dev/attempt": "2"},
        "ownerReferences": [{"uid": UID, "controller": True}],
    }
    return {"metadata": metadata, "status": status}


def container(**state):
    return [{"name": "driver", "image": "spark:1", "state": state}]


def test_a_driver_pod_as_it_is_seen():
    failed = driver_of(pod(phase="Failed", containerStatuses=container(terminated={"exitCode": 1, "reason": "Error"})))
    assert (failed.state, failed.attempt, failed.owner_uid) == (DriverState.FAILED, 2, UID)
    assert failed.end == "exit code 1 (Error)"
    assert driver_of(pod(phase="Failed", reason="Evicted", message="disk is full")).end == "Evicted: disk is full"
    assert driver_of(pod(phase="Unknown")).state is DriverState.RUNNING
    assert driver_of(pod()).state is DriverState.PENDING


def test_what_is_in_a_pods_way():
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert driver_of(pod(conditions=[unschedulable])).obstacle.reason == "Unschedulable"
    waiting = container(waiting={"reason": "ErrImageNeverPull", "message": "not present"})
    found = driver_of(pod(containerStatuses=waiting)).obstacle
    assert found.reason == "ImageMissing" and "spark:1" in found.message and "spec.image" in found.message
    assert executors_obstacle([pod(phase="Running"), pod(containerStatuses=waiting)]) == found
    assert executors_running([pod(phase="Running"), pod(phase="Pending"), pod()]) == 1
