"""Connection settings by Kafka's names, without a broker."""

from __future__ import annotations

import base64
import random
import subprocess
import warnings
from pathlib import Path

import pytest

import letterhead as lh
from letterhead.cli import main
from letterhead.cli.brokers import brokers
from letterhead.cli.settings_files import file_settings
from letterhead.kafka.iam import Credentials
from letterhead.kafka.jaas import parse_jaas
from letterhead.kafka.oauth import OAuthSettings, Token
from letterhead.kafka.properties import expand, read_properties
from letterhead.kafka.remedies import authentication_remedy, tls_error
from letterhead.kafka.settings import ProducerSettings, reader_settings, spark_settings, writer_settings
from letterhead.kafka.tls import TlsSettings
from tests.versions import built

JAAS = 'org.apache.kafka.common.security.{}LoginModule required username="alice" password="pa\\"ss\\\\w; =x";'
SCRAM = {
    "bootstrap.servers": "a:1, b:2",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": JAAS.format("scram.Scram"),
}
OAUTH = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = {"sasl.oauthbearer.token.endpoint.url": "https://idp.test/token"}
OAUTH_JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};"


def test_java_settings_are_read():
    result = spark_settings({
        **SCRAM, "ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem", "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "KEY", "ssl.keystore.certificate.chain": "CHAIN", "request.timeout.ms": "5000",
        "ssl.endpoint.identification.algorithm": "", "max.poll.records": "9", "isolation.level": "read_committed",
        "default.api.timeout.ms": "7000", "max.partition.fetch.bytes": "16777216",
    })  # fmt: skip
    assert (result.authentication.mechanism, result.authentication.username, result.authentication.password) == (
        "SCRAM-SHA-512", "alice", 'pa"ss\\w; =x',
    )  # fmt: skip
    assert result.tls == TlsSettings(
        trusted_location="/ca.pem", own_key_pem="KEY", own_certificates_pem="CHAIN", check_hostname=False
    )
    assert result.options == {"request.timeout.ms": 5000}
    assert (result.servers, result.timeout_ms, result.fetch_bytes, result.isolation_level) == (
        "a:1,b:2", 7000, 16 << 20, "read_committed",
    )  # fmt: skip


@pytest.mark.parametrize(("algorithm", "checks"), [("https", True), ("HTTPS", True), ("", False), ("none", False)])
def test_broker_name_is_verified_by_identification_algorithm(algorithm, checks):
    assert spark_settings(SCRAM).tls.check_hostname
    assert spark_settings(SCRAM | {"ssl.endpoint.identification.algorithm": algorithm}).tls.check_hostname is checks


def test_librdkafka_settings_mean_the_same():
    names = {
        "metadata.broker.list": "a:1,b:2", "security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice", "sasl.password": "secret", "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/own.pem", "ssl.key.location": "/key.pem", "queue.buffering.max.messages": 9,
    }  # fmt: skip
    result = reader_settings(None, names)
    assert (result.servers, result.protocol, result.authentication.mechanism) == (
        "a:1,b:2",
        "SASL_SSL",
        "SCRAM-SHA-512",
    )
    assert (result.authentication.username, result.authentication.password) == ("alice", "secret")
    assert result.tls == TlsSettings(trusted_location="/ca.pem", own_location="/own.pem", own_key_location="/key.pem")
    with pytest.raises(ValueError, match=r"ssl\.ca\.location and ssl\.truststore\.location are the same setting"):
        reader_settings(None, names | {"ssl.truststore.location": "/other.pem"})


def test_secrets_are_not_in_repr():
    result = reader_settings(None, SCRAM | {"ssl.key.password": "pa-key"})
    oauth = reader_settings(None, OAUTH | ENDPOINT | {
        "sasl.oauthbearer.client.id": "letters", "sasl.oauthbearer.client.secret": "pa-secret",
    })  # fmt: skip
    for part in (result, result.authentication, result.tls, oauth, oauth.authentication, oauth.authentication.oauth):
        assert "pa" not in repr(part)


