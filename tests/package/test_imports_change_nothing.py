"""Importing letterhead, or running its command in a program, changes no other library and nothing of the process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, logging, pkgutil, signal, sys, warnings
import kafka, pandas, pyarrow, pyarrow.compute, pyspark.sql.functions, rich, sqlglot, typer
from kafka.net.sasl import SASL_MECHANISMS

def state():
    loggers = {name: (logger.filters, logger.handlers, logger.level, logger.propagate)
               for name, logger in logging.root.manager.loggerDict.items()
               if isinstance(logger, logging.Logger) and name.split(".")[0] != "letterhead"}
    return {
        "mechanisms": {name: SASL_MECHANISMS[name] for name in ("PLAIN", "GSSAPI", "AWS_MSK_IAM", "OAUTHBEARER")},
        "loggers": {name: repr(parts) for name, parts in loggers.items() if any(parts[:3])},
        "root": (logging.root.filters[:], logging.root.handlers[:], logging.root.level),
        "meta_path": sys.meta_path[:], "path_hooks": sys.path_hooks[:],
        "warnings": warnings.filters[:],
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals() if number not in (9, 19)},
        "excepthook": sys.excepthook, "displayhook": sys.displayhook,
    }

before = state()
import letterhead
for module in pkgutil.walk_packages(letterhead.__path__, "letterhead."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert len([name for name in sys.modules if name.startswith("letterhead")]) > 250
after = state()
assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}

assert letterhead.cli.main(["read", "tests/samples/orders-0", "-n", "1", "--json"]) == 0
after = state()
assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}
"""


def test_imports_and_commands_leave_process_unchanged() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_mechanisms_of_other_kafka_python_users_stay() -> None:
    from kafka.net.sasl import SaslMechanismAwsMskIam, SaslMechanismGSSAPI, get_sasl_mechanism

    from letterhead.kafka.transport import OwnMechanism

    assert get_sasl_mechanism("GSSAPI") is SaslMechanismGSSAPI
    assert get_sasl_mechanism("AWS_MSK_IAM") is SaslMechanismAwsMskIam
    own = OwnMechanism.named("GSSAPI")
    assert get_sasl_mechanism(own) is not SaslMechanismGSSAPI
    # What a broker lists, and what is written to it.
    assert own in ["PLAIN", "GSSAPI"]
    assert own.encode() == b"GSSAPI"
    assert OwnMechanism.named("PLAIN") == "PLAIN"
    assert hash(OwnMechanism.named("PLAIN")) == hash("PLAIN")
