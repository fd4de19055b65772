/** `labels`: the forms in which records write a label, and the descriptor entry that each becomes. */
import * as z from 'zod';
import { isMap } from '#foundation';
import { requestBounds } from '#ratelimit/limit';
import { suggestion } from '../errors.ts';
import { lengthFault, reportFault, strict, text } from '../fields/field.ts';
import { headerNameFault, nameSchema } from '../fields/headers.ts';
import { described, jsonSchemaOf } from '../fields/json-schema.ts';
import { either, filled, singleLine, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';

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
  | { readonly kind: KeyOnly; readonly name: string }
  /** The network of the client's address, with these prefix lengths in bits. */
  | { readonly kind: 'masked_remote_address'; readonly name: string; readonly ipv4: number; readonly ipv6: number };

/**
 * The client's address as reported by trusted proxies, the name of the gateway or the mapping's service, the method or
 * the path.
 */
type KeyOnly = 'remote_address' | 'source_cluster' | 'destination_cluster' | 'method' | 'path';

/** The labels of one descriptor. The name of the group is only for readers of the configuration. */
export interface LabelGroup {
  readonly name: string;
  readonly labels: readonly Label[];
}

/** Examples of a label's fields, for error messages. */
export const labelExamples = {
  header: 'X-Travel-User',
  omit_if_not_present: 'true',
  default: '"none"',
  v4_prefix_mask_len: '32',
  v6_prefix_mask_len: '64',
} as const;

/** The names of HTTP/2 that a label may use like those of headers (RFC 9113 section 8.3.1). */
const pseudoHeaders: readonly string[] = [':method', ':path', ':authority'];

/** The fields of both forms of a header's label that have defaults. */
const whenMissing = { omit_if_not_present: z.boolean().default(false), default: z.string().default('') };

const fixedText = singleLine().transform(fixedLabel);
const fixedTextWithKey = strict({ key: key().default('generic_key'), value: singleLine() }).transform(
  ({ key: name, value }): Label => ({ kind: 'generic_key', name, value }),
);

/** The values of Ambassador's forms of a label, which are maps with a single key: `{ remote_address: { key: client } }`. */
const formValues = {
  remote_address: keyOnly('remote_address'),
  source_cluster: keyOnly('source_cluster'),
  destination_cluster: keyOnly('destination_cluster'),
  method: keyOnly('method'),
  path: keyOnly('path'),
  masked_remote_address: strict({
    key: key().default('masked_remote_address'),
    // By default the whole address, as in Envoy.
    v4_prefix_mask_len: wholeNumber(0, 32).default(32),
    v6_prefix_mask_len: wholeNumber(0, 128).default(128),
  }).transform(
    ({ key: name, v4_prefix_mask_len: ipv4, v6_prefix_mask_len: ipv6 }): Label => ({
      kind: 'masked_remote_address',
      name,
      ipv4,
      ipv6,
    }),
  ),
  request_headers: strict({ key: key(), header_name: labelledHeader(), ...whenMissing }).transform(
    ({ key: name, header_name: header, ...rest }) => headerLabel(name, { header, ...rest }),
  ),
  generic_key: either((value) => (typeof value === 'object' ? fixedTextWithKey : fixedText)),
};

const forms: ReadonlyMap<string, z.ZodType<readonly Label[]>> = new Map(
  Object.entries<z.ZodType<Label>>(formValues).map(([kind, value]) => [
    kind,
    strict({ [kind]: value }).transform((given) => Object.values(given)),
  ]),
);

/** The forms that may be written as their name alone. Any other text is the value of a `generic_key`. */
const bareForms = ['remote_address', 'source_cluster', 'destination_cluster', 'masked_remote_address'];
const bareLabels = new Map(bareForms.map((kind) => [kind, forms.get(kind)?.parse({ [kind]: {} })]));
const bareText = singleLine().transform((written) => bareLabels.get(written) ?? [fixedLabel(written)]);

const headersByLabel = z.record(key(), strict({ header: labelledHeader(), ...whenMissing }));

/** Our own, long form: `x-allow:` with its fields below. */
const headerLabels = filled(
  z.preprocess((value, context) => rejectMistyped(rejectOutdented(value, context), context), headersByLabel),
  'Name a label: write "- x-allow:" and below it, indented, "header: X-Allow".',
).transform((definition) => Object.entries(definition).map(([name, fields]) => headerLabel(name, fields)));

/**
 * A label in any of Ambassador's forms, or else in the long form. In the long form its name may be that of another form.
 */
const anyDefinition = either<z.ZodType<readonly Label[]>>((value) => {
  if (typeof value === 'string') return bareText;
  const [kind = '', fields] = isMap(value) ? (Object.entries(value)[0] ?? []) : [];
  const isLong = isMap(fields) && 'header' in fields;
  return (!isLong && forms.get(kind)) || headerLabels;
}) as z.ZodType<readonly Label[], string | Form | z.input<typeof headersByLabel>>;

const definition = described(anyDefinition, () => ({
  anyOf: [bareText, ...forms.values(), headerLabels].map(jsonSchemaOf),
}));

type FormValues = typeof formValues;
type Form = { [Kind in keyof FormValues]: { [Key in Kind]: z.input<FormValues[Kind]> } }[keyof FormValues];

const group = filled(
  described(z.array(definition), { maxItems: requestBounds.entries }),
  'List at least one label, or remove the group.',
)
  .transform((definitions) => definitions.flat())
  .check(rejectTooMany('labels', requestBounds.entries));

/** A list of maps, each with one or more groups by name. */
const groups = z
  .array(z.record(singleLine(), group))
  .transform((maps) =>
    maps.flatMap((map): LabelGroup[] => Object.entries(map).map(([name, labels]) => ({ name, labels }))),
  )
  .check(rejectTooMany('groups', requestBounds.descriptors));

const domains = z.record(singleLine(), groups);

/** The groups of labels by domain. */
export const labels: z.ZodType<Readonly<Record<string, readonly LabelGroup[]>>, z.input<typeof domains>> = domains;

/** The fields of a label whose only field is the key, which defaults to its kind. */
function keyOnly(kind: KeyOnly) {
  return strict({ key: key().default(kind) }).transform(({ key: name }): Label => ({ kind, name }));
}

function fixedLabel(value: string): Label {
  return { kind: 'generic_key', name: 'generic_key', value };
}

/** The key of a descriptor entry. */
function key() {
  return singleLine((name) => lengthFault(name, requestBounds.key), { maxLength: requestBounds.key });
}

/** A header name, or one of `pseudoHeaders`. */
function labelledHeader() {
  const isPseudo = (name: string) => pseudoHeaders.includes(name);
  return text((name) => (isPseudo(name) ? undefined : headerNameFault(name)), {
    anyOf: [nameSchema(), { enum: pseudoHeaders }],
  }).transform((name) => name.toLowerCase());
}

interface HeaderFields {
  readonly header: string;
  readonly omit_if_not_present: boolean;
  readonly default: string;
}

function headerLabel(name: string, { header, omit_if_not_present: omitIfNotPresent, ...rest }: HeaderFields): Label {
  if (header === ':method') return { kind: 'method', name };
  if (header === ':path') return { kind: 'path', name };
  return { kind: 'header', name, header: header === ':authority' ? 'host' : header, omitIfNotPresent, ...rest };
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

/**
 * Rejects a mistake found in Ambassador's own documentation: `header:` at the same indentation as the label's name,
 * which makes it a separate label.
 */
function rejectOutdented(value: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof value !== 'object' || value === null || !('header' in value)) return value;
  const name = Object.entries(value).find(([, fields]) => fields === null)?.[0];
  // kubectl leaves out the name, because it has no value.
  if (name === undefined && typeof value.header !== 'string') return value;
  reportFault({ value, issues: context.issues }, ['header'], name === undefined ? unnamed : outdented(name));
  return z.NEVER;
}

const unnamed = {
  message: 'is not below the name of a label',
  remedy:
    'Write the name above it, such as "- x-allow:", and indent "header" and the fields after it one level deeper.',
};

function outdented(name: string) {
  return {
    message: `has the same indentation as the label ${quote(name)}, did you mean to indent it?`,
    remedy: `Indent "header" and the fields after it one level deeper than ${quote(name)}.`,
  };
}

/** Rejects `remote_adress: {}`: as the long form, it would only lack a header. */
function rejectMistyped(value: unknown, context: z.core.$RefinementCtx): unknown {
  const [[name = '', fields] = []] = isMap(value) ? Object.entries(value) : [];
  const meant = isMap(fields) && !('header' in fields) ? suggestion(name, forms.keys()) : undefined;
  if (meant === undefined) return value;
  reportFault({ value, issues: context.issues }, [name], {
    message: `is not a known label, did you mean ${quote(meant)}?`,
    remedy: `Write "${meant}", or the header whose value it is, such as "header: ${labelExamples.header}".`,
  });
  return z.NEVER;
}
