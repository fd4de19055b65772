/** Strict paths against models of servers: none serves a path whose protection is not that of the mapping that matched. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import { sanitisePath } from '#http';
import { authRecordOf, gatewayOf, labelled, limitRecordOf, mappingOf, rejectAmbiguousPath } from '../support/edge.ts';
import { chainCount, servedPaths } from '../support/server-models.ts';

/** How many paths of each length to try. */
const count = Number(process.env['TEST_PATHS'] ?? 800);

/** The gateway is followed by up to this many servers. Only short paths are tried with the longest chains. */
const chainLength = 3;
const shortLength = 3;

/** The number of tokens in a path. */
const lengthMax = 7;

/** Paths are made of these. `ADMIN`, `%25u0061dmin` and the Kelvin sign are other spellings of letters. */
const tokens = [
  '/',
  '/',
  '/',
  '/',
  '%2F',
  '%252F',
  '%25252F',
  ';',
  ';x',
  ';jsessionid=1',
  '%3B',
  '%253B',
  '%3F',
  '%253F',
  '%23',
  '.',
  '%2E',
  '%20',
  '%2520',
  '..',
  '%5C',
  '%09',
  ':$i30:$x',
  '%C0%AF',
  '%C0%BB',
  '%EF%BC%8F',
  '%E2%80%8B',
  '%E2%88%95',
  '/(S(1))',
  '%FF',
  'admin',
  'admin',
  'ADMIN',
  '%41dmin',
  'adm%C4%B1n',
  '%25u0061dmin',
  'api',
  'api',
  'Api',
  'lin%E2%84%AA',
  'link',
  'pub',
  'x',
  'x.php',
];

/** Everything else is open. */
const guarded: readonly Partial<Mapping>[] = [
  { name: 'admin', prefix: '/admin' },
  { name: 'api-admin', prefix: '/api/admin' },
  { name: 'link', prefix: '/link', bypassAuth: true, labels: { gateway: labelled('x-client') } },
];

const gateway = gatewayOf({
  mappings: [...guarded, { name: 'open', prefix: '/', bypassAuth: true }].map((one) =>
    mappingOf({ rewrite: '', ...one }),
  ),
  authServices: [{ record: authRecordOf({}), port: () => ({ outcome: 'deny', status: 401, headers: {} }) }],
  rateLimitService: limitRecordOf(),
  limiter: { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) },
  services: { hotel: async () => {} },
});

/** Returns the name of the mapping that handles a target, and the path that it forwards. Undefined if it is rejected. */
function accepted(target: string): { readonly name: string; readonly path: string } | undefined {
  const path = sanitisePath(target);
  if (path === undefined) return undefined;
  const attributes = { method: 'GET', path, search: '', host: '', headers: {}, client: '', listener: 'http' as const };
  const route = gateway.parts.table.match(attributes)?.route;
  assert.ok(route !== undefined);
  try {
    rejectAmbiguousPath(gateway, attributes, route);
    return { name: route.name, path };
  } catch {
    return undefined;
  }
}

/** The mapping whose resource a server serves. */
function servedBy(path: string): string {
  return guarded.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`))?.name ?? 'open';
}

/** Returns whether the gateway accepts the target. Throws if a chain of servers serves something else for it. */
function checkPath(target: string, length: number): boolean {
  const found = accepted(target);
  if (found === undefined) return false;
  for (const [served, chain] of servedPaths(found.path, length))
    if (servedBy(served) !== found.name)
      assert.fail(`${chain} serves ${served} for ${target}, which Mapping ${found.name} handles`);
  return true;
}

/** Paths of up to `lengthMax` tokens that contain a guarded name: all of the short ones, and evenly spaced others. */
function* pathsToTry(): Generator<{ readonly path: string; readonly chain: number }> {
  for (let length = 1; length <= lengthMax; length += 1) {
    const all = tokens.length ** length;
    const step = Math.max(1, Math.floor(all / count) | 1);
    const chain = length <= shortLength ? chainLength : chainLength - 1;
    for (let index = 0; index < all; index += step) {
      const path = pathAt(index, length);
      if (/dmin|lin/i.test(path)) yield { path, chain };
    }
  }
}

function pathAt(index: number, length: number): string {
  const places = Array.from({ length }, (_, place) => Math.floor(index / tokens.length ** place) % tokens.length);
  return `/${places.map((place) => tokens[place]).join('')}`;
}

describe('a path that strict paths accept', () => {
  it(`is served with the protection of its mapping by ${chainCount(chainLength)} models of servers and chains`, () => {
    let tried = 0;
    let passed = 0;
    for (const { path, chain } of pathsToTry()) {
      tried += 1;
      if (checkPath(path, chain)) passed += 1;
    }
    if (process.env['TEST_PATHS']) assert.ok(passed > tried / 100, `${passed} of ${tried}`);
  });
});
