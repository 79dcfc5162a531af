"""An HTTP client of an API server, for tests of which kubectl is not the subject.

A call takes some milliseconds, a run of kubectl a third of a second of a processor.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from regent.resources.crd import RESOURCES
from sandbox import wait_until
from sandbox.errors import CommandError
from sandbox.kubernetes_server import KubernetesServer

Body = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_PLURALS = {
    **{resource.kind.kind: resource.kind.plural for resource in RESOURCES},
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Namespace": "namespaces",
    "CustomResourceDefinition": "customresourcedefinitions",
}


class _NotServedYetError(CommandError):
    """The definition of a kind is new, so that the API server serves the kind in a moment."""


class KubernetesClient:
    """The administrator. A refusal is a ``CommandError``, as kubectl's is."""

    def __init__(self, server: KubernetesServer) -> None:
        self._address = urlsplit(server.server)
        self._token = server.token
        self._tls = ssl.create_default_context(cafile=server.ca_certificate)

    def get(self, path: str) -> Body:
        """Return an object as ``kubectl get`` shows it: without ``managedFields``."""
        return _shown(self._request("GET", path))

    def items(self, collection: str) -> list[Body]:
        """Return the objects of a collection, sorted by name."""
        found = map(_shown, self._request("GET", collection)["items"])
        return sorted(found, key=lambda body: str(body["metadata"]["name"]))

    def create(self, collection: str, body: Body) -> Body:
        """Create an object, and return it as ``kubectl`` shows it."""
        return _shown(self._request("POST", f"{collection}?fieldValidation=Strict", body))

    def apply(self, body: Body, *, namespace: str = "") -> Body:
        """Apply an object as ``kubectl apply --server-side --force-conflicts`` does."""
        version, metadata = body["apiVersion"], body["metadata"]
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        within = metadata.get("namespace", namespace)
        scope = f"/namespaces/{within}" if within else ""
        path = f"{group}{scope}/{_PLURALS[body['kind']]}/{metadata['name']}"
        options = "fieldManager=kubectl&force=true&fieldValidation=Strict"

        return self._request("PATCH", f"{path}?{options}", body, content="apply-patch+yaml")

    def patch(self, path: str, change: Body) -> Body:
        """Merge a change into an object."""
        return self._request("PATCH", path, change, content="merge-patch+json")

    def delete(self, path: str) -> None:
        """Ask for the deletion of an object or of a collection, and do not wait for its end."""
        self._request("DELETE", path)

    def _request(
        self, method: str, path: str, body: Body | None = None, *, content: str = "json"
    ) -> Body:
        def attempt() -> Body | None:
            try:
                return self._send(method, path, body, content)
            except _NotServedYetError:
                return None

        answer = wait_until(attempt, describe=f"{path} to be served", retry_on=())
        assert answer is not None
        return answer

    def _send(self, method: str, path: str, body: Body | None, content: str) -> Body:
        connection = http.client.HTTPSConnection(
            str(self._address.hostname), self._address.port, timeout=60, context=self._tls
        )
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": f"application/{content}",
            "Accept": "application/json",
        }
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise CommandError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        if response.status == 429 or (response.status == 404 and not text.startswith("{")):
            raise _NotServedYetError(f"{method} {path}: {text}")
        answer: Body = json.loads(text)
        if response.status >= 400:
            raise CommandError(f"{method} {path}: {answer['message']}")
        return answer


def _shown(body: Body) -> Body:
    body["metadata"].pop("managedFields", None)
    return body
