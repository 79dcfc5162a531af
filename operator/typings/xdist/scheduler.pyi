from collections import OrderedDict

import pytest
from xdist.remote import Producer
from xdist.workermanage import WorkerController

class LoadScopeScheduling:
    assigned_work: dict[WorkerController, dict[str, dict[str, bool]]]
    workqueue: OrderedDict[str, dict[str, bool]]
    def __init__(self, config: pytest.Config, log: Producer | None = ...) -> None: ...
    def _split_scope(self, nodeid: str) -> str: ...
    def _assign_work_unit(self, node: WorkerController) -> None: ...

class LoadFileScheduling(LoadScopeScheduling): ...
