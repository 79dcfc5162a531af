"""Errors of the Kubernetes API.

::

    KubeError
    ├─ KubeLoginError              no credentials, or none that can be read
    ├─ KubeUnavailableError        no answer: connection refused, reset, timed out
    ├─ KubeSchemaError             the API server does not store what was written
    └─ KubeApiError                the API server refused
        ├─ KubeNotFoundError       404: the object (or its CRD) is gone
        ├─ KubeConflictError       409: somebody else changed the object
        ├─ KubeTooLargeError       the object would be larger than etcd, or a request, may be
        └─ KubeRightLostError      what could be read before may not be read any more
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from regent.model.errors import RegentError

_REFUSALS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)

NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
"""The cause of a refusal (403): the namespace is being deleted, and takes nothing new."""


class KubeError(RegentError):
    """Base of all errors of the Kubernetes API."""


class KubeLoginError(KubeError):
    """Neither a service account nor a kubeconfig could be read."""


class KubeUnavailableError(KubeError):
    """The API server did not answer."""


class KubeSchemaError(KubeError):
    """The API server stores something else than what was written and has to be stored: its CRD is
    older than this Regent, or an admission webhook changes it."""


class KubeApiError(KubeError):
    """The API server refused a request.

    Attributes:
        status: HTTP status.
        reason: Kubernetes' word for it, for instance ``Forbidden``.
        causes: Kubernetes' words for what has led to it: :data:`NAMESPACE_TERMINATING`, and others.
        retry_after_s: What the server asks for; None: nothing.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        causes: frozenset[str] = frozenset(),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.causes = causes
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def is_refusal(self) -> bool:
        """Whether the same request will be refused again until somebody changes something: a
        policy, a right, the object."""
        return self.status in _REFUSALS


class KubeNotFoundError(KubeApiError):
    """The object is gone."""


class KubeTooLargeError(KubeApiError):
    """The object would be larger than what can be stored, or sent, at a time."""


class KubeRightLostError(KubeApiError):
    """What could be read before may not be read any more."""


class KubeConflictError(KubeApiError):
    """The object is not what the request was based on."""
