from collections.abc import Callable

from kazoo.exceptions import KazooException

class RetryFailedError(KazooException): ...

class KazooRetry:
    def __init__(
        self,
        max_tries: int = ...,
        delay: float = ...,
        backoff: int = ...,
        max_jitter: float = ...,
        max_delay: float = ...,
        ignore_expire: bool = ...,
        sleep_func: Callable[[float], None] = ...,
        deadline: float | None = ...,
        interrupt: Callable[[], bool] | None = ...,
    ) -> None: ...
    def copy(self) -> KazooRetry: ...
