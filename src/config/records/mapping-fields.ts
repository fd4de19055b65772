/** The table of a Mapping's fields: schema, default, documentation, and whether redirects and canaries may use them. */
import * as z from 'zod';
import {
  conditions,
  hostOrHostname,
  onlyWithHostRedirect,
  prefixRedirect,
  addedHeaders as translateAddedHeaders,
  cors as translateCors,
  hostname as translateHostname,
  labels as translateLabels,
  prefix as translatePrefix,
  rewrite as translateRewrite,
  service as translateService,
} from '../ambassador/readers.ts';
import { networkFault, networkSchema } from '../fields/addresses.ts';
import { keptHeaderFault } from '../fields/disguises.ts';
import { type Field, field, optional, text, type ValuesOf, withNames } from '../fields/field.ts';
import { addedHeaders, headerName, removedHeaders } from '../fields/headers.ts';
import { requiredClaims } from '../fields/required-claims.ts';
import { serviceReference } from '../fields/service-reference.ts';
import { sticky } from '../fields/sticky.ts';
import { commaList, flag, singleLine, textMap, upgradeProtocols, wholeNumber } from '../fields/values.ts';
import { tlsField } from '../tls/upstream-tls.ts';
import { cors } from './cors.ts';
import { nameField } from './kind.ts';
import { labels } from './labels.ts';
import { headerPatterns, headerValues, hostGlob, parameterPatterns, parameterValues } from './match.ts';
import { hostRewrite, path, prefix, redirectStatuses, regexRewrite, rewrittenPrefix } from './rewrite.ts';
import { upstreamFields } from './upstream-fields.ts';

/** The common part of a row for a map that is empty by default. */
const map = { type: 'map', shownDefault: '`{}`' } as const;

/** The common part of a row for a list of networks. */
const networks = { schema: commaList(text(networkFault, networkSchema)), type: 'list', sameInGroup: true } as const;