@pytest.mark.parametrize(
    "secret", [Token("hunter2", 1.0), Credentials("hunter2", "hunter2", "hunter2"), OAuthSettings(token="hunter2")]
)
def test_tokens_and_credentials_are_not_in_repr(secret):
    assert "hunter2" not in repr(secret)
    assert "hunter2" not in str(secret)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"kafka\.bootstrap\.servers"),
        ({"sasl.mechanisn": "PLAIN"}, r"unknown option 'kafka\.sasl\.mechanisn': did you mean 'kafka\.sasl\.mechanism'"),
        ({"auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"key.deserializer": "x"}, "keys are bytes"),
        ({"enable.auto.commit": "true"}, "the option commitGroup names a group"),
        ({"request.timeout.ms": "hunter2"}, r"^kafka\.request\.timeout\.ms must be a whole number$"),
        ({"security.protocol": "SASL_SSL2"}, r"^kafka\.security\.protocol must be one of .*: did you mean SASL_SSL\?"),
        ({"security.protocol": "hunter2"}, r"^kafka\.security\.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL$"),
        ({"bootstrap.servers": "a:1, b:hunter2"}, r"^bootstrap\.servers: the port of broker 2 is not a number"),
        (OAUTH | {"sasl.mechanism": "hunter2"}, r"^kafka\.sasl\.mechanism must be one of PLAIN, .*"),
        (OAUTH | ENDPOINT | {"sasl.oauthbearer.method": "hunter2"}, r"^kafka\.sasl\.oauthbearer\.method must be one of oidc"),
        ({"security.protocol": "SASL_SSL"}, "needs a mechanism"),
        ({"ssl.truststore.type": "BKS"}, r"^kafka\.ssl\.truststore\.type must be one of PEM, PKCS12, JKS"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}, "go together"),
        ({"ssl.endpoint.identification.algorithm": "no"}, "must be https, or empty"),
        ({"enable.ssl.certificate.verification": "false"}, r"ssl\.truststore\.location"),
        (SCRAM | {"sasl.mechanism": "PLAIN"}, "must be SCRAM-SHA-256 or SCRAM-SHA-512 with ScramLoginModule, not PLAIN"),
        (SCRAM | {"sasl.jaas.config": "nonsense hunter2"}, "cannot be read: it should be"),
        (SCRAM | {"sasl.jaas.config": 'ScramLoginModule required username="a";'}, "login module is not supported"),
        (SCRAM | {"sasl.jaas.config": JAAS.format("scram.Scram").replace("password", "pass")}, "names no password"),
        (SCRAM | {"sasl.username": "bob"}, "leave out kafka.sasl.username"),
        (
            SCRAM
            | {
                "sasl.mechanism": "GSSAPI",
                "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
            },
            "useKeyTab needs keyTab",
        ),
        (SCRAM | {"sasl.login.callback.handler.class": "hunter2.X"}, "no Java class is loaded.*OAuthBearerLogin"),
        (OAUTH, r"needs a source of tokens: pass kafka\.sasl\.oauthbearer\.token\.endpoint\.url"),
        (OAUTH | ENDPOINT, r"needs kafka\.sasl\.oauthbearer\.client\.credentials\.client\.id and .*clientSecret"),
        (OAUTH | {"sasl.oauthbearer.token": "a b", "sasl.oauthbearer.token.endpoint.url": "x"}, "one source"),
        (OAUTH | {"sasl.oauthbearer.token.endpoint.url": "ftp://hunter2"}, "must begin with https:, http: or file:"),
        (OAUTH | ENDPOINT | {"sasl.jaas.config": OAUTH_JAAS.format('clientID="a"')}, "did you mean 'clientId'"),
    ],
)  # fmt: skip
def test_wrong_settings_are_rejected_without_their_values(options, message):
    with pytest.raises(ValueError, match=message) as raised:
        spark_settings({"bootstrap.servers": "a:1", **options} if options else {})
    assert "hunter2" not in str(raised.value)
    assert "pa" + "ss\\" not in str(raised.value)


