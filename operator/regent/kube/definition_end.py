"""Finds out whether objects are deleted because their CustomResourceDefinition is.

Kubernetes deletes all objects of a definition that is deleted, by whatever mistake that happens: a
chart is removed, a file is replaced with ``--force``. That says nothing about their topics.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeNotFoundError
from regent.resources.kind import ResourceKind

logger = logging.getLogger(__name__)

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class DefinitionEnd:
    """Knows whether the definition of a kind is being deleted.

    The API server notes that in the definition before it deletes the first object. So an answer is
    right if the question comes after an object was seen being deleted.
    """

    def __init__(self, client: KubeClient, kind: ResourceKind) -> None:
        self._client = client
        self._path = f"{_DEFINITIONS}/{kind.crd_name}"
        self._name = kind.crd_name
        self._logged: set[str] = set()

    async def has_begun(self) -> bool:
        """Whether it is being deleted, or gone. Without the right to read it: no.

        Raises:
            KubeError: The API server does not answer.
        """
        try:
            found = await self._client.get(self._path)
        except KubeNotFoundError:
            return True
        except KubeApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            self._log_once(
                "Topics of KafkaTopics that are deleted together with their definition cannot be "
                f"kept: missing right: get customresourcedefinitions {self._name}"
            )
            return False
        if "deletionTimestamp" not in found["metadata"]:
            return False
        self._log_once(f"The definition {self._name} is being deleted: topics stay")
        return True

    def _log_once(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            logger.warning(message)
