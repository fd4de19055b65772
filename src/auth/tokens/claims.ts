/** Reads the claims of a verified token: the user, the values of headers, and any claim by its path. */
import type { JwtProvider } from '#config';
import { type Fields, hasControlCharacter, isMap } from '#foundation';
import { encodeHeader } from '#http';

/**
 * Returns the claim with this name, or the one at the end of a path of names joined with dots, such as
 * `realm_access.roles`. Undefined if there is none.
 */
export function claimAt(claims: unknown, path: string): unknown {
  if (!isMap(claims)) return undefined;
  if (Object.hasOwn(claims, path)) return claims[path];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot);
    const found = Object.hasOwn(claims, name) ? claimAt(claims[name], path.slice(dot + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the gateway tells services about the bearer of a token. */
export interface Identity {
  readonly user: string;
  /** The headers of `claim_to_headers`, as they are sent. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The maximum length of the headers of a token, names and values together. */
const headersLengthMax = 8192;
const userLengthMax = 1024;

/** Returns a text that says why services cannot be told who sent the token. */
export function identityOf(claims: Fields, { userClaim, claimToHeaders }: JwtProvider): Identity | string {
  const user = claimAt(claims, userClaim);
  if (typeof user !== 'string' || user === '') return `"${userClaim}" is missing, or is not text`;
  if (!isSendable(user) || user.length > userLengthMax) return `"${userClaim}" cannot be sent in a header`;
  const headers: Record<string, string> = {};
  let length = 0;
  for (const { claim, header } of claimToHeaders) {
    const value = textOf(claimAt(claims, claim));
    if (value === undefined) continue;
    if (!isSendable(value)) return `"${claim}" cannot be sent in a header`;
    headers[header] = encodeHeader(value);
    length += header.length + (headers[header]?.length ?? 0);
  }
  return length > headersLengthMax
    ? `its claims need more than ${headersLengthMax} bytes of headers`
    : { user, headers };
}

/** Returns undefined for a claim that is missing or has another type, whose header is left out. */
function textOf(claim: unknown): string | undefined {
  if (Array.isArray(claim)) return claim.every(isScalar) ? claim.map(itemText).join(',') : undefined;
  return isScalar(claim) ? String(claim) : undefined;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** An item cannot pass for several. */
function itemText(item: string | number | boolean): string {
  return String(item).replace(/[%,]/g, encodeURIComponent);
}

/** A value with spaces around it would be another one after the next server has read it. */
function isSendable(text: string): boolean {
  return text.isWellFormed() && !hasControlCharacter(text) && text.trim() === text;
}
