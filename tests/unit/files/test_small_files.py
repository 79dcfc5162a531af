"""Files that settings name: whatever is there instead is refused, and nothing is waited for."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regent.connections.client_settings import zookeeper_settings
from regent.files.small_files import MAX_BYTES, UnusableFileError, read_small, require_small
from regent.model.errors import ConfigurationError
from regent.network.server_tls import TlsFiles, server_tls
from regent.servers.eviction_endpoint import _token
from regent.servers.server_credentials import read_users
from regent.settings.loading import load_settings
from regent.zookeeper.settings import TlsSettings
from regent.zookeeper.tls import tls_context


def test_what_is_no_file_is_named() -> None:
    with pytest.raises(UnusableFileError, match="/dev/zero is larger than"):
        read_small("/dev/zero")
    with pytest.raises(UnusableFileError, match="/dev is a directory"):
        read_small("/dev")
    with pytest.raises(UnusableFileError, match="/dev/zero is a device, and must be a regular"):
        require_small("/dev/zero")
    assert read_small("/dev/null") == b""


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    for read in (read_small, require_small):
        with pytest.raises(UnusableFileError, match="larger than 1,048,576 bytes"):
            read(file)
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES)
    require_small(file)
    assert len(read_small(file)) == MAX_BYTES


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """As a shell makes one for ``--config <(command)``."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"zookeeper: z:1\n" * 9_000,))
    writer.start()
    assert read_small(pipe) == b"zookeeper: z:1\n" * 9_000
    writer.join()


def test_it_makes_no_difference_how_many_files_are_open(few_descriptors_are_free: None) -> None:
    """A process may have more than the 1,024 that select() can tell apart."""
    assert read_small("/dev/null") == b""


@pytest.fixture
def few_descriptors_are_free() -> Iterator[None]:
    """All below 1,024 are taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < 2048:
        pytest.skip("this machine lets nobody open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    taken = [os.dup(0)]
    while taken[-1] < 1024:
        taken.append(os.dup(0))
    yield
    for each in taken:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_pipe_without_an_end_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnusableFileError, match="has not come to an end in time"):
        read_small(pipe, pipe_timeout_s=0)
    with pytest.raises(UnusableFileError, match="is a pipe, and must be a regular file"):
        require_small(pipe)


def _settings(path: Path) -> None:
    load_settings({}, file=path)


def _password(path: Path) -> None:
    settings = load_settings(
        {"zookeeper": "z", "zookeeper_sasl_username": "u", "zookeeper_sasl_password_file": path}
    )
    zookeeper_settings(settings)


def _certificate_of_the_server(path: Path) -> None:
    server_tls(TlsFiles(certificate=path, key=path))


def _certificates_of_zookeeper(path: Path) -> None:
    tls_context(TlsSettings(ca_file=str(path)))


@pytest.mark.parametrize(
    "use",
    [
        _settings,
        _password,
        read_users,
        _token,
        _certificate_of_the_server,
        _certificates_of_zookeeper,
    ],
)
def test_whoever_reads_a_file_that_a_setting_names_is_bounded(use: Callable[[Path], None]) -> None:
    with pytest.raises(ConfigurationError, match=r"/dev/zero is (a device|larger)"):
        use(Path("/dev/zero"))
