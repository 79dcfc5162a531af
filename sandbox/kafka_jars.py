"""The jars of a Kafka version, with the ZooKeeper that this Kafka ships, fetched by Maven.

What is fetched is the published server (`kafka_2.13`, or `kafka_2.12` for old versions) and
`kafka-tools`. One thing is changed: all of them log through slf4j and reload4j, whatever they
were built with, so that one log configuration serves every version on a current Java.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from sandbox.caching import cached, content_hash, exclusive, find_entry
from sandbox.errors import VersionError
from sandbox.programs import JAVA, MAVEN, require
from sandbox.progress import run_step

DEFAULT_VERSION = "3.9.1"
TESTED_VERSIONS = ("1.1.1", "2.4.1", "2.8.2", "3.3.2", "3.9.1")

_COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FIRST_WITH_SCALA_2_13 = (2, 4)
_SLF4J_VERSION = "1.7.36"
_RELOAD4J_VERSION = "1.2.25"

_EXCLUDED = (("log4j", "*"), ("ch.qos.logback", "*"), ("org.slf4j", "slf4j-log4j12"))
_DEPENDENCY = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions>{exclusions}</exclusions>
    </dependency>
"""
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
_PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dev.regent.kafka.sandbox</groupId>
  <artifactId>kafka-runtime</artifactId>
  <version>{version}</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """The jars of one Kafka version. Get one from `kafka_jars`."""

    version: str
    directory: Path

    @property
    def class_path(self) -> str:
        """For `java -cp`: every jar, in a fixed order."""
        return ":".join(str(jar) for jar in sorted(self.directory.glob("*.jar")))

    def first_class(self, candidates: tuple[str, ...]) -> str | None:
        """The first of these classes that this version has: classes move between versions."""
        own_jars = sorted(self.directory.glob("kafka*.jar"))
        entries = {name for jar in own_jars for name in ZipFile(jar).namelist()}
        for candidate in candidates:
            if f"{candidate.replace('.', '/')}.class" in entries:
                return candidate
        return None


def version_tuple(version: str) -> tuple[int, ...]:
    """The version "2.8.2" as (2, 8, 2), for comparisons.

    Raises:
        VersionError: it is not a Kafka version.
    """
    try:
        return tuple(int(part) for part in version.split("."))
    except ValueError:
        raise VersionError(f"not a Kafka version: {version!r} (such as 3.9.1)") from None


def kafka_jars(version: str = DEFAULT_VERSION) -> KafkaJars:
    """The jars of a version, fetched when they are not in the cache.

    Raises:
        MissingProgramError: there is no Java or Maven, or one that is too old.
        StepError: Maven could not fetch them, for instance because there is no such version.
    """
    require(JAVA)

    def fetch(directory: Path) -> None:
        require(MAVEN)
        with exclusive("kafka/maven"):  # Maven's own repository cannot take two writers
            _fetch(version, directory)

    return KafkaJars(version, cached(_entry_name(version), fetch))


def find_kafka_jars(version: str) -> KafkaJars | None:
    """The jars of a version if they have been fetched already."""
    path = find_entry(_entry_name(version))
    return None if path is None else KafkaJars(version, path)


def _entry_name(version: str) -> str:
    return f"kafka/{version}-{content_hash(_project(version), _COPY_GOAL)}"


def _fetch(version: str, directory: Path) -> None:
    (directory / "pom.xml").write_text(_project(version))
    goal = [_COPY_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
    run_step(
        f"fetching the jars of Kafka {version}",
        ["mvn", "--batch-mode", "--no-transfer-progress", *goal],
        directory=directory,
        typically="half a minute",
    )
    shutil.rmtree(directory / "target", ignore_errors=True)


def _project(version: str) -> str:
    scala = "2.13" if version_tuple(version) >= _FIRST_WITH_SCALA_2_13 else "2.12"
    wanted = (
        ("org.apache.kafka", f"kafka_{scala}", version),
        ("org.apache.kafka", "kafka-tools", version),
        ("org.slf4j", "slf4j-api", _SLF4J_VERSION),
        ("org.slf4j", "slf4j-reload4j", _SLF4J_VERSION),
        ("ch.qos.reload4j", "reload4j", _RELOAD4J_VERSION),
    )
    exclusions = "".join(_EXCLUSION.format(*excluded) for excluded in _EXCLUDED)
    dependencies = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=number, exclusions=exclusions)
        for group, artifact, number in wanted
    )
    return _PROJECT.format(version=version, dependencies=dependencies)
