/** Limits: domains with nested descriptors, in the format of envoyproxy/ratelimit. */
import * as z from 'zod';
import type { ConfigurationError, Limit, LimitDescriptor, LimitDomain } from './configuration.ts';
import { type Fault, strict, text } from './fields.ts';
import { errorsOf, faultsOf, type PlacedFault } from './issues.ts';
import { limitSchema } from './limit.ts';
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
  readonly rate_limit?: Limit | undefined;
  readonly descriptors?: readonly DescriptorFields[] | undefined;
}

const descriptorSchema: z.ZodType<DescriptorFields> = strict({
  key: text(keyFault),
  value: text(valueFault).optional(),
  rate_limit: limitSchema.optional(),
  descriptors: z.lazy(() => z.array(descriptorSchema)).optional(),
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
  rate_limit: '{ unit: minute, requests_per_unit: 10 }',
  unit: 'minute',
  requests_per_unit: '10',
  unlimited: 'true',
  name: '"per user"',
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
  const remedy = 'Leave value out to match any value, each with a counter of its own.';
  if (value === '') return { message: 'is empty', remedy };
  return value.includes('*')
    ? {
        message: `"${value}" holds a "*", which would match nothing but itself`,
        remedy,
      }
    : undefined;
}

function nested(
  fields: readonly DescriptorFields[],
  path: Path,
  place: (path: Path) => LimitDescriptor['source'],
): readonly LimitDescriptor[] {
  return fields.map(({ key, value, rate_limit: limit, descriptors = [] }, index) => ({
    key,
    value,
    limit,
    descriptors: nested(descriptors, [...path, index, 'descriptors'], place),
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
