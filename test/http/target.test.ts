/** The host and the path of a request: which are rejected, and what the others become. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa, { type Context } from 'koa';
import { createProblemResponses, createSafePath, originForm, pathOf, sanitisePath } from '#http';
import { anyCharacter } from '../support/any-character.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

/** Paths that resemble attacks more often than random text. */
const hostile = pathOfParts(12, [
  '/',
  '//',
  '.',
  '..',
  '%2e',
  '%2E',
  '%252e',
  '%2f',
  '%252F',
  '%5c',
  '%255c',
  '\\',
  ';',
  '%3b',
  '%25',
  '%00',
  'a',
  'admin',
  '%61',
  '%7e',
  '%7E',
  '?',
  '#',
  '%',
  '%2',
  '%zz',
  ' ',
  '\t',
  '\0',
  '\n',
  'é',
  '%C3%A9',
  '2e',
  '5',
]);

function pathOfParts(maxLength: number, parts: readonly string[]) {
  return fc.array(fc.constantFrom(...parts), { maxLength }).map((some) => `/${some.join('')}`);
}

/** The keys are the expected results. `same` means the path itself, `rejected` means undefined. */
function checkAll(rows: Readonly<Record<string, readonly string[]>>): void {
  const titles: Readonly<Record<string, string>> = { same: 'does not change', rejected: 'rejects' };
  for (const [expected, paths] of Object.entries(rows))
    it(`${titles[expected] ?? `returns ${expected} for`} ${JSON.stringify(paths.map((path) => path.slice(0, 40)))}`, () => {
      for (const path of paths) {
        const plain = expected === 'same' ? path : expected === 'rejected' ? undefined : expected;
        assert.equal(sanitisePath(path), plain, path);
      }
    });
}

