/** Models of servers: which path each of them serves for a request target, as far as common versions and settings differ. */

/**
 * Returns the path of the resource that a server serves, decoded, or undefined if the server rejects the target. A slash
 * within a segment stays `%2F`. One character is one byte.
 */
export type ServerModel = (target: string) => string | undefined;

/** One operation on a path. Undefined rejects it. */
type Operation = (path: string) => string | undefined;

function inOrder(...operations: readonly Operation[]): ServerModel {
  return (target) => {
    let path: string | undefined = target;
    for (const operation of operations) {
      if (path === undefined) return undefined;
      path = operation(path);
    }
    return path;
  };
}

/** The part of a target that a server takes for the path. A query ends it in every server, a fragment in some. */
const beforeQuery: Operation = (path) => path.replace(/\?.*/s, '');
const beforeFragment: Operation = (path) => path.replace(/#.*/s, '');

function decodeExcept(kept: RegExp): Operation {
  return (path) =>
    path.replace(/%[\da-f]{2}/gi, (encoded) =>
      kept.test(encoded) ? encoded.toUpperCase() : String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
    );
}

const decode = decodeExcept(/(?!)/);
const decodeExceptSlash = decodeExcept(/%2f/i);
const decodeExceptSlashAndPercent = decodeExcept(/%(?:2f|25)/i);
const decodeUnreserved = decodeExcept(/%(?!2d|2e|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/i);
/** What is special in a path, `;,/?:@&=+$#%`, stays encoded. */
const decodeUnlessSpecial = decodeExcept(/%(?:2[3-6bcf]|3[abdf]|40)/i);

const rejectsEncodedSlash: Operation = (path) => (/%2f/i.test(path) ? undefined : path);
const rejectsControls: Operation = (path) => ([...path].some((character) => character < ' ') ? undefined : path);
const stripParameters: Operation = (path) => path.replace(/;[^/]*/g, '');
const stripNamedParameters: Operation = (path) => path.replace(/;jsessionid=[^/;]*/gi, '');
const stripLastParameters: Operation = (path) => path.replace(/;[^/]*$/, '');
const cutAtSemicolon: Operation = (path) => path.replace(/;.*/s, '');
const mergeSlashes: Operation = (path) => path.replace(/\/{2,}/g, '/');
const mergeFirstSlashes: Operation = (path) => path.replace(/^\/{2,}/, '/');
const ignoreCase: Operation = (path) =>
  Buffer.from(Buffer.from(path, 'latin1').toString().toLowerCase()).toString('latin1');
const ignoreCaseOfUpper: Operation = (path) =>
  Buffer.from(Buffer.from(path, 'latin1').toString().toUpperCase().toLowerCase()).toString('latin1');
const backslashes: Operation = (path) => path.replaceAll('\\', '/');
const withoutLastSlash: Operation = (path) => (path.length > 1 ? path.replace(/\/$/, '') : path);
const trimBlanks: Operation = (path) => path.replace(/ +(?=\/|$)|(?<=\/) +/g, '');
const trimDotsAndBlanks: Operation = (path) => path.replace(/(?<=[^/. ])[. ]+(?=\/|$)/g, '');
const trimLast: Operation = (path) => path.replace(/[. ]+$/, '');
const withoutStreams: Operation = (path) => path.replace(/:[^/]*\$[^/]*/g, '');
const overlong: Operation = (path) =>
  path.replace(/[\xc0\xc1][\x80-\xbf]/g, (pair) =>
    String.fromCharCode(((pair.charCodeAt(0) & 1) << 6) | (pair.charCodeAt(1) & 0x3f)),
  );
const fullWidth: Operation = (path) =>
  Buffer.from(Buffer.from(path, 'latin1').toString().normalize('NFKC')).toString('latin1');
const bestFit: Operation = (path) =>
  Buffer.from(
    Buffer.from(path, 'latin1')
      .toString()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/[\u2044\u2215]/g, '/'),
  ).toString('latin1');
const decodeUnits: Operation = (path) =>
  path.replace(/%u00([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
const withoutSession: Operation = (path) => path.replace(/\/\((?:[ASF]\([^)]*\))+\)(?=\/|$)/g, '') || '/';
const withoutInvalidBytes: Operation = (path) =>
  Buffer.from(Buffer.from(path, 'latin1').toString().replaceAll('\ufffd', '')).toString('latin1');
const afterScript: Operation = (path) => path.replace(/^(.*?)\/[^/]+\.(?:php|py|cgi)(?=\/)/s, '$1');

/** Removes dot segments. Rejects a path that leaves the root. */
const resolveDots: Operation = (path) => {
  const kept: string[] = [];
  const segments = path.split('/').slice(1);
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    if (segment === '..' && kept.pop() === undefined) return undefined;
    if (segment !== '.' && segment !== '..') kept.push(segment);
    else if (isLast) kept.push('');
  }
  return `/${kept.join('/')}`;
};
const rejectsDots: Operation = (path) => (/\/\.{1,2}(?:\/|$)/.test(path) ? undefined : path);

/** `new URL(target, base)`, which takes what follows two slashes for a host and drops tabs and line breaks. */
const urlPath: Operation = (path) => {
  const spelled = path.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
  return URL.canParse(spelled, 'http://base.test') ? new URL(spelled, 'http://base.test').pathname : undefined;
};

/** `urllib.parse.urlparse`, which also splits off the host after two slashes and the parameters of the last segment. */
const pythonUrlPath: Operation = (path) => stripLastParameters(path.replace(/^\/\/[^/]*/, '')) || '/';

/** The servers and frameworks. A name says the setting if it is not the default. */
export const servers = {
  'tomcat 10': inOrder(
    beforeQuery,
    stripParameters,
    rejectsEncodedSlash,
    decode,
    backslashes,
    mergeSlashes,
    resolveDots,
  ),
  'tomcat 10, encodedSolidusHandling=decode': inOrder(beforeQuery, stripParameters, decode, mergeSlashes, resolveDots),
  'tomcat 10, encodedSolidusHandling=passthrough': inOrder(
    beforeQuery,
    stripParameters,
    decodeExceptSlashAndPercent,
    mergeSlashes,
    resolveDots,
  ),
  'tomcat 10 behind a rewrite of jsessionid': inOrder(
    beforeQuery,
    stripNamedParameters,
    decode,
    stripParameters,
    mergeSlashes,
    resolveDots,
  ),
  'jetty 12': inOrder(beforeQuery, beforeFragment, stripParameters, decodeExceptSlashAndPercent, resolveDots),
  'jetty 12, ambiguous paths allowed': inOrder(beforeQuery, beforeFragment, stripParameters, decode, resolveDots),
  'jetty 9': inOrder(beforeQuery, beforeFragment, decode, stripParameters, resolveDots),
  undertow: inOrder(beforeQuery, stripParameters, decodeExceptSlash, resolveDots),
  'undertow, allow-encoded-slash': inOrder(beforeQuery, stripParameters, decode, resolveDots),
  'spring ant matcher': inOrder(beforeQuery, stripParameters, decode, mergeSlashes, trimBlanks, withoutLastSlash),
  'spring path pattern': inOrder(beforeQuery, stripParameters, decodeExceptSlash, withoutLastSlash),
  weblogic: inOrder(beforeQuery, decode, stripParameters, decode, mergeSlashes, resolveDots),
  websphere: inOrder(beforeQuery, decode, stripParameters, mergeSlashes, resolveDots),
  glassfish: inOrder(beforeQuery, decode, overlong, stripParameters, mergeSlashes, resolveDots),
  'vert.x': inOrder(beforeQuery, decodeUnreserved, mergeSlashes, resolveDots, decode),
  'netty with QueryStringDecoder': inOrder(beforeQuery, beforeFragment, cutAtSemicolon, decode),
  nginx: inOrder(beforeQuery, beforeFragment, decode, rejectsControls, mergeSlashes, resolveDots),
  'nginx, merge_slashes off': inOrder(beforeQuery, beforeFragment, decode, resolveDots),
  'nginx on Windows': inOrder(
    beforeQuery,
    decode,
    backslashes,
    mergeSlashes,
    resolveDots,
    trimDotsAndBlanks,
    withoutStreams,
    ignoreCase,
  ),
  'apache httpd': inOrder(beforeQuery, rejectsEncodedSlash, decode, mergeSlashes, resolveDots),
  'apache httpd, AllowEncodedSlashes On': inOrder(beforeQuery, decode, mergeSlashes, resolveDots),
  'apache httpd, AllowEncodedSlashes NoDecode': inOrder(beforeQuery, decodeExceptSlash, mergeSlashes, resolveDots),
  'apache httpd on macOS': inOrder(beforeQuery, decode, mergeSlashes, resolveDots, fullWidth, ignoreCase),
  lighttpd: inOrder(beforeQuery, decode, mergeSlashes, resolveDots, trimLast),
  iis: inOrder(
    beforeQuery,
    decode,
    backslashes,
    mergeSlashes,
    resolveDots,
    trimDotsAndBlanks,
    withoutStreams,
    ignoreCaseOfUpper,
  ),
  'iis, decoded twice': inOrder(
    beforeQuery,
    decode,
    decode,
    backslashes,
    mergeSlashes,
    resolveDots,
    trimLast,
    ignoreCase,
  ),
  'iis with %u': inOrder(
    beforeQuery,
    decodeUnits,
    decode,
    backslashes,
    mergeSlashes,
    resolveDots,
    trimLast,
    ignoreCase,
  ),
  'iis with an ansi application': inOrder(
    beforeQuery,
    decode,
    bestFit,
    backslashes,
    mergeSlashes,
    resolveDots,
    ignoreCase,
  ),
  'asp.net with cookieless sessions': inOrder(
    beforeQuery,
    decode,
    mergeSlashes,
    withoutSession,
    resolveDots,
    ignoreCase,
  ),
  'kestrel with routing': inOrder(beforeQuery, decodeExceptSlash, rejectsDots, ignoreCase, withoutLastSlash),
  'kestrel, decoded by the app': inOrder(beforeQuery, decodeExceptSlash, decode, backslashes, mergeSlashes, ignoreCase),
  express: inOrder(beforeQuery, ignoreCase, withoutLastSlash),
  'express, decoded by the app': inOrder(beforeQuery, decode, ignoreCase, withoutLastSlash),
  'express static': inOrder(beforeQuery, decode, mergeSlashes, resolveDots),
  'koa with url parser': inOrder(urlPath, decode),
  fastify: inOrder(beforeQuery, beforeFragment, decodeUnlessSpecial, decode),
  'fastify 4': inOrder(beforeQuery, beforeFragment, cutAtSemicolon, decodeUnlessSpecial, ignoreCase),
  'fastify, ignoreDuplicateSlashes': inOrder(beforeQuery, cutAtSemicolon, mergeSlashes, decode, withoutLastSlash),
  'node, new URL': inOrder(urlPath),
  'node, new URL, decoded': inOrder(urlPath, decode),
  'node, url.parse': inOrder(beforeQuery, beforeFragment, backslashes),
  'go net/http mux': inOrder(beforeQuery, decode, mergeSlashes, resolveDots),
  'go net/http mux, escaped path': inOrder(beforeQuery, decodeExceptSlash, resolveDots),
  gin: inOrder(beforeQuery, decode),
  'gin, RemoveExtraSlash': inOrder(beforeQuery, decode, mergeSlashes, withoutLastSlash),
  'gorilla mux, UseEncodedPath': inOrder(beforeQuery, mergeSlashes, resolveDots, decode),
  fiber: inOrder(beforeQuery, decode, mergeSlashes, resolveDots, ignoreCase, withoutLastSlash),
  django: inOrder(beforeQuery, decode),
  'wsgi, invalid bytes ignored': inOrder(beforeQuery, decode, withoutInvalidBytes),
  werkzeug: inOrder(beforeQuery, decode, mergeSlashes),
  tornado: inOrder(beforeQuery, decode),
  'python urlparse': inOrder(beforeQuery, beforeFragment, pythonUrlPath, decode),
  'python http.server': inOrder(beforeQuery, beforeFragment, mergeFirstSlashes, decode, mergeSlashes, resolveDots),
  starlette: inOrder(beforeQuery, decode, withoutLastSlash),
  rails: inOrder(beforeQuery, mergeSlashes, withoutLastSlash, decode),
  'rack static': inOrder(beforeQuery, decode, mergeSlashes, resolveDots),
  'php-fpm, SCRIPT_NAME': inOrder(beforeQuery, decode, mergeSlashes),
  'php-fpm, PATH_INFO': inOrder(beforeQuery, decode, mergeSlashes, afterScript),
  'php, REQUEST_URI': inOrder(beforeQuery, decode, withoutLastSlash),
  'php, parse_url': inOrder(beforeQuery, beforeFragment, (path) => path.replace(/^\/\/[^/]*/, '') || '/', decode),
  envoy: inOrder(beforeQuery, beforeFragment, decodeUnreserved, resolveDots),
  'envoy, UNESCAPE_AND_FORWARD': inOrder(
    beforeQuery,
    beforeFragment,
    decodeExcept(/%(?!2f|5c)/i),
    backslashes,
    mergeSlashes,
    resolveDots,
  ),
  'haproxy, normalize-uri': inOrder(beforeQuery, beforeFragment, decodeUnreserved, mergeSlashes, resolveDots),
  caddy: inOrder(beforeQuery, decode, mergeSlashes, resolveDots, trimLast, ignoreCase),
  'caddy file server': inOrder(beforeQuery, decode, mergeSlashes, resolveDots),
  traefik: inOrder(beforeQuery, decodeUnreserved, resolveDots),
  'hyper with percent-decoding': inOrder(beforeQuery, decode, mergeSlashes),
} satisfies Readonly<Record<string, ServerModel>>;

/** A proxy sends on what it has decoded, as nginx does with `proxy_pass http://app$uri`, or encodes it again. */
const forwards: readonly ((path: string) => string)[] = [
  (path) => path.replace(/[\0-\x20\x7f-\xff]/g, percentEncoded),
  (path) => path.replace(/[\0-\x20\x7f-\xff?#]|%(?!2f)/gi, percentEncoded),
];

function percentEncoded(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
}

/** The number of chains of up to `lengthMax` servers. Each but the last is a proxy that forwards in one of two ways. */
export function chainCount(lengthMax: number): number {
  const { length } = Object.keys(servers);
  return Array.from({ length: lengthMax }, (_, proxies) => length * (2 * length) ** proxies).reduce((a, b) => a + b);
}

/** Returns all paths that chains of up to `lengthMax` servers serve for a target, each with the first such chain. */
export function servedPaths(target: string, lengthMax: number): ReadonlyMap<string, string> {
  const served = new Map<string, string>();
  const sent = new Map([[target, '']]);
  let targets: readonly string[] = [target];
  for (let length = 1; length <= lengthMax; length += 1) {
    const readings = targets.flatMap((one) => chainedReadings(one, sent.get(one) ?? ''));
    addNew(served, readings);
    targets = addNew(
      sent,
      readings.flatMap(([path, chain]) => forwards.map((forward) => [forward(path), `${chain} > `] as const)),
    );
  }
  return served;
}

function chainedReadings(target: string, before: string): (readonly [path: string, chain: string])[] {
  return [...readingsOf(target)].map(([path, name]) => [path, before + name]);
}

/** Adds the entries whose keys are new, and returns these keys. */
function addNew(known: Map<string, string>, entries: readonly (readonly [string, string])[]): readonly string[] {
  const keys: string[] = [];
  for (const [key, value] of entries) {
    if (known.has(key)) continue;
    known.set(key, value);
    keys.push(key);
  }
  return keys;
}

/** Most paths of an enumeration end up as the same few. */
const known = new Map<string, ReadonlyMap<string, string>>();

/** What each server makes of a target, without repetitions. */
function readingsOf(target: string): ReadonlyMap<string, string> {
  const before = known.get(target);
  if (before !== undefined) return before;
  const readings = new Map<string, string>();
  if (known.size > 20_000) known.clear();
  known.set(target, readings);
  for (const [name, server] of Object.entries(servers)) {
    const path = server(target);
    if (path !== undefined && !readings.has(path)) readings.set(path, name);
  }
  return readings;
}
