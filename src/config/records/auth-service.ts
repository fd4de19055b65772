/** The fields of an AuthService: the service that authenticates clients, and the headers that it may read and set. */
import * as z from 'zod';
import { httpsIfTls, identityHeaders, onlyOverHttp, protocolVersion } from '../ambassador/readers.ts';
import type { Fault } from '../errors.ts';
import { field, type Given, mapOf, optional, strict, text, withNames } from '../fields/field.ts';
import {
  credentialHeaders,
  framingFault,
  framingHeaders,
  headerMap,
  headerName,
  headerNameFault,
  headerValueFault,
  nameSchema,
} from '../fields/headers.ts';
import { eitherOf, isMissing } from '../fields/json-schema.ts';
import { optionalPathSchema, prefixFault, withoutTrailingSlash } from '../fields/paths.ts';
import { serviceReference } from '../fields/service-reference.ts';
import { commaList, flag, milliseconds, singleLine, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';
import { tlsFault, tlsField, tlsSchema } from '../tls/upstream-tls.ts';
import { nameField, type PlainRecord, plainReader } from './kind.ts';

/** Bounds how long a revoked password still works. */
const cacheMsMax = 60_000;

const realmLengthMax = 100;
const realmForm = /^[ -~]+$/;

/** The body is buffered in memory while the auth service is called. */
const bodyBytesMax = 10_485_760;

const ownIdentityHeaders: ReadonlySet<string> = new Set(['x-travel-user', 'x-api-key-name', 'x-client-cert-subject']);

/** The names that `identityFault` rejects. */
export const unidentifying: readonly string[] = [...framingHeaders, 'set-cookie', ...credentialHeaders];

const bodyFields = {
  maxBytes: field({ schema: wholeNumber(1, bodyBytesMax) }),
  allowPartial: field({ schema: z.boolean() }),
};

export const authServiceFields = withNames({
  name: nameField('auth'),
  authService: field({
    schema: serviceReference(['http', 'https'], 'path_prefix'),
    type: 'service reference',
    docs: 'The service to call.',
    example: 'auth',
    ambassador: httpsIfTls('auth_service'),
  }),
  tls: tlsField,
  proto: field({
    schema: z.literal(['http', 'grpc']),
    type: '`http` or `grpc`',
    default: 'http',
    docs: "How the service is called: over HTTP, or with Envoy's ext_authz over gRPC, as described in [Auth services over gRPC](#auth-services-over-grpc).",
    example: 'grpc',
  }),
  protocolVersion: field({
    schema: text(protocolVersionFault, { enum: ['v3'] }).transform(() => 'v3' as const),
    type: '`v3`',
    default: 'v3',
    docs: 'The version of ext_authz. There is no other.',
    example: 'v3',
    ambassador: protocolVersion,
  }),
  http2: field({
    ...flag,
    default: false,
    docs: 'Calls the service over HTTP/2: over TLS for `https`, and otherwise with prior knowledge.',
  }),
  isDefault: field({
    name: 'default',
    ...flag,
    default: true,
    docs: "Whether mappings without an `auth_service` use this one. At most one AuthService can be the default. Without a default, each mapping must name one or bypass auth, and the gateway's own pages that require auth are not served.",
    example: 'false',
  }),
  providers: field({
    schema: commaList(singleLine()),
    type: 'list',
    default: [],
    docs: "The [JwtProviders](#jwtprovider) whose tokens frontdesk's own auth service accepts besides passwords: at most 4, with different issuers.",
    example: '[accounts]',
  }),
  apiKeyHeader: optional({
    schema: text((name) => (name === '' ? undefined : headerNameFault(name)), {
      anyOf: [{ maxLength: 0 }, nameSchema([...framingHeaders, ...credentialHeaders, ...ownIdentityHeaders])],
    })
      .transform((name) => name.toLowerCase())
      .pipe(text(keyHeaderFault)),
    type: 'header name',
    shownDefault: '`X-Api-Key` for `auth_service: auth` once a user has a key; else none',
    docs: 'The header in which clients send an [API key](#api-keys). It is sent to the auth service and removed before the mapping\'s service is called. `""` accepts no keys and leaves the header alone.',
    example: 'X-Api-Key',
  }),
  pathPrefix: field({
    schema: text(pathPrefixFault, optionalPathSchema).transform((path) =>
      path === '/' ? '' : withoutTrailingSlash(path),
    ),
    type: 'path',
    default: '',
    shownDefault: 'none',
    docs: "Prepended to the request's path.",
    example: '/extauth',
    ambassador: onlyOverHttp('path_prefix'),
  }),
  allowedRequestHeaders: field({
    schema: z.array(headerName(forwardedFault, framingHeaders)),
    type: 'list',
    default: [],
    docs: 'Request headers to send to the auth service, in addition to the usual ones.',
    example: '[X-Api-Key]',
    ambassador: onlyOverHttp('allowed_request_headers'),
  }),
  allowedAuthorizationHeaders: field({
    schema: z.array(headerName(identityFault, unidentifying)),
    type: 'list',
    default: [],
    docs: "Headers of its response to forward to the mapping's service. No one else can set them: they are removed from clients' requests. frontdesk's own auth service names the user in each of them, or in `X-Travel-User` if the list is empty.",
    example: '[X-Travel-User]',
    ambassador: identityHeaders,
  }),
  allowedClientHeadersOnSuccess: field({
    schema: z.array(headerName(clientHeaderFault, framingHeaders)),
    type: 'list',
    default: [],
    docs: 'Headers of a response that lets the request through to send to the client, such as `Set-Cookie`. They replace headers of the service, except cookies.',
    example: '[Set-Cookie]',
  }),
  allowStatus: field({
    schema: z.literal(['2xx', 200]),
    type: '`2xx` or `200`',
    default: '2xx',
    docs: 'Which responses let a request through: any 2xx or, as in Ambassador, 200 alone.',
    example: '2xx',
  }),
  removeAuthorization: field({
    ...flag,
    default: false,
    docs: "Removes the client's `Authorization` from requests to services.",
    example: 'true',
  }),
  addAuthHeaders: field({
    schema: headerMap(
      text(headerValueFault),
      sentFault,
      framingHeaders.filter((name) => name !== 'host'),
    ),
    type: 'map',
    default: [],
    shownDefault: '`{}`',
    docs: "Headers to send to the auth service instead of the client's; may include `Host`.",
    example: '{ X-Asked-By: gateway }',
  }),
  includeBody: optional({
    schema: mapOf(bodyFields),
    type: 'map',
    docs: 'Sends up to `max_bytes` (at most 10 MiB) of the body. Without `allow_partial`, a larger body gets a 413.',
    example: '{ max_bytes: 4096, allow_partial: true }',
  }),
  timeoutMs: field({
    ...milliseconds(),
    default: 5000,
    docs: 'How long to wait for its whole response.',
    example: '5000',
  }),
  statusOnError: field({
    schema: strict({ code: wholeNumber(400, 599) }).transform(({ code }) => code),
    type: 'map',
    default: 503,
    shownDefault: '`{ code: 503 }`',
    docs: 'The response status when it is down, too slow or responds with 5xx.',
    example: '{ code: 503 }',
  }),
  failureModeAllow: field({
    ...flag,
    default: false,
    docs: 'Lets requests through without an identity when it is down, too slow or responds with 5xx.',
  }),
  realm: optional({
    schema: text(realmFault, { pattern: realmForm.source, maxLength: realmLengthMax }),
    type: 'text',
    shownDefault: '`api`; `travel` in the demo',
    docs: "The realm that browsers show in the password prompt for this process's users.",
    example: 'orders',
  }),
  cacheMs: field({
    schema: wholeNumber(0, cacheMsMax),
    type: 'milliseconds',
    default: 0,
    docs: 'How long a positive response is cached for the same request by the same client; at most 60000.',
    example: '1000',
  }),
});

export type AuthService = PlainRecord<'AuthService', typeof authServiceFields>;

/** What a record for gRPC must not set. */
const ofHttpOnly = [
  'pathPrefix',
  'allowedRequestHeaders',
  'allowedClientHeadersOnSuccess',
  'allowStatus',
] as const satisfies readonly (keyof typeof authServiceFields)[];

export const readAuthService = plainReader('AuthService', authServiceFields, [
  { at: 'providers', reads: ['authService'], faultOf: providersFault },
  {
    at: 'tls',
    reads: ['authService'],
    faultOf: ({ tls, authService }) => tlsFault(tls, authService),
    schema: tlsSchema('auth_service'),
  },
  {
    at: 'cacheMs',
    reads: ['includeBody'],
    faultOf: cacheFault,
    schema: eitherOf(
      [isMissing('include_body'), { properties: { cache_ms: { const: 0 } } }],
      'cache_ms cannot be combined with include_body',
    ),
  },
  ...ofHttpOnly.map((at) => ({
    at,
    reads: ['proto'] as const,
    faultOf: overGrpcFault(at),
    schema: eitherOf(
      [{ properties: { proto: { const: 'http' } } }, isMissing(authServiceFields[at].name)],
      `${authServiceFields[at].name} has no effect with proto: grpc`,
    ),
  })),
]);

/** Returns the AuthService that a mapping names, or else the default one. Undefined if there is none. */
export function authServiceOf<Service extends Pick<AuthService, 'name' | 'isDefault'>>(
  { authService }: { readonly authService: string | undefined },
  services: readonly Service[],
): Service | undefined {
  return services.find(({ name, isDefault }) => (authService === undefined ? isDefault : name === authService));
}

/** Returns the header in which a gateway with this record accepts API keys, in lower case. */
export function keyHeaderOf(
  { authService, apiKeyHeader }: Pick<AuthService, 'authService' | 'apiKeyHeader'>,
  users: readonly { readonly apiKeys: readonly unknown[] }[],
): string | undefined {
  if (apiKeyHeader !== undefined) return apiKeyHeader || undefined;
  // Without keys, the header may belong to a service.
  return authService === ownAuthService && users.some(({ apiKeys }) => apiKeys.length > 0) ? 'x-api-key' : undefined;
}

function overGrpcFault(at: (typeof ofHttpOnly)[number]): (given: Given<typeof authServiceFields>) => Fault | undefined {
  return ({ proto, [at]: value }) =>
    proto === 'grpc' && value !== undefined
      ? {
          message: 'has no effect with proto: grpc',
          remedy: 'Remove it: the whole request is described, and the service chooses the headers.',
        }
      : undefined;
}

function protocolVersionFault(version: string): Fault | undefined {
  if (version === 'v3') return undefined;
  return {
    message: `${quote(version)} is not supported`,
    remedy: 'Write v3, and let the service speak envoy.service.auth.v3.',
  };
}

function keyHeaderFault(name: string): Fault | undefined {
  const fault = framingFault(name);
  if (fault !== undefined) return { ...fault, remedy: 'Choose another header.' };
  const remedy = 'Choose another header, such as X-Api-Key.';
  if (credentialHeaders.includes(name)) return { message: `${quote(name)} carries other credentials`, remedy };
  return ownIdentityHeaders.has(name)
    ? { message: `${quote(name)} is removed from clients' requests`, remedy }
    : undefined;
}

function cacheFault({ includeBody, cacheMs = 0 }: Given<typeof authServiceFields>): Fault | undefined {
  if (includeBody === undefined || cacheMs === 0) return undefined;
  return {
    message: 'cannot be combined with include_body',
    remedy: 'Keep one of the two: a response that depends on the body cannot be reused for another body.',
  };
}

const providersMax = 4;

/** The reference to frontdesk's own auth service, wherever it runs. */
export const ownAuthService = 'auth';

function providersFault({ providers = [], authService }: Given<typeof authServiceFields>): Fault | undefined {
  if (providers.length === 0) return undefined;
  if (authService !== ownAuthService) {
    const remedy = `Write auth_service: ${ownAuthService}, or let this service check the tokens.`;
    return { message: "has no effect, because only frontdesk's own auth service checks tokens", remedy };
  }
  const repeated = providers.find((name, index) => providers.indexOf(name) < index);
  if (repeated !== undefined) return { message: `lists ${quote(repeated)} twice`, remedy: 'Keep one of the two.' };
  if (providers.length <= providersMax) return undefined;
  const remedy = 'Remove some, or give groups of mappings an AuthService each.';
  return { message: `lists ${providers.length} providers, and at most ${providersMax} are supported`, remedy };
}

/**
 * Rejects framing and credential headers as identity headers. Identity headers are removed from clients' requests, and
 * clients could not send a body or log in without these.
 */
export function identityFault(name: string): Fault | undefined {
  const remedy = "Remove it: listed headers are removed from clients' requests.";
  if (framingFault(name) !== undefined) return { message: `${quote(name)} frames the request`, remedy };
  if (name === 'set-cookie') {
    const where = 'List it in allowed_client_headers_on_success, which sends it to the client.';
    return { message: `${quote(name)} is for the client, and no service reads it`, remedy: where };
  }
  return credentialHeaders.includes(name)
    ? { message: `${quote(name)} carries the credentials that the auth service checks`, remedy }
    : undefined;
}

/** Rejects headers that describe the body of the service's response, or its connection. */
function clientHeaderFault(name: string): Fault | undefined {
  const fault = framingFault(name);
  if (fault !== undefined || !name.startsWith('content-')) return fault && { ...fault, remedy: 'Remove it.' };
  return { message: `${quote(name)} describes the body of the auth service's response`, remedy: 'Remove it.' };
}

/** Like `framingFault`, with a remedy for `Host` that an AuthService has, because `host_rewrite` is a Mapping's. */
function forwardedFault(name: string): Fault | undefined {
  const fault = framingFault(name);
  if (fault === undefined || name !== 'host') return fault;
  return { ...fault, remedy: 'Remove it, or set the Host for the auth service with add_auth_headers.' };
}

/** Allows `Host`, because a public auth service may only accept requests with its own. */
function sentFault(name: string): Fault | undefined {
  return name === 'host' ? undefined : framingFault(name);
}

/** Restricts the realm to text that fits in a header. */
function realmFault(realm: string): Fault | undefined {
  if (realmForm.test(realm) && realm.length <= realmLengthMax) return undefined;
  return {
    message: `is empty, longer than ${realmLengthMax} characters or not printable ASCII`,
    remedy: 'Write a short name without accents.',
  };
}

function pathPrefixFault(path: string): Fault | undefined {
  return path === '' || path === '/' ? undefined : prefixFault(path);
}