@pytest.mark.parametrize(
    ("mechanism", "reason", "remedy"),
    [
        ("PLAIN", "Authentication failed", "check user name and password in sasl.jaas.config"),
        ("OAUTHBEARER", "invalid_token", "check audience, scope and expiry of the token"),
        ("PLAIN", "the enabled mechanisms are [SCRAM-SHA-256]", "set sasl.mechanism to one that is enabled"),
        ("PLAIN", "Unsupported SASL mechanism", "set sasl.mechanism to one that is enabled"),
        (None, "closed", "check security.protocol and sasl.mechanism"),
    ],
)
def test_rejected_authentication_names_remedy_for_reason(mechanism, reason, remedy):
    assert authentication_remedy(mechanism, reason).startswith(remedy)


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        ("tlsv13 alert certificate required", "rejected the client's certificate, or needs one"),
        ("Hostname mismatch, certificate is not valid for 'a'", "is for another host"),
        ("certificate verify failed: certificate has expired", "has expired"),
        ("certificate verify failed: self-signed certificate", "name the file of the authority that signed it"),
        ("wrong version number", "check security.protocol and the port"),
    ],
)
def test_rejected_connection_names_remedy_for_reason(reason, problem):
    assert problem in str(tls_error("a:1", reason))


def test_values_and_names_of_other_types_are_rejected():
    with pytest.raises(TypeError, match=r"setting client\.id must be text or a number, not list"):
        reader_settings("a:1", {"client.id": ["hunter2"]})
    with pytest.raises(TypeError, match="must be a mapping or the path of a property file, not list"):
        reader_settings("a:1", [])
    with pytest.raises(ValueError, match=r"unknown setting 'security_protocol': did you mean 'security\.protocol'"):
        reader_settings("a:1", {"security_protocol": "SSL"})


def test_arguments_take_precedence_over_settings():
    values = {
        "bootstrap.servers": "a:1", "default.api.timeout.ms": "7000", "max.partition.fetch.bytes": "16777216",
        "delivery.timeout.ms": 8000,
    }  # fmt: skip
    result = reader_settings(["b:2", "c:3"], values, timeout_ms=1, fetch_bytes=2)
    assert (result.servers, result.timeout_ms, result.fetch_bytes) == ("b:2,c:3", 1, 2)
    assert reader_settings(None, values).timeout_ms == 7000
    assert writer_settings(None, values).timeout_ms == 8000
    assert writer_settings(None, values, timeout_ms=9).timeout_ms == 9


@pytest.mark.parametrize(
    "login",
    [
        {"sasl.kerberos.keytab": "/alice.keytab", "sasl.kerberos.principal": "alice"},
        {
            "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            'keyTab="/alice.keytab" principal="alice" serviceName="brokers";'
        },
    ],
)
def test_keytab_works_in_java_and_librdkafka_spelling(login):
    settings = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", **login}
    kerberos = reader_settings(None, settings).authentication.kerberos
    assert (kerberos.keytab, kerberos.principal) == ("/alice.keytab", "alice")
    assert writer_settings(None, settings).authentication.kerberos == kerberos
    service = reader_settings(None, settings).options.get("sasl.kerberos.service.name")
    assert service == ("brokers" if "sasl.jaas.config" in login else None)
    with pytest.raises(ValueError, match=r"leave out sasl\.kerberos\.keytab"):
        reader_settings(
            None,
            settings
            | {
                "sasl.kerberos.keytab": "/other",
                "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
            },
        )


# Secrets --------------------------------------------------------------------------------------------------------------


