/** Gateway records: one plain value at a time into a Mapping, an AuthService, a RateLimitService or a Version, or what is wrong with it. */
import { authServiceKind } from './auth-service.ts';
import type {
  AuthService,
  ConfigurationError,
  HeldPrefix,
  Mapping,
  RateLimitService,
  Version,
} from './configuration.ts';
import { heldByValue } from './held.ts';
import { errorsOf, nameOf, type PlacedFault } from './issues.ts';
import { mappingKind } from './mapping.ts';
import { rateLimitServiceKind } from './rate-limit-service.ts';
import type { RecordKind } from './record-kind.ts';
import { didYouMean } from './suggest.ts';
import { versionKind } from './version.ts';
import type { PlacedDocument } from './yaml-documents.ts';

export type GatewayRecord = Mapping | AuthService | RateLimitService | Version;

const kinds: ReadonlyMap<unknown, RecordKind<GatewayRecord>> = new Map<unknown, RecordKind<GatewayRecord>>([
  ['Mapping', mappingKind],
  ['AuthService', authServiceKind],
  ['RateLimitService', rateLimitServiceKind],
  ['Version', versionKind],
]);

const kindNames = ['Mapping', 'AuthService', 'RateLimitService', 'Version', 'Service'];

type RecordResult =
  | { readonly ok: true; readonly record: GatewayRecord }
  | { readonly ok: false; readonly errors: readonly ConfigurationError[]; readonly held: readonly HeldPrefix[] };

/** Every fault of the record is an error of its own, on its own line. */
export function readRecord(document: PlacedDocument): RecordResult {
  const { value } = document;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refused(document, [notARecord(value)]);
  const kind: unknown = Reflect.get(value, 'kind');
  const parse = kinds.get(kind);
  if (parse === undefined) return refused(document, [unknownKind(kind)]);
  const parsed = parse(value, {
    file: document.file,
    line: document.lineAt([]),
  });
  return parsed.ok ? { ok: true, record: parsed.value } : refused(document, parsed.faults);
}

/** `Mapping hotel`, as far as the value says it. */
function recordName(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const parts: readonly unknown[] = [Reflect.get(value, 'kind'), Reflect.get(value, 'name')];
  return parts.filter((part) => typeof part === 'string' && part !== '').join(' ') || undefined;
}

function refused(document: PlacedDocument, faults: readonly PlacedFault[]): RecordResult {
  return {
    ok: false,
    errors: errorsOf(document, faults, recordName(document.value)),
    held: heldByValue(document.value, { file: document.file, line: document.lineAt([]) }),
  };
}

function notARecord(value: unknown): PlacedFault {
  return {
    path: [],
    message: `this is ${nameOf(value)}, not a record`,
    remedy: 'A record is a map with apiVersion, kind and name; put --- between records.',
  };
}

function unknownKind(kind: unknown): PlacedFault {
  const remedy = `The kinds read here are ${kindNames.join(', ')}.`;
  if (kind === undefined) return { path: [], message: 'kind is missing', remedy };
  if (typeof kind !== 'string')
    return {
      path: ['kind'],
      message: `kind must be a string, not ${nameOf(kind)}`,
      remedy,
    };
  return {
    path: ['kind'],
    message: `kind "${kind}" is not read here${didYouMean(kind, kindNames)}`,
    remedy,
  };
}
