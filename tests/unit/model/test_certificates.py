"""Why a certificate is not accepted."""

from __future__ import annotations

import pytest

from regent.model.certificates import Rejection, rejection_of


@pytest.mark.parametrize(
    ("verify_code", "rejection"),
    [
        (9, Rejection.NOT_VALID_NOW),
        (10, Rejection.NOT_VALID_NOW),
        (62, Rejection.OTHER_HOST),
        (64, Rejection.OTHER_HOST),
        (18, Rejection.NOT_TRUSTED),  # self-signed
        (20, Rejection.NOT_TRUSTED),  # of an unknown authority
        (23, Rejection.NOT_TRUSTED),  # revoked
    ],
)
def test_a_code_of_openssl_says_what_to_do(verify_code: int, rejection: Rejection) -> None:
    assert rejection_of(verify_code) is rejection
