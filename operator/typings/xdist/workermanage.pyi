class _Gateway:
    id: str

class WorkerController:
    gateway: _Gateway
