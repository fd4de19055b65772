/** add_… and remove_… headers: what a Mapping changes on the way to the service and on the way back. */
import * as z from 'zod';
import { commaList, either } from './choices.ts';
import { type Fault, strict, text } from './fields.ts';
import { framingFault, headerMap, headerNames, headerValueFault } from './header-fields.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import type { HeaderRules } from './mapping-parts.ts';

const value = text(addedValueFault);

/** A bare text is added to what is there, as Emissary does it. */
const addition = either<{ value: string; append: boolean }>((given) => (typeof given === 'string' ? bare : long));
const bare = value.transform((only) => ({ value: only, append: true }));
const long = strict({ value, append: z.boolean().default(true) });

const add = headerMap(addition, framingFault).optional();
const remove = commaList().pipe(headerNames(framingFault)).optional();

export const headerRuleFields = {
  add_request_headers: add,
  remove_request_headers: remove,
  add_response_headers: add,
  remove_response_headers: remove,
} as const;

type Fields = z.infer<z.ZodObject<typeof headerRuleFields>>;

export function headerRulesOf(fields: Fields, direction: 'request' | 'response'): HeaderRules {
  const added = fields[`add_${direction}_headers`];
  const removed = fields[`remove_${direction}_headers`];
  if (added === undefined && removed === undefined) return mappingDefaults[`${direction}Headers`];
  return { add: (added ?? []).map(({ name, value: given }) => ({ name, ...given })), remove: removed ?? [] };
}

/** What is filled in between percent signs. Envoy knows more, and what it fills in would be nonsense as it stands. */
const variables = ['PROTOCOL', 'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT'] as const;

export type HeaderVariable = (typeof variables)[number];

/** The first of Envoy's commands in a value that nothing is filled in for, `%START_TIME%`. */
export function unknownCommand(value: string): string | undefined {
  const known: readonly string[] = variables;
  const commands = value.match(/%[A-Z][A-Z_]+(?:\([^)]*\))?(?::\d+)?%/g) ?? [];
  return commands.find((command) => !known.includes(command.slice(1, -1)));
}

function addedValueFault(given: string): Fault | undefined {
  const command = unknownCommand(given);
  if (command === undefined) return headerValueFault(given);
  return {
    message: `holds ${command}, for which nothing is filled in`,
    remedy: `Write a fixed value, or one of ${variables.map((name) => `%${name}%`).join(', ')}.`,
  };
}
