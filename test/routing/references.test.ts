/** Translating the URLs in responses for the client, and those in `Destination` and `If` for the service. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  createRewrite,
  editReferences,
  type PathRestoration,
  readReference,
  restoreCookie,
  restoreHeader,
  rewritePrefixes,
} from '#routing';
import { anyPrefix, joinPrefix, rest, rewrite } from './rules.ts';

const there: PathRestoration = {
  publicPrefix: '/travel/v1/hotels',
  innerPrefix: '',
  upstreamOrigin: 'http://hotel:80',
  publicScheme: 'http',
  publicHost: 'Front.example',
  sentHost: 'inner.example:8080',
};

const restoreLocation = (value: string, restoration: PathRestoration) => restoreHeader('location', value, restoration);

const checkOf = (restore: typeof restoreLocation) =>
  function check(sent: string, expected: string, changes: Partial<PathRestoration> = {}) {
    it(`turns ${sent} into ${expected} with ${JSON.stringify(changes)}`, () =>
      assert.equal(restore(sent, { ...there, ...changes }), expected));
  };

/** Calls `check` with a client's path, the rewritten path that the service receives, and the matching restoration. */
function forAnyRewrite(check: (path: string, inner: string, restoration: PathRestoration) => void): void {
  fc.assert(
    fc.property(anyPrefix, rewrite, rest, fc.constantFrom('', '/travel'), (prefix, to, tail, base) => {
      const rule = { prefix, rewrite: to };
      const { matchedPrefix, replacement } = rewritePrefixes(rule);
      const path = joinPrefix(prefix, tail);
      const inner = createRewrite(rule)(path) ?? assert.fail('the path is rejected');
      const publicPrefix = base + matchedPrefix;
      // A service may send the public path itself, so these two cannot be distinguished.
      fc.pre(publicPrefix === '' || !`${inner}/`.startsWith(`${publicPrefix}/`));
      check(base + path, inner, { ...there, publicPrefix, innerPrefix: replacement, upstreamOrigin: 'http://hotel' });
    }),
  );
}

