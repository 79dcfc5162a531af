"""Archives of loaded classes (class data sharing, JEP 350): Java programs start in half the time.

One archive per Kafka version, with the classes of a broker; its tools, and the ZooKeeper out of the
same jars, share many of them. A Java virtual machine that cannot use an archive ignores it.
"""

import functools
import subprocess
from collections.abc import Sequence

from sandbox.caching import content_hash, find_entry
from sandbox.kafka_jars import KafkaJars

FILE_NAME = "classes.jsa"
# an archive is valid for the same jars in the same place, and for the same build of Java
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def class_data_options(jars: KafkaJars) -> Sequence[str]:
    """Options of `java` that use the archive, if there is one."""
    directory = find_entry(class_data_entry(jars))
    if directory is None:
        return ()
    return (f"-XX:SharedArchiveFile={directory / FILE_NAME}", *_QUIET)


def class_data_entry(jars: KafkaJars) -> str:
    """The name of a version's archive in the cache."""
    return f"class-data/{jars.version}-{content_hash(jars.class_path, _java_build())}"


@functools.cache
def _java_build() -> str:
    """Everything that `java` says of itself."""
    answer = subprocess.run(
        ["java", "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    return answer.stdout + answer.stderr
