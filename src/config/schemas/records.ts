/** The JSON Schema of a document in `services/`: a record by its kind, a Kubernetes manifest or a record of Ambassador. */
import { type JsonSchema, jsonSchemaOf } from '../fields/json-schema.ts';
import { annotationKey } from '../manifest.ts';
import { readers } from '../records/record.ts';
import { gatewaySettings } from '../settings/gateway-settings.ts';

/** Returns the schema of each kind. */
export function kindSchemas(): ReadonlyMap<string, JsonSchema> {
  return new Map(Array.from(readers, ([kind, { schema }]) => [kind, ofKind(kind, jsonSchemaOf(schema))]));
}

function ofKind(kind: string, schema: JsonSchema): JsonSchema {
  return { ...schema, properties: { ...Object(schema['properties']), kind: { const: kind } } };
}

export function recordsSchema(): JsonSchema {
  const definitions = { ...Object.fromEntries(kindSchemas()), Service: service, List: list, other };
  return { anyOf: Object.keys(definitions).map((name) => ({ $ref: `#/definitions/${name}` })), definitions };
}

const text = { type: 'string' };

const annotation = annotationKey(gatewaySettings.gatewayDomain.default);

/** A Service of Kubernetes, whose annotation contains records as text, which no editor checks. */
const service = {
  type: 'object',
  description: `A Service of Kubernetes, whose annotation ${annotation} contains records.`,
  properties: {
    apiVersion: { const: 'v1' },
    kind: { const: 'Service' },
    metadata: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1 },
        annotations: { type: 'object', properties: { [annotation]: text } },
      },
      required: ['name'],
    },
  },
  required: ['apiVersion', 'kind', 'metadata'],
};

/** What `kubectl get -o yaml` prints for several resources. */
const list = {
  type: 'object',
  properties: { kind: { type: 'string', pattern: 'List$' }, items: { type: ['array', 'null'] } },
  required: ['kind', 'items'],
};

/** Other objects, such as those that are read with GATEWAY_DOMAIN=getambassador.io. */
const other = {
  type: 'object',
  properties: {
    apiVersion: { type: 'string', not: { pattern: '^(?:gateway/.*|v1)$' } },
    kind: { type: 'string', not: { pattern: 'List$|^Service$' } },
  },
  required: ['apiVersion', 'kind'],
};
