/** `labels`: every way to write one, and the descriptor entry that it becomes. */
import * as z from 'zod';
import { lengthFault, reportFault, strict, text } from '../fields/field.ts';
import { headerNameFault } from '../fields/headers.ts';
import { either, label, refuseEmpty, wholeNumber } from '../fields/values.ts';
import { requestBounds } from '../limits/request-bounds.ts';
import { quote } from '../quote.ts';

/**
 * `name` is the key of the entry. A `header` is lower-case; `default` is sent when it is missing and `omitIfNotPresent`
 * is false.
 */
export type Label =
  | {
      readonly kind: 'header';
      readonly name: string;
      readonly header: string;
      readonly omitIfNotPresent: boolean;
      readonly default: string;
    }
  | { readonly kind: 'generic_key'; readonly name: string; readonly value: string }
  /**
   * The client's address as trusted proxies report it; the names of the gateway and of the mapping's service; method
   * and path.
   */
  | {
      readonly kind: 'remote_address' | 'source_cluster' | 'destination_cluster' | 'method' | 'path';
      readonly name: string;
    }
  /** The network of the client's address, so long in bits. */
  | { readonly kind: 'masked_remote_address'; readonly name: string; readonly ipv4: number; readonly ipv6: number };

/** The labels of one descriptor. The group's name is for people. */
export interface LabelGroup {
  readonly name: string;
  readonly labels: readonly Label[];
}

/** How the fields of a label are written, for error messages. */
export const labelExamples = {
  ...{ header: 'X-Travel-User', omit_if_not_present: 'true', default: '"none"' },
  ...{ v4_prefix_mask_len: '32', v6_prefix_mask_len: '64' },
} as const;

const pseudoHeaders = [':method', ':path', ':authority'];

const headerFields = strict({
  header: labelledHeader(),
  omit_if_not_present: z.boolean().default(false),
  default: z.string().default(''),
});

/** Labels that have nothing but a key, which is their kind by default. */
const keyed = ['source_cluster', 'destination_cluster', 'remote_address', 'method', 'path'] as const;
type Keyed = (typeof keyed)[number];

const remedy = 'Name a label: "- x-allow:" and below it, one level further, "header: X-Allow".';

/** `- x-allow:` with its fields below it. */
const headerLabels = z
  .preprocess(refuseOutdented, z.record(key(), headerFields))
  .check(refuseEmpty(remedy))
  .transform((definition) => Object.entries(definition).map(([name, fields]) => headerLabel(name, fields)));

const requestHeaders = strict({
  request_headers: strict({
    key: key(),
    header_name: labelledHeader(),
    omit_if_not_present: z.boolean().default(false),
    default: z.string().default(''),
  }),
}).transform(({ request_headers: { key, header_name: header, ...rest } }) => [headerLabel(key, { header, ...rest })]);

interface Generic {
  readonly key?: string | undefined;
  readonly value: string;
}

const bareGeneric = label().transform((value): Generic => ({ value }));
const longGeneric = strict({ key: key().optional(), value: label() });

const genericKey = strict({
  generic_key: either<Generic>((value) => (typeof value === 'object' ? longGeneric : bareGeneric)),
}).transform(({ generic_key: { key = 'generic_key', value } }): Label[] => [{ kind: 'generic_key', name: key, value }]);

/** Envoy's: the whole address. */
const lengths = { ipv4: 32, ipv6: 128 } as const;

const maskedAddress = strict({
  masked_remote_address: strict({
    key: key().default('masked_remote_address'),
    v4_prefix_mask_len: wholeNumber(0, 32).default(lengths.ipv4),
    v6_prefix_mask_len: wholeNumber(0, 128).default(lengths.ipv6),
  }),
}).transform(({ masked_remote_address: { key, v4_prefix_mask_len: ipv4, v6_prefix_mask_len: ipv6 } }): Label[] => [
  { kind: 'masked_remote_address', name: key, ipv4, ipv6 },
]);

