"""The part of JSON Schema draft 7 that docs/report-schema.json uses. In: a schema and a value. Out: a list of breaches with their paths. Standard library only."""
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_kind(value, kind):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def breaches(schema, value, root=None, path="$"):
    root = root or schema
    if "$ref" in schema:
        return breaches(root["definitions"][schema["$ref"].rsplit("/", 1)[1]], value, root, path)
    found = []
    if "anyOf" in schema and all(breaches(option, value, root, path) for option in schema["anyOf"]):
        found.append(f"{path}: fits none of the forms")
    kinds = schema.get("type", [])
    if kinds and not any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{path}: {value!r} is no {kinds}"]
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is not allowed")
    if "minimum" in schema and value < schema["minimum"] or "maximum" in schema and value > schema["maximum"]:
        found.append(f"{path}: {value!r} is out of range")
    if isinstance(value, dict):
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in properties:
                found += breaches(properties[key], item, root, f"{path}.{key}")
            elif extra is False:
                found.append(f"{path}: {key} is not in the schema")
            elif isinstance(extra, dict):
                found += breaches(extra, item, root, f"{path}.{key}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += breaches(schema["items"], item, root, f"{path}[{number}]")
    return found
