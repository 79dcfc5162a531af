"""The workspace that a history is kept in, as who samples sees it: a local folder, or a URL of one
of pyarrow's file systems. Spark reads it by Hadoop's (``history_reading.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.history_layout import (
    DAY,
    KINDS,
    SampleFile,
    day_of,
    expired_days,
    folder_of,
    is_url,
    time_of,
)
from regent_rebalance.sample_files import encode_sample, row_count
from regent_rebalance.samples import Sample
from regent_rebalance.secret_urls import masked, shown

_LEGAL_CLUSTER = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


class Appended(NamedTuple):
    """What has become of a workspace.

    Attributes:
        files: Those of the sample.
        removed: Folders of days that were too old; files of those in which something else is, too.
    """

    files: tuple[str, ...]
    removed: tuple[str, ...]


class Workspace:
    """A folder of samples.

    Args:
        url: A path, or the URL of a file system: ``file:``, ``s3:`` or ``s3a:``, ``gs:``,
            ``hdfs:``, ``abfss:``. The folder is created with its first sample.

    Raises:
        InvalidInputError: There is no such file system, or it cannot be reached.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        with self._problems("cannot be reached"):
            self._files, self._root = _file_system(url)

    def append(self, sample: Sample, *, keep: int | None = None) -> Appended:
        """Remove what is too old, and write a sample. Each of its files is there as a whole or not
        at all.

        Args:
            keep: Samples of days that ended so many milliseconds before this one are removed. None:
                none is.

        Raises:
            InvalidInputError: It is not later than the newest sample there, or so much later that
                none of those there would be kept: nothing is removed. Or it cannot be written, or
                old days not removed.
        """
        if not _LEGAL_CLUSTER.fullmatch(sample.cluster):
            raise InvalidInputError(
                f"the cluster's id {sample.cluster!r} has other characters than letters, digits, "
                "'.', '_' and '-'"
            )
        with self._problems("cannot be written"):
            self._check_time(sample, keep)
        # First, as a disk that is full has no other room for the sample.
        try:
            removed = self._make_room(sample, keep)
        finally:  # it counts also where nothing can be removed
            with self._problems("cannot be written"):
                files = self._write_all(sample)
        return Appended(files, removed)

    def newest(self, cluster: str) -> int | None:
        """The moment of the newest file of a cluster; None if there is none."""
        found = [self._newest_of(cluster, kind) for kind in KINDS]
        return max((moment for moment in found if moment is not None), default=None)

    def _newest_of(self, cluster: str, kind: str) -> int | None:
        # The last day may be empty: its files were moved away, or its first was not finished.
        for day in sorted(self._days(cluster, kind), reverse=True):
            found = [
                file.moment
                for info in self._listed(self._path(cluster, kind, day))
                if (file := SampleFile.parse(info.base_name)) is not None
            ]
            if found:
                return max(found)
        return None

    def _check_time(self, sample: Sample, keep: int | None) -> None:
        newest = self.newest(sample.cluster)
        if newest is None:
            return
        times = (
            f"{shown(self._url)} has a sample of {time_of(newest).isoformat()}, and it is "
            f"{time_of(sample.moment).isoformat()} now"
        )
        if newest >= sample.moment:
            raise InvalidInputError(
                f"{times}: either the clock is wrong, or it was when that one was taken: set it, "
                "or move that file away"
            )
        if keep is not None and expired_days([day_of(newest)], newest=sample.moment, keep=keep):
            raise InvalidInputError(
                f"{times}: the retention would remove all samples that there are: set the clock if "
                "it is wrong; if nothing was sampled for so long, sample once without a retention"
            )

    def _make_room(self, sample: Sample, keep: int | None) -> tuple[str, ...]:
        if keep is None:
            return ()
        with self._problems("has the sample, but days that are too old cannot be removed"):
            return tuple(self._remove_expired(sample, keep))

    def _write_all(self, sample: Sample) -> tuple[str, ...]:
        """Both files. What was written of them is removed if one cannot be: the next attempt has
        other names, and what is left would take the room that it needs."""
        contents = encode_sample(sample)
        begun: list[str] = []
        try:
            return tuple(
                self._write(
                    sample,
                    kind,
                    SampleFile(sample.moment, row_count(sample, kind)),
                    contents[kind],
                    begun,
                )
                for kind in KINDS
            )
        except BaseException:
            for path in begun:
                with suppress(OSError, pa.ArrowException):
                    self._files.delete_file(path)
            raise

    def _write(
        self, sample: Sample, kind: str, file: SampleFile, content: bytes, begun: list[str]
    ) -> str:
        folder = self._path(sample.cluster, kind, day_of(sample.moment))
        # Readers pass over names that begin with a dot.
        temporary, final = f"{folder}/.{file.name}", f"{folder}/{file.name}"
        self._files.create_dir(folder, recursive=True)
        begun += (temporary, final)
        with self._files.open_output_stream(temporary, compression=None) as stream:
            stream.write(content)
        self._files.move(temporary, final)
        return final

    def _remove_expired(self, sample: Sample, keep: int) -> Iterator[str]:
        for kind in KINDS:
            days = sorted(self._days(sample.cluster, kind))
            for day in expired_days(days, newest=sample.moment, keep=keep):
                folder = self._path(sample.cluster, kind, day)
                found = self._listed(folder)
                own = [info for info in found if _is_own(info)]
                if len(own) == len(found):
                    self._files.delete_dir(folder)
                    yield folder
                    continue
                # Somebody else keeps something there.
                for info in own:
                    self._files.delete_file(info.path)
                    yield info.path

    def _days(self, cluster: str, kind: str) -> list[str]:
        found = self._listed(self._path(cluster, kind))
        return [info.base_name for info in found if info.base_name.startswith(DAY)]

    def _listed(self, folder: str) -> Any:
        return self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))

    def _path(self, cluster: str, kind: str, *parts: str) -> str:
        return "/".join([self._root, folder_of(cluster, kind), *parts])

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException, NotImplementedError) as error:
            said = masked(str(error), self._url)
            raise InvalidInputError(f"workspace {shown(self._url)} {what}: {said}") from error


def _is_own(info: Any) -> bool:
    """Whether it is a file of a sample, or one that was not finished."""
    name = info.base_name.removeprefix(".")
    return bool(info.type == fs.FileType.File) and SampleFile.parse(name) is not None


def _file_system(url: str) -> tuple[Any, str]:
    if not is_url(url):
        return fs.LocalFileSystem(), str(Path(url).absolute())
    # Hadoop's name of S3.
    files, root = fs.FileSystem.from_uri(re.sub(r"^s3a://", "s3://", url, flags=re.IGNORECASE))
    return files, root.rstrip("/")