export const mappingFields = withNames({
  name: nameField('hotel'),
  prefix: field({
    schema: z.string(),
    type: 'path',
    docs: 'Matches whole segments of the path: `/v1/hotels` matches `/v1/hotels/x` but never `/v1/hotelsx`.',
    example: '/v1/hotels',
    ambassador: translatePrefix,
  }),
  prefixExact: field({ ...flag, default: false, docs: 'Matches only the path itself.' }),
  prefixRegex: field({
    ...flag,
    default: false,
    docs: '`prefix` is a regular expression for the whole path. The path is not rewritten unless `regex_rewrite` is set.',
  }),
  caseSensitive: field({
    ...flag,
    default: true,
    docs: 'Whether the prefix is case-sensitive.',
    example: 'false',
  }),
  host: optional({
    schema: z.string(),
    type: 'host name',
    shownDefault: 'any',
    docs: 'The host that the client requests, without port.',
    example: 'api.example.com',
    ambassador: hostOrHostname,
  }),
  hostRegex: field({ ...flag, default: false, docs: '`host` is a regular expression.' }),
  hostname: optional({
    schema: hostGlob,
    type: 'host name',
    shownDefault: '`"*"`',
    docs: 'Like `host`, but may have a `*` at one end: `*.example.com`, `api.*`.',
    example: '"*.example.com"',
    ambassador: translateHostname,
  }),
  method: optional({
    schema: z.string(),
    type: 'text',
    shownDefault: 'any',
    docs: 'One method, in upper case.',
    example: 'GET',
  }),
  methodRegex: field({
    ...flag,
    default: false,
    docs: '`method` is a regular expression: `GET\\|HEAD`.',
  }),
  headers: optional({
    schema: headerValues,
    ...map,
    docs: 'The value of each header, or `true` if it only has to be present. All must match.',
    example: '{ X-Plan: gold, X-Trial: true }',
    ambassador: conditions('headers', 'v2BoolHeaders'),
  }),
  regexHeaders: optional({
    schema: headerPatterns,
    ...map,
    docs: 'A regular expression for each header.',
    example: '{ X-Plan: "gold|silver" }',
  }),
  queryParameters: optional({
    schema: parameterValues,
    ...map,
    docs: 'Like `headers`, for query parameters. Only the first value of a repeated parameter counts.',
    example: '{ plan: gold, trial: true }',
    ambassador: conditions('query_parameters', 'v2BoolQueryParameters'),
  }),
  regexQueryParameters: optional({
    schema: parameterPatterns,
    ...map,
    docs: 'A regular expression for each parameter.',
    example: '{ plan: "gold|silver" }',
  }),
  precedence: field({
    schema: wholeNumber(-1_000_000, 1_000_000),
    type: 'number',
    default: 0,
    docs: 'Mappings with a higher precedence are tried first, whatever their prefix.',
    example: '10',
  }),
  service: field({
    schema: serviceReference(['http', 'https'], 'rewrite'),
    type: 'service reference',
    docs: 'The service to call, or the target of a `host_redirect`.',
    example: 'hotel',
    ambassador: translateService,
  }),
  tls: tlsField,
  rewrite: optional({
    schema: rewrittenPrefix,
    type: 'path',
    shownDefault: '`/`',
    docs: 'Replaces the matched prefix; `""`, the default with `grpc`, leaves the path unchanged.',
    example: '/ (or "" to leave the path alone)',
    allowedWithRedirect: false,
    ambassador: translateRewrite,
  }),
  regexRewrite: optional({
    schema: regexRewrite,
    type: 'map',
    docs: 'Rewrites the path with `pattern` and `substitution` instead of `rewrite`; `\\1` is the first group.',
    example: '{ pattern: "^/v1/([a-z]+)", substitution: "/\\\\1" }',
    allowedWithRedirect: false,
  }),
  hostRewrite: optional({
    schema: hostRewrite,
    type: 'host name',
    shownDefault: "the client's",
    docs: 'The `Host` header sent to the service; `"{service}"` is the service\'s own name.',
    example: 'hotel.example.com',
    allowedWithRedirect: false,
  }),
  cookiePath: field({
    schema: z.enum(['rewrite', 'keep']),
    type: 'text',
    default: 'rewrite',
    docs: 'Whether the paths of cookies become public paths (`rewrite`), or stay as the service sets them (`keep`).',
    example: 'keep',
    allowedWithRedirect: false,
  }),
  rewriteLinks: field({
    ...flag,
    default: false,
    docs: 'Rewrites the targets of `Link` headers like `Location`.',
    allowedWithRedirect: false,
  }),
  hostRedirect: field({
    ...flag,
    default: false,
    docs: 'Redirects the client to the host of `service`, over https if it says so. A redirect calls neither the auth service nor the service.',
  }),
  pathRedirect: optional({
    schema: path,
    type: 'path',
    docs: 'Redirects the client to this path.',
    example: '/v2/hotels',
    ambassador: onlyWithHostRedirect('path_redirect'),
  }),
  prefixRedirect: optional({
    schema: prefix,
    type: 'path',
    docs: 'Redirects the client to the path with the matched prefix replaced by this one.',
    example: '/v2/hotels',
    ambassador: prefixRedirect,
  }),
  regexRedirect: optional({
    schema: regexRewrite,
    type: 'map',
    docs: 'Redirects the client to the path that `pattern` and `substitution` produce.',
    example: '{ pattern: "^/v1/", substitution: "/v2/" }',
    ambassador: onlyWithHostRedirect('regex_redirect'),
  }),
  redirectResponseCode: optional({
    schema: z.literal(redirectStatuses),
    type: 'number',
    shownDefault: '`301`',
    docs: 'The status of the redirect: 301, 302, 303, 307 or 308.',
    example: '308',
    ambassador: onlyWithHostRedirect('redirect_response_code'),
  }),
  weight: optional({
    schema: wholeNumber(0, 100),
    type: '0 to 100',
    shownDefault: 'the rest',
    docs: 'The percentage of requests that this mapping gets when several have the same match. For a shadow, the percentage to copy.',
    example: '10',
    allowedWithRedirect: false,
  }),
  shadow: field({
    ...flag,
    default: false,
    docs: 'Gets copies of the requests of the mapping with the same match. Its responses are discarded.',
    allowedWithRedirect: false,
  }),
  sticky: optional({
    schema: sticky,
    type: 'map',
    docs: 'Keeps a client on one of the mappings that share requests by weight, by a `cookie`, which new clients get, with an optional `ttl` (`720h`), or by a `header`. See [sticky weights](#two-mappings-with-the-same-match).',
    example: '{ cookie: part, ttl: 720h }',
    allowedWithRedirect: false,
    sameInGroup: true,
  }),
  allowAddresses: field({
    ...networks,
    default: [],
    docs: 'The clients that may come, by address or network; all if it is empty. Others get 403, also instead of a redirect. See [addresses](#addresses).',
    example: '[10.0.0.0/8, "2001:db8::/32"]',
  }),
  denyAddresses: field({
    ...networks,
    default: [],
    docs: 'The clients that may not come, even if `allow_addresses` has them.',
    example: '[203.0.113.7]',
  }),
  ...upstreamFields,
  cors: optional({
    schema: cors,
    type: 'map',
    docs: '`origins` (a list, in which `https://*.example.com` matches all subdomains, or `*`), `methods` (default GET, HEAD, POST), `headers`, `exposed_headers`, `credentials`, `max_age` in seconds.',
    example: '{ origins: [https://app.example.com], methods: [GET, POST] }',
    sameInGroup: true,
    ambassador: translateCors,
  }),
  addRequestHeaders: optional({
    schema: addedHeaders,
    ...map,
    docs: 'The value to append to each header, or `{ value, append: false }` to replace its existing values.',
    example: '{ X-Served-By: { value: gateway, append: false } }',
    allowedWithRedirect: false,
    ambassador: translateAddedHeaders('add_request_headers'),
  }),
  removeRequestHeaders: optional({
    schema: removedHeaders,
    type: 'list',
    shownDefault: '`[]`',
    docs: 'Headers to remove before others are added.',
    example: '[X-Debug]',
    allowedWithRedirect: false,
  }),
  preserveHeaderCase: field({
    ...flag,
    default: false,
    docs: 'Sends a service over HTTP the names of headers as the client spelled them, not in lower case, for services that compare them case-sensitively. `host`, `connection` and names that the gateway adds stay in lower case.',
    allowedWithRedirect: false,
  }),
  keepRequestHeaders: field({
    schema: commaList(headerName(keptHeaderFault)),
    type: 'list',
    default: [],
    docs: 'Headers to keep although a client could [disguise itself](#calling-the-service) with them.',
    example: '[X-HTTP-Method-Override]',
    allowedWithRedirect: false,
    sameInGroup: true,
  }),
  addResponseHeaders: optional({
    schema: addedHeaders,
    ...map,
    docs: 'Like `add_request_headers`, for responses.',
    example: '{ X-Served-By: { value: gateway, append: false } }',
    ambassador: translateAddedHeaders('add_response_headers'),
  }),
  removeResponseHeaders: optional({
    schema: removedHeaders,
    type: 'list',
    shownDefault: '`[]`',
    docs: 'Like `remove_request_headers`, for responses.',
    example: '[X-Powered-By]',
  }),
  compress: optional({
    ...flag,
    shownDefault: '`COMPRESS` for the services of frontdesk itself, otherwise `false`',
    docs: 'Compresses responses for clients that accept it. See [compression](#compression).',
    example: 'true',
    allowedWithRedirect: false,
  }),
  compressWithCookies: field({
    ...flag,
    default: false,
    docs: 'Compresses also responses that set cookies, whose length can then disclose a cookie if the response repeats what the client sent (BREACH).',
    allowedWithRedirect: false,
  }),
  allowUpgrade: field({
    schema: upgradeProtocols,
    type: 'list',
    default: [],
    docs: 'Protocols that a client may switch its connection to, such as `websocket`.',
    example: '[websocket]',
    allowedWithRedirect: false,
  }),
  pathReadings: field({
    schema: z.array(z.enum(['extension', 'plus'])),
    type: 'list',
    default: [],
    docs: 'What the service does to paths that others do not: `extension` ignores an extension at the end, so that `/admin.json` is `/admin`; `plus` treats `+` as a space. See [ambiguous paths](#ambiguous-paths).',
    example: '[extension]',
    allowedWithRedirect: false,
  }),
  labels: field({
    schema: labels,
    type: 'map',
    default: {},
    docs: 'A list of [label](#labels) groups for each domain.',
    example: '{ gateway: [{ user: [{ x-travel-user: { header: X-Travel-User } }] }] }',
    allowedWithRedirect: false,
    sameInGroup: true,
    ambassador: translateLabels,
  }),
  bypassAuth: field({
    ...flag,
    default: false,
    docs: 'Skips authentication: no auth service is called.',
    allowedWithRedirect: false,
    sameInGroup: true,
  }),
  authService: optional({
    schema: singleLine(),
    type: 'name',
    shownDefault: 'the default one',
    docs: 'The AuthService to call.',
    example: 'auth',
    allowedWithRedirect: false,
    sameInGroup: true,
  }),
  authContextExtensions: field({
    schema: textMap,
    type: 'map',
    default: [],
    shownDefault: '`{}`',
    docs: 'What the auth service is told about the mapping, if it is called over gRPC: names and values.',
    example: '{ tier: gold }',
    allowedWithRedirect: false,
  }),
  requireClaims: field({
    schema: requiredClaims,
    type: 'map',
    default: [],
    shownDefault: '`{}`',
    docs: 'The value that each [claim](#claims) of the token must have, or a list of values that it must have all: it is equal to the value, a list that contains it, or text that contains it as a word. Other requests get 403.',
    example: '{ scope: bookings }',
    allowedWithRedirect: false,
    sameInGroup: true,
  }),
});

export type MappingFields = ValuesOf<typeof mappingFields>;

const keys = Object.keys(mappingFields) as (keyof MappingFields)[];
const rowOf = (key: keyof MappingFields): Pick<Field<unknown>, 'allowedWithRedirect' | 'sameInGroup'> =>
  mappingFields[key];

/** The keys of fields that only apply when a service is called, so a redirect cannot have them. */
export const callKeys = keys.filter((key) => rowOf(key).allowedWithRedirect === false);

/** The keys of fields that must have the same value in all mappings that share requests by weight. */
export const groupKeys = keys.filter((key) => rowOf(key).sameInGroup === true);