describe('sanitisePath', () => {
  checkAll({
    same: [
      '/',
      '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01',
      '/.well-known/acme',
      '/a/...',
      '/a/..b',
      '/a/b..',
      '/a.b/c',
      '/a//b',
      '/a/',
      '/100%25',
      '/100%2525',
      '/a%20b',
      '/%2Fevil.example',
    ],
    '/caf%C3%A9': ['/caf%c3%a9'],
    '/admin': ['/%61dmin'],
    '/~user': ['/%7Euser'],
    '/a%2Fb': ['/a%2fb'],
    rejected: [
      '//',
      '//evil.example//x',
      '////evil.example/x',
      '',
      '*',
      'v1',
      'http://evil.example/',
      '/..',
      '/.',
      '/a/../b',
      '/a/./b',
      '/a/..',
      '//../a',
      '/%2e%2e/admin',
      '/%2E./admin',
      '/.%2e/admin',
      '/a%2f%2e%2e',
      '/a/..;/admin',
      '/a/..;x=1/admin',
      '/a/..%3B/admin',
      '/a/..%3Fx',
      '/a/..%23x',
      '/a/..%2fadmin',
      '/a%2f..%2fadmin',
      '/a%252f..%252fadmin',
      '/a/..%255cadmin',
      '/a/%252e%252e/admin',
      '/a/%25252e%25252e/admin',
      '/a/%25%2532e%25%2532e/admin',
      `/${'%25'.repeat(3)}2525252e`,
      `/%${'25'.repeat(50)}`,
      '/a\\b',
      '/\\evil.example',
      '/a%5Cb',
      '/a%5cb',
      '/a\0b',
      '/a%00b',
      '/a%0d%0aSet-Cookie:x',
      '/a\r\nb',
      '/\t/evil.example',
      '/a b',
      '/a#b',
      '/a%',
      '/a%2',
      '/a%zz',
      '/a%u002e',
      '/x/..%20/admin',
      '/x/..%20',
      '/x/.%09/admin',
      '/x/..%20.%20/admin',
      '/x/..%2520/admin',
      '/%2e/',
      '/x/%2e%20/',
      '/%C0%AE%C0%AE/',
      '/x/%c0%ae%c0%ae%c0%afadmin',
      '/x/%25C0%25AE%25C0%25AE/',
      '/x/%E0%80%AE%E0%80%AE/',
      '/x/%c0%2e./',
      '/x/\xc0\xae\xc0\xae/admin',
      '/%F0%80%80%AE/',
      '/x%C1%9Cadmin',
      '/x%C0%80',
      '/a%255Cb',
      '/a%25255cb',
      '/a%2500b',
      '/a%09b',
      '/a%1B',
      '/a%7f',
      '/a%250a',
      '/x/%25u002e%25u002E/admin',
      '/x%25u005Cadmin',
      '/x/%F8%80%80%80%AE%C0%AE/admin',
      '/x/%20../admin',
      '/x/%20%2E/',
    ],
  });

  it('is idempotent and returns paths with one leading slash and no dot segment under any encoding', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        const plain = sanitisePath(path);
        if (plain === undefined) return;
        assert.equal(sanitisePath(plain), plain);
        assert.match(plain, /^\/(?![/\\\s])/);
        for (const seen of decodings(plain)) {
          const segments = seen.split(/[/\\]/).map((segment) => segment.replace(/[;?#].*$/s, ''));
          assert.ok(!segments.some((segment) => segment === '.' || segment === '..'), seen);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps the output of encodeURIComponent', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, minLength: 1 }), (text) => {
        // Windows ignores blanks after dots, so such paths are rejected.
        fc.pre(!/(?:^|[/\\]) *\.{1,2}(?: [. ]*)?(?:$|[/\\;?#])|[\\\x7f]|[^\x20-\uffff]|%[\da-f]{2}/i.test(text));
        const plain = sanitisePath(`/${encodeURIComponent(text)}`);
        assert.equal(decodeURIComponent(plain ?? 'rejected'), `/${text}`);
      }),
    );
  });
});

/** Yields the path as each hop of a chain sees it if every hop decodes it once. */
function* decodings(path: string): Generator<string> {
  for (let seen = path, before = ''; seen !== before; ) {
    yield seen;
    before = seen;
    try {
      seen = decodeURIComponent(seen);
    } catch {}
  }
}

describe('createSafePath', () => {
  const servers = testServers();

  for (const [path, detail] of [
    ['/a%zz', /two hexadecimal digits/],
    ['/a%00', /a NUL/],
    ['/a%0a', /a line break/],
    ['/a/../b', /a dot segment/],
    ['/a/%2E%2e', /a dot segment/],
    ['/a%5C', /ambiguous/],
  ] as const)
    it(`says what is wrong with ${path}`, () => {
      const run = () => createSafePath()({ req: { url: path } } as Context, async () => {});
      assert.throws(run, { slug: 'bad-path', detail });
    });

  const handlerOf = () => {
    const app = new Koa().use(createProblemResponses()).use(createSafePath());
    app.use(({ response, url, path, search }) => {
      response.body = { url, path, search };
    });
    return app.callback();
  };

  /** Sends targets that no HTTP client would send, and checks each response. */
  async function send(targets: readonly string[], check: (response: string, target: string) => void) {
    const { port } = await servers.http(handlerOf());
    for (const target of targets) check(await sendRaw(port, rawRequest(`GET ${target}`)), target);
  }

  it('rewrites the target to origin-form with a plain path and an unchanged query', async () => {
    const rows: Readonly<Record<string, readonly [path: string, search: string]>> = {
      '/v1/hotels/?limit=2': ['/v1/hotels/', '?limit=2'],
      '/v1/x?a=%2e%2e/b': ['/v1/x', '?a=%2e%2e/b'],
      '/v1/%78?a=1&a=%31': ['/v1/x', '?a=1&a=%31'],
      '/x?a?b': ['/x', '?a?b'],
      'http://evil.example/v1/x?y=1': ['/v1/x', '?y=1'],
      'http://evil.example?y': ['/', '?y'],
      'http://evil.example': ['/', ''],
      'http://[/x': ['/x', ''],
    };
    await send(Object.keys(rows), (response, target) => {
      const [path = '', search = ''] = rows[target] ?? [];
      assert.match(response, /^HTTP\/1\.1 200 /);
      assert.deepEqual(JSON.parse(bodyOf(response)), { url: path + search, path, search }, target);
    });
  });

  it('responds with a 400 error body to a path that it rejects', async () => {
    const targets = ['/v1/../admin', '/v1/%2e%2e/admin', '/v1/..%2fadmin', '/v1\\..\\admin', '/v1/x%00', '/v1/x%zz'];
    const others = [
      '//evil.example/x?y',
      'http://evil.example//other.example/',
      '/v1/x#/../admin',
      '/v1/x?y#z',
      'http://desk.test/../admin',
      'http://%2e%2e/%2e%2e',
    ];
    await send([...targets, ...others], (response, target) => {
      assert.match(response, /^HTTP\/1\.1 400 [\s\S]*"message":"400: Bad Request"/, target);
    });
  });
});

describe('pathOf and originForm', () => {
  function check(target: string, path: string, origin: string) {
    it(`return ${path} and ${origin} for ${target}`, () => {
      assert.deepEqual([pathOf(target), originForm(target)], [path, origin]);
      assert.equal(originForm(origin), origin);
    });
  }

  check('/', '/', '/');
  check('/a?b?c#d', '/a', '/a?b?c#d');
  check('/a#b?c', '/a', '/a#b?c');
  check('//evil.example/a', '//evil.example/a', '//evil.example/a');
  check('http://desk.test/a?b', '/a', '/a?b');
  check('HTTPS://user@desk.test:8080/a', '/a', '/a');
  check('http://desk.test', '/', '/');
  check('http://desk.test?b', '/', '/?b');
  check('http://desk.test#b', '/', '/#b');
  check('http://[/a', '/a', '/a');
  check('*', '*', '*');
});

describe('the host of a request', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  let port = 0;

  before(async () => {
    const echo = (ctx: Context) => {
      ctx.body = `found ${ctx.get('Host')}`;
    };
    const records = [
      mappingRecord('a', '/', 'echo', { host: 'A.example' }),
      mappingRecord('idn', '/', 'echo', { host: 'Bücher.example' }),
      mappingRecord('glob', '/', 'echo', { hostname: '*.bücher.example' }),
    ];
    const desk = await open({ config: { records }, services: { echo }, only: ['gateway'] });
    port = (await desk.listen()).gateway.port;
  });

  const send = (target: string, ...hosts: readonly string[]) => {
    const lines = hosts.map((host) => `Host: ${host}`);
    return sendRaw(port, [`GET ${target} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'));
  };

  /** `status` is the expected status, and `seen` the host that the service sees. */
  const check = (what: string, status: number, target: string, hosts: readonly string[], seen?: string) =>
    it(`${what}: ${status}`, async () => {
      const answer = await send(target, ...hosts);
      assert.equal(statusOf(answer), status, answer);
      if (seen !== undefined) assert.ok(answer.includes(`found ${seen}`), answer);
      if (status === 400) assert.match(answer, /"code":400/);
    });

  check('matches the name', 200, '/', ['a.example'], 'a.example');
  check('ignores the port', 200, '/', ['a.example:8443']);
  check('ignores one trailing dot', 200, '/', ['a.example.']);
  check('ignores a dot before the port', 200, '/', ['a.example.:80']);
  check('does not ignore two dots', 404, '/', ['a.example..']);
  check('ignores ASCII case', 200, '/', ['A.EXAMPLE']);
  check('does not match another name', 404, '/', ['b.example']);
  check('rejects two Host lines', 400, '/', ['a.example', 'b.example']);
  check('rejects two Host lines that are the same', 400, '/', ['a.example', 'a.example']);
  check('rejects a missing Host', 400, '/', []);
  check('rejects an absolute target without Host', 400, 'http://a.example/', []);
  check('prefers the authority of an absolute target to Host', 200, 'http://a.example/', ['b.example'], 'a.example');
  check('does not fall back to Host for an absolute target', 404, 'http://b.example/', ['a.example']);
  check('rejects an absolute target with two Host lines', 400, 'http://a.example/', ['a.example', 'b.example']);
  check('rejects an absolute target without a host', 400, 'http:///', ['a.example']);
  check('rejects credentials in an absolute target', 400, 'http://user@a.example/', ['a.example']);
  check('matches a record with an internationalised name', 200, '/', ['xn--bcher-kva.example']);
  check('matches a record with an internationalised domain', 200, '/', ['x.XN--BCHER-KVA.example']);
  check('rejects bytes beyond ASCII', 400, '/', ['b\xc3\xbccher.example']);
  check('rejects bytes beyond ASCII in an absolute target', 400, 'http://b\xc3\xbccher.example/', ['a.example']);
  check('rejects an invalid host', 400, '/', ['a.example/path']);
  check('rejects two names', 400, '/', ['a.example, b.example']);

  it('is absent in HTTP/1.0, whose requests match mappings without a host', async () => {
    assert.match(await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 404 /);
  });
});
