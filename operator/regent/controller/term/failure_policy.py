"""What becomes of the controller when an event cannot be processed.

A controller whose epoch is gone resigns, and so does one without ZooKeeper. One that fails in any
other way gives ``/controller`` up and loads everything again after a wait, because a context that
may be wrong is worse than none; meanwhile a broker's own controller serves the cluster.
"""

from __future__ import annotations

from regent.controller.term.life_cycle import LifeCycle
from regent.model.errors import (
    ClusterChangedError,
    ControllerError,
    ControllerMovedError,
    MissingClusterError,
    OtherControllerError,
    OutdatedEpochError,
    RegentError,
    SessionExpiredError,
    StaleControllerEpochError,
    UnsupportedClusterError,
    UnusableSettingError,
    ZooKeeperUnavailableError,
)
from regent.model.log import StructuredLog


async def settle(life: LifeCycle, error: Exception, *, event: str, log: StructuredLog) -> None:
    """Do what follows from an error that ended the processing of an event."""
    match error:
        case OutdatedEpochError():
            log.error("Controller epoch too low, resigning", reason=str(error))
            await life.resign()
            await life.retry_later()
        case StaleControllerEpochError():
            log.warning("Brokers obey a later controller, resigning", reason=str(error))
            await life.note_refused_epoch()
            await life.yield_to_successor()
            await life.retry_later()
        case ControllerMovedError():
            log.warning("Controller moved, resigning", reason=str(error))
            await life.yield_to_successor()
            await life.retry_later()
        case SessionExpiredError() | ZooKeeperUnavailableError():
            log.warning("ZooKeeper lost, resigning", reason=str(error))
            await life.resign()
            await life.retry_later()
        case MissingClusterError():
            await life.wait_for_cluster(str(error))
        case OtherControllerError():
            await life.stand_back(str(error))
        case UnsupportedClusterError() | ClusterChangedError():
            log.error("Cluster left alone", reason=str(error))
            await life.leave_alone(str(error))
        case UnusableSettingError():
            log.error("Cluster left alone until a restart", reason=str(error))
            await life.leave_alone_for_good(str(error))
        case RegentError():
            log.error("Event failed, giving the controller up", event=event, error=repr(error))
            await life.fail_because(str(error), is_defect=isinstance(error, ControllerError))
        case _:  # a defect: only that has a traceback
            log.error(
                "Event failed, giving the controller up",
                event=event,
                error=repr(error),
                exception=error,
            )
            await life.fail_because(repr(error), is_defect=True)
