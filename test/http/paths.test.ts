import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa from 'koa';
import request from 'supertest';
import { createProblemResponses, createSafePath, originForm, pathOf, sanitisePath } from '#http';
import { withServer } from './raw-exchange.ts';

/** Text that looks like an attack more often than random text does. */
const hostile = fc
  .array(
    fc.constantFrom(
      ...['/', '//', '.', '..', '%2e', '%2E', '%252e', '%2f', '%252F', '%5c', '%255c', '\\', ';', '%3b', '%25', '%00'],
      ...[
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
      ],
    ),
    { maxLength: 12 },
  )
  .map((parts) => `/${parts.join('')}`);

const ordinarySegment = fc
  .array(fc.constantFrom(..."abcXYZ019-_~!$&'()*+,;=:@"), { minLength: 1, maxLength: 8 })
  .map((characters) => characters.join(''));

/** By the expected result; `same` is the path itself. */
function checkAll(isStrict: boolean, rows: Readonly<Record<string, readonly string[]>>): void {
  for (const [expected, paths] of Object.entries(rows))
    it(`reads as ${expected}: ${JSON.stringify(paths.map((path) => path.slice(0, 40)))}`, () => {
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
  });

  describe('refuses', () => {
    checkAll(false, { refused: ['', '*', 'v1', 'http://evil.example/'] });
    checkAll(false, { refused: ['/..', '/.', '/a/../b', '/a/./b', '/a/..', '//../a'] });
    checkAll(false, { refused: ['/%2e%2e/admin', '/%2E./admin', '/.%2e/admin', '/a%2f%2e%2e'] });
    checkAll(false, { refused: ['/a/..;/admin', '/a/..;x=1/admin', '/a/..%3B/admin', '/a/..%3Fx', '/a/..%23x'] });
    checkAll(false, { refused: ['/a/..%2fadmin', '/a%2f..%2fadmin', '/a%252f..%252fadmin', '/a/..%255cadmin'] });
    checkAll(false, { refused: ['/a/%252e%252e/admin', '/a/%25252e%25252e/admin', '/a/%25%2532e%25%2532e/admin'] });
    checkAll(false, { refused: [`/${'%25'.repeat(3)}2525252e`, `/%${'25'.repeat(50)}`] });
    checkAll(false, { refused: ['/a\\b', '/\\evil.example', '/a%5Cb', '/a%5cb'] });
    checkAll(false, {
      refused: ['/a\0b', '/a%00b', '/a%0d%0aSet-Cookie:x', '/a\r\nb', '/\t/evil.example', '/a b', '/a#b'],
    });
    checkAll(false, { refused: ['/a%', '/a%2', '/a%zz', '/a%u002e'] });
  });

  it('does not change its own result', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        const plain = sanitisePath(path);
        if (plain !== undefined) assert.equal(sanitisePath(plain), plain);
      }),
      { numRuns: 1000 },
    );
  });

  it('leaves no dot segment, however often later hops decode', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        for (const seen of decodings(sanitisePath(path))) {
          const segments = seen.split(/[/\\]/).map((segment) => segment.replace(/[;?#].*$/s, ''));
          assert.ok(!segments.some((segment) => segment === '.' || segment === '..'), seen);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('leaves exactly one slash at the start, so that the path is never another host', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        const plain = sanitisePath(path);
        if (plain !== undefined) assert.match(plain, /^\/(?![/\\\s])/);
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps ordinary paths as they are', () => {
    fc.assert(
      fc.property(fc.array(ordinarySegment), fc.boolean(), (segments, slash) => {
        const path = `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}`;
        assert.equal(sanitisePath(path), path);
      }),
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
  });
  checkAll(true, { refused: ['/a%2Fb', '/%2fa', '/a%252Fb', '/a%25252fb', '/a%25%32%46b'] });
  checkAll(true, { refused: ['/a//b', '/a//', '//a//b'] });
  checkAll(true, { refused: ['/a;x=1', '/a;', '/;/a', '/a%3Bx', '/a%253bx'] });
  checkAll(true, { refused: ['/%2561', '/%25%36%31', '/a/../b', '/a%zz'] });

  it('accepts nothing that means something else to a service that decodes more, merges slashes and drops path parameters', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.oneof(hostile, mixed), (path) => {
        const plain = sanitisePath(path, true);
        if (plain === undefined) return;
        accepted += 1;
        const ours = segmentsOf(plain).map(decodeBytes);
        for (let seen = decodeBytes(plain), hops = 0; hops < 5; hops += 1, seen = decodeBytes(seen))
          assert.deepEqual(withoutParameters(segmentsOf(seen)), ours, path);
      }),
      { numRuns: 2000 },
    );
    assert.ok(accepted > 200, `${accepted} paths were accepted`);
  });

  it('returns what it returns without being strict, or refuses', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, mixed), (path) => {
        const plain = sanitisePath(path, true);
        if (plain !== undefined) assert.equal(sanitisePath(path), plain);
      }),
      { numRuns: 1000 },
    );
  });
});

