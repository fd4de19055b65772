/** AuthService: who is asked about a request before anything else is done with it. */
import * as z from 'zod';
import { complain, envelope, type Fault, serviceReference, strict, text, timeoutMs, wholeNumber } from './fields.ts';
import type { AuthService } from './gateway-records.ts';
import { framingFault, headerMap, headerNames, headerValueFault } from './header-fields.ts';
import { prefixFault, withoutTrailingSlash } from './paths.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

/** With these a client says who it is. */
export const credentialHeaders: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

/** A revoked password works for so long still. */
const cacheMsMax = 60_000;

/** A body is held in memory while the auth service is asked. */
const bodyBytesMax = 10_485_760;

const fields = strict({
  ...envelope,
  auth_service: serviceReference(['http', 'https']),
  proto: z.literal('http').default('http'),
  default: z.boolean().default(true),
  path_prefix: text(pathPrefixFault).transform(withoutSlash).default(''),
  allowed_request_headers: headerNames(framingFault).default([]),
  allowed_authorization_headers: headerNames(identityFault).default([]),
  add_auth_headers: headerMap(text(headerValueFault), framingFault).optional(),
  include_body: strict({ max_bytes: wholeNumber(1, bodyBytesMax), allow_partial: z.boolean() }).optional(),
  timeout_ms: timeoutMs().default(5000),
  status_on_error: strict({ code: wholeNumber(400, 599) }).default({ code: 503 }),
  failure_mode_allow: z.boolean().default(false),
  cache_ms: wholeNumber(0, cacheMsMax).default(0),
}).check((payload) => {
  const { include_body: body, cache_ms: cacheMs } = payload.value;
  if (body === undefined || cacheMs === 0) return;
  const remedy = 'Keep one of the two: an answer that depends on the body holds for that body alone.';
  complain(payload, ['cache_ms'], { message: 'stands beside include_body', remedy });
});

/** Every field that an AuthService may have. */
export const authServiceFieldNames: readonly string[] = Object.keys(fields.shape);

const examples = {
  apiVersion: 'gateway/v1',
  name: 'auth',
  auth_service: 'auth',
  proto: 'http',
  default: 'false',
  path_prefix: '/extauth',
  allowed_request_headers: '[X-Api-Key]',
  allowed_authorization_headers: '[X-Travel-User]',
  add_auth_headers: '{ X-Asked-By: gateway }',
  include_body: '{ max_bytes: 4096, allow_partial: true }',
  timeout_ms: '5000',
  status_on_error: '{ code: 503 }',
  failure_mode_allow: 'true',
  cache_ms: '1000',
} as const;

export const authServiceKind: RecordKind<AuthService> = recordKind({
  schema: fields,
  examples,
  become: (given, source) => ({
    kind: 'AuthService',
    name: given.name,
    authService: given.auth_service,
    proto: given.proto,
    isDefault: given.default,
    pathPrefix: given.path_prefix,
    allowedRequestHeaders: given.allowed_request_headers,
    allowedAuthorizationHeaders: given.allowed_authorization_headers,
    addAuthHeaders: given.add_auth_headers ?? [],
    includeBody: given.include_body && {
      maxBytes: given.include_body.max_bytes,
      allowPartial: given.include_body.allow_partial,
    },
    timeoutMs: given.timeout_ms,
    statusOnError: given.status_on_error.code,
    failureModeAllow: given.failure_mode_allow,
    cacheMs: given.cache_ms,
    source,
  }),
});

/** Listed headers are taken away from every client request: of some that would break it, of others it would lock everybody out. */
function identityFault(name: string): Fault | undefined {
  const remedy = 'Remove it: each listed header is taken away from what clients send.';
  if (framingFault(name) !== undefined) return { message: `"${name}" frames the request`, remedy };
  return name === 'authorization'
    ? { message: `"${name}" is what the auth service is asked about`, remedy }
    : undefined;
}

function pathPrefixFault(path: string): Fault | undefined {
  return path === '' || path === '/' ? undefined : prefixFault(path);
}

/** Each path starts with a slash of its own. */
function withoutSlash(path: string): string {
  return path === '/' ? '' : withoutTrailingSlash(path);
}