describe('restoring a Location', () => {
  const check = checkOf(restoreLocation);

  check('/bookings/?limit=1#x', '/travel/v1/hotels/bookings/?limit=1#x');
  check('/?q=a', '/travel/v1/hotels/?q=a');
  check('/travel/v1/hotels/bookings/', '/travel/v1/hotels/bookings/');
  check('/travel/v1/hotelsx', '/travel/v1/hotels/travel/v1/hotelsx');
  check('http://hotel:80/bookings/', '/travel/v1/hotels/bookings/');
  check('http://hotel/bookings/', '/travel/v1/hotels/bookings/');
  check('HTTP://HOTEL/bookings/', '/travel/v1/hotels/bookings/');
  check('//hotel/bookings/', '/travel/v1/hotels/bookings/');
  check('http://hotel', '/travel/v1/hotels/');
  check('http://hotel/\xc3\xa9?q=\xe9', '/travel/v1/hotels/\xc3\xa9?q=\xe9');
  check('http://front.example/\xc3\xa9', 'http://front.example/travel/v1/hotels/\xc3\xa9');
  check('//hotel/%c3\xa9#\xe9', '/travel/v1/hotels/%c3\xa9#\xe9');
  check('http://hotel/a/../\xc3\xa9', '/travel/v1/hotels/%C3%A9');
  check('http://other.example/\xc3\xa9', 'http://other.example/\xc3\xa9');
  check('http://\xe9/x', 'http://\xe9/x');
  check('http://hotel:81/x', 'http://hotel:81/x');
  check('https://hotel/x', 'https://hotel/x');
  check('http://hotel.example/x', 'http://hotel.example/x');
  check('http://hotel@evil.example/x', 'http://hotel@evil.example/x');
  check('//elsewhere.example/x', '//elsewhere.example/x');
  check('http://[', 'http://[');
  check('bookings/', 'bookings/');
  check('?page=2', '?page=2');

  check('/api/x', '/travel/v1/hotels/x', { innerPrefix: '/api' });
  check('/api', '/travel/v1/hotels', { innerPrefix: '/api' });
  check('/apis', '/apis', { innerPrefix: '/api' });
  check('/api/x', '/x', { innerPrefix: '/api', publicPrefix: '' });
  check('/api?x', '/?x', { innerPrefix: '/api', publicPrefix: '' });
  check('/api', '/', { innerPrefix: '/api', publicPrefix: '' });
  check('/x', '/x', { publicPrefix: '' });

  // What was a path of the service must not become a host.
  check('http://hotel//evil.example/x', '/evil.example/x', { publicPrefix: '' });
  check('http://hotel/\\evil.example/x', '/evil.example/x', { publicPrefix: '' });
  check('/api//evil.example', '/evil.example', { innerPrefix: '/api', publicPrefix: '' });
  check('/api/\\evil.example', '/evil.example', { innerPrefix: '/api', publicPrefix: '' });
  check('http://hotel//evil.example/x', '/evil.example/x', { innerPrefix: '/api', publicPrefix: '' });

  // The host of the client and the Host that was sent, in the schemes of the client and of the service.
  check('http://front.example:80/x?q#h', 'http://front.example/travel/v1/hotels/x?q#h');
  check('//front.example/x', '/travel/v1/hotels/x');
  check('http://front.example/travel/v1/hotels/x', 'http://front.example/travel/v1/hotels/x');
  check('http://inner.example:8080/x', '/travel/v1/hotels/x');
  check('http://inner.example/x', 'http://inner.example/x');
  check('https://inner.example:8080/x', 'https://inner.example:8080/x');
  check('http://front.example:8080/x', 'http://front.example:8080/x');
  check('ftp://front.example/x', 'ftp://front.example/x');
  check('http://front.example@evil.example/x', 'http://front.example@evil.example/x');
  check('http://front.example//evil.example/x', 'http://front.example/evil.example/x', { publicPrefix: '' });
  check('http://front.example/x', '/travel/v1/hotels/x', { publicScheme: 'https' });
  check('https://front.example/x', 'https://front.example/travel/v1/hotels/x', { publicScheme: 'https' });
  check('https://inner.example:8080/x', '/travel/v1/hotels/x', { publicScheme: 'https' });
  check('https://inner.example:8080/x', '/travel/v1/hotels/x', { upstreamOrigin: 'https://hotel' });
  check('//front.example/x', '/travel/v1/hotels/x', { upstreamOrigin: 'https://hotel' });
  check('http://inner.example:8080/x', 'http://inner.example:8080/x', { sentHost: undefined });
  check('http://1.2.3.4.5/x', 'http://1.2.3.4.5/x', { publicHost: '1.2.3.4.5' });

  // A path alone would cause the same redirect again.
  check('https://front.example/x', 'https://front.example/travel/v1/hotels/x');
  check('https://front.example/travel/v1/hotels/x', 'https://front.example/travel/v1/hotels/x');
  check('https://front.example/x', 'https://front.example/travel/v1/hotels/x', { upstreamOrigin: 'https://hotel' });
  check('https://front.example//evil.example', 'https://front.example/evil.example', { publicPrefix: '' });

  it('reverses any rewrite', () => {
    forAnyRewrite((path, inner, restoration) => {
      const restored = restoreLocation(inner, restoration);
      assert.equal(restored.replace(/\/$/, ''), path.replace(/\/$/, ''));
      assert.equal(restoreLocation(`http://hotel${inner}`, restoration), restored);
    });
  });
});

describe('restoring other headers', () => {
  it('turns a Content-Location into a public path like a Location, and leaves others unchanged', () => {
    const restored = (name: string) => restoreHeader(name, '/bookings/1', there);
    assert.equal(restored('content-location'), '/travel/v1/hotels/bookings/1');
    assert.equal(restored('x-location'), '/bookings/1');
    assert.equal(restored('link'), '/bookings/1');
  });

  const check = checkOf((value, restoration) => restoreHeader('link', value, { rewriteLinks: true, ...restoration }));

  check('</a>; rel=next', '</travel/v1/hotels/a>; rel=next');
  check(
    '</a>; rel="x <b> \\" </c>", </d>;rel=y',
    '</travel/v1/hotels/a>; rel="x <b> \\" </c>", </travel/v1/hotels/d>;rel=y',
  );
  check('<http://hotel/a>, <https://other.example/a>, <a>', '</travel/v1/hotels/a>, <https://other.example/a>, <a>');
  check('</a>; title="</b>', '</travel/v1/hotels/a>; title="</b>');
  check('</a>; rel=next', '</a>; rel=next', { rewriteLinks: false });
});

