"""Between contexts and the JSON of one vendor: pure both ways, with a validator and a repair."""

from weft.wire.dialects import PROVIDERS, from_wire, to_wire, violations
from weft.wire.repair import repair

__all__ = ["PROVIDERS", "from_wire", "repair", "to_wire", "violations"]
