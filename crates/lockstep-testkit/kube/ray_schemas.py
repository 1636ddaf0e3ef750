"""The schemas of KubeRay's kinds without their words, and manifests held against them.

usage: ray_schemas.py make CRDS               prints the schemas of RayJob and RayCluster, from the operator's CRDs
       ray_schemas.py check SCHEMAS MANIFESTS  says what is wrong with manifests; the exit status is 1 if anything is

A CRD repeats what a pod is wherever there is one, and explains every key: of 2.2 MB, 25 KB are left. Pods are held
against the schema that Kubernetes itself has of them, and keys that a schema does not know are wrong, as with
`fieldValidation=Strict`. What CRDs say in CEL is not checked here. Needs kubernetes-validate.
"""

import json
import os
import sys

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.37.0"
POD = {"pod": True}
DROPPED = {"description", "default", "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
           "x-kubernetes-map-type"}


def shortened(schema):
    """A schema without its words, and with a mark in place of every pod."""
    if isinstance(schema, list):
        return [shortened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties", {})
    if set(properties) == {"metadata", "spec"} and "containers" in properties["spec"].get("properties", {}):
        return POD
    short = {key: shortened(value) for key, value in schema.items() if key not in DROPPED | {"properties"}}
    if properties:
        short["properties"] = {key: shortened(value) for key, value in properties.items()}
    return short


def make(crds):
    kinds = {}
    for kind in ["RayCluster", "RayJob"]:
        with open(os.path.join(crds, f"ray.io_{kind.lower()}s.yaml")) as file:
            crd = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        version = next(version for version in crd["spec"]["versions"] if version["name"] == "v1")
        kinds[kind] = shortened(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    inner = kinds["RayJob"]["properties"]
    if inner["rayClusterSpec"] == kinds["RayCluster"]:
        inner["rayClusterSpec"] = {"kind": "RayCluster"}
    return kinds


def strict(schema, kinds):
    """The schema as a validator reads it, in which unknown keys are wrong."""
    if isinstance(schema, list):
        return [strict(part, kinds) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == POD:
        return {"type": "object"}
    if set(schema) == {"kind"}:
        return strict(kinds[schema["kind"]], kinds)
    full = {key: strict(value, kinds) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        full["properties"] = {key: strict(value, kinds) for key, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            full["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        full.pop("type", None)
    return full


def pods(schema, value, kinds, path):
    """Every pod in a value, by its place."""
    if schema == POD:
        yield path, value
    elif isinstance(schema, dict) and set(schema) == {"kind"}:
        yield from pods(kinds[schema["kind"]], value, kinds, path)
    elif isinstance(value, dict):
        for key, part in schema.get("properties", {}).items():
            if key in value:
                yield from pods(part, value[key], kinds, f"{path}.{key}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from pods(schema.get("items", {}), part, kinds, f"{path}[{number}]")


def wrong(manifest, kinds):
    """What is wrong with a manifest, in words."""
    kind = manifest["kind"]
    if manifest["apiVersion"] != "ray.io/v1":
        try:
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{kind}: {'.'.join(map(str, error.path))}: {error.message}"
        return
    schema = kinds[kind]
    for error in jsonschema.Draft7Validator(strict(schema, kinds)).iter_errors(manifest["spec"]):
        yield f"{kind}.spec.{'.'.join(map(str, error.path))}: {error.message}"
    found = list(pods(schema, manifest["spec"], kinds, f"{kind}.spec"))
    if not found:
        yield f"{kind}: it has no pods"
    for path, template in found:
        pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": template}
        try:
            kubernetes_validate.validate(pod, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{path}: {'.'.join(map(str, error.path))}: {error.message}"


def main():
    if sys.argv[1] == "make":
        print(json.dumps(make(sys.argv[2]), indent=1, sort_keys=True))
        return
    with open(sys.argv[2]) as file:
        kinds = json.load(file)
    with open(sys.argv[3]) as file:
        manifests = [manifest for manifest in yaml.safe_load_all(file) if manifest]
    found = [words for manifest in manifests for words in wrong(manifest, kinds)]
    print("\n".join(found) if found else f"{len(manifests)} manifests are as their schemas want them")
    sys.exit(1 if found else 0)


main()
