/** A Mapping's labels: domains, their groups, and the request headers that become descriptor entries. */
import * as z from 'zod';
import type { LabelGroup } from './configuration.ts';
import { headerName, label, strict } from './fields.ts';

const labelFields = strict({
  header: headerName(),
  omit_if_not_present: z.boolean().default(false),
  default: z.string().default(''),
});

/** `- x-allow:` with its fields below it. */
const labelDefinition = z
  .preprocess(refuseOutdented, z.record(label(), labelFields))
  .check(refuseEmpty('Name a label: "- x-allow:" and below it, one level further, "header: X-Allow".'));

const group = z.array(labelDefinition).check(refuseEmpty('List at least one label, or remove the group.'));

/** By domain a list of entries, each a group's name with its labels; an entry with several groups is several entries. */
export const labelsSchema = z
  .record(label(), z.array(z.record(label(), group)))
  .transform((domains) =>
    Object.fromEntries(Object.entries(domains).map(([domain, entries]) => [domain, entries.flatMap(groupsOf)])),
  );

type Definition = z.infer<typeof labelDefinition>;

function groupsOf(entry: Readonly<Record<string, readonly Definition[]>>): readonly LabelGroup[] {
  return Object.entries(entry).map(([name, definitions]) => ({
    name,
    labels: definitions.flatMap(labelsOf),
  }));
}

function labelsOf(definition: Definition) {
  return Object.entries(definition).map(([name, fields]) => ({
    name,
    header: fields.header,
    omitIfNotPresent: fields.omit_if_not_present,
    default: fields.default,
  }));
}

/** The trap of Ambassador's own documentation: `header:` at the same indent as the label's name makes them neighbours. */
function refuseOutdented(value: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof value !== 'object' || value === null || !('header' in value)) return value;
  const name = Object.entries(value).find(([, fields]) => fields === null)?.[0];
  if (name === undefined) return value;
  context.addIssue({
    code: 'custom',
    input: value,
    path: ['header'],
    message: `stands beside the label "${name}" instead of below it, did you mean to indent it?`,
    params: {
      remedy: `Indent "header" and what follows it one level further than "${name}".`,
    },
  });
  return z.NEVER;
}

function refuseEmpty(remedy: string) {
  return ({ value, issues }: z.core.ParsePayload<object>): void => {
    if (Object.keys(value).length > 0) return;
    issues.push({
      code: 'custom',
      input: value,
      message: 'is empty',
      params: { remedy },
    });
  };
}
