"""The releases of Celery that the tests here run on, each fetched once."""

from __future__ import annotations

import pytest

from conformance.releases import VERSIONS, FetchError, Release
from support.requirements import require


@pytest.fixture(scope="session", params=list(VERSIONS))
def release(request) -> Release:
    """Fetch one release into pytest's cache, which tox keeps in the folder of its environment."""
    wanted = Release(request.param, request.config.cache.mkdir("celery-releases"))
    try:
        wanted.fetch()
    except FetchError as problem:
        require(f"Celery {wanted.version}, which pip could not fetch: {problem}", found=False)
    return wanted
