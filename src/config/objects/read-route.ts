/** Reads the rules of a route of the Gateway API, which were resolved before, as Mappings. */
import { type ConfigDocument, type ConfigurationError, fileError } from '../errors.ts';
import { rewriteFault } from '../fields/paths.ts';
import { documentsOf, type RouteDocument, type RouteHost } from '../gateway-api/routes/documents.ts';
import { rulesOf } from '../gateway-api/routes/rules.ts';
import type { RedirectSpec } from '../gateway-api/specs.ts';
import { callsService, type Mapping } from '../records/mapping.ts';
import { type RecordResult, readRecord } from '../records/record.ts';
import type { Redirect } from '../records/rewrite.ts';
import { type Guards, noGuards } from './guards.ts';
import { type ClusterObject, nameOfObject } from './object.ts';
import { refusedMapping } from './refused-mapping.ts';

export interface RoutePart {
  readonly records: readonly Mapping[];
  readonly mappingCount: number;
  readonly errors: readonly ConfigurationError[];
  readonly guards: () => Guards;
}

export function readRoute(object: ClusterObject): RoutePart {
  const { isPartial, unsupported, mappingCount } = rulesOf(object);
  const file = nameOfObject(object);
  const documents = documentsOf(object);
  const hostOf = createHosts(file);
  const read = documents.map((document) => readOne(document, file, hostOf));
  const errors = [
    ...unsupported.map((message) => fileError(file, message, 'Remove it.')),
    ...read.flatMap((one) => one.errors),
  ];
  let guards: Guards | undefined;
  return {
    records: read.flatMap(({ records }) => records),
    mappingCount,
    errors: withoutRepetitions(errors),
    guards() {
      guards ??= guardsOf(object, isPartial, hostOf);
      return guards;
    },
  };
}

type HostOf = (fields: RouteHost['fields']) => RecordResult;

/** Reads each host once: a route may have thousands of Mappings for the same few. */
function createHosts(file: string): HostOf {
  const known = new Map<string, RecordResult>();
  return function hostOf(fields) {
    const key = JSON.stringify(fields);
    const result =
      known.get(key) ?? readRecord(configDocument({ name: 'host', prefix: '/', service: 'orders', ...fields }, file));
    known.set(key, result);
    return result;
  };
}

function readOne(document: RouteDocument, file: string, hostOf: HostOf) {
  const result = readRecord(configDocument(document.fields, file));
  const results = [result, ...document.hosts.map((host) => hostOf(host.fields))];
  const errors = results.flatMap((one) => (one.ok ? [] : one.errors));
  const found = [...errors, ...pathErrors(document, file)].map((one) => ({
    ...one,
    message: `${document.place}: ${one.message}`,
  }));
  const record = found.length === 0 && result.ok ? result.record : undefined;
  return { records: record?.kind === 'Mapping' ? withHosts(record, document, hostOf) : [], errors: found };
}

function pathErrors({ hosts: [first] }: RouteDocument, file: string): readonly ConfigurationError[] {
  const fault = rewriteFault(first?.gatewayRoute.fullPath ?? '');
  return fault === undefined ? [] : [fileError(file, `replaceFullPath ${fault.message}`, fault.remedy)];
}

function configDocument(fields: RouteDocument['fields'], file: string): ConfigDocument {
  return {
    value: { apiVersion: 'gateway/v1', kind: 'Mapping', ...fields },
    file,
    lineAt: () => 0,
    placeWithin: () => ({ file, lineOf: () => 0 }),
  };
}

/** Returns the record for each host, with what the fields of a record cannot say. Leaves out hosts that cannot be read. */
function withHosts(record: Mapping, document: RouteDocument, hostOf: HostOf): readonly Mapping[] {
  const { weight, hasFinalSlash, allowsCredentials, hosts } = document;
  return hosts.flatMap(({ fields, gatewayRoute, redirect }) => {
    const result = hostOf(fields);
    if (!result.ok || result.record.kind !== 'Mapping') return [];
    const mapping = {
      ...record,
      source: { ...record.source },
      host: result.record.host,
      prefix: hasFinalSlash ? `${record.prefix}/` : record.prefix,
      gatewayRoute,
      weight,
      cors: record.cors && { ...record.cors, credentials: allowsCredentials },
      redirect: redirect && record.redirect && redirectOf(record.redirect, redirect),
    };
    return callsService(mapping) ? mapping : { ...mapping, service: '' };
  });
}

function redirectOf(record: Redirect, { scheme, hostname, port }: RedirectSpec): Redirect {
  return { ...record, scheme, host: hostname, port };
}

/** A match, host or backend has the same errors as the next one. */
function withoutRepetitions(errors: readonly ConfigurationError[]): readonly ConfigurationError[] {
  return [...new Map(errors.map((error) => [error.message, error])).values()];
}

/** Requests that a refused route matches get 503, unless the match itself cannot be read. */
function guardsOf(object: ClusterObject, isPartial: boolean, hostOf: HostOf): Guards {
  const file = nameOfObject(object);
  const read = documentsOf(object).map((document) => {
    const mapping = refusedMapping(configDocument(document.fields, file), object);
    const mappings = typeof mapping === 'object' ? withHosts(mapping, document, hostOf) : [];
    return { mappings, isUnknown: mapping === 'unknown' || !document.hosts.every(({ fields }) => hostOf(fields).ok) };
  });
  return {
    ...noGuards,
    mappings: read.flatMap(({ mappings }) => mappings),
    hasUnknownMatch: isPartial || read.some(({ isUnknown }) => isUnknown),
  };
}
