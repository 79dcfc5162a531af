"""Errors that cross module borders.

::

    RegentError
    ├─ ControllerError
    │   ├─ ControllerMovedError          someone else holds the epoch: resign
    │   ├─ StaleControllerEpochError     a broker knows a newer controller: resign
    │   ├─ OutdatedEpochError            partitions have a higher epoch than ours: resign, raise it
    │   ├─ UnsupportedClusterError       brokers that need what we cannot do: leave them alone
    │   ├─ MissingClusterError           there is no Kafka cluster (yet): wait for one
    │   ├─ ClusterChangedError           another Kafka cluster than before: leave it alone
    │   └─ UnusableSettingError          a setting contradicts the cluster: only a restart helps
    ├─ ZooKeeperError
    │   ├─ SessionExpiredError           session and ephemerals are gone: resign, write nothing
    │   ├─ ZooKeeperUnavailableError     no server in time
    │   ├─ RecursiveWatchesUnsupportedError   servers before 3.6: do without
    │   └─ UnexpectedZooKeeperError      an answer that no caller expects (authorization, ...)
    ├─ MalformedZNodeError               a znode that does not decode: skip that entry
    ├─ BrokerQuestionError               a broker does not answer a question: do without
    │   ├─ BrokerSilentError             no connection, or no answer in time: ask it nothing else
    │   │   └─ BrokerUnreachedError      no connection: it was asked nothing
    │   ├─ BrokerTooOldError             it does not know the question
    │   └─ BrokerNotControllerError      it is not the controller: look who is
    └─ ConfigurationError                invalid settings; the message says how to correct them
"""

from __future__ import annotations

from typing import Final


class RegentError(Exception):
    """Base of all errors of the project."""


class ControllerError(RegentError):
    """Base of the controller's own errors."""


class ControllerMovedError(ControllerError):
    """The epoch check of a fenced write failed: another controller was elected."""


class StaleControllerEpochError(ControllerError):
    """A broker refused a request because it obeys a controller with a higher epoch."""


class OutdatedEpochError(ControllerError):
    """States of partitions have a higher controller epoch than ours: it may not change them."""


class UnsupportedClusterError(ControllerError):
    """Some broker relies on a controller that answers requests; this one would harm the cluster."""


class MissingClusterError(ControllerError):
    """This path of ZooKeeper is not that of a Kafka cluster."""


class ClusterChangedError(ControllerError):
    """The id of the Kafka cluster is not the one that this process has known so far."""


class OtherControllerError(ControllerError):
    """``/controller`` is held by a Regent that takes no part in the election among our replicas."""


class UnusableSettingError(ControllerError):
    """A setting of Regent contradicts what the cluster says."""


class ZooKeeperError(RegentError):
    """Base of the errors of the ZooKeeper client."""


class SessionExpiredError(ZooKeeperError):
    """The session is gone, and with it every ephemeral node and watch."""


class ZooKeeperUnavailableError(ZooKeeperError):
    """No ZooKeeper server answered in time."""


class RecursiveWatchesUnsupportedError(ZooKeeperError):
    """The ZooKeeper server has no persistent recursive watches."""

    def __init__(self) -> None:
        super().__init__("ZooKeeper has no recursive watches before version 3.6")


_REMEDIES: Final = {
    "NOAUTH": "give Regent's ZooKeeper user the rights of the brokers on this znode, or on the one "
    "above it if there is none",
    "QUOTAEXCEEDED": "raise or remove the quota that somebody has set for this znode or one above "
    "it (setquota, delquota)",
}


class UnexpectedZooKeeperError(ZooKeeperError):
    """ZooKeeper gave an answer that the caller cannot act on.

    Attributes:
        path: The znode concerned, or an empty string.
        code: ZooKeeper's error name, for instance ``NOAUTH``.
        remedy: What people can do about it; None: nothing is known.
    """

    def __init__(self, code: str, path: str = "") -> None:
        super().__init__(f"ZooKeeper answered {code}" + (f" for {path}" if path else ""))
        self.code = code
        self.path = path
        self.remedy = _REMEDIES.get(code)

    @property
    def with_remedy(self) -> str:
        """What has happened, and what people can do about it."""
        return str(self) if self.remedy is None else f"{self}; {self.remedy}"


class MalformedZNodeError(RegentError):
    """A znode's content is not what its path promises.

    Attributes:
        path: The znode.
        reason: What is wrong with the content.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class BrokerQuestionError(RegentError):
    """A broker does not say what it was asked; the message says why, without its name."""


class BrokerSilentError(BrokerQuestionError):
    """No connection to the broker could be set up, or no answer has come in time. What it is asked
    next would wait as long: a controller does one thing after the other."""


class BrokerUnreachedError(BrokerSilentError):
    """No connection to the broker could be set up: it was asked nothing."""


class BrokerTooOldError(BrokerQuestionError):
    """The broker does not understand a request of that kind."""


class BrokerRefusedError(BrokerQuestionError):
    """Regent's user has no right to what the broker was asked."""


class BrokerNotControllerError(BrokerQuestionError):
    """The broker is not, or no longer, the controller."""


class ConfigurationError(RegentError):
    """Settings that cannot work."""
