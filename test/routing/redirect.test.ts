/** Where a redirect leads: never to a host that neither the record nor the gateway names. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Redirect } from '#config';
import { createRedirection, type PathRule } from '#routing';

type Parts = Partial<Omit<Redirect, 'status'>>;

function locationOf(parts: Parts, target: string, rule: Partial<PathRule> = {}, origin = 'https://gw.example') {
  const [path = '', query] = target.split(/(?=\?)/);
  const redirect: Redirect = { host: undefined, path: undefined, status: 301, ...parts };
  return createRedirection(redirect, { prefix: '/old', ...rule })({ path, search: query ?? '' }, origin);
}

describe('a redirect', () => {
  function check(parts: Parts, target: string, expected: string | undefined, rule: Partial<PathRule> = {}) {
    it(`leads from ${target} to ${expected} with ${JSON.stringify(parts)} ${JSON.stringify(rule)}`, () =>
      assert.equal(locationOf(parts, target, rule), expected));
  }

  const path = (value: string) => ({ path: { kind: 'path' as const, value } });
  const prefix = (value: string) => ({ path: { kind: 'prefix' as const, value } });
  const regex = (pattern: string, substitution: string) => ({
    path: { kind: 'regex' as const, pattern, substitution },
  });

  check({ host: 'new.example:8443' }, '/old/x?a=1', 'https://new.example:8443/old/x?a=1');
  check({ host: 'new.example', ...path('/new') }, '/old/x?a=1', 'https://new.example/new?a=1');
  check(path('/new'), '/old/x', 'https://gw.example/new');
  check(path('//evil.example'), '/old/x', 'https://gw.example/evil.example');
  check(prefix('/new'), '/old/x/y?a', 'https://gw.example/new/x/y?a');
  check(prefix('/new/'), '/old/x', 'https://gw.example/new/x');
  check(prefix('/'), '/old', 'https://gw.example/');
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

  it('keeps the path under which the gateway is mounted, unless it leads to another host', () => {
    const mounted = 'http://gw.example/travel';
    assert.equal(locationOf(path('/new'), '/old', {}, mounted), 'http://gw.example/travel/new');
    assert.equal(locationOf({ host: 'new.example' }, '/old', {}, mounted), 'http://new.example/old');
  });

  it('refuses a pattern that does not compile when it is made', () => {
    assert.throws(() => locationOf(regex('(', ''), '/old'), TypeError);
  });

  it('leads to the origin that it names, whatever the client asks for', () => {
    const piece = fc.constantFrom(
      '/',
      '\\',
      '@',
      ':',
      '.',
      '..',
      'evil.example',
      '%2F',
      '%0d%0a',
      '\r\n',
      '\t',
      ' ',
      '#',
      'x',
      '\u00e9',
    );
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
    const parts = fc.constantFrom<Parts>(
      {},
      prefix('/'),
      prefix('/new'),
      path('/new'),
      regex('x', ''),
      regex('^/old', ''),
    );
    const host = fc.constantFrom(undefined, 'new.example');
    fc.assert(
      fc.property(parts, host, text, text, (one, to, asked, query) => {
        const redirect: Redirect = { host: to, path: undefined, status: 301, ...one };
        const made = createRedirection(redirect, { prefix: '/old' });
        const location = made({ path: `/old${asked}`, search: query && `?${query}` }, 'https://gw.example');
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
