"""The files of a release: what they are named, that they name no path of the build, and that only checked ones are uploaded."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_jobs_of_one_release_use_distinct_file_names(tmp_path):
    # All go into one directory. A bill of materials is named after its wheel, or after the platform.
    names = set()
    for tag in ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64"):
        with zipfile.ZipFile(tmp_path / f"letterhead-0.1.0-cp311-abi3-{tag}.whl", "w") as archive:
            archive.writestr("letterhead-0.1.0.dist-info/sboms/letterhead.cyclonedx.json", tag)
        subprocess.run([sys.executable, ROOT / "tests/wheels/bill.py", tmp_path], check=True, timeout=300)
        names.add(tag)
    bills = {path.read_text(): path.name for path in tmp_path.glob("*.cdx.json")}
    assert bills == {tag: f"letterhead-0.1.0-cp311-abi3-{tag}.cdx.json" for tag in names}


@pytest.fixture
def release(tmp_path):
    """A directory with a wheel that has a bill of materials of this machine."""
    bill = json.dumps({"ref": f"path+{ROOT.as_uri()}#letterhead@0.1.0"}).encode()
    files = {
        "letterhead/_native.abi3.so": b"\x7fELF /cargo/registry/src/snap.rs",
        "letterhead-0.1.0.dist-info/METADATA": b"Name: letterhead\nVersion: 0.1.0\nLicense-Expression: Apache-2.0\n",
        "letterhead-0.1.0.dist-info/sboms/letterhead.cyclonedx.json": bill,
    } | {
        path.relative_to(ROOT / "python").as_posix(): path.read_bytes()
        for path in (ROOT / "python/letterhead").rglob("*.py")
    }  # fmt: skip
    wheel = tmp_path / "letterhead-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl"
    write_wheel(wheel, files)
    return wheel, files


def write_wheel(wheel, files):
    def digest(data):
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")

    lines = [f"{name},sha256={digest(data)},{len(data)}" for name, data in files.items()]
    record = "letterhead-0.1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in (files | {record: "\n".join([*lines, f"{record},,"]).encode()}).items():
            archive.writestr(name, data)


def call(script, *arguments):
    command = [sys.executable, ROOT / "tests/wheels" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_bill_of_materials_omits_build_directory(release):
    wheel, _ = release
    assert call("paths.py", wheel.parent).returncode == 0
    with zipfile.ZipFile(wheel) as archive:
        bill = archive.read("letterhead-0.1.0.dist-info/sboms/letterhead.cyclonedx.json")
    assert json.loads(bill) == {"ref": "path+file:///letterhead#letterhead@0.1.0"}
    sys.path.insert(0, str(ROOT / "tests/wheels"))
    try:
        from uploads import problems_of_wheel
    finally:
        sys.path.pop(0)
    assert problems_of_wheel(wheel, "0.1.0") == []


@pytest.mark.parametrize("path", [b"/home/me/.cargo/registry/src/x.rs", str(ROOT).encode() + b"/src/lib.rs"])
def test_module_containing_build_path_is_rejected(release, path):
    wheel, files = release
    write_wheel(wheel, files | {"letterhead/_native.abi3.so": path})
    refused = call("paths.py", wheel.parent)
    assert (refused.returncode, "letterhead/_native.abi3.so" in refused.stderr) == (1, True)


def test_files_that_differ_from_tag_are_not_uploaded(release):
    wheel, files = release
    assert call("paths.py", wheel.parent).returncode == 0
    refused = call("uploads.py", wheel.parent, "v0.1.0")
    assert refused.returncode == 1
    # The wheel itself is as it should be; the others are missing.
    assert wheel.name not in refused.stderr
    assert "letterhead-0.1.0.tar.gz is missing" in refused.stderr
    assert refused.stderr.count("0 wheels for ") == 9
    write_wheel(wheel, files | {"letterhead/headers.py": b"import os", "letterhead/more.py": b""})
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("letterhead/unlisted.py", "")
    wheel.with_name("other-1.0-py3-none-any.whl").write_bytes(wheel.read_bytes())
    refused = call("uploads.py", wheel.parent, "v0.2.0").stderr
    for problem in (
        "the tag is v0.2.0, and the version 0.1.0",
        "other-1.0-py3-none-any.whl is not part of the release",
        f"{wheel.name}: letterhead/headers.py is not that of this checkout",
        f"{wheel.name}: letterhead/more.py is not that of this checkout",
        f"{wheel.name}: letterhead/unlisted.py has another checksum than RECORD",
    ):
        assert problem in refused