describe('restoring a Set-Cookie', () => {
  const check = checkOf(restoreCookie);

  check('a=1; Path=/x; Domain=hotel; Secure', 'a=1; Path=/x; Secure', { cookiePath: 'keep' });

  check('a=1; Path=/bookings', 'a=1; Path=/travel/v1/hotels/bookings');
  check('a=1; Path=/', 'a=1; Path=/travel/v1/hotels');
  check('a=1;PATH = / ;Secure', 'a=1;PATH = /travel/v1/hotels ;Secure');
  check('a=1; Path=/x; Path=/y', 'a=1; Path=/travel/v1/hotels/x; Path=/travel/v1/hotels/y');
  check('a=1; Path=/travel/v1/hotels/x', 'a=1; Path=/travel/v1/hotels/x');
  check('a=1; Path=/travel/v1/hotels', 'a=1; Path=/travel/v1/hotels');
  check('a=1; Path=/travel/v1/hotelsx', 'a=1; Path=/travel/v1/hotels/travel/v1/hotelsx');
  check('a=1', 'a=1');
  check('', '');
  check('a=1; Path', 'a=1; Path');
  check('a=1; Path=', 'a=1; Path=');
  check('a="Path=/x"; Max-Age=3', 'a="Path=/x"; Max-Age=3');
  check('Path=/x', 'Path=/x');
  check('Domain=hotel', 'Domain=hotel');
  check('a=1; Xpath=/x', 'a=1; Xpath=/x');

  check('a=1; Path=/api/x', 'a=1; Path=/travel/v1/hotels/x', { innerPrefix: '/api' });
  check('a=1; Path=/api', 'a=1; Path=/travel/v1/hotels', { innerPrefix: '/api' });
  check('a=1; Path=/api/', 'a=1; Path=/travel/v1/hotels', { innerPrefix: '/api' });
  check('a=1; Path=/base', 'a=1; Path=/travel/v1/hotels', { innerPrefix: '/base/api' });
  check('a=1; Path=/', 'a=1; Path=/travel/v1/hotels', { innerPrefix: '/api' });
  check('a=1; Path=/apis', 'a=1; Path=/apis', { innerPrefix: '/api' });
  check('a=1; Path=/api', 'a=1; Path=/', { innerPrefix: '/api', publicPrefix: '' });
  check('a=1; Path=/api/x', 'a=1; Path=/x', { innerPrefix: '/api', publicPrefix: '' });
  check('a=1; Path=/x', 'a=1; Path=/x', { publicPrefix: '' });
  check('a=1; Path=/', 'a=1; Path=/', { publicPrefix: '' });

  check('a=1; Domain=hotel; Secure', 'a=1; Secure');
  check('a=1; domain = .Hotel ; Path=/x', 'a=1; Path=/travel/v1/hotels/x');
  check('a=1; Domain=inner.example', 'a=1');
  check('a=1; Domain=inner.example', 'a=1; Domain=inner.example', { sentHost: undefined });
  check('a=1; Domain=.front.example', 'a=1; Domain=.front.example');
  check('a=1; Domain=front.example', 'a=1; Domain=front.example', { sentHost: 'front.example' });
  check('a=1; Domain=example.com', 'a=1; Domain=example.com');
  check('a=1; Domain=hotel.example', 'a=1; Domain=hotel.example');
  check('a=1; Domain=', 'a=1; Domain=');

  // Browsers accept a __Host- cookie only with this path.
  check('__Host-a=1; Path=/; Secure', '__Host-a=1; Path=/; Secure');
  check('__Secure-a=1; Path=/; Secure', '__Secure-a=1; Path=/travel/v1/hotels; Secure');

  it('takes linear time for long runs of blanks', () => {
    const blanks = ' '.repeat(200_000);
    for (const attribute of [`Path=/x${blanks}y`, `Domain=${blanks}x`, `${blanks}Path${blanks}`])
      assert.equal(restoreCookie(`a=1;${attribute}`, { ...there, publicPrefix: '' }), `a=1;${attribute}`);
  });

  it('changes nothing but Path and Domain', () => {
    const piece = fc.constantFrom(';', ' ', '=', 'a', 'Path=/x', 'path', 'Domain=hotel', 'Secure', '"', ',', '/', '\t');
    const isTouched = (attribute: string) => /^\s*(?:path|domain)\s*=/i.test(attribute);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const [pair, ...attributes] = pieces.join('').split(';');
        const [restoredPair, ...restored] = restoreCookie(pieces.join(''), there).split(';');
        assert.equal(restoredPair, pair);
        assert.deepEqual(
          restored.filter((one) => !isTouched(one)),
          attributes.filter((one) => !isTouched(one)),
        );
      }),
    );
  });

  it('makes browsers send the cookie for every path that the service intended', () => {
    forAnyRewrite((path, inner, restoration) => {
      for (const scope of ['/', inner]) {
        const cookiePath = restoreCookie(`a=1; Path=${scope}`, restoration).slice('a=1; Path='.length);
        assert.ok(pathMatches(path, cookiePath), `${scope} -> ${cookiePath} for ${path}`);
      }
    });
  });

  /** RFC 6265 section 5.1.4. */
  function pathMatches(path: string, cookiePath: string): boolean {
    if (path === cookiePath) return true;
    return path.startsWith(cookiePath) && (cookiePath.endsWith('/') || path[cookiePath.length] === '/');
  }
});

