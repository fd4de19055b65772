import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa from 'koa';
import request from 'supertest';
import { createProblemResponses, createSafePath, originForm, pathOf, sanitisePath } from '#http';
import { withServer } from './raw-exchange.ts';

/** Text that looks like an attack more often than chance would have it. */
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

describe('sanitisePath', () => {
  function check(path: string, expected: string | undefined) {
    it(`${expected === undefined ? 'refuses' : `reads as ${expected}`}: ${JSON.stringify(path)}`, () => {
      assert.equal(sanitisePath(path), expected);
    });
  }

  check('/', '/');
  check(
    '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01',
    '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01',
  );
  check('/.well-known/acme', '/.well-known/acme');
  check('/a/...', '/a/...');
  check('/a/..b', '/a/..b');
  check('/a/b..', '/a/b..');
  check('/a.b/c', '/a.b/c');
  check('/a//b', '/a//b');
  check('/a/', '/a/');
  check('/100%25', '/100%25');
  check('/100%2525', '/100%2525');
  check('/a%20b', '/a%20b');
  check('/caf%c3%a9', '/caf%C3%A9');
  check('/%61dmin', '/admin');
  check('/%7Euser', '/~user');
  check('/a%2fb', '/a%2Fb');
  check('//evil.example', '/evil.example');
  check('////evil.example//x', '/evil.example//x');
  check('/%2Fevil.example', '/%2Fevil.example');

  check('', undefined);
  check('*', undefined);
  check('v1', undefined);
  check('http://evil.example/', undefined);
  check('/..', undefined);
  check('/.', undefined);
  check('/a/../b', undefined);
  check('/a/./b', undefined);
  check('/a/..', undefined);
  check('//../a', undefined);
  check('/%2e%2e/admin', undefined);
  check('/%2E./admin', undefined);
  check('/.%2e/admin', undefined);
  check('/a/..;/admin', undefined);
  check('/a/..;x=1/admin', undefined);
  check('/a/..%3B/admin', undefined);
  check('/a/..%2fadmin', undefined);
  check('/a%2f..%2fadmin', undefined);
  check('/a%2f%2e%2e', undefined);
  check('/a/..%3Fx', undefined);
  check('/a/..%23x', undefined);
  check('/a/%252e%252e/admin', undefined);
  check('/a/%25252e%25252e/admin', undefined);
  check('/a/%25%2532e%25%2532e/admin', undefined);
  check('/a%252f..%252fadmin', undefined);
  check('/a/..%255cadmin', undefined);
  check(`/${'%25'.repeat(3)}2525252e`, undefined);
  check(`/%${'25'.repeat(50)}`, undefined);
  check('/a\\b', undefined);
  check('/\\evil.example', undefined);
  check('/a%5Cb', undefined);
  check('/a%5cb', undefined);
  check('/a\0b', undefined);
  check('/a%00b', undefined);
  check('/a%0d%0aSet-Cookie:x', undefined);
  check('/a\r\nb', undefined);
  check('/\t/evil.example', undefined);
  check('/a b', undefined);
  check('/a#b', undefined);
  check('/a%', undefined);
  check('/a%2', undefined);
  check('/a%zz', undefined);
  check('/a%u002e', undefined);

  it('gives the same again when it reads its own result', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        const plain = sanitisePath(path);
        if (plain !== undefined) assert.equal(sanitisePath(plain), plain);
      }),
      { numRuns: 3000 },
    );
  });

  it('leaves no dot segment, however many hops behind it decode once more', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        for (const seen of decodings(sanitisePath(path))) {
          const segments = seen.split(/[/\\]/).map((segment) => segment.replace(/[;?#].*$/s, ''));
          assert.ok(!segments.some((segment) => segment === '.' || segment === '..'), seen);
        }
      }),
      { numRuns: 3000 },
    );
  });

  it('leaves exactly one slash in front, so that the path can never be read as another host', () => {
    fc.assert(
      fc.property(hostile, (path) => {
        const plain = sanitisePath(path);
        if (plain !== undefined) assert.match(plain, /^\/(?![/\\\s])/);
      }),
      { numRuns: 3000 },
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

  it('keeps what encodeURIComponent made of any text', () => {
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
  function check(path: string, expected: string | undefined) {
    it(`${expected === undefined ? 'refuses' : `reads as ${expected}`}: ${path}`, () => {
      assert.equal(sanitisePath(path, true), expected);
    });
  }

  check('/', '/');
  check('/a/', '/a/');
  check('/.well-known/acme', '/.well-known/acme');
  check('//a/b', '/a/b');
  check('/%61dmin', '/admin');
  check('/a%20b', '/a%20b');
  check('/caf%c3%a9', '/caf%C3%A9');
  check('/100%25', '/100%25');
  check('/100%25/2F', '/100%25/2F');
  check('/what%3F', '/what%3F');

  check('/a%2Fb', undefined);
  check('/%2fa', undefined);
  check('/a%252Fb', undefined);
  check('/a%25252fb', undefined);
  check('/a%25%32%46b', undefined);
  check('/a//b', undefined);
  check('/a//', undefined);
  check('//a//b', undefined);
  check('/a;x=1', undefined);
  check('/a;', undefined);
  check('/;/a', undefined);
  check('/a%3Bx', undefined);
  check('/a%253bx', undefined);
  check('/%2561', undefined);
  check('/%25%36%31', undefined);
  check('/a/../b', undefined);
  check('/a%zz', undefined);

  it('accepts nothing that means something else to who decodes more, merges slashes and drops path parameters', () => {
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
      { numRuns: 5000 },
    );
    assert.ok(accepted > 500, `${accepted} paths were accepted`);
  });

  it('gives what it gives when it is not, or refuses', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, mixed), (path) => {
        const plain = sanitisePath(path, true);
        if (plain !== undefined) assert.equal(sanitisePath(path), plain);
      }),
      { numRuns: 3000 },
    );
  });
});

