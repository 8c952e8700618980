"""One small Spark for all tests of this folder: its start takes longer than they do."""

from collections.abc import Iterator

import pytest
from ottla_pipelines.spark_session import local_session
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        # Small things done once: compile lightly.
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        with local_session(folder=tmp_path_factory.mktemp("spark"), tasks=1) as session:
            session.conf.set("spark.sql.shuffle.partitions", "1")
            session.conf.set("spark.sql.codegen.wholeStage", "false")
            yield session