describe('reading a reference', () => {
  const base = { hosts: ['Front.example', 'public.example:8443'], path: '/travel' };

  function check(text: string, expected: ReturnType<typeof readReference> | string, path = base.path) {
    it(`parses ${JSON.stringify(text)} as ${JSON.stringify(expected)}`, () => {
      const found = readReference(text, { ...base, path });
      if (typeof found === 'string' || typeof expected !== 'string') assert.deepEqual(found, expected);
      else assert.equal(found.path + found.search, expected);
    });
  }

  check('http://front.example/travel/dav/a?b', { path: '/dav/a', search: '?b', isAbsolute: true });
  check('/travel/dav/a', { path: '/dav/a', search: '', isAbsolute: false });
  check('HTTPS://FRONT.example:443/travel/a', '/a');
  check('http://front.example:80/travel/a', '/a');
  check('https://public.example:8443/travel/a', '/a');
  check('http://front.example/travel', '/');
  check('http://front.example', '/', '');
  check('http://front.example/a/%62%2f', '/a/b%2F', '');
  check('http://front.example//a', 'ambiguous');
  check('http://front.example/travels/a', 'elsewhere');
  check('http://front.example', 'elsewhere');
  check('/dav/a', 'elsewhere');
  check('http://front.example:81/travel/a', 'elsewhere');
  check('http://public.example/travel/a', 'elsewhere');
  check('http://front.example@evil.example/travel/a', 'elsewhere');
  check('http://a@front.example/travel/a', 'elsewhere');
  check('http://front.example\\.evil.example/travel/a', 'elsewhere');
  check('http:///travel/a', 'elsewhere');
  check('http://[/travel/a', 'elsewhere');
  check('ftp://front.example/travel/a', 'elsewhere');
  check('file:/travel/a', 'elsewhere');
  check('//front.example/travel/a', 'ambiguous');
  check('http:/travel/a', 'ambiguous');
  check('travel/a', 'ambiguous');
  check('', 'ambiguous');
  check('?a', 'ambiguous');
  check('/travel/a#b', 'ambiguous');
  check('/travel/a?b c', 'ambiguous');
  for (const path of ['/a/../b', '/a/%2e%2e/b', '/a/%252e%252e/b', '/a\\b', '/a\0', '/a%', '/a, /travel/b', '/..;/b'])
    for (const start of ['', 'http://front.example']) check(`${start}/travel${path}`, 'ambiguous');
});

describe('editing references', () => {
  const edited = (method: string, headers: Readonly<Record<string, string>>) =>
    editReferences(method, headers, (reference) => reference.toUpperCase());

  const checkIf = (value: string, expected: string) =>
    it(`turns If: ${value} into ${expected}`, () => assert.deepEqual(edited('PUT', { if: value }), { if: expected }));

  checkIf('(<urn:uuid:a> ["b"])', '(<urn:uuid:a> ["b"])');
  checkIf('</a> (<urn:uuid:b>) (Not <urn:c> [W/"d"])', '</A> (<urn:uuid:b>) (Not <urn:c> [W/"d"])');
  checkIf('<http://f/a>(["b) <c>"])<d> (<e>)', '<HTTP://F/A>(["b) <c>"])<D> (<e>)');
  checkIf('</a> (["b', '</A> (["b');
  checkIf('((<a> </b>) </c>', '((<a> </b>) </C>');
  checkIf('</a </b> <', '</a </B> <');

  it('replaces Destination for COPY and MOVE only', () => {
    for (const method of ['COPY', 'MOVE']) {
      assert.deepEqual(edited(method, { destination: '/a' }), { destination: '/A' });
      assert.deepEqual(edited(method, { destination: '/a', if: '</b>' }), { destination: '/A', if: '</B>' });
    }
    assert.deepEqual(edited('POST', { destination: '/a' }), {});
    assert.equal(edited('MOVE', { host: 'a' }), undefined);
  });

  it('takes linear time for unclosed brackets', () => {
    for (const text of ['(', '<', '"', '("', '<a', '(<"'])
      editReferences('PUT', { if: text.repeat(1_000_000 / text.length) }, () => assert.fail('there is no tag'));
  });
});