def test_secrets_are_read_from_the_environment_and_from_files(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", 'with "quotes"; and \\')
    (tmp_path / "user").write_text("alice\n")
    (tmp_path / "more.properties").write_text("client = orders\n")
    jaas = JAAS.format("scram.Scram").partition("username")[0]
    values = {
        "bootstrap.servers": "a:1", "client.id": f"${{file:{tmp_path}/more.properties:client}}",
        "sasl.jaas.config": f'{jaas} username="${{file:{tmp_path}/user}}" password="${{env:KAFKA_PASSWORD}}";',
    }  # fmt: skip
    result = reader_settings(None, SCRAM | values)
    assert (result.authentication.username, result.authentication.password) == ("alice", 'with "quotes"; and \\')
    assert result.options["client.id"] == "orders"
    # The whole configuration can be a secret, too.
    (tmp_path / "jaas").write_text(SCRAM["sasl.jaas.config"])
    whole = reader_settings(None, SCRAM | {"sasl.jaas.config": f"${{file:{tmp_path}/jaas}}"})
    assert whole.authentication.password == 'pa"ss\\w; =x'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NOT_SET}", "^client.id: the environment variable NOT_SET is not set$"),
        ("${file:/nowhere}", "^client.id: /nowhere cannot be read: No such file"),
        ("${file:/nowhere:key}", "cannot be read from /nowhere: No such file"),
    ],
)
def test_unresolvable_reference_raises(value, message):
    with pytest.raises(ValueError, match=message):
        expand("client.id", value)


# Property files -------------------------------------------------------------------------------------------------------


