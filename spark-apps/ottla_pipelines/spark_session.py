"""A SparkSession: on this machine with our own settings, or the one that spark-submit has prepared."""

import contextlib
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

__all__ = ["JavaMissing", "local_session", "submitted_session"]

JAVA_MISSING = "Spark needs Java 17 or newer; install it (Debian: sudo apt-get install openjdk-17-jre-headless)"
# Every pipeline relies on these, wherever it runs.
SETTINGS = {"spark.sql.session.timeZone": "UTC"}
LOCAL_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "20s",
}
LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


class JavaMissing(RuntimeError):
    """The message says what to install."""


@contextlib.contextmanager
def local_session(*, folder: Path, jars: Sequence[Path] = (), tasks: int = 2) -> Iterator[SparkSession]:
    """Spark's log goes to FOLDER/spark.log; the terminal is for the pipeline's lines."""
    if shutil.which("java") is None:
        raise JavaMissing(JAVA_MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING.replace("{{", "{").replace("}}", "}"))
    conf = SparkConf().setMaster(f"local[{tasks}]").setAppName("ottla")
    conf.setAll([*SETTINGS.items(), *LOCAL_SETTINGS.items()])
    conf.set("spark.jars", ",".join(map(str, jars)))
    conf.set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging} -XX:+UseSerialGC")
    with open(folder / "spark.log", "wb") as log:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    ctrl_c = signal.getsignal(signal.SIGINT)
    context = SparkContext(gateway=gateway, conf=conf)
    # PySpark's handler raises during calls to the JVM, where py4j may swallow the exception: keep the caller's.
    signal.signal(signal.SIGINT, ctrl_c)
    spark = SparkSession(context)
    try:
        yield spark
    finally:
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def submitted_session(name: str) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder.appName(name)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")  # a driver's log is for the pipeline's own lines
    return spark
