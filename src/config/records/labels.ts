/** `labels`: the forms in which records write a label, and the descriptor entry that each becomes. */
import * as z from 'zod';
import { lengthFault, reportFault, strict, text } from '../fields/field.ts';
import { headerNameFault } from '../fields/headers.ts';
import { either, rejectEmpty, singleLine, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';
import { requestBounds } from './rate-limit-service.ts';

/**
 * A label becomes a descriptor entry with the key `name`. `header` is lower-case. `default` is sent when the header is
 * missing and `omitIfNotPresent` is false.
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
   * The client's address as reported by trusted proxies, the name of the gateway or the mapping's service, the method
   * or the path.
   */
  | {
      readonly kind: 'remote_address' | 'source_cluster' | 'destination_cluster' | 'method' | 'path';
      readonly name: string;
    }
  /** The network of the client's address, with these prefix lengths in bits. */
  | { readonly kind: 'masked_remote_address'; readonly name: string; readonly ipv4: number; readonly ipv6: number };

/** The labels of one descriptor. The name of the group is only for readers of the configuration. */
export interface LabelGroup {
  readonly name: string;
  readonly labels: readonly Label[];
}

/** Examples of a label's fields, for error messages. */
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

/** The labels whose only field is the key, which defaults to their kind. */
const keyed = ['source_cluster', 'destination_cluster', 'remote_address', 'method', 'path'] as const;
type Keyed = (typeof keyed)[number];

const remedy = 'Name a label: write "- x-allow:" and below it, indented, "header: X-Allow".';

/** The long form: `- x-allow:` with its fields below. */
const headerLabels = z
  .preprocess(rejectOutdented, z.record(key(), headerFields))
  .check(rejectEmpty(remedy))
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

const bareGeneric = singleLine().transform((value): Generic => ({ value }));
const longGeneric = strict({ key: key().optional(), value: singleLine() });

const genericKey = strict({
  generic_key: either<Generic>((value) => (typeof value === 'object' ? longGeneric : bareGeneric)),
}).transform(({ generic_key: { key = 'generic_key', value } }): Label[] => [{ kind: 'generic_key', name: key, value }]);

/** The default prefix lengths, which cover the whole address as in Envoy. */
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

const bareText = singleLine().transform((written): Label[] => {
  if (written === 'masked_remote_address') return [{ kind: written, name: written, ...lengths }];
  if (isKeyed(written) && written !== 'method' && written !== 'path') return [{ kind: written, name: written }];
  return [{ kind: 'generic_key', name: 'generic_key', value: written }];
});

/** Schemas of labels that are maps with a single key, such as `{remote_address: {key: client}}`, by that key. */
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
 * A label in any of Ambassador's forms, or else in the long form. In the long form its name may be that of another form.
 */
const definition = either<readonly Label[]>((value) => {
  if (typeof value === 'string') return bareText;
  const [kind = '', fields] = typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : [];
  const isLong = typeof fields === 'object' && fields !== null && 'header' in fields;
  return (!isLong && maps.get(kind)) || headerLabels;
});

const group = z
  .array(definition)
  .check(rejectEmpty('List at least one label, or remove the group.'))
  .transform((definitions) => definitions.flat())
  .check(rejectTooMany('labels', requestBounds.entries));

/** A list of maps, each with one or more groups by name. */
const groups = z
  .array(z.record(singleLine(), group))
  .transform((entries) => entries.flatMap(groupsOf))
  .check(rejectTooMany('groups', requestBounds.descriptors));

/** The groups of labels by domain. */
export const labels = z.record(singleLine(), groups) satisfies z.ZodType<
  Readonly<Record<string, readonly LabelGroup[]>>
>;

function groupsOf(entry: Readonly<Record<string, readonly Label[]>>): readonly LabelGroup[] {
  return Object.entries(entry).map(([name, labels]) => ({ name, labels }));
}

/**
 * Rejects lists that are too long: a rate-limit service would reject the request, which would then bypass all limits.
 */
function rejectTooMany(what: string, max: number) {
  return (payload: z.core.ParsePayload<readonly unknown[]>): void => {
    const message = `has ${payload.value.length} ${what}, and at most ${max} are allowed`;
    if (payload.value.length > max) reportFault(payload, [], { message, remedy: `Remove some of the ${what}.` });
  };
}

/** The key of a descriptor entry. */
function key() {
  return singleLine((name) => lengthFault(name, requestBounds.key));
}

function isKeyed(written: string): written is Keyed {
  return keyed.some((kind) => kind === written);
}

/** A header name, or one of HTTP/2's pseudo-header names (RFC 9113 section 8.3.1). */
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
 * Rejects a mistake found in Ambassador's own documentation: `header:` at the same indentation as the label's name,
 * which makes it a separate label.
 */
function rejectOutdented(value: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof value !== 'object' || value === null || !('header' in value)) return value;
  const name = Object.entries(value).find(([, fields]) => fields === null)?.[0];
  if (name === undefined) return value;
  reportFault({ value, issues: context.issues }, ['header'], {
    message: `has the same indentation as the label ${quote(name)}, did you mean to indent it?`,
    remedy: `Indent "header" and the fields after it one level deeper than ${quote(name)}.`,
  });
  return z.NEVER;
}