def test_property_file_names_brokers_and_credentials(tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text(
        "# of the cluster\nbootstrap.servers=a:1\nsecurity.protocol: SASL_SSL\nsasl.mechanism PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        '    username="alice" \\\n    password="secret";\nacks=all\nmax.poll.records=500\n'
    )
    for source in (file, str(file)):
        result = reader_settings(None, source)
        assert (result.servers, result.protocol, result.authentication.username) == ("a:1", "SASL_SSL", "alice")
    assert writer_settings(None, file).producer.acks == -1
    with pytest.raises(ValueError, match="no brokers are named: pass bootstrap_servers="):
        lh.read.topic("orders")
    with pytest.raises(ValueError, match="settings cannot be read from /nowhere: No such file"):
        lh.read.topic("orders", settings="/nowhere")
    file.write_text("a=1\n\\\n\nb=\\u12\n")
    with pytest.raises(ValueError, match=r"client\.properties, line 4: \\u is not followed by four"):
        read_properties(file)


PROGRAM = """
import java.io.*; import java.util.*;
public class Read {
  public static void main(String[] files) throws Exception {
    for (String file : files) {
      Properties properties = new Properties();
      try { properties.load(new FileInputStream(file)); }
      catch (IllegalArgumentException error) { System.out.println("invalid"); continue; }
      StringBuilder line = new StringBuilder();
      for (String key : new TreeSet<String>(properties.stringPropertyNames()))
        line.append(hex(key)).append('=').append(hex(properties.getProperty(key))).append(' ');
      System.out.println(line);
    }
  }
  static String hex(String text) {
    StringBuilder all = new StringBuilder();
    for (char unit : text.toCharArray()) all.append(String.format("%04x", (int) unit));
    return all.toString();
  }
}
"""
PIECES = ["a", "b", "u", "=", ":", " ", "\t", "\f", "\\", "\\", "\n", "\r", "\r\n", "#", "!", "\xe9", "\\u00e9", "\\n"]


def test_property_files_are_parsed_like_java(tmp_path: Path):
    generator = random.Random(7)
    files = [tmp_path / str(number) for number in range(500)]
    for file in files:
        file.write_bytes("".join([*generator.choices(PIECES, k=generator.randrange(1, 25)), "z"]).encode("iso-8859-1"))
    (tmp_path / "Read.java").write_text(PROGRAM)
    command = ["java", str(tmp_path / "Read.java"), *map(str, files)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()

    def read(file: Path) -> str:
        try:
            entries = read_properties(file)
        except ValueError:
            return "invalid"
        hexed = sorted(
            (key.encode("utf-16-be").hex(), value.encode("utf-16-be").hex()) for key, value in entries.items()
        )
        return "".join(f"{key}={value} " for key, value in hexed)

    assert [read(file) for file in files] == lines
    assert 0 < lines.count("invalid") < 100 < sum(line.count("=") for line in lines)


JAAS_PROGRAM = """
import java.util.*;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

class Jaas {
    public static void main(String[] lines) throws Exception {
        for (Scanner in = new Scanner(System.in); in.hasNext();) {
            StringBuilder line = new StringBuilder();
            try {
                String text = new String(Base64.getDecoder().decode(in.next().substring(1)), "UTF-8");
                var entry = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text))).configurationEntries().get(0);
                line.append(hex(entry.getLoginModuleName()));
                for (var option : new TreeMap<String, Object>(entry.getOptions()).entrySet())
                    line.append(" " + hex(option.getKey()) + "=" + hex((String) option.getValue()));
            } catch (RuntimeException error) { line = new StringBuilder("refused"); }
            System.out.println(line);
        }
    }

    static String hex(String text) {
        StringBuilder digits = new StringBuilder();
        for (char unit : text.toCharArray()) digits.append(String.format("%04x", (int) unit));
        return digits.toString();
    }
}
"""
JAAS_PIECES = [
    *(
        "org.example.Module",
        "required",
        "REQUIRED",
        " ",
        "\n",
        "\t",
        "username",
        "=",
        '"',
        "'",
        "alice",
        ";",
        "\\",
        "\\n",
    ),
    *(
        '\\"',
        "\\101",
        "\\8",
        "\\377",
        "\\400",
        "-",
        ".",
        "5",
        "1.5",
        "-5",
        ".x",
        "//",
        "/*",
        "*/",
        "/",
        "$",
        "_",
        "\xe9",
        "\u20ac",
    ),
    *('password="a b"', "k='v'", "a-b=c", 'a.b="x"', "{", "@", ",", "\r", "\0", "\x7f", "\xa0", "5a=b", "a5=b5"),
]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("M required a=/\nb\nc;", {"a": "c"}),
        ("M required a=//\nb;", {"a": "b"}),
        ("M required a=/b\nc;", {"a": "c"}),
        ("'' required;", None),
    ],
)
def test_slashes_comment_out_rest_of_line_or_next_one(text, options):
    assert parse_jaas(text) == (None if options is None else ("M", options))


@pytest.mark.jvm
def test_login_modules_are_parsed_like_java(tmp_path):
    generator = random.Random(5)

    def text(most: int) -> str:
        return "".join(generator.choices(JAAS_PIECES, k=generator.randrange(most)))

    texts = []
    for number in range(6000):
        options = [
            generator.choice(["a", "b-c", "d.e", "$x", "_y", "\xe9", "-k", '"k"']) + generator.choice(["=", " = ", "=", "=="])
            + quote + text(5) + quote
            for quote in generator.choices("\"'", k=generator.randrange(4))
        ]  # fmt: skip
        ending = generator.choice([";", " ;", ";\n", ";;", "", "; M2 required;"])
        module = generator.choice(["org.example.M"] * 19 + ["''"])
        whole = text(12) if number % 4 == 0 else f"{module} required {' '.join(options)}{ending}"
        at = generator.randrange(len(whole) + 1)
        texts.append(whole[:at] + generator.choice([""] * 200 + ["/\n", "/", *JAAS_PIECES]) + whole[at:])
    (tmp_path / "Jaas.java").write_text(JAAS_PROGRAM)
    jars = ":".join(f"{directory}/*" for directory in built("kafka").rglob("*") if directory.is_dir())
    lines = subprocess.run(
        ["java", "-cp", jars, str(tmp_path / "Jaas.java")], check=True, capture_output=True, text=True, timeout=120,
        input="\n".join("." + base64.b64encode(text.encode()).decode() for text in texts),
    ).stdout.splitlines()  # fmt: skip

    def read(text: str) -> str:
        parsed = parse_jaas(text)
        if parsed is None:
            return "refused"
        module, options = parsed
        hexed = sorted(
            f"{name.encode('utf-16-be').hex()}={value.encode('utf-16-be').hex()}" for name, value in options.items()
        )
        return " ".join([module.encode("utf-16-be").hex(), *hexed])

    assert [read(text) for text in texts] == lines
    assert 1000 < lines.count("refused") < 5500