const bareText = label().transform((written): Label[] => {
  if (written === 'masked_remote_address') return [{ kind: written, name: written, ...lengths }];
  if (isKeyed(written) && written !== 'method' && written !== 'path') return [{ kind: written, name: written }];
  return [{ kind: 'generic_key', name: 'generic_key', value: written }];
});

/** Maps by their one key, such as `{remote_address: {key: client}}`. */
const maps = new Map<string, z.ZodType<readonly Label[]>>([
  ...keyed.map(
    (kind) =>
      [
        kind,
        strict({ [kind]: strict({ key: key().default(kind) }) }).transform((given): Label[] =>
          Object.values(given).map(({ key }) => ({ kind, name: key })),
        ),
      ] as const,
  ),
  ['masked_remote_address', maskedAddress],
  ['request_headers', requestHeaders],
  ['generic_key', genericKey],
]);

/**
 * Ambassador's ways of writing a label, and the long form otherwise. A label in the long form may have any of these
 * names.
 */
const definition = either<readonly Label[]>((value) => {
  if (typeof value === 'string') return bareText;
  const [kind = '', fields] = typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : [];
  const isLong = typeof fields === 'object' && fields !== null && 'header' in fields;
  return (!isLong && maps.get(kind)) || headerLabels;
});

const group = z
  .array(definition)
  .check(refuseEmpty('List at least one label, or remove the group.'))
  .transform((definitions) => definitions.flat())
  .check(refuseMore('labels', requestBounds.entries));

/** A list of entries, each with one group or several by name. */
const groups = z
  .array(z.record(label(), group))
  .transform((entries) => entries.flatMap(groupsOf))
  .check(refuseMore('groups', requestBounds.descriptors));

/** By domain. */
export const labels = z.record(label(), groups) satisfies z.ZodType<Readonly<Record<string, readonly LabelGroup[]>>>;

function groupsOf(entry: Readonly<Record<string, readonly Label[]>>): readonly LabelGroup[] {
  return Object.entries(entry).map(([name, labels]) => ({ name, labels }));
}

/** A request with more would pass all limits, because a rate-limit service refuses it. */
function refuseMore(what: string, max: number) {
  return (payload: z.core.ParsePayload<readonly unknown[]>): void => {
    const message = `has ${payload.value.length} ${what}, and at most ${max} are allowed`;
    if (payload.value.length > max) reportFault(payload, [], { message, remedy: `Remove some of the ${what}.` });
  };
}

/** The key of an entry. */
function key() {
  return label((name) => lengthFault(name, requestBounds.key));
}

function isKeyed(written: string): written is Keyed {
  return keyed.some((kind) => kind === written);
}

/** HTTP/2's names for the parts of a request (RFC 9113 section 8.3.1) are accepted as headers. */
function labelledHeader() {
  return text((name) => (pseudoHeaders.includes(name) ? undefined : headerNameFault(name))).transform((name) =>
    name.toLowerCase(),
  );
}

function headerLabel(name: string, fields: z.infer<typeof headerFields>): Label {
  const { header, omit_if_not_present: omitIfNotPresent, default: whenMissing } = fields;
  if (header === ':method' || header === ':path') return { kind: header === ':path' ? 'path' : 'method', name };
  return {
    kind: 'header',
    name,
    header: header === ':authority' ? 'host' : header,
    omitIfNotPresent,
    default: whenMissing,
  };
}

/**
 * A mistake in Ambassador's own documentation: `header:` at the same indent as the label's name is a label of its own.
 */
function refuseOutdented(value: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof value !== 'object' || value === null || !('header' in value)) return value;
  const name = Object.entries(value).find(([, fields]) => fields === null)?.[0];
  if (name === undefined) return value;
  reportFault({ value, issues: context.issues }, ['header'], {
    message: `is beside the label ${quote(name)} instead of below it, did you mean to indent it?`,
    remedy: `Indent "header" and what follows it one level further than ${quote(name)}.`,
  });
  return z.NEVER;
}
