/** The rows of an AuthService: which service says who a client is, and what it may read and set. */
import * as z from 'zod';
import { identityHeaders, secured } from '../ambassador/readers.ts';
import type { Fault } from '../errors.ts';
import { field, type Given, mapOf, optional, strict, text } from '../fields/field.ts';
import { credentialHeaders, framingFault, headerMap, headerName, headerValueFault } from '../fields/headers.ts';
import { prefixFault, withoutTrailingSlash } from '../fields/paths.ts';
import { flag, milliseconds, serviceReference, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';
import { type PlainRecord, plainReader, recordName } from './kind.ts';

/** Bounds how long a revoked password still works. */
const cacheMsMax = 60_000;

const realmLengthMax = 100;

/** The body is in memory while the auth service is asked. */
const bodyBytesMax = 10_485_760;

const bodyFields = {
  maxBytes: field({
    name: 'max_bytes',
    schema: wholeNumber(1, bodyBytesMax),
    type: 'bytes',
    docs: '',
    example: '4096',
  }),
  allowPartial: field({ name: 'allow_partial', ...flag, docs: '' }),
};

export const authServiceFields = {
  name: recordName('auth'),
  authService: field({
    name: 'auth_service',
    schema: serviceReference(['http', 'https']),
    type: 'service reference',
    docs: 'The service that is asked.',
    example: 'auth',
    ambassador: secured('auth_service'),
  }),
  proto: field({
    name: 'proto',
    schema: z.literal('http'),
    type: '`http`',
    default: 'http',
    docs: 'The only protocol.',
    example: 'http',
  }),
  isDefault: field({
    name: 'default',
    ...flag,
    default: true,
    docs: "Asked for mappings that name no `auth_service`. At most one may be; without one, each mapping names one or bypasses auth, and the gateway's own pages behind auth are not served.",
    example: 'false',
  }),
  pathPrefix: field({
    name: 'path_prefix',
    schema: text(pathPrefixFault).transform((path) => (path === '/' ? '' : withoutTrailingSlash(path))),
    type: 'path',
    default: '',
    shownDefault: 'none',
    docs: 'Put before the path that is asked about.',
    example: '/extauth',
  }),
  allowedRequestHeaders: field({
    name: 'allowed_request_headers',
    schema: z.array(headerName(framingFault)),
    type: 'list',
    default: [],
    docs: 'Headers of the client that the service gets, beside the usual ones.',
    example: '[X-Api-Key]',
  }),
  allowedAuthorizationHeaders: field({
    name: 'allowed_authorization_headers',
    schema: z.array(headerName(identityFault)),
    type: 'list',
    default: [],
    docs: 'Headers of its answer that go to the service of the mapping. Only it can set them: they are removed from what clients send.',
    example: '[X-Travel-User]',
    ambassador: identityHeaders,
  }),
  removeAuthorization: field({
    name: 'remove_authorization',
    ...flag,
    default: false,
    docs: 'Services do not get the `Authorization` that it was asked about.',
    example: 'true',
  }),
  addAuthHeaders: field({
    name: 'add_auth_headers',
    schema: headerMap(text(headerValueFault), sentFault),
    type: 'map',
    default: [],
    shownDefault: '`{}`',
    docs: 'Sent in place of what the client sent under these names, `Host` among them.',
    example: '{ X-Asked-By: gateway }',
  }),
  includeBody: optional({
    name: 'include_body',
    schema: mapOf(bodyFields),
    type: 'map',
    docs: '`max_bytes` (at most 10 MiB) of the body are sent; without `allow_partial` a larger one is 413.',
    example: '{ max_bytes: 4096, allow_partial: true }',
  }),
  timeoutMs: field({
    name: 'timeout_ms',
    ...milliseconds(),
    default: 5000,
    docs: 'Until its whole answer.',
    example: '5000',
  }),
  statusOnError: field({
    name: 'status_on_error',
    schema: strict({ code: wholeNumber(400, 599) }).transform(({ code }) => code),
    type: 'map',
    default: 503,
    shownDefault: '`{ code: 503 }`',
    docs: 'The status when it is down, slow or answers 5xx.',
    example: '{ code: 503 }',
  }),
  failureModeAllow: field({
    name: 'failure_mode_allow',
    ...flag,
    default: false,
    docs: 'Lets such requests through without an identity.',
  }),
  realm: optional({
    name: 'realm',
    schema: text(realmFault),
    type: 'text',
    shownDefault: '`api`; `travel` in the demo',
    docs: "What browsers show when they ask for a password of this process's users.",
    example: 'orders',
  }),
  cacheMs: field({
    name: 'cache_ms',
    schema: wholeNumber(0, cacheMsMax),
    type: 'milliseconds',
    default: 0,
    docs: 'How long a positive answer is reused for the same request by the same client; at most 60000.',
    example: '1000',
  }),
};

export type AuthService = PlainRecord<'AuthService', typeof authServiceFields>;

export const readAuthService = plainReader('AuthService', authServiceFields, [
  { at: 'cacheMs', reads: ['includeBody'], faultOf: cacheFault },
]);

function cacheFault({ includeBody, cacheMs = 0 }: Given<typeof authServiceFields>): Fault | undefined {
  if (includeBody === undefined || cacheMs === 0) return undefined;
  return {
    message: 'cannot be combined with include_body',
    remedy: 'Keep one of the two: an answer that depends on the body is right for that body alone.',
  };
}

/** Clients cannot send the listed headers: without some of them no request would work, without others no client could log in. */
function identityFault(name: string): Fault | undefined {
  const remedy = 'Remove it: each listed header is removed from what clients send.';
  if (framingFault(name) !== undefined) return { message: `${quote(name)} frames the request`, remedy };
  return credentialHeaders.includes(name)
    ? { message: `${quote(name)} is what the auth service checks`, remedy }
    : undefined;
}

/** A public auth service may know itself by its own `Host` alone. */
function sentFault(name: string): Fault | undefined {
  return name === 'host' ? undefined : framingFault(name);
}

/** It is part of a header. */
function realmFault(realm: string): Fault | undefined {
  if (/^[ -~]+$/.test(realm) && realm.length <= realmLengthMax) return undefined;
  return {
    message: `is empty, longer than ${realmLengthMax} characters or not printable ASCII`,
    remedy: 'Write a short name without accents.',
  };
}

function pathPrefixFault(path: string): Fault | undefined {
  return path === '' || path === '/' ? undefined : prefixFault(path);
}