@pytest.mark.parametrize("reference", ["a" * 5000, "a" * 5000 + ":b", "x\0y", "x\0y:z", "."])
def test_reference_to_missing_file_names_setting(reference):
    with pytest.raises(ValueError, match=r"^(name: |the settings cannot be read from )"):
        expand("name", f"${{file:{reference}}}")


def test_many_unterminated_references_take_little_time():
    text = "${env:" * 300_000
    assert expand("name", text) == text
    with pytest.raises(ValueError, match="the environment variable"):
        expand("name", text + "}")


# Writing --------------------------------------------------------------------------------------------------------------


def test_producer_gets_its_settings_without_consumer_ones():
    values = {
        "bootstrap.servers": "a:1", "compression.type": "zstd", "acks": "all", "max.request.size": 2_000_000,
        "group.id": "g", "isolation.level": "read_committed", "buffer.memory": 1, "linger.ms": 10,
    }  # fmt: skip
    settings = writer_settings(None, values)
    assert settings.producer == ProducerSettings(codec="zstd", record_bytes=2_000_000)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"compresion.type": "zstd"}, r"unknown setting 'compresion\.type': did you mean 'compression\.type'"),
        ({"partitioner": "hunter2"}, "^partitioner must be one of murmur2_random, "),
        ({"acks": "hunter2"}, "^acks must be one of all, -1, 1"),
        ({"acks": "1"}, r"^acks must be all, unless enable\.idempotence is false"),
        ({"enable.idempotence": "hunter2"}, r"^enable\.idempotence must be one of true, false"),
        ({"batch.size": 0}, r"^batch\.size must be at least 1"),
        ({"batch.size": "hunter2"}, r"^batch\.size must be a whole number"),
        ({"compression.type": "hunter2"}, r"^compression\.type must be one of none, gzip, "),
        ({"client.dns.lookup": "hunter2"}, r"^client\.dns\.lookup must be one of use_all_dns_ips, "),
        ({"transactional.id": "hunter2"}, "without transactions"),
        ({"key.serializer": "hunter2"}, "keys are bytes"),
    ],
)
def test_settings_unknown_to_producer_are_rejected_without_value(values, message):
    with pytest.raises(ValueError, match=message) as raised:
        writer_settings("a:1", values)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["isolation.level", "client.dns.lookup"])
def test_value_unknown_to_reader_is_rejected_without_quoting(name):
    with pytest.raises(ValueError, match=rf"^{name} must be one of read_un|^{name} must be one of use_all") as raised:
        reader_settings("a:1", {name: "hunter2"})
    assert "hunter2" not in str(raised.value)


CONSUMER = (  # As Apache Kafka ships it, and what applications add to it.
    "bootstrap.servers=localhost:9092\ngroup.id=test-consumer-group\nauto.offset.reset=earliest\n"
    "enable.auto.commit=false\nauto.commit.interval.ms=1000\nisolation.level=read_committed\nmax.poll.records=500\n"
    "key.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
    "value.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
    "interceptor.classes=com.example.Interceptor\n"
)


