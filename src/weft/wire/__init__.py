"""Contexts to the JSON of a vendor and back: pure, with a validator and a repair."""

from weft.wire.request import to_wire
from weft.wire.vendor import Assembler, Model, Rule, Vendor, WireRequest
from weft.wire.vendors import PROVIDERS, VENDORS, from_wire, repair, violations

__all__ = [
    "PROVIDERS",
    "VENDORS",
    "Assembler",
    "Model",
    "Rule",
    "Vendor",
    "WireRequest",
    "from_wire",
    "repair",
    "to_wire",
    "violations",
]