/** Mostly harmless, with some parts that servers read in different ways. */
const mixed = fc
  .array(
    fc.constantFrom(
      ...['/', '/a', '/admin', 'b', '2f', '3B', '61', '%25', '%20', '%61', '%2F', '%3b', '%32', ';', '='],
    ),
    { maxLength: 7 },
  )
  .map((parts) => `/${parts.join('')}`);

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

/** The path as a chain of hops would see it, each decoding once. */
function* decodings(path: string | undefined): Generator<string> {
  let seen = path;
  while (seen !== undefined) {
    yield seen;
    const decoded: string | undefined = decodeOnce(seen);
    seen = decoded === seen ? undefined : decoded;
  }
}

function decodeOnce(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

describe('createSafePath', () => {
  const app = new Koa();
  app.use(createProblemResponses());
  app.use(createSafePath());
  app.use((ctx) => {
    ctx.body = { url: ctx.url, path: ctx.path, search: ctx.search };
  });
  const handler = app.callback();

  function check(target: string, expected: { url: string; path: string; search: string }) {
    it(`passes ${target} on as ${expected.url}`, async () => {
      await withServer({ handler }, async ({ send }) => {
        const response = await send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`);
        assert.match(response, /^HTTP\/1\.1 200 /);
        assert.ok(response.endsWith(JSON.stringify(expected)), response);
      });
    });
  }

  check('/v1/x?a=%2e%2e/b', { url: '/v1/x?a=%2e%2e/b', path: '/v1/x', search: '?a=%2e%2e/b' });
  check('/v1/%78?a=1&a=%31', { url: '/v1/x?a=1&a=%31', path: '/v1/x', search: '?a=1&a=%31' });
  check('//evil.example/x?y', { url: '/evil.example/x?y', path: '/evil.example/x', search: '?y' });
  check('/x?a?b', { url: '/x?a?b', path: '/x', search: '?a?b' });
  check('http://evil.example/v1/x?y=1', { url: '/v1/x?y=1', path: '/v1/x', search: '?y=1' });
  check('http://evil.example//other.example/?y', { url: '/other.example/?y', path: '/other.example/', search: '?y' });
  check('http://evil.example?y', { url: '/?y', path: '/', search: '?y' });
  check('http://evil.example', { url: '/', path: '/', search: '' });
  check('http://[/x', { url: '/x', path: '/x', search: '' });

  it('answers 400 with the error body for a path that it refuses', async () => {
    const targets = ['/v1/../admin', '/v1/%2e%2e/admin', '/v1/..%2fadmin', '/v1\\..\\admin', '/v1/x%00', '/v1/x%zz'];
    const others = ['/v1/x#/../admin', '/v1/x?y#z', 'http://desk.test/../admin', 'http://%2e%2e/%2e%2e'];
    await withServer({ handler }, async ({ send }) => {
      for (const target of [...targets, ...others]) {
        const response = await send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`);
        assert.match(response, /^HTTP\/1\.1 400 [\s\S]*"message":"400: Bad Request"/, target);
      }
    });
  });

  describe('with strictPaths', () => {
    const strict = new Koa();
    strict.use(createProblemResponses());
    strict.use(createSafePath({ strictPaths: true }));
    strict.use((ctx) => {
      ctx.body = ctx.url;
    });

    function checkNamed(target: string, found: string) {
      it(`names what ${target} has: ${found}`, async () => {
        const { body } = await request(strict.callback()).get(target).expect(400);
        assert.equal(body.detail, `The path cannot be read in one way only: it has ${found}.`);
      });
    }

    checkNamed('/a%2Fb', 'an encoded slash');
    checkNamed('/a%252fb', 'an encoded slash');
    checkNamed('/a//b', 'an empty segment');
    checkNamed('/a;x=1/b', 'a path parameter (";")');
    checkNamed('/a%3bx=1', 'a path parameter (";")');
    checkNamed('/%2561', 'a percent-encoding that is encoded again');

    it('gives no name where the path is refused without it, too', async () => {
      const { body } = await request(strict.callback()).get('/a/..;/b').expect(400);
      assert.equal(body.detail, 'The path cannot be read in one way only.');
    });

    it('checks the path, not the query', async () => {
      await request(strict.callback()).get('/a/?b=c%2Fd;e//%2561').expect(200, '/a/?b=c%2Fd;e//%2561');
    });
  });

  it('does not change an ordinary path', async () => {
    await request(handler)
      .get('/v1/hotels/?limit=2')
      .expect(200, { url: '/v1/hotels/?limit=2', path: '/v1/hotels/', search: '?limit=2' });
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
