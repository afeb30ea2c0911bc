"""What may be chosen as JSON Schema, for programs that start servers over the Hub's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .choices import FIELDS, Choice, Field, Offer, Profile


def options_schema(offer: Offer) -> dict[str, Any]:
    """Return the schema of the options that `parse_options` accepts of somebody; empty: there are none."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The options of a notebook server",
        "anyOf": [_profile(profile, is_default=profile is offer.default) for profile in offer.profiles],
    }


def _profile(profile: Profile, *, is_default: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {"profile": {"const": profile.slug}}
    properties |= {field.name: _field(field, profile) for field in FIELDS}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({} if is_default else {"required": ["profile"]}),
    }
    if str(profile.name):
        schema |= {"title": str(profile.name), "description": str(profile.description)}
    if not profile.choices["image"].allows(profile.defaults.image) or not profile.defaults.image:
        schema["required"] = [*schema.get("required", ()), "image"]
    if profile.choices["gpu_type"].allows(""):
        schema |= _a_type_needs_a_number(profile)
    return schema


def _field(field: Field, profile: Profile) -> dict[str, Any]:
    choice = profile.choices[field.name]
    schema = _number(choice) if field.is_number else _text(field, choice)
    return {**schema, "description": str(field.label), "default": getattr(profile.defaults, field.name)}


def _number(choice: Choice) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": choice.least}
    if choice.most:
        schema["maximum"] = choice.most
    if choice.values is not None:
        schema["enum"] = list(choice.values)
    return schema


def _text(field: Field, choice: Choice) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": 255}
    if choice.values is not None:
        # an empty virtual cluster is the default one
        listed = [*choice.values, *([""] if field.name == "virtual_cluster" else [])]
        schema["anyOf"] = [{"enum": listed}, *({"pattern": f"^(?:{one})$"} for one in choice.patterns)]
    if field.name == "image":
        schema["minLength"] = 1
    return schema


def _a_type_needs_a_number(profile: Profile) -> Mapping[str, Any]:
    some: dict[str, Any] = {"properties": {"gpus": {"minimum": 1}}}
    if not profile.defaults.gpus:
        some["required"] = ["gpus"]
    return {"if": {"properties": {"gpu_type": {"minLength": 1}}, "required": ["gpu_type"]}, "then": some}
