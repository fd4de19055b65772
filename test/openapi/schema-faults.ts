/** Checks values against the schemas of a document, and rejects members that are not documented. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

export type Schema = { readonly [keyword: string]: unknown };

/** Returns the ways in which a value does not match the schema. */
export type FindFaults = (schema: Schema, value: unknown) => readonly string[];

/** `components` contains the schemas that others refer to. Unlike a client, this does not ignore unknown members. */
export function createFaultFinder(components: Schema): FindFaults {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  const schemas = Object.fromEntries(
    Object.entries(components['schemas'] as Schema).map(([name, schema]) => [name, closeMembers(schema as Schema)]),
  );
  const compiled = new Map<string, ReturnType<typeof ajv.compile>>();
  return function findFaults(schema, value) {
    const key = JSON.stringify(schema);
    const validate = compiled.get(key) ?? ajv.compile({ ...close(schema), components: { schemas } });
    compiled.set(key, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${instancePath} ${message} ${JSON.stringify(params)}`;
    });
  };
}

/** Restricts objects to the members of the schema, at any depth. */
function close(schema: Schema): Schema {
  const isObject = '$ref' in schema || 'allOf' in schema || 'anyOf' in schema || 'properties' in schema;
  return { ...closeMembers(schema), ...(isObject && { unevaluatedProperties: false }) };
}

/** Restricts nested objects, but not the schema itself, because it may be part of another one. */
function closeMembers(schema: Schema): Schema {
  const { properties, items, allOf } = schema;
  const closed = Object.entries((properties ?? {}) as Schema).map(([name, one]) => [name, close(one as Schema)]);
  return {
    ...schema,
    ...(properties !== undefined && { properties: Object.fromEntries(closed) }),
    ...(items !== undefined && { items: close(items as Schema) }),
    ...(Array.isArray(allOf) && { allOf: allOf.map((part: Schema) => closeMembers(part)) }),
  };
}
