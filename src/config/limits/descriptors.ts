/** Limit domains with nested descriptors, as envoyproxy/ratelimit writes them. */
import * as z from 'zod';
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  type Fault,
  faultsOf,
  type PlacedFault,
  type Source,
  valueAt,
} from '../errors.ts';
import { reportFault, strict } from '../fields/field.ts';
import { notEmpty } from '../fields/values.ts';
import { mayHoldSecret, quote } from '../quote.ts';
import { type Limit, leftOut, limitsSchema } from './limit.ts';

export interface LimitDomain {
  readonly domain: string;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

/** One level of a limits file; `value` undefined matches any value of `key`, and `*` in it any text. */
export interface LimitDescriptor {
  readonly key: string;
  readonly value: string | undefined;
  /** All of them count; without any, requests pass. */
  readonly limits: readonly Limit[];
  /** One counter for all values that match the wildcard. */
  readonly shareThreshold: boolean;
  /** Metrics are split by value, all values of the request. */
  readonly detailedMetric: boolean;
  /** Metrics of the limits here and below are split by the value of this key. */
  readonly valueToMetric: boolean;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

export type LimitsResult =
  | { readonly ok: true; readonly domain: LimitDomain }
  | { readonly ok: false; readonly errors: readonly ConfigurationError[] };

/** One document is one domain. */
export function readLimits(document: ConfigDocument): LimitsResult {
  const read = domainSchema.safeParse(document.value);
  const faults = read.success
    ? repeatedDescriptors(read.data.descriptors, ['descriptors'], document)
    : faultsOf(read.error, document.value, examples);
  if (!read.success || faults.length > 0)
    return { ok: false, errors: errorsOf(document, faults, domainName(document.value)) };
  const { domain, descriptors } = read.data;
  const place = (path: Path) => ({ file: document.file, line: document.lineAt(path) });
  return {
    ok: true,
    domain: { domain, descriptors: nested(descriptors, ['descriptors'], place), source: place([]) },
  };
}

type Path = readonly (string | number)[];

interface DescriptorFields {
  readonly key: string;
  readonly value?: string | null | undefined;
  readonly rate_limit?: readonly Limit[] | undefined;
  readonly shadow_mode?: boolean | undefined;
  readonly quota_mode?: boolean | undefined;
  readonly detailed_metric?: boolean | undefined;
  readonly value_to_metric?: boolean | undefined;
  readonly share_threshold?: boolean | undefined;
  readonly descriptors?: readonly DescriptorFields[] | undefined;
}

/** What envoyproxy/ratelimit reads as text, numbers and truth values as they are spelled. */
export const limitTextKeys: readonly string[] = Object.freeze(['domain', 'key', 'value', 'name']);

/** A program may pass a number or a truth value; of a file it is text already. */
const spelled = z.preprocess(
  (value) => (['number', 'boolean'].includes(typeof value) ? String(value) : value),
  z.string(),
);

const descriptorSchema: z.ZodType<DescriptorFields> = strict({
  key: notEmpty('Write the name of a label, for example key: x-travel-user'),
  value: spelled.nullish(),
  rate_limit: leftOut(limitsSchema),
  shadow_mode: leftOut(z.boolean()),
  quota_mode: leftOut(z.boolean()),
  detailed_metric: leftOut(z.boolean()),
  value_to_metric: leftOut(z.boolean()),
  share_threshold: leftOut(z.boolean()),
  descriptors: leftOut(z.lazy(() => z.array(descriptorSchema))),
  // For the answers of envoyproxy/ratelimit, which can carry it as dynamic metadata; ours do not.
  metadata: leftOut(z.record(z.string(), z.unknown())),
}).check((payload) => reportFault(payload, ['share_threshold'], shareFault(payload.value)));

const domainSchema = strict({
  domain: notEmpty('For example: domain: gateway'),
  descriptors: leftOut(z.array(descriptorSchema)).transform((descriptors) => descriptors ?? []),
});

const examples = {
  domain: 'gateway',
  descriptors: '[{ key: x-travel-user, rate_limit: { unit: minute, requests_per_unit: 6000 } }]',
  key: 'x-travel-user',
  value: '"demo"',
  shadow_mode: 'true',
  quota_mode: 'true',
  detailed_metric: 'true',
  value_to_metric: 'true',
  metadata: '{ team: travel }',
  share_threshold: 'true',
  rate_limit: '{ unit: minute, requests_per_unit: 10 }',
  unit: 'minute',
  unit_multiplier: '5',
  requests_per_unit: '10',
  unlimited: 'true',
  name: '"per user"',
  replaces: '[{ name: per user }]',
  algorithm: 'token_bucket',
  burst: '20',
} as const;

function shareFault({ value, share_threshold: shares }: DescriptorFields): Fault | undefined {
  if (!shares || value?.includes('*')) return undefined;
  return {
    message: 'needs a value with a "*" in it',
    remedy: 'Write value: "a*" to count all values that begin with an "a" together, or remove share_threshold.',
  };
}

function nested(
  fields: readonly DescriptorFields[],
  path: Path,
  place: (path: Path) => Source,
): readonly LimitDescriptor[] {
  return fields.map((descriptor, index) => ({
    key: descriptor.key,
    value: descriptor.value || undefined,
    limits: limitsOf(descriptor),
    shareThreshold: descriptor.share_threshold ?? false,
    detailedMetric: descriptor.detailed_metric ?? false,
    valueToMetric: descriptor.value_to_metric ?? false,
    descriptors: nested(descriptor.descriptors ?? [], [...path, index, 'descriptors'], place),
    source: place([...path, index]),
  }));
}

function limitsOf({ rate_limit: limits = [], shadow_mode, quota_mode }: DescriptorFields): readonly Limit[] {
  return limits.map((limit) => ({ ...limit, shadowMode: shadow_mode ?? false, quotaMode: quota_mode ?? false }));
}

/**
 * Compares key and value separately: joined by an underscore, as in envoyproxy/ratelimit, `a_b` + `c` and `a` + `b_c`
 * would clash.
 */
function repeatedDescriptors(
  fields: readonly DescriptorFields[],
  path: Path,
  document: ConfigDocument,
): readonly PlacedFault[] {
  const lines = new Map<string, number>();
  return fields.flatMap(({ key, value: given, descriptors = [] }, index) => {
    const value = given || undefined;
    const here = [...path, index];
    const inner = repeatedDescriptors(descriptors, [...here, 'descriptors'], document);
    const identity = JSON.stringify([key, value]);
    const line = lines.get(identity);
    if (line === undefined) lines.set(identity, document.lineAt(here));
    return line === undefined ? inner : [repeated(here, key, value, line), ...inner];
  });
}

/**
 * The key of Envoy's labels whose value is a word of the configuration; it names a kind of request, and is no secret.
 */
export const genericKey = 'generic_key';

/** An entry of a descriptor for people who may not read the files: `user`, or `user=…` for one user. */
export function shownEntry(key: string, value: string | undefined): string {
  if (value === undefined) return key;
  return `${key}=${key === genericKey ? value : '…'}`;
}

function repeated(path: Path, key: string, value: string | undefined, line: number): PlacedFault {
  const which = `the key ${quote(key)} ${value === undefined ? 'without a value' : 'with this value'}`;
  return { path, message: `${which} is already on line ${line}`, remedy: 'Keep one of the two.' };
}

function domainName(value: unknown): string | undefined {
  const domain = valueAt(value, ['domain']);
  return typeof domain === 'string' && domain !== '' && !mayHoldSecret(domain) ? `domain ${domain}` : undefined;
}
