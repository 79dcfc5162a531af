"""ZooKeeper and brokers with TLS, SASL and access control lists, as a production cluster has them.

    ZooKeeper ◄── TLS both ways, SASL DIGEST-MD5, zookeeper.set.acl ── brokers, Regent
    brokers   ◄── TLS (both ways between brokers), SCRAM-SHA-512, ACLs ── brokers, Regent, clients

What the sandbox does not write is the SCRAM users and the access control lists: whoever uses it
does so between the start of ZooKeeper and that of the brokers. `SecuredZooKeeper.connect_string`
stays a port without TLS on loopback, for that and for looking at what is there.
"""

from collections.abc import Mapping
from pathlib import Path

from sandbox.java import TUNED_FOR_QUICK_START
from sandbox.kafka import KafkaCluster
from sandbox.pki import KEY_STORE_PASSWORD, Authority, TlsFiles
from sandbox.ports import LOOPBACK, lease_port
from sandbox.zookeeper import ZooKeeper

MECHANISM = "SCRAM-SHA-512"
CLIENTS_LISTENER = "CLIENTS"
BROKERS_LISTENER = "BROKERS"
ZOOKEEPER_USER = "kafka"
BROKER_USER = "broker"
PLAIN_CLIENT = "bob"
"""A user of the clients' listener who has a password in the brokers' files, and no other one."""

_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"


class SecuredZooKeeper(ZooKeeper):
    """A server that has one user, and a port with TLS on which clients show a certificate."""

    def __init__(
        self, *, version: str, authority: Authority, passwords: Mapping[str, str], directory: Path
    ) -> None:
        self.files = authority.issue("zookeeper")
        self._secure_lease = lease_port()
        jaas = directory / "zookeeper-jaas.conf"
        password = passwords[ZOOKEEPER_USER]
        jaas.write_text(f'Server {{ {_DIGEST_MODULE} user_{ZOOKEEPER_USER}="{password}"; }};')
        super().__init__(
            version=version,
            config={
                "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "secureClientPort": self._secure_lease.port,
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "ssl.keyStore.location": str(self.files.key_store),
                "ssl.trustStore.location": str(self.files.ca_certificate),
                "ssl.clientAuth": "need",
            },
            java_options=[*TUNED_FOR_QUICK_START, f"-Djava.security.auth.login.config={jaas}"],
        )

    @property
    def secure_connect_string(self) -> str:
        """`host:port` of the port with TLS."""
        return f"{LOOPBACK}:{self._secure_lease.port}"

    def close(self) -> None:
        """Kill it, remove its data, give its ports back."""
        super().close()
        self._secure_lease.release()


class SecuredKafkaCluster(KafkaCluster):
    """Three brokers with a listener for clients and one among themselves, both SASL_SSL.

    `passwords` has those of the user of ZooKeeper, of the brokers' user, which needs
    ClusterAction, and of `PLAIN_CLIENT`. `files` has each broker's certificate.
    """

    def __init__(
        self,
        *,
        version: str,
        zookeeper: SecuredZooKeeper,
        authority: Authority,
        passwords: Mapping[str, str],
        super_users: str,
        directory: Path,
        session_timeout_ms: int = 6000,
    ) -> None:
        jaas = directory / "broker-jaas.conf"
        jaas.write_text(
            f'Client {{ {_DIGEST_MODULE} username="{ZOOKEEPER_USER}" '
            f'password="{passwords[ZOOKEEPER_USER]}"; }};'
        )
        super().__init__(
            zookeeper=zookeeper.connect_string,
            version=version,
            session_timeout_ms=session_timeout_ms,
            config={
                "auto.leader.rebalance.enable": False,
                "zookeeper.connection.timeout.ms": 60_000,  # TLS takes its time on busy machines
            },
            java_options=[*TUNED_FOR_QUICK_START, f"-Djava.security.auth.login.config={jaas}"],
        )
        self.files: dict[int, TlsFiles] = {}
        for broker in self.brokers:
            files = authority.issue(f"broker-{broker.broker_id}")
            self.files[broker.broker_id] = files
            broker.config |= {
                **_listeners(broker.port, passwords=passwords),
                "delegation.token.master.key": "a secret of brokers",
                **_tls(files),
                "authorizer.class.name": _AUTHORIZER,
                "super.users": super_users,
                "zookeeper.connect": zookeeper.secure_connect_string,
                "zookeeper.set.acl": True,
                "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
                "zookeeper.ssl.client.enable": True,
                **{f"zookeeper.{name}": value for name, value in _tls(files).items()},
            }


def _listeners(port: int, *, passwords: Mapping[str, str]) -> dict[str, str]:
    scram = f"{MECHANISM.lower()}.sasl.jaas.config"
    credentials = f'username="{BROKER_USER}" password="{passwords[BROKER_USER]}"'
    plain_user = f'user_{PLAIN_CLIENT}="{passwords[PLAIN_CLIENT]}"'
    return {
        "listeners": f"{CLIENTS_LISTENER}://{LOOPBACK}:{port},{BROKERS_LISTENER}://{LOOPBACK}:0",
        "listener.security.protocol.map": ",".join(
            f"{name}:SASL_SSL" for name in (CLIENTS_LISTENER, BROKERS_LISTENER)
        ),
        "inter.broker.listener.name": BROKERS_LISTENER,
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "listener.name.clients.sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
        f"listener.name.clients.{scram}": f"{_SCRAM_MODULE};",
        "listener.name.clients.plain.sasl.jaas.config": f"{_PLAIN_MODULE} {plain_user};",
        f"listener.name.brokers.{scram}": f"{_SCRAM_MODULE} {credentials};",
        "listener.name.brokers.ssl.client.auth": "required",
    }


def _tls(files: TlsFiles) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(files.protected_key_store),
        "ssl.keystore.password": KEY_STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.ca_certificate),
    }
