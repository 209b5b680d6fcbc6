import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: starts real programs, and takes half a minute or so")
    config.addinivalue_line(
        "markers", "thorough: left to `make test-thorough`; shorter tests cover most of it"
    )
