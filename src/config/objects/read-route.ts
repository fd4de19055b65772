/** Reads the rules of a route of the Gateway API, which were resolved before, as Mappings. */
import { type ConfigDocument, type ConfigurationError, fileError } from '../errors.ts';
import { rewriteFault } from '../fields/paths.ts';
import { type RouteDocument, rulesOf } from '../gateway-api/routes/rules.ts';
import type { RedirectSpec } from '../gateway-api/specs.ts';
import { callsService, type Mapping } from '../records/mapping.ts';
import { readRecord } from '../records/record.ts';
import type { Redirect } from '../records/rewrite.ts';
import { type Guards, noGuards } from './guards.ts';
import { type ClusterObject, nameOfObject } from './object.ts';
import { refusedMapping } from './refused-mapping.ts';

export interface RoutePart {
  readonly records: readonly Mapping[];
  readonly errors: readonly ConfigurationError[];
  readonly guards: () => Guards;
}

export function readRoute(object: ClusterObject): RoutePart {
  const { documents, isPartial, unsupported } = rulesOf(object);
  const file = nameOfObject(object);
  const read = documents.map((document) => readOne(document, file));
  const errors = [
    ...unsupported.map((message) => fileError(file, message, 'Remove it.')),
    ...read.flatMap((one) => one.errors),
  ];
  let guards: Guards | undefined;
  return {
    records: read.flatMap(({ record }) => record ?? []),
    errors: withoutRepetitions(errors),
    guards() {
      guards ??= guardsOf(object, documents, isPartial);
      return guards;
    },
  };
}

function readOne(document: RouteDocument, file: string) {
  const result = readRecord(configDocument(document, file));
  const fault = rewriteFault(document.gatewayRoute.fullPath ?? '');
  const ofPath = fault === undefined ? [] : [fileError(file, `replaceFullPath ${fault.message}`, fault.remedy)];
  const found = [...(result.ok ? [] : result.errors), ...ofPath];
  const errors = found.map((one) => ({ ...one, message: `${document.place}: ${one.message}` }));
  const isMapping = errors.length === 0 && result.ok && result.record.kind === 'Mapping';
  return { record: isMapping ? withRoute(result.record, document) : undefined, errors };
}

function configDocument({ fields }: RouteDocument, file: string): ConfigDocument {
  return {
    value: { apiVersion: 'gateway/v1', kind: 'Mapping', ...fields },
    file,
    lineAt: () => 0,
    placeWithin: () => ({ file, lineOf: () => 0 }),
  };
}

/** Adds what the fields of a record cannot say. */
function withRoute(record: Mapping, document: RouteDocument): Mapping {
  const { gatewayRoute, weight, redirect, hasFinalSlash, allowsCredentials } = document;
  const mapping = {
    ...record,
    prefix: hasFinalSlash ? `${record.prefix}/` : record.prefix,
    gatewayRoute,
    weight,
    cors: record.cors && { ...record.cors, credentials: allowsCredentials },
    redirect: redirect && record.redirect && redirectOf(record.redirect, redirect),
  };
  return callsService(mapping) ? mapping : { ...mapping, service: '' };
}

function redirectOf(record: Redirect, { scheme, hostname, port }: RedirectSpec): Redirect {
  return { ...record, scheme, host: hostname, port };
}

/** A match, host or backend has the same errors as the next one. */
function withoutRepetitions(errors: readonly ConfigurationError[]): readonly ConfigurationError[] {
  return [...new Map(errors.map((error) => [error.message, error])).values()];
}

/** Requests that a refused route matches get 503, unless the match itself cannot be read. */
function guardsOf(object: ClusterObject, documents: readonly RouteDocument[], isPartial: boolean): Guards {
  const file = nameOfObject(object);
  const mappings = documents.map((document) => {
    const mapping = refusedMapping(configDocument(document, file), object);
    return typeof mapping === 'object' ? withRoute(mapping, { ...document, redirect: undefined }) : mapping;
  });
  return {
    ...noGuards,
    mappings: mappings.filter((one) => typeof one === 'object'),
    hasUnknownMatch: isPartial || mappings.includes('unknown'),
  };
}
