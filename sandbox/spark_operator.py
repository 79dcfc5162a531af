"""The custom resource definitions of the Kubeflow Spark Operator, out of its Go module.

Nothing is built: the module's archive has them as files. Its checksum is compared with the one
here.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from sandbox.caching import cached, content_hash
from sandbox.errors import StepError
from sandbox.programs import GO, require
from sandbox.progress import note

MODULE = "github.com/kubeflow/spark-operator/v2"
VERSION = "v2.4.0"
CHECKSUM = "h1:Bo5rz5dlhqYEa7e/TLtUEVXDMNRotnVaQ4VLCyeLeOc="

_DEFINITION = "sparkoperator.k8s.io_sparkapplications.yaml"
_ENVIRONMENT = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}


def spark_application_definition() -> Path:
    """The file with the definition of SparkApplications.

    Raises:
        MissingProgramError: there is no Go, or one that is too old.
        StepError: the module cannot be downloaded, or is another one.
    """
    require(GO)
    return cached(f"spark-operator/{content_hash(VERSION, CHECKSUM)}", _take) / _DEFINITION


def _take(directory: Path) -> None:
    note(f"downloading {MODULE} {VERSION}")
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"],
        cwd=directory,
        env={**os.environ, **_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StepError(f"{MODULE} {VERSION} cannot be downloaded: {done.stdout}{done.stderr}")
    downloaded = json.loads(done.stdout)
    if downloaded["Sum"] != CHECKSUM:
        raise StepError(
            f"{MODULE} {VERSION} has the checksum {downloaded['Sum']}, not {CHECKSUM}: another "
            "archive was published under that version"
        )
    shutil.copy(Path(downloaded["Dir"]) / "config" / "crd" / "bases" / _DEFINITION, directory)
