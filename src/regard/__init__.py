"""regard: every sequence model from averaging to attention and state spaces behind one contract.

    import regard
    run = regard.train("lstm", "my.txt", budget="5m")
    print(run.generate("Today is a", top_p=0.9))
    run.score("Today is a great day").show()
    judge = regard.train("linear", [("a fine film", "good"), ("a dull one", "bad"), ...])
    judge.predict(["what a joy"]), judge.predict_proba(frame)

Names are imported when they are first used, so that `import regard` costs nothing and torch comes with the first verb.
"""

# Nothing is imported here that Python has not loaded by itself: with `python -m regard` the current folder is still
# first on the path, and a typing.py in it would be run.
import importlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from regard.core.config import Config
    from regard.core.context import Context
    from regard.core.mixer import Mixer
    from regard.core.registry import build, register
    from regard.core.registry import names as model_names
    from regard.core.stack import MixerConfig
    from regard.core.state import State
    from regard.core.tap import Tap, record
    from regard.core.version import __version__
    from regard.data.corpus import prepare
    from regard.data.worlds import world
    from regard.errors import RegardError
    from regard.interop.import_run import import_run
    from regard.laws import check
    from regard.run.run import Run, load
    from regard.run.train import train
    from regard.studies.compare import compare

# How long torch's threads spin before they sleep, read once when torch is imported. Sleeping at once makes small steps
# 1.6 times slower on two idle cores, the default spin 2 times slower on busy ones; this costs 3 % and 25 %.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
# What Apple's GPU cannot compute is computed on the host, read when torch is imported.
os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")

__all__ = [
    "Config",
    "Context",
    "Mixer",
    "MixerConfig",
    "RegardError",
    "Run",
    "State",
    "Tap",
    "__version__",
    "build",
    "check",
    "compare",
    "import_run",
    "load",
    "model_names",
    "prepare",
    "record",
    "register",
    "train",
    "world",
]

_HOMES = {
    "__version__": "regard.core.version:__version__",
    "Config": "regard.core.config:Config",
    "Context": "regard.core.context:Context",
    "Mixer": "regard.core.mixer:Mixer",
    "MixerConfig": "regard.core.stack:MixerConfig",
    "RegardError": "regard.errors:RegardError",
    "Run": "regard.run.run:Run",
    "State": "regard.core.state:State",
    "Tap": "regard.core.tap:Tap",
    "build": "regard.core.registry:build",
    "check": "regard.laws:check",
    "compare": "regard.studies.compare:compare",
    "import_run": "regard.interop.import_run:import_run",
    "load": "regard.run.run:load",
    "model_names": "regard.core.registry:names",
    "prepare": "regard.data.corpus:prepare",
    "record": "regard.core.tap:record",
    "register": "regard.core.registry:register",
    "train": "regard.run.train:train",
    "world": "regard.data.worlds:world",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
