"""Logins by GSSAPI, with the KDC of MIT Kerberos on loopback.

They need Debian's packages krb5-kdc, krb5-admin-server and krb5-user, and `pip install gssapi`, which needs libkrb5-dev.
Without them they are skipped. LETTERHEAD_KRB5 names a directory where packages were unpacked instead of being installed:

    apt-get download krb5-kdc krb5-admin-server krb5-user libkdb5-10 libkadm5srv-mit12 libkadm5clnt-mit12 libgssrpc4 \\
        libverto1 libverto-libev1 libev4 libkrad0 libss2 libkrb5-3 libgssapi-krb5-2 libkrb5support0 libk5crypto3
    for package in *.deb; do dpkg -x $package target/kerberos; done
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.cli import main
from letterhead.kafka.properties import read_properties
from letterhead.kafka.settings import SettingsLike
from tests.kafka import secured
from tests.kafka.broker import Broker
from tests.kafka.conftest import create_orders
from tests.kafka.test_connect_page import BLOCKS
from tests.ports import free_ports

pytestmark = [pytest.mark.broker, pytest.mark.full]

REALM = "LETTERS.TEST"
UNPACKED = Path(os.environ.get("LETTERHEAD_KRB5", "/"))
LIBRARIES = UNPACKED / "usr" / "lib" / "x86_64-linux-gnu"

_CLIENT = f"""\
[libdefaults]
default_realm = {REALM}
dns_canonicalize_hostname = false
dns_lookup_kdc = false
rdns = false
[realms]
{REALM} = {{{{
  kdc = 127.0.0.1:{{port}}
}}}}
[dbmodules]
db_module_dir = {LIBRARIES}/krb5/plugins/kdb
"""
_KDC = f"""\
[realms]
{REALM} = {{{{
  database_name = {{directory}}/principal
  key_stash_file = {{directory}}/stash
  kdc_listen = 127.0.0.1:{{port}}
  kdc_tcp_listen = 127.0.0.1:{{port}}
}}}}
"""
_MORE = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},KERBEROS://127.0.0.1:{kerberos}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},KERBEROS://127.0.0.1:{kerberos}
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,KERBEROS:SASL_SSL
inter.broker.listener.name=PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={own}
listener.name.kerberos.sasl.enabled.mechanisms=GSSAPI
listener.name.kerberos.sasl.kerberos.service.name=kafka
listener.name.kerberos.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true \
storeKey=true isInitiator=false keyTab="{keytab}" principal="kafka/127.0.0.1@{realm}";
"""


class Kerberos(NamedTuple):
    """A broker that wants tickets: its address, the authority of its certificate, and the files of a client."""

    address: str
    authority: Path
    config: Path
    keytab: Path


def tool(name: str) -> str:
    """The path of a program of Kerberos."""
    paths = [UNPACKED / "usr" / directory / name for directory in ("sbin", "bin")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        pytest.skip(f"{name} is not installed: see LETTERHEAD_KRB5")
    return str(path)


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory) -> Iterator[Kerberos]:
    pytest.importorskip("gssapi")
    directory = tmp_path_factory.mktemp("kerberos")
    kdc_port, port, controller, address = free_ports(4)
    config = directory / "krb5.conf"
    config.write_text(_CLIENT.format(port=kdc_port))
    (directory / "kdc.conf").write_text(_KDC.format(directory=directory, port=kdc_port))
    environment = os.environ | {
        "KRB5_CONFIG": str(config),
        "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
        "LD_LIBRARY_PATH": str(LIBRARIES),
    }

    def run(name: str, *arguments: str) -> None:
        ran = subprocess.run([tool(name), *arguments], env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr

    run("kdb5_util", "create", "-s", "-P", "of-the-database")
    for principal, keytab in (("kafka/127.0.0.1", "broker"), ("alice", "client")):
        run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        run("kadmin.local", "-q", f"ktadd -k {directory}/{keytab}.keytab {principal}")
    with (directory / "kdc.log").open("wb") as log:
        kdc = subprocess.Popen([tool("krb5kdc"), "-n"], env=environment, stdout=log, stderr=log)
    own = Broker(directory / "broker", options=[f"-Djava.security.krb5.conf={config}"])
    try:
        authority, certificate = directory / "authority.pem", directory / "own.pem"
        secured.signed(certificate, *secured.authority(authority))
        more = _MORE.format(
            port=port, controller=controller, kerberos=address, own=certificate, realm=REALM,
            keytab=directory / "broker.keytab",
        )  # fmt: skip
        own.start(port, more=more)
        create_orders(f"127.0.0.1:{port}")
        yield Kerberos(f"127.0.0.1:{address}", authority, config, directory / "client.keytab")
    finally:
        own.stop()
        kdc.kill()
        kdc.wait()


@pytest.fixture
def settings(kerberos, tmp_path, monkeypatch) -> Path:
    """The settings of the page, for the broker here."""
    monkeypatch.setenv("KRB5_CONFIG", str(kerberos.config))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "tickets"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kerberos.keytab))
    file = tmp_path / "client.properties"
    file.write_text(BLOCKS["kerberos"].partition("sasl.jaas.config")[0])
    changed = {"bootstrap.servers": kerberos.address, "ssl.truststore.location": str(kerberos.authority)}
    with file.open("a") as out:
        out.writelines(f"{name}={value}\n" for name, value in changed.items())
    assert read_properties(file)["sasl.mechanism"] == "GSSAPI"
    return file


