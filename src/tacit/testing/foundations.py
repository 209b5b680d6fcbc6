"""Names of other packages that a protocol's tests need, so that one import has them all."""

from tacit.auditing.protocol_audit import Audit, audit
from tacit.running.session.coordinator import RunError
from tacit.running.simulation import simulate

__all__ = ["Audit", "RunError", "audit", "simulate"]
