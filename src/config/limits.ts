/** Limits: domains with nested descriptors, in the format of envoyproxy/ratelimit. */
import * as z from 'zod';
import type { ConfigurationError, Limit, LimitDescriptor, LimitDomain } from './configuration.ts';
import { type Fault, strict, text } from './fields.ts';
import { errorsOf, faultsOf, type PlacedFault } from './issues.ts';
import { limitsSchema } from './limit.ts';
import type { PlacedDocument } from './yaml-documents.ts';

type LimitsResult =
  | { readonly ok: true; readonly domain: LimitDomain }
  | { readonly ok: false; readonly errors: readonly ConfigurationError[] };

/** One document is one domain. */
export function readLimits(document: PlacedDocument): LimitsResult {
  const read = domainSchema.safeParse(document.value);
  const faults = read.success
    ? repeatedDescriptors(read.data.descriptors, ['descriptors'], document)
    : faultsOf(read.error, document.value, examples);
  if (!read.success || faults.length > 0) {
    return {
      ok: false,
      errors: errorsOf(document, faults, domainName(document.value)),
    };
  }
  const { domain, descriptors } = read.data;
  const place = (path: Path) => ({
    file: document.file,
    line: document.lineAt(path),
  });
  return {
    ok: true,
    domain: {
      domain,
      descriptors: nested(descriptors, ['descriptors'], place),
      source: place([]),
    },
  };
}

type Path = readonly (string | number)[];

interface DescriptorFields {
  readonly key: string;
  readonly value?: string | undefined;
  readonly rate_limit?: readonly Limit[] | undefined;
  readonly shadow_mode?: boolean | undefined;
  readonly detailed_metric?: boolean | undefined;
  readonly share_threshold?: boolean | undefined;
  readonly descriptors?: readonly DescriptorFields[] | undefined;
}

const descriptorSchema: z.ZodType<DescriptorFields> = strict(
  {
    key: text(keyFault),
    value: text(valueFault).optional(),
    rate_limit: limitsSchema.optional(),
    shadow_mode: z.boolean().optional(),
    detailed_metric: z.boolean().optional(),
    share_threshold: z.boolean().optional(),
    descriptors: z.lazy(() => z.array(descriptorSchema)).optional(),
    value_to_metric: refused('detailed_metric: true tells the values apart in metrics.'),
    quota_mode: refused('A limit that is over denies; shadow_mode: true counts without denying.'),
    metadata: refused('A comment in the file can say the same.'),
  },
  ['value_to_metric', 'quota_mode', 'metadata'],
).check(({ value, issues }) => {
  for (const { path, message, remedy } of descriptorFaults(value))
    issues.push({ code: 'custom', input: value, path: [...path], message, params: { remedy } });
});

const domainSchema = strict({
  domain: text(domainFault),
  descriptors: z.array(descriptorSchema).default([]),
});

const examples = {
  domain: 'gateway',
  descriptors: '[{ key: x-travel-user, rate_limit: { unit: minute, requests_per_unit: 6000 } }]',
  key: 'x-travel-user',
  value: '"demo"',
  shadow_mode: 'true',
  detailed_metric: 'true',
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

function domainFault(domain: string): Fault | undefined {
  return domain === '' ? { message: 'is empty', remedy: 'Write it so: domain: gateway' } : undefined;
}

function keyFault(key: string): Fault | undefined {
  return key === ''
    ? {
        message: 'is empty',
        remedy: 'Write the name of a label, for example key: x-travel-user',
      }
    : undefined;
}

function valueFault(value: string): Fault | undefined {
  return value === ''
    ? { message: 'is empty', remedy: 'Leave value out to match any value, each with a counter of its own.' }
    : undefined;
}

/** A key that envoyproxy/ratelimit knows and we do not. */
function refused(instead: string) {
  return z
    .unknown()
    .check(({ value, issues }) => {
      if (value === undefined) return;
      issues.push({
        code: 'custom',
        input: value,
        message: 'is not supported',
        params: { remedy: `Remove it. ${instead}` },
      });
    })
    .optional();
}

function descriptorFaults(descriptor: DescriptorFields): readonly PlacedFault[] {
  const { value, rate_limit: limits = [], shadow_mode: shadow, share_threshold: shares } = descriptor;
  const faults: PlacedFault[] = [];
  if (shares && !value?.includes('*'))
    faults.push({
      path: ['share_threshold'],
      message: 'needs a value with a "*" in it',
      remedy: 'Write value: "a*" to count all values that begin with an "a" together, or remove share_threshold.',
    });
  if (shadow && limits.some(({ unlimited }) => unlimited))
    faults.push({
      path: ['shadow_mode'],
      message: 'has nothing to count: the limit is unlimited',
      remedy: 'Remove shadow_mode, or give the limit a unit and a number of requests.',
    });
  return faults;
}

function nested(
  fields: readonly DescriptorFields[],
  path: Path,
  place: (path: Path) => LimitDescriptor['source'],
): readonly LimitDescriptor[] {
  return fields.map((descriptor, index) => ({
    key: descriptor.key,
    value: descriptor.value,
    limits: (descriptor.rate_limit ?? []).map((limit) => ({ ...limit, shadowMode: descriptor.shadow_mode ?? false })),
    shareThreshold: descriptor.share_threshold ?? false,
    detailedMetric: descriptor.detailed_metric ?? false,
    descriptors: nested(descriptor.descriptors ?? [], [...path, index, 'descriptors'], place),
    source: place([...path, index]),
  }));
}

/** Key and value apart: joined by an underscore, as envoyproxy/ratelimit has them, `a_b` + `c` and `a` + `b_c` would clash. */
function repeatedDescriptors(
  fields: readonly DescriptorFields[],
  path: Path,
  document: PlacedDocument,
): readonly PlacedFault[] {
  const lines = new Map<string, number>();
  return fields.flatMap(({ key, value, descriptors = [] }, index) => {
    const here = [...path, index];
    const inner = repeatedDescriptors(descriptors, [...here, 'descriptors'], document);
    const identity = JSON.stringify([key, value]);
    const line = lines.get(identity);
    if (line === undefined) lines.set(identity, document.lineAt(here));
    return line === undefined ? inner : [repeated(here, key, value, line), ...inner];
  });
}

function repeated(path: Path, key: string, value: string | undefined, line: number): PlacedFault {
  const which = value === undefined ? `the key "${key}" without a value` : `the key "${key}" with the value "${value}"`;
  return {
    path,
    message: `${which} already stands on line ${line}`,
    remedy: 'Keep one of the two.',
  };
}

function domainName(value: unknown): string | undefined {
  const domain: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'domain') : undefined;
  return typeof domain === 'string' && domain !== '' ? `domain ${domain}` : undefined;
}