/** Mostly harmless, with a little of what hops read in different ways. */
const mixed = fc
  .array(
    fc.constantFrom(
      ...['/', '/a', '/admin', 'b', '2f', '3B', '61', '%25', '%20', '%61', '%2F', '%3b', '%32', ';', '='],
    ),
    { maxLength: 7 },
  )
  .map((parts) => `/${parts.join('')}`);

/** One slash at the end makes no segment. */
function segmentsOf(path: string): readonly string[] {
  return path.replace(/^\/|\/$/g, '').split('/');
}

/** As a service reads segments that takes the empty ones, and what follows a semicolon, for nothing. */
function withoutParameters(segments: readonly string[]): readonly string[] {
  const kept = segments.map((segment) => segment.replace(/;.*/s, '')).filter((segment) => segment !== '');
  return kept.length === 0 ? [''] : kept;
}

/** Once, without a complaint about what is no encoding. */
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
    it(`shows ${target} to what follows as ${expected.url}`, async () => {
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

  function checkRefused(target: string) {
    it(`answers 400 with the error body for ${target}`, async () => {
      await withServer({ handler }, async ({ send }) => {
        const response = await send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`);
        assert.match(response, /^HTTP\/1\.1 400 /);
        assert.match(response, /"message":"400: Bad Request"/);
      });
    });
  }

  checkRefused('/v1/../admin');
  checkRefused('/v1/%2e%2e/admin');
  checkRefused('/v1/..%2fadmin');
  checkRefused('/v1\\..\\admin');
  checkRefused('/v1/x%00');
  checkRefused('/v1/x%zz');
  checkRefused('/v1/x#/../admin');
  checkRefused('/v1/x?y#z');
  checkRefused('http://desk.test/../admin');
  checkRefused('http://%2e%2e/%2e%2e');

  describe('with strictPaths', () => {
    const strict = new Koa();
    strict.use(createProblemResponses());
    strict.use(createSafePath({ strictPaths: true }));
    strict.use((ctx) => {
      ctx.body = ctx.url;
    });

    function checkNamed(target: string, found: string) {
      it(`says of ${target} that it has ${found}`, async () => {
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

    it('says of others what is said of them without it', async () => {
      const { body } = await request(strict.callback()).get('/a/..;/b').expect(400);
      assert.equal(body.detail, 'The path cannot be read in one way only.');
    });

    it('looks at the path alone, and not at the query', async () => {
      await request(strict.callback()).get('/a/?b=c%2Fd;e//%2561').expect(200, '/a/?b=c%2Fd;e//%2561');
    });
  });

  it('lets an ordinary path pass untouched, also behind a client that speaks to us plainly', async () => {
    await request(handler)
      .get('/v1/hotels/?limit=2')
      .expect(200, { url: '/v1/hotels/?limit=2', path: '/v1/hotels/', search: '?limit=2' });
  });
});

describe('pathOf', () => {
  function check(target: string, expected: string) {
    it(`finds ${expected} in ${target}`, () => {
      assert.equal(pathOf(target), expected);
    });
  }

  check('/', '/');
  check('/a/b', '/a/b');
  check('/a?b', '/a');
  check('/a?b?c#d', '/a');
  check('/a#b?c', '/a');
  check('//evil.example/a', '//evil.example/a');
  check('http://desk.test/a?b', '/a');
  check('HTTPS://desk.test:8080/a', '/a');
  check('http://user@desk.test/a', '/a');
  check('http://desk.test', '/');
  check('http://desk.test?b', '/');
  check('http://[/a', '/a');
  check('*', '*');
});

describe('originForm', () => {
  function check(target: string, expected: string) {
    it(`takes ${target} for ${expected}`, () => {
      assert.equal(originForm(target), expected);
    });
  }

  check('/a?b', '/a?b');
  check('http://desk.test/a?b', '/a?b');
  check('http://desk.test?b', '/?b');
  check('http://desk.test#b', '/#b');
  check('//desk.test/a', '//desk.test/a');
  check('*', '*');

  it('gives the same again, begins with the path and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.webPath()), (target) => {
        const origin = originForm(target);
        assert.ok(origin.startsWith(pathOf(target)));
        if (origin.startsWith('/')) assert.equal(originForm(origin), origin);
      }),
    );
  });
});