def read(settings: SettingsLike) -> pa.Table:
    with lh.read.topic("orders", settings=settings, timeout_ms=30_000) as reader:
        return reader.read_all()


def test_keytab_opens_topic(settings):
    assert len(read(settings)) == 1


def test_keytab_of_page_opens_topic(settings, kerberos, monkeypatch):
    monkeypatch.delenv("KRB5_CLIENT_KTNAME")
    values = read_properties(settings)
    settings.write_text(BLOCKS["kerberos"])
    jaas = read_properties(settings)["sasl.jaas.config"]
    jaas = jaas.replace("/etc/krb5/alice.keytab", str(kerberos.keytab)).replace("EXAMPLE.COM", REALM)
    assert len(read(values | {"sasl.jaas.config": jaas})) == 1
    with pytest.raises(PermissionError, match=r"cannot authenticate by GSSAPI to .*check the ticket"):
        read(values | {"sasl.jaas.config": jaas.replace("alice@", "bob@")})
    names_of_librdkafka = {"sasl.kerberos.keytab": str(kerberos.keytab), "sasl.kerberos.principal": "alice"}
    assert len(read(values | names_of_librdkafka)) == 1


def test_kinit_ticket_opens_topic(settings, kerberos, monkeypatch):
    monkeypatch.delenv("KRB5_CLIENT_KTNAME")
    command = [tool("kinit"), "-k", "-t", str(kerberos.keytab), "alice"]
    subprocess.run(command, check=True, env=os.environ | {"LD_LIBRARY_PATH": str(LIBRARIES)}, timeout=60)
    assert len(read(settings)) == 1


def test_command_line_reads(settings, tmp_path, capsys):
    restore = ["state", "restore", "orders", str(tmp_path / "app" / "0_0"), "-s", "orders", "--force", "--json"]
    assert main([*restore, "--config", str(settings)]) == 0
    assert capsys.readouterr().out


IN_SPARK = """
import sys
from pyspark.sql import SparkSession
from letterhead import spark as lhs
from letterhead.kafka.properties import read_properties
from letterhead.kafka.settings import SettingsLike

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lhs.register(spark)
options = {f"kafka.{name}": value for name, value in read_properties(sys.argv[1]).items()}
print("rows:", spark.read.format("letterhead-kafka").options(**options).option("subscribe", "orders").load().count())
"""


def test_spark_reads(settings):
    """In a process of its own, because workers have the environment at the start of their session."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, "-c", IN_SPARK, str(settings)],
        capture_output=True, text=True, timeout=300, check=False, env=environment,
    )  # fmt: skip
    assert ran.stdout == "rows: 1\n", ran.stderr[-2000:]


def test_missing_ticket_raises_with_remedy(settings, kerberos, monkeypatch):
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "/nowhere.keytab")
    begun = time.monotonic()
    with pytest.raises(
        PermissionError, match=rf"^cannot authenticate by GSSAPI to {kerberos.address}: .*; check the ticket \(klist\)"
    ):
        read(settings)
    assert time.monotonic() - begun < 20


def test_wrong_service_raises_with_remedy(settings, kerberos):
    with settings.open("a") as out:
        out.write("sasl.kerberos.service.name=others\n")
    with pytest.raises(
        PermissionError, match=r"cannot authenticate by GSSAPI to .*; check the ticket .*sasl\.kerberos\.service\.name"
    ):
        read(settings)


def test_ticket_writes_rows(settings):
    assert lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=settings).rows == 1
