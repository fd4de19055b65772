import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa from 'koa';
import { createProblemResponses, createSafePath, originForm, pathOf, type SafePathOptions, sanitisePath } from '#http';
import { bodyOf, withServer } from './raw-exchange.ts';

/** Paths that look like attacks more often than random text does. */
const hostile = pathOfParts(12, [
  ...['/', '//', '.', '..', '%2e', '%2E', '%252e', '%2f', '%252F', '%5c', '%255c', '\\', ';', '%3b', '%25', '%00'],
  ...['a', 'admin', '%61', '%7e', '%7E', '?', '#', '%', '%2', '%zz', ' ', '\t', '\0', '\n', 'é', '%C3%A9', '2e', '5'],
]);

/** Mostly harmless paths, with some parts that servers read in different ways. */
const mixed = pathOfParts(7, [
  ...['/', '/a', '/admin', 'b', '2f', '3B', '61', '%25', '%20', '%61', '%2F', '%3b', '%32', ';', '='],
]);

function pathOfParts(maxLength: number, parts: readonly string[]) {
  return fc.array(fc.constantFrom(...parts), { maxLength }).map((some) => `/${some.join('')}`);
}

/** By the expected result; `same` is the path itself. */
function checkAll(isStrict: boolean, rows: Readonly<Record<string, readonly string[]>>): void {
  for (const [expected, paths] of Object.entries(rows))
    it(`returns ${expected} for ${JSON.stringify(paths.map((path) => path.slice(0, 40)))}`, () => {
      for (const path of paths) {
        const plain = expected === 'same' ? path : expected === 'refused' ? undefined : expected;
        assert.equal(sanitisePath(path, isStrict), plain, path);
      }
    });
}

describe('sanitisePath', () => {
  checkAll(false, {
    same: [
      ...['/', '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01', '/.well-known/acme', '/a/...', '/a/..b'],
      ...['/a/b..', '/a.b/c', '/a//b', '/a/', '/100%25', '/100%2525', '/a%20b', '/%2Fevil.example'],
    ],
    '/caf%C3%A9': ['/caf%c3%a9'],
    '/admin': ['/%61dmin'],
    '/~user': ['/%7Euser'],
    '/a%2Fb': ['/a%2fb'],
    '/evil.example//x': ['//evil.example//x', '////evil.example//x'],
    refused: [
      ...['', '*', 'v1', 'http://evil.example/'],
      ...['/..', '/.', '/a/../b', '/a/./b', '/a/..', '//../a'],
      ...['/%2e%2e/admin', '/%2E./admin', '/.%2e/admin', '/a%2f%2e%2e'],
      ...['/a/..;/admin', '/a/..;x=1/admin', '/a/..%3B/admin', '/a/..%3Fx', '/a/..%23x'],
      ...['/a/..%2fadmin', '/a%2f..%2fadmin', '/a%252f..%252fadmin', '/a/..%255cadmin'],
      ...['/a/%252e%252e/admin', '/a/%25252e%25252e/admin', '/a/%25%2532e%25%2532e/admin'],
      ...[`/${'%25'.repeat(3)}2525252e`, `/%${'25'.repeat(50)}`],
      ...['/a\\b', '/\\evil.example', '/a%5Cb', '/a%5cb'],
      ...['/a\0b', '/a%00b', '/a%0d%0aSet-Cookie:x', '/a\r\nb', '/\t/evil.example', '/a b', '/a#b'],
      ...['/a%', '/a%2', '/a%zz', '/a%u002e'],
    ],
  });

  it('returns a path with one slash at the start and no dot segment under any encoding, which it does not change again', () => {
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
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        fc.pre(!/^\.{1,2}(?:$|[/\\;?#])|[/\\]\.{1,2}(?:$|[/\\;?#])|[\\\0\r\n]|%[\da-f]{2}/i.test(text));
        const plain = sanitisePath(`/${encodeURIComponent(text)}`);
        assert.equal(decodeURIComponent(plain ?? 'refused'), `/${text}`);
      }),
    );
  });
});

