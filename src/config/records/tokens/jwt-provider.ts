/** The fields of a JwtProvider: who issues tokens, with which keys, where clients send them, and what their claims become. */
import { isIP } from 'node:net';
import * as z from 'zod';
import type { Fault } from '../../errors.ts';
import { isLoopback } from '../../fields/addresses.ts';
import { field, type Given, lengthFault, mapOf, optional, reportFault, text, withNames } from '../../fields/field.ts';
import { framingFault, framingHeaders, headerName } from '../../fields/headers.ts';
import { anyCase } from '../../fields/json-schema.ts';
import { commaList, duration, flag, isToken, notEmpty, singleLine, tokenSchema } from '../../fields/values.ts';
import { quote } from '../../quote.ts';
import { identityFault, unidentifying } from '../auth-service.ts';
import { nameField, type PlainRecord, plainReader } from '../kind.ts';
import { publicKeyFault } from './jwk.ts';

/** The signature algorithms that a key set of public keys can verify (RFC 7518 section 3.1, RFC 8037). */
const tokenAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

const issuerLengthMax = 1024;
const claimLengthMax = 256;
const keysMax = 100;
const headersMax = 32;
const placesMax = 8;

const claimName = text(
  (name) =>
    name === ''
      ? { message: 'is empty', remedy: 'Write the name of a claim, such as sub.' }
      : lengthFault(name, claimLengthMax),
  { minLength: 1, maxLength: claimLengthMax },
);

const tokenHeader = mapOf({
  name: field({ schema: headerName(tokenHeaderFault, [...framingHeaders, 'cookie']) }),
  prefix: optional({ schema: text(prefixFault).transform((prefix) => prefix.trim()) }),
}).check((payload) => {
  const { name, prefix } = payload.value;
  const isForPasswords = name === 'authorization' && ['', 'basic'].includes(prefix?.toLowerCase() ?? 'bearer');
  reportFault(payload, ['prefix'], isForPasswords ? passwordsFault : undefined);
});

const passwordsFault: Fault = {
  message: 'would read passwords as tokens',
  remedy: 'Write prefix: Bearer, or leave it out.',
};

const claimHeader = mapOf({
  claim: field({ schema: claimName }),
  header: field({ schema: headerName(identityFault, unidentifying) }),
});

const jwk = z
  .record(z.string(), z.unknown())
  .check((payload) => reportFault(payload, [], publicKeyFault(payload.value)));

const keySet = z.looseObject({ keys: z.array(jwk).min(1).max(keysMax) });

const names = (item: z.ZodType<string, string>) => z.array(item).max(placesMax);

