"""What looks at wheels refuses those that are not what they say: each rule of tests/wheels/check.py has a wheel that breaks it."""

from __future__ import annotations

import importlib.util
import platform
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NAME = "letterhead-0.1.0-cp311-abi3-macosx_11_0_arm64.whl"
TAG = "cp311-abi3-macosx_11_0_arm64"
HAS_NO_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
METADATA = "Metadata-Version: 2.4\nName: letterhead\nVersion: 0.1.0\nLicense-Expression: Apache-2.0\n"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"wheels_{name}", ROOT / "tests" / "wheels" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = loaded("check")
licences = loaded("licences")


def wheel(directory: Path, name: str = NAME, tag: str = TAG, metadata: str = METADATA, **files: bytes) -> Path:
    path = directory / name
    parts = {"letterhead/__init__.py": b"", "letterhead/_native.abi3.so": b"module"} | {
        file.replace("__", "/"): data for file, data in files.items()
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in parts.items():
            archive.writestr(file, data)
        archive.writestr("letterhead-0.1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        archive.writestr("letterhead-0.1.0.dist-info/METADATA", metadata)
    return path


def refused(path: Path) -> str:
    with pytest.raises(SystemExit) as ended:
        check.audit(path)
    return str(ended.value)


def test_name_that_contradicts_wheel_tag_is_rejected(tmp_path: Path) -> None:
    assert "says inside that it is ['cp312-abi3-any']" in refused(wheel(tmp_path, tag="cp312-abi3-any"))


@pytest.mark.parametrize("tag", ["cp311-cp311-win_amd64", "cp312-abi3-win_amd64", "cp313-cp313t-win_amd64"])
def test_unsupported_interface_is_rejected(tmp_path: Path, tag: str) -> None:
    assert "neither abi3 from 3.11 on nor a free-threaded" in refused(
        wheel(tmp_path, f"letterhead-0.1.0-{tag}.whl", tag)
    )


def test_wrong_metadata_is_rejected(tmp_path: Path) -> None:
    assert "has the metadata of letterhead 0.1.0, MIT" in refused(
        wheel(tmp_path, metadata=METADATA.replace("Apache-2.0", "MIT"))
    )


@pytest.mark.parametrize("file", ["tests__test_package.py", "letterhead__notes.txt", "letterhead__other.so"])
def test_unexpected_file_is_rejected(tmp_path: Path, file: str) -> None:
    assert f"and has ['{file.replace('__', '/')}']" in refused(wheel(tmp_path, **{file: b"x"}))


def test_oversized_wheel_is_rejected(tmp_path: Path) -> None:
    data = bytes(check.MOST_BYTES)
    assert "bytes: more than 5,000,000" in refused(wheel(tmp_path, **{"letterhead/large.py": data}))


@pytest.mark.parametrize(
    ("tags", "installs"),
    [
        ("cp311-abi3-manylinux2014_{here}.manylinux_2_17_{here}", True),
        ("cp311-abi3-manylinux2014_{other}.manylinux_2_17_{other}", False),
        ("cp311-abi3-musllinux_1_2_{here}", False),
        ("cp311-abi3-macosx_11_0_arm64", False),
        ("cp311-abi3-win_amd64", False),
        ("cp399-abi3-manylinux_2_17_{here}", False),
        ("cp314-cp314t-manylinux_2_17_{here}", False),
    ],
)
@pytest.mark.skipif(sys.platform != "linux" or HAS_NO_GIL, reason="the tags are those of Linux with a GIL")
def test_wheel_is_tried_where_pip_would_install_it(tags: str, installs: bool) -> None:
    here = platform.machine()
    names = {"here": here, "other": {"x86_64": "aarch64"}.get(here, "x86_64")}
    [python] = [python_info for python_info in check.pythons([sys.executable]) if python_info.prefix == sys.base_prefix]
    assert check.fits(Path(f"letterhead-0.1.0-{tags.format(**names)}.whl"), python) == installs


def test_module_that_is_no_library_is_rejected(tmp_path: Path) -> None:
    # Names, tags and metadata hold here: it gets as far as abi3audit, which opens the module.
    output = refused(wheel(tmp_path))
    assert "-m abi3audit --strict" in output
    assert "No module named" not in output


def test_sources_without_licence_or_with_bulk_data_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "letterhead-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*check.NEEDED_IN_SDIST[1:], "tests/samples/orders-0.parquet"]:
            (tmp_path / "file").write_bytes(b"")
            archive.add(tmp_path / "file", f"letterhead-0.1.0/{name}")
    with pytest.raises(
        SystemExit, match=r"lacks \['LICENSE'\] and should not have \['tests/samples/orders-0.parquet'\]"
    ):
        check.look_at_sources(path)


def test_licences_name_crates_of_lock_file() -> None:
    named = licences.named((ROOT / "THIRD-PARTY.txt").read_text(encoding="utf-8"))
    assert len(named) > 40
    lock = (ROOT / "Cargo.lock").read_text()
    locked = {
        " ".join(part.split('"')[1] for part in lines.splitlines()[1:3]) for lines in lock.split("[[package]]")[1:]
    }
    assert [crate for crate in named if crate not in locked] == []
