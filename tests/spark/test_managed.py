"""The script of `docs/how-to/run-on-a-cluster.md` for managed Spark installs letterhead into the Python of the workers."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import environments, pages

PAGE = "docs/how-to/run-on-a-cluster.md"

PROGRAM = """
import json
import letterhead as lh
from letterhead import spark

read = lh.decode(lh.encode([("k", lh.Int8(7))], "iggy"), "iggy")["k"]
print(json.dumps({"read": read.value, "from": lh.__file__, "spark": spark.__file__}))
"""


@pytest.mark.full
def test_script_for_each_machine_installs_wheel(tmp_path: Path) -> None:
    directory, place = tmp_path / "machine", tmp_path / "script"
    python = environments.environment(directory, lambda name: True)
    place.mkdir()
    (script,) = pages.blocks(PAGE, "sh install")
    (place / "install.sh").write_text(script)
    shutil.copy(environments.wheel(tmp_path), place)
    # What the wheel needs is there, and nothing is downloaded.
    variables = environments.clean(PYSPARK_PYTHON=str(python), SPARK_LOCAL_IP="127.0.0.1", PIP_NO_INDEX="1")
    missing = subprocess.run(
        [python, "-c", "import letterhead"], env=variables, capture_output=True, text=True, timeout=540
    )
    assert missing.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'letterhead'"
    subprocess.run(["bash", "install.sh"], cwd=place, env=variables, check=True, timeout=300)
    done = subprocess.run(
        [python, "-c", PROGRAM], cwd=place, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["read"] == 7
    assert all(Path(answer[name]).is_relative_to(directory) for name in ("from", "spark"))