def test_java_consumer_file_is_read_and_unsupported_keys_named(tmp_path: Path):
    file = tmp_path / "consumer.properties"
    file.write_text(CONSUMER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = reader_settings(None, file)
    assert (result.servers, result.isolation_level) == ("localhost:9092", "read_committed")
    file.write_text(CONSUMER + "schema.registry.url=http://hunter2\n")
    with pytest.warns(
        UserWarning, match=r"consumer\.properties: unknown settings are ignored: schema\.registry\.url"
    ) as raised:
        assert reader_settings(None, file).servers == "localhost:9092"
    assert "hunter2" not in str(raised[0].message)
    with pytest.raises(ValueError, match="keys are bytes"):  # An argument in code is meant for this reader.
        reader_settings("a:1", {"key.deserializer": "x"})
    file.write_text(CONSUMER + "sasl.mechanisn=PLAIN\n")
    with pytest.raises(ValueError, match=r"unknown setting 'sasl\.mechanisn': did you mean 'sasl\.mechanism'"):
        reader_settings(None, file)


# The command line -----------------------------------------------------------------------------------------------------


def test_command_line_reads_java_and_kcat_files(tmp_path: Path, monkeypatch, capsys):
    java, kcat = tmp_path / "consumer.properties", tmp_path / "kcat.conf"
    java.write_text(CONSUMER.replace("localhost:9092", "127.0.0.1:1") + "schema.registry.url=http://hunter2\n")
    kcat.write_text(
        "# kcat\nmetadata.broker.list = 127.0.0.1:1\nauto.offset.reset=earliest\nsecurity.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanisms=PLAIN\nsasl.username=alice\nsasl.password=back\\slash#1\n"
    )
    assert file_settings(kcat, is_of_kcat=True)["sasl.password"] == "back\\slash#1"
    read = ["read", "kafka:///orders", "--timeout", "0.3"]
    assert main([*read, "--config", str(java)]) == 3
    error = capsys.readouterr().err
    assert "unknown settings are ignored: schema.registry.url" in error
    assert "127.0.0.1:1" in error
    for variable, file in {"LETTERHEAD_CONFIG": java, "KCAT_CONFIG": kcat}.items():
        with monkeypatch.context() as environment:
            environment.setenv(variable, str(file))
            assert main(read) == 3
            error = capsys.readouterr().err
            assert "127.0.0.1:1" in error
            assert "hunter2" not in error
    kcat.write_text("metadata.broker.list\n")
    monkeypatch.setenv("KCAT_CONFIG", str(kcat))
    assert main(read) == 2
    assert "kcat.conf, line 1: there is no = after the name of a setting" in capsys.readouterr().err


def test_file_and_options_name_brokers(tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text("metadata.broker.list=a:1\nsecurity.protocol=SSL\nclient.id=one\n")
    assert brokers() is None
    assert reader_settings(None, brokers(config=file)).servers == "a:1"
    values = brokers(bootstrap_server="b:2", config=file, settings=["client.id=two", "ssl.key.password=a=b"])
    assert values == {
        "bootstrap.servers": "b:2", "security.protocol": "SSL", "client.id": "two", "ssl.key.password": "a=b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-X", "hunter2"], "-X needs NAME=VALUE, as in security.protocol=SSL"),
        (["-X", "client.id=hunter2"], "no brokers are named: pass --bootstrap-server, or set bootstrap.servers"),
        (["--config", "/nowhere"], "the settings cannot be read from /nowhere: No such file or directory"),
        (["--bootstrap-server", "a:1", "-X", "sasl.pasword=hunter2"], "unknown setting 'sasl.pasword': did you mean"),
        (["--bootstrap-server", "a:1", "--changelog", "x"], "--changelog and brokers exclude each other"),
    ],
)
def test_options_without_brokers_are_wrong_usage(capsys, options, message):
    store = Path(__file__).parents[1] / "samples" / "streams-state-0_0"
    assert main(["state", "ls", str(store), *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "hunter2" not in captured.out + captured.err
