"""The jars of a Kafka version, with the ZooKeeper that this Kafka ships, fetched by Maven.

What is fetched is the published server (`kafka_2.13`, or `kafka_2.12` for old versions) and
`kafka-tools`; by themselves, Kafka Streams and the applications of its system tests. One thing is
changed: all of them log through slf4j and reload4j, whatever they were built with, so that one log
configuration serves every version on a current Java.
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

_KAFKA = "org.apache.kafka"
_COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FIRST_WITH_SCALA_2_13 = (2, 4)
_SLF4J_VERSION = "1.7.36"
_RELOAD4J_VERSION = "1.2.25"

_EXCLUDED = (("log4j", "*"), ("ch.qos.logback", "*"), ("org.slf4j", "slf4j-log4j12"))
_DEPENDENCY = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>{classifier}
      <exclusions>{exclusions}</exclusions>
    </dependency>
"""
_CLASSIFIER = "\n      <classifier>{}</classifier>"
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
    return _server(version).fetched()


def streams_jars(version: str = DEFAULT_VERSION) -> KafkaJars:
    """Kafka Streams of a version, with the applications of its system tests.

    Raises:
        MissingProgramError, StepError: as for `kafka_jars`.
    """
    return _streams(version).fetched()


def find_kafka_jars(version: str) -> KafkaJars | None:
    """The jars of a version if they have been fetched already."""
    path = find_entry(_server(version).entry_name)
    return None if path is None else KafkaJars(version, path)


@dataclass(frozen=True, slots=True)
class _Artifact:
    """What Maven is asked for."""

    group: str
    name: str
    version: str
    classifier: str | None = None

    @property
    def dependency(self) -> str:
        """The element of a project that depends on it."""
        classifier = self.classifier
        return _DEPENDENCY.format(
            group=self.group,
            artifact=self.name,
            version=self.version,
            classifier="" if classifier is None else _CLASSIFIER.format(classifier),
            exclusions="".join(_EXCLUSION.format(*excluded) for excluded in _EXCLUDED),
        )


@dataclass(frozen=True, slots=True)
class _JarSet:
    """Jars of one Kafka version, and all that they depend on: one entry of the cache."""

    kind: str
    title: str
    version: str
    artifacts: tuple[_Artifact, ...]

    @property
    def entry_name(self) -> str:
        return f"{self.kind}/{self.version}-{content_hash(self._project, _COPY_GOAL)}"

    def fetched(self) -> KafkaJars:
        require(JAVA)
        return KafkaJars(self.version, cached(self.entry_name, self._fetch))

    @property
    def _project(self) -> str:
        dependencies = "".join(each.dependency for each in (*self.artifacts, *_LOGGING))
        return _PROJECT.format(version=self.version, dependencies=dependencies)

    def _fetch(self, directory: Path) -> None:
        require(MAVEN)
        (directory / "pom.xml").write_text(self._project)
        goal = [_COPY_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        with exclusive("kafka/maven"):  # Maven's own repository cannot take two writers
            run_step(
                f"fetching the jars of {self.title} {self.version}",
                ["mvn", "--batch-mode", "--no-transfer-progress", *goal],
                directory=directory,
                typically="half a minute",
            )
        shutil.rmtree(directory / "target", ignore_errors=True)


_LOGGING = (
    _Artifact("org.slf4j", "slf4j-api", _SLF4J_VERSION),
    _Artifact("org.slf4j", "slf4j-reload4j", _SLF4J_VERSION),
    _Artifact("ch.qos.reload4j", "reload4j", _RELOAD4J_VERSION),
)


def _server(version: str) -> _JarSet:
    scala = "2.13" if version_tuple(version) >= _FIRST_WITH_SCALA_2_13 else "2.12"
    server = _Artifact(_KAFKA, f"kafka_{scala}", version)
    return _JarSet("kafka", "Kafka", version, (server, _Artifact(_KAFKA, "kafka-tools", version)))


def _streams(version: str) -> _JarSet:
    library = _Artifact(_KAFKA, "kafka-streams", version)
    applications = _Artifact(_KAFKA, "kafka-streams", version, classifier="test")
    return _JarSet("kafka-streams", "Kafka Streams", version, (library, applications))
