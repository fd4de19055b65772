/** Reads a document of `services/` as a record of its `kind`, or returns its errors. */
import {
  type ConfigDocument,
  type ConfigurationError,
  didYouMean,
  errorsOf,
  type PlacedFault,
  typeName,
  valueAt,
} from '../errors.ts';
import { mayHoldSecret, quote } from '../quote.ts';
import { type AuthService, readAuthService } from './auth-service.ts';
import type { RecordReader } from './kind.ts';
import { type Mapping, readMapping } from './mapping.ts';
import { type RateLimitService, readRateLimitService } from './rate-limit-service.ts';
import { type JwtProvider, readJwtProvider } from './tokens/jwt-provider.ts';
import { readVersion, type Version } from './version.ts';

export type GatewayRecord = Mapping | AuthService | JwtProvider | RateLimitService | Version;

type Reader = RecordReader<GatewayRecord>;

/** By kind. */
export const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['Mapping', readMapping],
  ['AuthService', readAuthService],
  ['JwtProvider', readJwtProvider],
  ['RateLimitService', readRateLimitService],
  ['Version', readVersion],
]);

const kindNames = [...Array.from(readers.keys(), String), 'Service'];

/** Records by kind. */
export interface RecordLists {
  readonly mappings: readonly Mapping[];
  readonly authServices: readonly AuthService[];
  readonly jwtProviders: readonly JwtProvider[];
  readonly rateLimitServices: readonly RateLimitService[];
  /** Each has a different prefix. */
  readonly versions: readonly Version[];
}

export function recordLists(records: readonly GatewayRecord[]): RecordLists {
  return {
    mappings: records.filter((record) => record.kind === 'Mapping'),
    authServices: records.filter((record) => record.kind === 'AuthService'),
    jwtProviders: records.filter((record) => record.kind === 'JwtProvider'),
    rateLimitServices: records.filter((record) => record.kind === 'RateLimitService'),
    versions: records.filter((record) => record.kind === 'Version'),
  };
}

export type RecordResult =
  | { readonly ok: true; readonly record: GatewayRecord }
  | { readonly ok: false; readonly errors: readonly ConfigurationError[] };

/** Reads one record. Each of its faults becomes a separate error with its own line. */
export function readRecord(document: ConfigDocument): RecordResult {
  const { value } = document;
  if (typeName(value) !== 'a map') return rejected(document, [notARecord(value)]);
  const kind = valueAt(value, ['kind']);
  const read = readers.get(typeof kind === 'string' ? kind : '');
  if (read === undefined) return rejected(document, [isDomain(value) ? limitsElsewhere : unknownKind(kind)]);
  const result = read(value, { file: document.file, line: document.lineAt([]) });
  const faults = [...(document.faults ?? []), ...(result.ok ? unusableNames(value) : result.faults)];
  return result.ok && faults.length === 0 ? result : rejected(document, faults);
}

/** JavaScript has a use of its own for this name, so that a condition on a header with it would be left out. */
function unusableNames(value: unknown, path: readonly PropertyKey[] = []): readonly PlacedFault[] {
  if (typeof value !== 'object' || value === null) return [];
  const message = '__proto__ is not a name that can be used';
  if (Object.hasOwn(value, '__proto__'))
    return [{ path: [...path, '__proto__'], message, remedy: 'Choose another name.' }];
  return Object.entries(value).flatMap(([name, inner]) => unusableNames(inner, [...path, name]));
}

/** Reports whether the value is meant for `ratelimit/`. */
function isDomain(value: unknown): boolean {
  return valueAt(value, ['kind']) === undefined && valueAt(value, ['domain']) !== undefined;
}

const limitsElsewhere: PlacedFault = {
  path: [],
  message: 'this is a domain of limits, not a record',
  remedy: 'Move it to a file in ratelimit/.',
};

/** Returns the name that errors show, such as `Mapping orders`, or as much of it as the value has. */
function displayName(value: unknown): string | undefined {
  const parts = [valueAt(value, ['kind']), valueAt(value, ['name']) ?? valueAt(value, ['metadata', 'name'])];
  return parts.filter((part) => typeof part === 'string' && part !== '' && !mayHoldSecret(part)).join(' ') || undefined;
}

function rejected(document: ConfigDocument, faults: readonly PlacedFault[]): RecordResult {
  return { ok: false, errors: errorsOf(document, faults, displayName(document.value)) };
}

function notARecord(value: unknown): PlacedFault {
  return {
    path: [],
    message: `this is ${typeName(value)}, not a record`,
    remedy: 'A record is a map with apiVersion, kind and name. Separate records with ---.',
  };
}

function unknownKind(kind: unknown): PlacedFault {
  const remedy = `The supported kinds are ${kindNames.join(', ')}.`;
  if (kind === undefined) return { path: [], message: 'kind is missing', remedy };
  const message =
    typeof kind === 'string'
      ? `kind ${quote(kind)} is not supported${didYouMean(kind, kindNames)}`
      : `kind must be a string, not ${typeName(kind)}`;
  return { path: ['kind'], message, remedy };
}
