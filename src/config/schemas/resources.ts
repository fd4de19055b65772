/** The CustomResourceDefinitions of frontdesk's kinds, whose schemas refuse at the API server what schemas can refuse. */
import { stringify } from 'yaml';
import type { JsonSchema } from '../fields/json-schema.ts';
import { policyFieldNames, routePolicyKind } from '../gateway-api/route-policy.ts';
import { ownGroup, ownVersion, pluralOf } from '../objects/own-kinds.ts';
import type { GatewayRecord } from '../records/record.ts';
import { kindSchemas } from './records.ts';
import { structural } from './structural.ts';

interface ResourceNames {
  readonly short: string;
  /** The fields that `kubectl get` shows. */
  readonly columns: readonly string[];
}

type ResourceKind = GatewayRecord['kind'] | typeof routePolicyKind;

const namesOf: Readonly<Record<ResourceKind, ResourceNames>> = {
  Mapping: { short: 'fdm', columns: ['prefix', 'service'] },
  AuthService: { short: 'fda', columns: ['auth_service'] },
  JwtProvider: { short: 'fdj', columns: ['issuer'] },
  RateLimitService: { short: 'fdr', columns: ['service', 'domain'] },
  Version: { short: 'fdv', columns: ['prefix', 'deprecation', 'sunset'] },
  RoutePolicy: { short: 'fdp', columns: ['auth_service'] },
};

/** Formats them as YAML for `kubectl apply -f -`. */
export function formatResourceDefinitions(): string {
  return resourceDefinitions()
    .map((definition) => stringify(definition, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join('---\n');
}

function resourceDefinitions(): readonly object[] {
  const schemas = kindSchemas();
  return Array.from([...schemas, [routePolicyKind, policySchema(schemas)] as const], ([kind, schema]) => {
    const plural = pluralOf(kind);
    const { short, columns } = namesOf[kind as ResourceKind];
    const { apiVersion: _apiVersion, kind: _kind, name: _name, ...properties } = Object(schema['properties']);
    const required = [schema['required']].flat().filter((name) => Object.hasOwn(properties, String(name)));
    return {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${ownGroup}` },
      spec: {
        group: ownGroup,
        scope: 'Namespaced',
        names: {
          kind,
          listKind: `${kind}List`,
          plural,
          singular: kind.toLowerCase(),
          shortNames: [short],
          categories: ['frontdesk'],
        },
        versions: [
          {
            name: ownVersion,
            served: true,
            storage: true,
            subresources: { status: {} },
            additionalPrinterColumns: columnsOf(columns),
            schema: { openAPIV3Schema: resourceSchema(structural({ ...schema, properties, required })) },
          },
        ],
      },
    };
  });
}

/** Some of the fields of a Mapping. What two of them exclude is checked when it is read. */
function policySchema(schemas: ReturnType<typeof kindSchemas>): JsonSchema {
  const fields: Readonly<Record<string, unknown>> = Object(schemas.get('Mapping')?.['properties']);
  const properties = Object.fromEntries(Object.entries(fields).filter(([name]) => policyFieldNames.has(name)));
  const description = 'What a route of the Gateway API cannot say of its rules.';
  return { type: 'object', description, properties, additionalProperties: false };
}

function columnsOf(fields: readonly string[]): readonly object[] {
  const accepted = '.status.conditions[?(@.type=="Accepted")]';
  return [
    ...fields.map((name) => ({ name: titleOf(name), type: 'string', jsonPath: `.spec.${name}` })),
    { name: 'Accepted', type: 'string', jsonPath: `${accepted}.status` },
    { name: 'Reason', type: 'string', jsonPath: `${accepted}.reason` },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ];
}

function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function resourceSchema(spec: object): object {
  const text = { type: 'string' };
  const properties = { apiVersion: text, kind: text, metadata: { type: 'object' }, spec, status };
  return { type: 'object', required: ['spec'], properties };
}

/** What frontdesk says about an object. The fields of a condition are those of `metav1.Condition`. */
const status = {
  type: 'object',
  description: 'What frontdesk says about it.',
  properties: {
    observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
        properties: {
          type: { type: 'string', maxLength: 316 },
          status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
          observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
          lastTransitionTime: { type: 'string', format: 'date-time' },
          reason: { type: 'string', minLength: 1, maxLength: 1024 },
          message: { type: 'string', maxLength: 32_768 },
        },
      },
    },
  },
};
