/** The challenges of a 401 and a 403: how a client can authenticate (RFC 7617 for passwords, RFC 6750 for tokens). */

/** Formats the challenge for passwords (RFC 7617 section 2.1). */
export function basicChallenge(realm: string): string {
  return `Basic realm=${quoted(realm)}, charset="UTF-8"`;
}

/** Why a token is rejected (RFC 6750 section 3.1). A request without a token has no error. */
export type BearerError = 'expired' | 'invalid' | 'insufficient';

const parameters: Readonly<Record<BearerError, string>> = {
  expired: ', error="invalid_token", error_description="The token has expired"',
  invalid: ', error="invalid_token", error_description="The token is not valid"',
  insufficient: ', error="insufficient_scope"',
};

export function bearerChallenge(realm: string, error?: BearerError): string {
  return `Bearer realm=${quoted(realm)}${error === undefined ? '' : parameters[error]}`;
}

/** A quoted-string (RFC 9110 section 5.6.4). */
function quoted(realm: string): string {
  if (!/^[ -~]*$/.test(realm)) throw new TypeError(`the realm ${JSON.stringify(realm)} is not printable ASCII`);
  return `"${realm.replace(/["\\]/g, '\\$&')}"`;
}
