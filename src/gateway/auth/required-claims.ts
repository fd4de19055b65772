/** Checks that the token of a request has the claims that a mapping requires. */
import type { ClaimOf } from '#auth';
import type { ClaimValue, RequiredClaim } from '#config';

/** Without `claimOf`, the caller has no token, and so no claims. */
export function holdsClaims(required: readonly RequiredClaim[], claimOf: ClaimOf | undefined): boolean {
  return required.every(({ claim, values }) => {
    const held = claimOf?.(claim);
    return values.every((value) => holds(held, value));
  });
}

/** Scopes are text with words (RFC 8693 section 4.2). */
function holds(held: unknown, value: ClaimValue): boolean {
  if (held === value) return true;
  if (Array.isArray(held)) return held.includes(value);
  return typeof held === 'string' && held.split(' ').some((word) => word === value);
}
