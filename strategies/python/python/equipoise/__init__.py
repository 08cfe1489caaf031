"""Load balancing and topology-aware mapping.

`map` places the tasks of a graph on a machine, `read` and `replay` compare strategies on recorded load-balancing
steps, `predict` judges predictors of loads on them, `experts` places the replicas of the experts of a model, `evaluate_plan` judges
such a plan, and `eplb` has the published algorithm for them.

NumPy is needed. SciPy, NetworkX and pandas are imported only where their objects come in or go out.

Computations run in threads of their own: other threads of Python run meanwhile, and Ctrl-C raises
`KeyboardInterrupt` at once. A strategy of the package that has begun then ends in the background, and no further one
begins.

Wrong requests raise `ValueError`, `TypeError` or `IndexError`; everything else raises `EquipoiseError`.
"""

from . import eplb
from ._core import EquipoiseError, __version__, strategies
from ._database import Database, Frames, read
from ._experts import Plan, evaluate_plan, experts
from ._limits import Wish
from ._machine import Machine
from ._map import Mapping, map
from ._predict import Predictions, predict
from ._replay import Replay, replay

__all__ = [
    "Database",
    "EquipoiseError",
    "Frames",
    "Machine",
    "Mapping",
    "Plan",
    "Predictions",
    "Replay",
    "Wish",
    "__version__",
    "eplb",
    "evaluate_plan",
    "experts",
    "map",
    "predict",
    "read",
    "replay",
    "strategies",
]
