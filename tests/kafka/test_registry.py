"""Schemas of a real registry."""

from __future__ import annotations

import json
import pickle

import pytest

from letterhead.schemas import RegisteredSchema, Registry
from registry import Apicurio

pytestmark = pytest.mark.broker

CITY = {"type": "record", "name": "City", "namespace": "a", "fields": [{"name": "name", "type": "string"}]}
PERSON = {"type": "record", "name": "Person", "namespace": "a", "fields": [{"name": "home", "type": "a.City"}]}


def test_a_schema_is_fetched_by_id_with_the_schemas_that_it_refers_to(apicurio: Apicurio) -> None:
    apicurio.register("city", CITY)
    number = apicurio.register("person", PERSON, references={"city": "a.City"})
    person = Registry(apicurio.url).schema(number)
    assert person is not None
    assert (person.type, json.loads(person.text)) == ("AVRO", PERSON)
    [(name, city)] = person.references.items()
    assert (name, json.loads(city.text), city.references) == ("a.City", CITY, {})


def test_the_latest_schema_of_a_subject_is_fetched_anew(apicurio: Apicurio) -> None:
    registry = Registry(apicurio.url)
    assert registry.latest("evolving") is None
    apicurio.register("evolving", '"int"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"int"', {})
    apicurio.register("evolving", '"long"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"long"', {})


def test_other_types_of_schemas_are_named(apicurio: Apicurio) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    number = apicurio.register("document", schema, kind="JSON")
    assert Registry(apicurio.url).schema(number) == RegisteredSchema("JSON", json.dumps(schema), {})


def test_an_unknown_id_is_none(apicurio: Apicurio) -> None:
    assert Registry(apicurio.url).schema(987_654) is None
    assert Registry(apicurio.url).schema("89791762-2336-4186-9674-299b90a802e2") is None


def test_a_registry_is_reached_over_tls(apicurio: Apicurio) -> None:
    number = apicurio.register("city", CITY)
    settings = {"ssl.ca.location": str(apicurio.authority)}
    trusting = pickle.loads(pickle.dumps(Registry(apicurio.tls_url, settings)))
    assert trusting.schema(number) == Registry(apicurio.url).schema(number)
    with pytest.raises(ConnectionError, match=r"not trusted.*ssl\.ca\.location"):
        Registry(apicurio.tls_url).schema(number)
