/** Rewritten paths, and redirects, which must never point to a host other than the record's or the gateway's own. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Redirect } from '#config';
import { sanitisePath } from '#http';
import { createRedirection, createRewrite, type PathRule, rewritePrefixes } from '#routing';
import { gatewayRouteOf, redirectOf } from '../support/edge.ts';
import { anyPrefix, joinPrefix, rewrite } from './rules.ts';

describe('the rewrite of a mapping', () => {
  function check(rule: PathRule, path: string, expected: string | undefined) {
    const outcome = expected === undefined ? `rejects ${path}` : `turns ${path} into ${expected}`;
    it(`${outcome} with ${JSON.stringify(rule)}`, () => assert.equal(createRewrite(rule)(path), expected));
  }

  const regex = (pattern: string, substitution: string): PathRule => ({
    prefix: '/v1',
    rewrite: '/',
    regexRewrite: { pattern, substitution },
  });

  check({ prefix: '/v1', rewrite: '/' }, '/v1', '/');
  check({ prefix: '/v1', rewrite: '/' }, '/v1/v1/x', '/v1/x');
  check({ prefix: '/v1', rewrite: '/api' }, '/v1', '/api');
  check({ prefix: '/v1', rewrite: '/api/' }, '/v1/x', '/api/x');
  check({ prefix: '/', rewrite: '/api' }, '/x', '/api/x');
  check({ prefix: '/v1', rewrite: '/' }, '/v1//evil.example/x', '/evil.example/x');
  check({ prefix: '/v1', rewrite: '/a' }, '/v1/$&/$1', '/a/$&/$1');
  check({ prefix: '/V1', rewrite: '/' }, '/v1/X', '/X');
  check({ prefix: '/status', prefixMatch: 'exact', rewrite: '/health/live' }, '/status', '/health/live');
  check({ prefix: '/v1/[a-z]+', prefixMatch: 'regex', rewrite: '/' }, '/v1/abc', '/v1/abc');

  check(regex('^/v1/(\\w+)/(\\w+)$', '/\\2/\\1'), '/v1/a/b', '/b/a');
  check(regex('/v1', ''), '/v1/a/v1/b', '/a/b');
  check({ ...regex('^/v1/', '/'), prefixMatch: 'regex' }, '/v1/a', '/a');

  // A replacement must not produce a path that the gateway would reject in a request.
  check(regex('^/v1', ''), '/v1//evil.example', '/evil.example');
  check(regex('^/v1/', ''), '/v1/a', '/a');
  check(regex('^.*$', ''), '/v1/a', '/');
  check(regex('x', ''), '/v1/.x./a', undefined);
  check(regex('x', ''), '/v1/%2x5a', '/v1/%25a');
  check(regex('a', ''), '/v1/%a', undefined);
  check(regex('x', ''), '/v1/%25x2e%25x2E/a', undefined);
  check(regex('-', '%'), '/v1/-2e-2e/a', undefined);
  check(regex('-', '%'), '/v1/-252e/a', undefined);
  check(regex('-', '%'), '/v1/-0d-0aX', undefined);
  check(regex('-', '%'), '/v1/-5Cevil', undefined);
  check(regex('-', '%'), '/v1/-20ok', '/v1/%20ok');
  check(regex('-', '\\\\'), '/v1/-', undefined);
  check(regex('-', '\r\n'), '/v1/-', undefined);
  check(regex('-', '?a=b'), '/v1/-', undefined);
  check(regex('-', '#'), '/v1/-', undefined);

  it('makes at most 100 replacements by regex, and rejects a path of more than 2,048 characters', () => {
    const dashesToDots = createRewrite(regex('-', '.'));
    assert.equal(dashesToDots(`/${'-'.repeat(2047)}`), `/${'.'.repeat(100)}${'-'.repeat(1947)}`);
    assert.equal(dashesToDots(`/${'-'.repeat(2048)}`), undefined);
  });

  it('throws at creation for a pattern that does not compile', () => {
    assert.throws(() => createRewrite(regex('(', '')), TypeError);
  });

  it('never returns a path that the gateway would reject in a request', () => {
    const piece = fc.constantFrom(...'/.x%2eE5c0d;\\ a', '..', '%2');
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    const pattern = fc.constantFrom('x', '^/', 'e', '[25]', '%', '(.)(.)', 'a');
    const substitution = fc.oneof(
      fc.constantFrom('', '\\2\\1', '%', '.', '/'),
      text.map((one) => one.replaceAll('\\', '')),
    );
    fc.assert(
      fc.property(text, pattern, substitution, (path, one, other) => {
        fc.pre(one === '(.)(.)' || !other.includes('\\'));
        const rewritten = createRewrite(regex(one, other))(`/${path}`);
        if (rewritten === undefined) return;
        assert.match(rewritten, /^\/(?!\/)/);
        assert.notEqual(sanitisePath(rewritten), undefined, rewritten);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the prefixes of a rewrite', () => {
  function check(rule: PathRule, matchedPrefix: string, replacement: string, removedPrefix: string) {
    it(`are "${matchedPrefix}", "${replacement}" and "${removedPrefix}" with ${JSON.stringify(rule)}`, () =>
      assert.deepEqual(rewritePrefixes(rule), { matchedPrefix, replacement, removedPrefix }));
  }

  check({ prefix: '/v1', prefixMatch: 'exact', rewrite: '/' }, '', '', '');
  check({ prefix: '/v[12]', prefixMatch: 'regex', rewrite: '/' }, '', '', '');
  check({ prefix: '/v1', rewrite: '/', regexRewrite: { pattern: 'a', substitution: 'b' } }, '', '', '');
  check({ prefix: '/eu/v1', rewrite: '/' }, '/eu/v1', '', '/eu/v1');
  check({ prefix: '/eu/v1', rewrite: '/v1/' }, '/eu/v1', '/v1', '/eu');
  check({ prefix: '/v1', rewrite: '/v1' }, '/v1', '/v1', '');
  check({ prefix: '/euv1', rewrite: '/v1' }, '/euv1', '/v1', '/euv1');

  it('agree with the rewrite', () => {
    const rest = fc.constantFrom('', '/', '/x', '/x/y');
    fc.assert(
      fc.property(anyPrefix, rewrite, rest, (prefix, to, tail) => {
        const { matchedPrefix, replacement } = rewritePrefixes({ prefix, rewrite: to });
        const path = joinPrefix(prefix, tail);
        assert.equal(
          createRewrite({ prefix, rewrite: to })(path),
          replacement + path.slice(matchedPrefix.length) || '/',
        );
      }),
    );
  });
});

describe('what the Gateway API replaces in a path', () => {
  /** Its own table: the path of the request, the prefix, its replacement (`/` stands for an empty one) and the result. */
  for (const [path, prefix, replacement, expected] of [
    ['/foo/bar', '/foo', '/xyz', '/xyz/bar'],
    ['/foo/bar', '/foo', '/xyz/', '/xyz/bar'],
    ['/foo', '/foo', '/xyz', '/xyz'],
    ['/foo/', '/foo', '/xyz', '/xyz/'],
    ['/foo/bar', '/foo', '/', '/bar'],
    ['/foo/', '/foo', '/', '/'],
    ['/foo', '/foo', '/', '/'],
    ['/', '/', '/xyz', '/xyz/'],
    ['/bar', '/', '/xyz', '/xyz/bar'],
  ] as const)
    it(`is the prefix: ${path} becomes ${expected} if ${prefix} is ${replacement}`, () => {
      assert.equal(createRewrite({ prefix, rewrite: replacement })(path), expected);
      const redirect = redirectOf({ path: { kind: 'prefix', value: replacement } });
      assert.equal(createRedirection(redirect, { prefix })({ path, search: '' }, 'http://a'), `http://a${expected}`);
    });

  for (const [fullPath, expected] of [
    ['/one', '/one'],
    ['/one/', '/one/'],
    ['/', '/'],
    ['/one/%2e%2e', undefined],
  ] as const)
    it(`is the whole path, under any match and however long it is: ${fullPath}`, () => {
      const gatewayRoute = gatewayRouteOf({ fullPath });
      for (const prefixMatch of ['segments', 'exact', 'regex'] as const) {
        const rule = { prefix: '/full', prefixMatch, rewrite: '/ignored', gatewayRoute };
        for (const path of ['/full', `/full/${'x'.repeat(5000)}`]) assert.equal(createRewrite(rule)(path), expected);
        assert.deepEqual(rewritePrefixes(rule), { matchedPrefix: '', replacement: '', removedPrefix: '' });
      }
    });
});

