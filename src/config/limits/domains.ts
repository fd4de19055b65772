/** Limit domains with nested descriptors, in the format of envoyproxy/ratelimit. */
import * as z from 'zod';
import type { Source } from '#foundation';
import type { Limit } from '#ratelimit/limit';
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  type Fault,
  faultsOf,
  type PlacedFault,
  valueAt,
} from '../errors.ts';
import { type Data, reportFault, strict } from '../fields/field.ts';
import { described, isTrue } from '../fields/json-schema.ts';
import { notEmpty } from '../fields/values.ts';
import { mayHoldSecret, quote } from '../quote.ts';
import type { Kept } from '../records/conflicts.ts';
import { limitsSchema, nullishAsMissing, type RateLimitInput } from './limit.ts';

export interface LimitDomain {
  readonly domain: string;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

/** Matches one entry of a request. Without a `value`, every value of `key` matches. A `*` in it matches any text. */
export interface LimitDescriptor {
  readonly key: string;
  readonly value: string | undefined;
  /** Every limit applies. Without limits, requests pass. */
  readonly limits: readonly Limit[];
  /** Uses one counter for all values that match the wildcard. */
  readonly shareThreshold: boolean;
  /** Splits metrics by the values of the request's entries. */
  readonly detailedMetric: boolean;
  /** Splits the metrics of the limits here and below by the value of this key. */
  readonly valueToMetric: boolean;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

/** Reads a document, which defines one domain or a part of one. */
export function readLimits(document: ConfigDocument): Kept<LimitDomain> {
  const kind = valueAt(document.value, ['kind']);
  if (typeof kind === 'string') return { kept: [], errors: errorsOf(document, [recordElsewhere(kind)], undefined) };
  const read = domainSchema.safeParse(document.value);
  const faults = read.success
    ? repeatedDescriptors(read.data.descriptors, ['descriptors'], document)
    : faultsOf(read.error, document.value, examples);
  if (!read.success || faults.length > 0)
    return { kept: [], errors: errorsOf(document, faults, domainName(document.value)) };
  const { domain, descriptors } = read.data;
  const place = (path: Path) => ({ file: document.file, line: document.lineAt(path) });
  return {
    kept: [{ domain, descriptors: nested(descriptors, ['descriptors'], place), source: place([]) }],
    errors: [],
  };
}

function recordElsewhere(kind: string): PlacedFault {
  const message = `this is a record of the kind ${quote(kind)}, not a domain of limits`;
  return { path: ['kind'], message, remedy: 'Move it to a file in services/.' };
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

/** The keys whose values are read as text, even if they look like numbers or booleans, as in envoyproxy/ratelimit. */
export const limitTextKeys: readonly string[] = Object.freeze(['domain', 'key', 'value', 'name']);

/** Accepts numbers and booleans, which a program may pass. Values from a file are text already. */
const spelled = z.preprocess(
  (value: string | number | boolean) => (['number', 'boolean'].includes(typeof value) ? String(value) : value),
  z.string(),
);

const ownSchema = strict({
  key: described(
    notEmpty('Write the name of a label, for example key: x-travel-user').check((payload) =>
      reportFault(payload, [], payload.value.includes('*') ? wildcardInKey : undefined),
    ),
    { minLength: 1, pattern: '^[^*]*$' },
  ),
  value: spelled.nullish(),
  rate_limit: nullishAsMissing(limitsSchema),
  shadow_mode: nullishAsMissing(z.boolean()),
  quota_mode: nullishAsMissing(z.boolean()),
  detailed_metric: nullishAsMissing(z.boolean()),
  value_to_metric: nullishAsMissing(z.boolean()),
  share_threshold: nullishAsMissing(z.boolean()),
  // Accepted but not used: envoyproxy/ratelimit can return it as dynamic metadata.
  metadata: nullishAsMissing(z.record(z.string(), z.unknown())),
});

const descriptorSchema: z.ZodType<DescriptorFields, DescriptorInput> = described(
  strict({
    ...ownSchema.shape,
    descriptors: nullishAsMissing(z.lazy(() => z.array(descriptorSchema))),
  }).check((payload) => reportFault(payload, ['share_threshold'], shareFault(payload.value))),
  {
    anyOf: [
      { not: isTrue('share_threshold') },
      { properties: { value: { type: 'string', pattern: '[*]' } }, required: ['value'] },
    ],
    errorMessage: 'share_threshold requires a value that contains a "*"',
  },
);

type OwnInput = Data<z.input<typeof ownSchema>>;

/** What a file or a program may write as a descriptor, which matches an entry of a request. */
export interface DescriptorInput extends OwnInput {
  /** The key of the entry, such as the name of a label. */
  readonly key: OwnInput['key'];
  /** The value of the entry, in which `*` matches any text. Without it, each value has a counter. */
  readonly value?: OwnInput['value'];
  /** A limit, or several that all apply. Without one, requests whose last entry matches here pass. */
  readonly rate_limit?: RateLimitInput | readonly RateLimitInput[] | null | undefined;
  /** Counts, but never denies. @default false */
  readonly shadow_mode?: OwnInput['shadow_mode'];
  /** Turns the limits into quotas: a request is denied only if all of its quotas are exhausted. @default false */
  readonly quota_mode?: OwnInput['quota_mode'];
  /** Splits metrics by all values of a request. @default false */
  readonly detailed_metric?: OwnInput['detailed_metric'];
  /** Splits metrics by the value of this key. @default false */
  readonly value_to_metric?: OwnInput['value_to_metric'];
  /** Uses one counter for all values that match the `*`. @default false */
  readonly share_threshold?: OwnInput['share_threshold'];
  /** Accepted but not used: envoyproxy/ratelimit can return it as dynamic metadata. */
  readonly metadata?: OwnInput['metadata'];
  /** What the next entry of the request is matched with. */
  readonly descriptors?: readonly DescriptorInput[] | null | undefined;
}

/** What a file or a program may write as the limits of a domain. */
export interface LimitDomainInput {
  /** The domain that requests name, such as `domain` of a RateLimitService. */
  readonly domain: string;
  /** What the first entry of a request is matched with. */
  readonly descriptors?: readonly DescriptorInput[] | null | undefined;
}

export const domainSchema = strict({
  domain: notEmpty('For example: domain: gateway'),
  descriptors: nullishAsMissing(z.array(descriptorSchema)).transform((descriptors) => descriptors ?? []),
}) satisfies z.ZodType<unknown, LimitDomainInput>;

const examples = {
  domain: 'gateway',
  descriptors: '[{ key: x-travel-user, rate_limit: { unit: minute, requests_per_unit: 6000 } }]',
  key: 'x-travel-user',
  value: '"demo"',
  shadow_mode: 'true',
  quota_mode: 'true',
  detailed_metric: 'true',
  value_to_metric: 'true',
  metadata: '{ team: shop }',
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

/** To envoyproxy/ratelimit, such a key is a pattern for the key, an underscore and the value. */
const wildcardInKey: Fault = {
  message: 'contains a "*", which only a value may',
  remedy: 'Write the key that requests have, and put the "*" into value.',
};

function shareFault({ value, share_threshold: shares }: DescriptorFields): Fault | undefined {
  if (!shares || value?.includes('*')) return undefined;
  return {
    message: 'requires a value that contains a "*"',
    remedy: 'Write value: "a*" to count all values that start with "a" together, or remove share_threshold.',
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
 * Finds descriptors with the same key and value. Compares the two separately: joining them with an underscore, like
 * envoyproxy/ratelimit, would confuse `a_b` + `c` with `a` + `b_c`.
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
    const identity = identityOf({ key, value });
    const line = lines.get(identity);
    if (line === undefined) lines.set(identity, document.lineAt(here));
    return line === undefined ? inner : [repeated(here, key, value, line), ...inner];
  });
}

function identityOf({ key, value }: Pick<LimitDescriptor, 'key' | 'value'>): string {
  return JSON.stringify([key, value]);
}

/** Merges the documents of each domain, whatever their files. Each may add descriptors that the others do not have. */
export function mergeDomains(documents: readonly LimitDomain[]): Kept<LimitDomain> {
  const byName = new Map<string, LimitDomain[]>();
  for (const part of documents) {
    const parts = byName.get(part.domain);
    if (parts === undefined) byName.set(part.domain, [part]);
    else parts.push(part);
  }
  const kept: LimitDomain[] = [];
  const errors: ConfigurationError[] = [];
  for (const [first, ...others] of byName.values()) {
    if (first === undefined) continue;
    kept.push(others.length === 0 ? first : mergeDomain(first, others, errors));
  }
  return { kept, errors };
}

/** Keeps the first of several descriptors with the same key and value, and adds an error for each of the others. */
function mergeDomain(first: LimitDomain, others: readonly LimitDomain[], errors: ConfigurationError[]): LimitDomain {
  const descriptors = new Map<string, LimitDescriptor>();
  for (const descriptor of [first, ...others].flatMap((part) => part.descriptors)) {
    const identity = identityOf(descriptor);
    const known = descriptors.get(identity);
    if (known === undefined) descriptors.set(identity, descriptor);
    else errors.push(repeatedElsewhere(first.domain, descriptor, known));
  }
  return { ...first, descriptors: [...descriptors.values()] };
}

function repeatedElsewhere(domain: string, later: LimitDescriptor, first: LimitDescriptor): ConfigurationError {
  return {
    source: later.source,
    record: domainName({ domain }),
    message: `${describe(later.key, later.value)} is already in this domain`,
    other: first.source,
    remedy: keepOne,
  };
}

function repeated(path: Path, key: string, value: string | undefined, line: number): PlacedFault {
  return { path, message: `${describe(key, value)} is already on line ${line}`, remedy: keepOne };
}

const keepOne = 'Keep one of the two.';

function describe(key: string, value: string | undefined): string {
  return `the key ${quote(key)} ${value === undefined ? 'without a value' : 'with this value'}`;
}

function domainName(value: unknown): string | undefined {
  const domain = valueAt(value, ['domain']);
  return typeof domain === 'string' && domain !== '' && !mayHoldSecret(domain) ? `domain ${domain}` : undefined;
}
