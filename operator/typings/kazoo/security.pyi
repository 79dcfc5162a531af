from typing import NamedTuple

class Id(NamedTuple):
    scheme: str
    id: str

class ACL(NamedTuple):
    perms: int
    id: Id

def make_acl(
    scheme: str,
    credential: str,
    *,
    read: bool = ...,
    write: bool = ...,
    delete: bool = ...,
    all: bool = ...,
) -> ACL: ...
def make_digest_acl(username: str, password: str, *, all: bool = ...) -> ACL: ...

OPEN_ACL_UNSAFE: list[ACL]
CREATOR_ALL_ACL: list[ACL]
READ_ACL_UNSAFE: list[ACL]