describe('sanitisePath, when it is strict', () => {
  checkAll(true, {
    same: ['/', '/a/', '/.well-known/acme', '/a%20b', '/100%25', '/100%25/2F', '/what%3F'],
    '/a/b': ['//a/b'],
    '/admin': ['/%61dmin'],
    '/caf%C3%A9': ['/caf%c3%a9'],
    refused: [
      ...['/a%2Fb', '/%2fa', '/a%252Fb', '/a%25252fb', '/a%25%32%46b'],
      ...['/a//b', '/a//', '//a//b'],
      ...['/a;x=1', '/a;', '/;/a', '/a%3Bx', '/a%253bx'],
      ...['/%2561', '/%25%36%31', '/a/../b', '/a%zz'],
    ],
  });

  it('accepts only what a service that decodes again, merges slashes and drops path parameters reads the same', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.oneof(hostile, mixed), (path) => {
        const plain = sanitisePath(path, true);
        if (plain === undefined) return;
        accepted += 1;
        assert.equal(sanitisePath(path), plain);
        const ours = segmentsOf(plain).map(decodeBytes);
        for (let seen = decodeBytes(plain), hops = 0; hops < 5; hops += 1, seen = decodeBytes(seen))
          assert.deepEqual(withoutParameters(segmentsOf(seen)), ours, path);
      }),
      { numRuns: 2000 },
    );
    assert.ok(accepted > 200, `${accepted} paths were accepted`);
  });
});

/** One slash at the end is no segment. */
function segmentsOf(path: string): readonly string[] {
  return path.replace(/^\/|\/$/g, '').split('/');
}

/** The segments of a service that ignores empty ones, and what follows a semicolon. */
function withoutParameters(segments: readonly string[]): readonly string[] {
  const kept = segments.map((segment) => segment.replace(/;.*/s, '')).filter((segment) => segment !== '');
  return kept.length === 0 ? [''] : kept;
}

/** Once, ignoring malformed encodings. */
function decodeBytes(text: string): string {
  return text.replace(/%[\da-f]{2}/gi, (encoded) => String.fromCharCode(Number.parseInt(encoded.slice(1), 16)));
}

/** The path as each of a chain of hops sees it, when every hop decodes once. */
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
  const handlerOf = (options?: SafePathOptions) => {
    const app = new Koa().use(createProblemResponses()).use(createSafePath(options));
    app.use(({ response, url, path, search }) => {
      response.body = { url, path, search };
    });
    return app.callback();
  };

  /** The responses to targets that no HTTP client would send. */
  async function send(targets: readonly string[], check: (response: string, target: string) => void) {
    await withServer({ handler: handlerOf() }, async (server) => {
      for (const target of targets)
        check(await server.send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`), target);
    });
  }

  it('rewrites the target in origin-form, with its path in plain form and its query as it came', async () => {
    const rows: Readonly<Record<string, readonly [path: string, search: string]>> = {
      '/v1/hotels/?limit=2': ['/v1/hotels/', '?limit=2'],
      '/v1/x?a=%2e%2e/b': ['/v1/x', '?a=%2e%2e/b'],
      '/v1/%78?a=1&a=%31': ['/v1/x', '?a=1&a=%31'],
      '//evil.example/x?y': ['/evil.example/x', '?y'],
      '/x?a?b': ['/x', '?a?b'],
      'http://evil.example/v1/x?y=1': ['/v1/x', '?y=1'],
      'http://evil.example//other.example/?y': ['/other.example/', '?y'],
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

  it('answers 400 with the error body for a path that it refuses', async () => {
    const targets = ['/v1/../admin', '/v1/%2e%2e/admin', '/v1/..%2fadmin', '/v1\\..\\admin', '/v1/x%00', '/v1/x%zz'];
    const others = ['/v1/x#/../admin', '/v1/x?y#z', 'http://desk.test/../admin', 'http://%2e%2e/%2e%2e'];
    await send([...targets, ...others], (response, target) => {
      assert.match(response, /^HTTP\/1\.1 400 [\s\S]*"message":"400: Bad Request"/, target);
    });
  });
});

describe('pathOf and originForm', () => {
  function check(target: string, path: string, origin: string) {
    it(`read ${target} as ${path} and ${origin}`, () => {
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