export const jwtProviderFields = withNames({
  name: nameField('accounts'),
  issuer: field({
    schema: singleLine((issuer) => lengthFault(issuer, issuerLengthMax), { maxLength: issuerLengthMax }),
    type: 'text',
    docs: 'The `iss` of its tokens, exactly as they contain it.',
    example: 'https://accounts.example.com',
  }),
  audiences: field({
    schema: commaList(singleLine()),
    type: 'list',
    docs: 'Tokens must have one of these in `aud`. An empty list accepts tokens that were issued for any other service.',
    example: '[https://api.example.com]',
  }),
  jwksUri: optional({
    schema: text(jwksUriFault, { pattern: `^${anyCase('http')}[sS]?://[^\\s#]+$` }),
    type: 'URL',
    docs: 'Where the issuer publishes its public keys. This or `jwks` is required. `http` is only for loopback and private addresses, names without a dot, and names that end in `.internal`, `.local`, `.localhost`, `.svc` or `.test`.',
    example: 'https://accounts.example.com/.well-known/jwks.json',
  }),
  jwks: optional({
    schema: keySet,
    type: 'map',
    docs: 'The public keys themselves, as a JSON Web Key Set of at most 100 keys.',
    example: '{ keys: [{ kty: OKP, crv: Ed25519, x: 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo }] }',
  }),
  algorithms: field({
    schema: commaList(text(algorithmFault, { enum: tokenAlgorithms })).check((payload) =>
      reportFault(payload, [], payload.value.length === 0 ? noAlgorithm : undefined),
    ),
    type: 'list',
    default: ['RS256', 'ES256', 'EdDSA', 'PS256'],
    shownDefault: '`[RS256, ES256, EdDSA, PS256]`',
    docs: `The accepted signature algorithms: ${tokenAlgorithms.map((name) => `\`${name}\``).join(', ')}.`,
    example: '[RS256]',
  }),
  clockSkewMs: field({
    name: 'clock_skew',
    schema: duration({ minMs: 0, maxMs: 600_000, range: '0s to 10m' }),
    type: 'duration',
    default: 60_000,
    shownDefault: '`60s`',
    docs: 'How far the clock of the issuer may differ: a token is accepted this long after `exp` and before `nbf`; at most 10m.',
    example: '30s',
  }),
  requireExpiration: field({
    ...flag,
    default: true,
    docs: 'Rejects tokens without `exp`, which are valid until their key is replaced.',
    example: 'false',
  }),
  cacheDurationMs: field({
    name: 'cache_duration',
    schema: duration({ minMs: 30_000, maxMs: 86_400_000, range: '30s to 24h' }),
    type: 'duration',
    default: 600_000,
    shownDefault: '`10m`',
    docs: 'How often the keys at `jwks_uri` are read again; from 30s to 24h.',
    example: '5m',
  }),
  fromHeaders: field({
    schema: z.array(tokenHeader).max(placesMax),
    type: 'list',
    default: [{ name: 'authorization', prefix: undefined }],
    shownDefault: '`[{ name: Authorization }]`',
    docs: 'The headers that contain a token, each with a `prefix` such as `Bearer`, which is the default for `Authorization` alone. `[]` reads no header.',
    example: '[{ name: X-Token }]',
  }),
  fromCookies: field({
    schema: names(text(cookieFault, tokenSchema)),
    type: 'list',
    default: [],
    docs: 'The cookies that may contain a token. Browsers send cookies with requests that other sites cause, so such a cookie needs `SameSite`.',
    example: '[session]',
  }),
  fromParams: field({
    schema: names(notEmpty('Write the name of a query parameter.')),
    type: 'list',
    default: [],
    docs: 'The query parameters that may contain a token. Services and proxies may log URLs.',
    example: '[access_token]',
  }),
  userClaim: field({
    schema: claimName,
    type: 'text',
    default: 'sub',
    docs: 'The [claim](#claims) that names the user, in the headers of the AuthService. It must be text.',
    example: 'preferred_username',
  }),
  claimToHeaders: field({
    schema: z
      .array(claimHeader)
      .max(headersMax)
      .check((payload) => reportFault(payload, [], repeatedHeader(payload.value))),
    type: 'list',
    default: [],
    docs: 'The [claims](#claims) to send to services, each in a `header`. No one else can set these headers: they are removed from the requests of all clients.',
    example: '[{ claim: email, header: X-Email }]',
  }),
});

export type JwtProvider = PlainRecord<'JwtProvider', typeof jwtProviderFields>;

export const readJwtProvider = plainReader('JwtProvider', jwtProviderFields, [
  { at: 'jwksUri', reads: ['jwks'], faultOf: keysFault, present: { of: ['jwksUri', 'jwks'], min: 1, max: 1 } },
  { at: 'fromParams', reads: ['fromHeaders', 'fromCookies'], faultOf: placesFault },
]);

function keysFault({ jwksUri, jwks }: Given<typeof jwtProviderFields>): Fault | undefined {
  if (jwksUri === undefined && jwks === undefined) {
    const remedy = 'Set jwks_uri: the issuer lists it as "jwks_uri" in /.well-known/openid-configuration.';
    return { message: 'is missing, and so is jwks', remedy };
  }
  return jwksUri !== undefined && jwks !== undefined
    ? { message: 'cannot be combined with jwks', remedy: 'Keep one of the two.' }
    : undefined;
}

function placesFault({
  fromHeaders,
  fromCookies = [],
  fromParams = [],
}: Given<typeof jwtProviderFields>): Fault | undefined {
  if (fromHeaders?.length !== 0 || fromCookies.length + fromParams.length > 0) return undefined;
  const remedy = 'Name a header, a cookie or a query parameter, or leave from_headers out to read Authorization.';
  return { message: 'is empty, and so are from_headers and from_cookies', remedy };
}

const noAlgorithm: Fault = {
  message: 'is empty',
  remedy: 'Leave it out to use the default, or list the algorithms of the issuer.',
};

function algorithmFault(name: string): Fault | undefined {
  if (tokenAlgorithms.some((one) => one === name)) return undefined;
  const remedy = `Choose from ${tokenAlgorithms.join(', ')}.`;
  if (/^HS\d+$/.test(name)) return { message: `${quote(name)} needs a shared secret, and a key set is public`, remedy };
  if (name.toLowerCase() === 'none') return { message: `${quote(name)} accepts tokens without a signature`, remedy };
  return { message: `${quote(name)} is not a supported algorithm`, remedy };
}

function jwksUriFault(uri: string): Fault | undefined {
  const remedy =
    'Write an https URL without credentials, for example https://accounts.example.com/.well-known/jwks.json';
  if (!URL.canParse(uri) || !/^https?:\/\//i.test(uri) || /[\s#]/.test(uri))
    return { message: 'is not an http or https URL', remedy };
  const { protocol, username, password, hostname } = new URL(uri);
  if (username + password !== '') return { message: 'contains credentials', remedy };
  if (protocol === 'https:' || isPrivateHost(hostname.replace(/^\[|\]$/g, ''))) return undefined;
  return { message: `reads the keys of ${quote(hostname)} without TLS, so that others could replace them`, remedy };
}

/** Hosts that only this machine or its own network reaches (RFC 1918, RFC 4193, RFC 6761, RFC 6762, RFC 9476). */
function isPrivateHost(host: string): boolean {
  if (isLoopback(host)) return true;
  if (isIP(host) === 4) return /^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\./.test(host);
  if (isIP(host) === 6) return /^f[cd]/i.test(host);
  return !host.includes('.') || /\.(?:internal|local|localhost|svc|test)$/i.test(host);
}

function tokenHeaderFault(name: string): Fault | undefined {
  const fault = framingFault(name);
  if (fault !== undefined) return { ...fault, remedy: 'Choose another header.' };
  return name === 'cookie'
    ? { message: `${quote(name)} contains all cookies`, remedy: 'Name the cookie in from_cookies.' }
    : undefined;
}

function prefixFault(prefix: string): Fault | undefined {
  const word = prefix.trim();
  if (word === '' || isToken(word)) return undefined;
  return { message: `${quote(prefix)} is not a single word`, remedy: 'Write what precedes the token, such as Bearer.' };
}

function cookieFault(name: string): Fault | undefined {
  return isToken(name)
    ? undefined
    : { message: `${quote(name)} is not the name of a cookie`, remedy: 'Write the name alone.' };
}

function repeatedHeader(list: readonly { readonly header: string }[]): Fault | undefined {
  const found = list.find(({ header }, index) => list.findIndex((one) => one.header === header) < index);
  return found && { message: `sets ${quote(found.header)} twice`, remedy: 'Keep one of the two.' };
}
