/** The claims that the token of a request must have: the values of each claim. */
import * as z from 'zod';
import { lengthFault, reportFault } from './field.ts';
import { described } from './json-schema.ts';
import { either, filled } from './values.ts';

export type ClaimValue = string | number | boolean;

/** A claim, by its name or by the names on the way to it, joined with dots, and the values that it must all have. */
export interface RequiredClaim {
  readonly claim: string;
  readonly values: readonly ClaimValue[];
}

/** `scope: orders, realm_access.roles: reader and writer`. */
export function describeClaims(required: readonly RequiredClaim[]): string {
  return required.map(({ claim, values: wanted }) => `${claim}: ${wanted.join(' and ')}`).join(', ');
}

const claimsMax = 32;
const valuesMax = 32;
const lengthMax = 256;

const isClaimValue = (value: unknown) =>
  typeof value === 'boolean' ||
  Number.isFinite(value) ||
  (typeof value === 'string' && value !== '' && value.length <= lengthMax);

const value = described(
  z.custom<ClaimValue>(isClaimValue, `must be a number, true, false, or text of 1 to ${lengthMax} characters`),
  { type: ['string', 'number', 'boolean'], minLength: 1, maxLength: lengthMax },
);
const list = filled(z.array(value).max(valuesMax), 'Name at least one value.');
const values = either<z.ZodType<ClaimValue | ClaimValue[]>>((given) => (Array.isArray(given) ? list : value));

/** A map by claim. */
export const requiredClaims = filled(
  z.record(z.string(), values),
  'Name a claim and its value, for example scope: orders, or remove the field.',
)
  .check((payload) => {
    const claims = Object.keys(payload.value);
    reportFault(payload, [], lengthFault(claims, claimsMax, 'claims'));
    for (const claim of claims) reportFault(payload, [claim], nameFault(claim));
  })
  .transform((map): readonly RequiredClaim[] =>
    Object.entries(map).map(([claim, wanted]) => ({ claim, values: [wanted].flat() })),
  );

function nameFault(claim: string) {
  return claim === ''
    ? { message: 'has no name', remedy: 'Write the name of a claim.' }
    : lengthFault(claim, lengthMax);
}