type Parts = Partial<Omit<Redirect, 'status'>>;

function locationOf(parts: Parts, target: string, rule: Partial<PathRule> = {}, origin = 'https://gw.example') {
  const [path = '', query] = target.split(/(?=\?)/);
  const redirect = redirectOf(parts);
  return createRedirection(redirect, { prefix: '/old', ...rule })({ path, search: query ?? '' }, origin);
}

describe('a redirect', () => {
  function check(parts: Parts, target: string, expected: string | undefined, rule: Partial<PathRule> = {}) {
    const outcome = expected === undefined ? `rejects ${target}` : `points from ${target} to ${expected}`;
    it(`${outcome} with ${JSON.stringify(parts)} ${JSON.stringify(rule)}`, () =>
      assert.equal(locationOf(parts, target, rule), expected));
  }

  const path = (value: string) => ({ path: { kind: 'path' as const, value } });
  const prefix = (value: string) => ({ path: { kind: 'prefix' as const, value } });
  const regex = (pattern: string, substitution: string) => ({
    path: { kind: 'regex' as const, pattern, substitution },
  });

  check({ host: 'new.example', port: 8443 }, '/old/x?a=1', 'https://new.example:8443/old/x?a=1');
  check({ host: 'new.example', ...path('/new') }, '/old/x?a=1', 'https://new.example/new?a=1');
  check(path('//evil.example'), '/old/x', 'https://gw.example/evil.example');
  check(prefix('/new'), '/old/x/y?a', 'https://gw.example/new/x/y?a');
  check(prefix('/new/'), '/old/x', 'https://gw.example/new/x');
  check(prefix('/'), '/old//evil.example', 'https://gw.example/evil.example');
  check(prefix('/new'), '/OLD/x', 'https://gw.example/new/x');
  check(prefix('/new'), '/v1/abcdefghijkl', 'https://gw.example/new', { prefix: '/v1/[a-z]+', prefixMatch: 'regex' });
  check(regex('^/old/(\\w+)', '/\\1/new'), '/old/a/b?q', 'https://gw.example/a/new/b?q');
  check(regex('^/old', ''), '/old//evil.example', 'https://gw.example/evil.example');
  check(regex('^/old', '.evil.example'), '/old/x', 'https://gw.example/.evil.example/x');
  check(regex('x', ''), '/old/.x./a', undefined);
  check({ host: 'new.example' }, '/old/../x', undefined);
  check({}, '/old/\u00e9?\u00e9', 'https://gw.example/old/%E9?%E9');
  check({}, '/old/x?a=\\"<>', 'https://gw.example/old/x?a=%5C%22%3C%3E');
  check({}, '/old/%20x?a=%20', 'https://gw.example/old/%20x?a=%20');

  it('keeps the mount path of the gateway, unless it points to another host', () => {
    const mounted = 'http://gw.example/travel';
    assert.equal(locationOf(path('/new'), '/old', {}, mounted), 'http://gw.example/travel/new');
    assert.equal(locationOf({ host: 'new.example' }, '/old', {}, mounted), 'http://new.example/old');
  });

  const [http, https] = [{ scheme: 'http' } as const, { scheme: 'https' } as const];
  for (const [parts, origin, expected] of [
    [http, 'https://gw.example:8443', 'http://gw.example'],
    [https, 'http://gw.example:8080', 'https://gw.example'],
    [https, 'https://gw.example:8443', 'https://gw.example'],
    [https, 'http://[2001:db8::1]:8080', 'https://[2001:db8::1]'],
    [{ ...https, port: 443 }, 'http://gw.example', 'https://gw.example'],
    [{ ...https, port: 80 }, 'http://gw.example', 'https://gw.example:80'],
    [{ ...https, port: 8443 }, 'http://gw.example', 'https://gw.example:8443'],
    [{ port: 80 }, 'http://gw.example:8080', 'http://gw.example'],
    [{ port: 443 }, 'https://gw.example:8443', 'https://gw.example'],
    [{ port: 8080 }, 'http://gw.example', 'http://gw.example:8080'],
    [{ host: 'new.example' }, 'http://gw.example:8080', 'http://new.example'],
    [{ host: 'new.example', port: 8080 }, 'http://gw.example', 'http://new.example:8080'],
    [{ ...http, host: '[::1]', port: 81 }, 'https://gw.example', 'http://[::1]:81'],
    [{ ...https, port: 8443 }, 'http://gw.example/shop', 'https://gw.example:8443/shop'],
  ] as const satisfies readonly (readonly [Parts, string, string])[])
    it(`goes from ${origin} to ${expected} with ${JSON.stringify(parts)}`, () => {
      assert.equal(locationOf(parts, '/old?a', {}, origin), `${expected}/old?a`);
    });

  it('throws at creation for a pattern that does not compile', () => {
    assert.throws(() => locationOf(regex('(', ''), '/old'), TypeError);
  });

  it('switches from http to https if the record says so', () => {
    const origin = 'http://gw.example/travel';
    assert.equal(
      locationOf({ scheme: 'https', host: 'new.example', port: 8443 }, '/old/x?a=1', {}, origin),
      'https://new.example:8443/old/x?a=1',
    );
    assert.equal(locationOf({ host: 'new.example' }, '/old/x', {}, origin), 'http://new.example/old/x');
  });

  it('points to the origin in the record, whatever path and query a client sends', () => {
    const piece = fc.constantFrom(...'/\\@:.\t #x\u00e9', '..', 'evil.example', '%2F', '%0d%0a', '\r\n');
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
    const regexes = [regex('x', ''), regex('^/old', '')];
    const parts = fc.constantFrom<Parts>({}, prefix('/'), prefix('/new'), path('/new'), ...regexes);
    const host = fc.constantFrom(undefined, 'new.example');
    fc.assert(
      fc.property(parts, host, text, text, (one, to, rest, query) => {
        const redirect = redirectOf({ host: to, ...one });
        const redirectionOf = createRedirection(redirect, { prefix: '/old' });
        const location = redirectionOf({ path: `/old${rest}`, search: query && `?${query}` }, 'https://gw.example');
        if (location === undefined) return;
        assert.match(location, /^[!-~]*$/);
        assert.doesNotMatch(location, /\\/);
        assert.equal(new URL(location).origin, `https://${to ?? 'gw.example'}`);
        assert.match(location, /^https:\/\/[a-z.]+\/(?!\/)/);
      }),
      { numRuns: 1000 },
    );
  });
});
