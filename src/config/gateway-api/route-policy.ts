/** `RoutePolicy`: the fields of a Mapping that a route of the Gateway API cannot say, which a filter attaches to a rule. */
import type { ConfigDocument, ConfigurationError, PlacedFault } from '../errors.ts';
import { excessOf } from '../objects/bounds.ts';
import { type ClusterObject, nameOfObject } from '../objects/object.ts';
import { isOwnKind } from '../objects/own-kinds.ts';
import { mappingFields } from '../records/mapping-fields.ts';
import { readRecord } from '../records/record.ts';

export const routePolicyKind = 'RoutePolicy';

export function isPolicy(object: ClusterObject): boolean {
  return object.kind === routePolicyKind && isOwnKind(object);
}

/** Who may come, how often, and how the backend is called. The route itself says the rest. */
const policyKeys = [
  'allowAddresses',
  'denyAddresses',
  'connectTimeoutMs',
  'idleTimeoutMs',
  'idleConnectionMs',
  'connectionLifetimeMs',
  'maxRequestBytes',
  'retryPolicy',
  'circuitBreakers',
  'healthCheck',
  'outlierDetection',
  'loadBalancer',
  'sticky',
  'preserveHeaderCase',
  'keepRequestHeaders',
  'compress',
  'compressWithCookies',
  'allowUpgrade',
  'pathReadings',
  'labels',
  'bypassAuth',
  'authService',
  'authContextExtensions',
  'requireClaims',
] as const satisfies readonly (keyof typeof mappingFields)[];

export const policyFieldNames: ReadonlySet<string> = new Set(policyKeys.map((key) => mappingFields[key].name));

/** What only a Mapping has. */
const foreignNames: ReadonlySet<string> = new Set([
  ...['apiVersion', 'kind', 'name'],
  ...Object.values(mappingFields).flatMap(({ name }) => (policyFieldNames.has(name) ? [] : name)),
]);

/** Those that a redirect may have, too. */
const namesForRedirects: ReadonlySet<string> = new Set(
  policyKeys.flatMap((key) => {
    const { allowedWithRedirect = true, name }: { readonly allowedWithRedirect?: boolean; readonly name: string } =
      mappingFields[key];
    return allowedWithRedirect ? [name] : [];
  }),
);

export interface ReadPolicy {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly errors: readonly ConfigurationError[];
}

export function readPolicy(object: ClusterObject): ReadPolicy {
  const fields = Object((object.value as { readonly spec?: unknown }).spec) as Readonly<Record<string, unknown>>;
  const file = nameOfObject(object);
  const record = `${routePolicyKind} ${object.name}`;
  const excess = excessOf(fields);
  if (excess !== undefined) {
    const message = `spec ${excess}`;
    return { fields: {}, errors: [{ source: { file, line: 0 }, record, message, remedy: 'Make it smaller.' }] };
  }
  const foreign = Object.keys(fields).filter((name) => foreignNames.has(name));
  const document: ConfigDocument = {
    value: { apiVersion: 'gateway/v1', kind: 'Mapping', name: object.name, prefix: '/', service: 'orders', ...fields },
    file,
    lineAt: () => 0,
    placeWithin: () => ({ file, lineOf: () => 0 }),
    faults: foreign.map(foreignFault),
  };
  const result = readRecord(document);
  return { fields, errors: result.ok ? [] : result.errors.map((error) => ({ ...error, record })) };
}

function foreignFault(name: string): PlacedFault {
  const remedy = 'Remove it: the route itself says such things. config/gateway-api.md lists the fields of a policy.';
  return { path: [name], message: `${name} is not a field of a ${routePolicyKind}`, remedy };
}

/** Leaves out what only applies when a service is called. */
export function policyOfRedirect(fields: ReadPolicy['fields']): ReadPolicy['fields'] {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => namesForRedirects.has(name)));
}
