/** Paths on their way to a service and back. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { restoreLocation, rewritePath } from '../../src/gateway/rewrite.ts';

const segment = fc.constantFrom('v1', 'hotels', 'bookings', '1', 'a', 'b', '%2F', 'x.y');
const prefix = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
const anyPrefix = fc.oneof(fc.constant('/'), prefix);
const rewrite = fc.oneof(fc.constant('/'), fc.constant(''), prefix);
const rest = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.constantFrom('', '/'))
  .map(([parts, end]) => (parts.length === 0 ? end : `/${parts.join('/')}${end}`));

const joinPrefix = (before: string, after: string) => (before === '/' ? after || '/' : before + after);

describe('rewriting a path', () => {
  function check([path, from, to]: readonly [string, string, string], expected: string) {
    it(`makes ${path} under ${from} with rewrite "${to}" ${expected}`, () =>
      assert.equal(rewritePath(path, from, to), expected));
  }

  check(['/v1/hotels/bookings/1', '/v1/hotels', '/'], '/bookings/1');
  check(['/v1/hotels', '/v1/hotels', '/'], '/');
  check(['/v1/hotels/', '/v1/hotels', '/'], '/');
  check(['/v1/hotels/v1/hotels', '/v1/hotels', '/'], '/v1/hotels');
  check(['/v1/hotels/1', '/v1/hotels', ''], '/v1/hotels/1');
  check(['/v1/hotels/1', '/v1/hotels', '/api'], '/api/1');
  check(['/v1/hotels/1', '/v1/hotels', '/api/'], '/api/1');
  check(['/v1/hotels', '/v1/hotels', '/api'], '/api');
  check(['/bookings', '/', '/'], '/bookings');
  check(['/bookings', '/', '/api'], '/api/bookings');
  check(['/v1/hotels//evil.example/x', '/v1/hotels', '/'], '/evil.example/x');
  check(['/v1/hotels////x', '/v1/hotels', '/'], '/x');
  check(['/v1/hotels/$&/$1', '/v1/hotels', '/a'], '/a/$&/$1');

  it('starts every path with one slash, so that it is never another host', () => {
    const messy = fc.array(fc.constantFrom('/', '//', 'a', 'evil.example', '..'), { maxLength: 6 });
    fc.assert(
      fc.property(anyPrefix, rewrite, messy, (from, to, tail) => {
        const path = joinPrefix(from, tail.length === 0 ? '' : `/${tail.join('')}`);
        fc.pre(to !== '' || !path.startsWith('//'));
        assert.match(rewritePath(path, from, to), /^\/(?!\/)/);
      }),
    );
  });
});

describe('restoring a Location', () => {
  const there = { publicPrefix: '/travel/v1/hotels', innerPrefix: '', upstreamOrigin: 'http://hotel:80' };

  function check(location: string, expected: string, changes: Partial<typeof there> = {}) {
    it(`makes ${location} ${expected} ${JSON.stringify(changes)}`, () =>
      assert.equal(restoreLocation(location, { ...there, ...changes }), expected));
  }

  check('/bookings/?limit=1#x', '/travel/v1/hotels/bookings/?limit=1#x');
  check('/', '/travel/v1/hotels/');
  check('/?q=a', '/travel/v1/hotels/?q=a');
  check('/travel/v1/hotels/bookings/', '/travel/v1/hotels/bookings/');
  check('/travel/v1/hotelsx', '/travel/v1/hotels/travel/v1/hotelsx');
  check('http://hotel:80/bookings/', '/travel/v1/hotels/bookings/');
  check('http://hotel/bookings/', '/travel/v1/hotels/bookings/');
  check('HTTP://HOTEL/bookings/', '/travel/v1/hotels/bookings/');
  check('//hotel/bookings/', '/travel/v1/hotels/bookings/');
  check('http://hotel', '/travel/v1/hotels/');
  check('http://hotel?q=a', '/travel/v1/hotels/?q=a');
  check('http://hotel:81/x', 'http://hotel:81/x');
  check('https://hotel/x', 'https://hotel/x');
  check('http://hotel.example/x', 'http://hotel.example/x');
  check('http://hotel@evil.example/x', 'http://hotel@evil.example/x');
  check('//elsewhere.example/x', '//elsewhere.example/x');
  check('http://[', 'http://[');
  check('bookings/', 'bookings/');
  check('?page=2', '?page=2');
  check('', '');

  check('/api/x', '/travel/v1/hotels/x', { innerPrefix: '/api' });
  check('/api', '/travel/v1/hotels', { innerPrefix: '/api' });
  check('/apis', '/apis', { innerPrefix: '/api' });
  check('/api/x', '/x', { innerPrefix: '/api', publicPrefix: '' });
  check('/api?x', '/?x', { innerPrefix: '/api', publicPrefix: '' });
  check('/api', '/', { innerPrefix: '/api', publicPrefix: '' });
  check('/x', '/x', { publicPrefix: '' });

  // What was a path of the service must not become a host of its own.
  check('http://hotel//evil.example/x', '/evil.example/x', { publicPrefix: '' });
  check('http://hotel/\\evil.example/x', '/evil.example/x', { publicPrefix: '' });
  check('/api//evil.example', '/evil.example', { innerPrefix: '/api', publicPrefix: '' });
  check('/api/\\evil.example', '/evil.example', { innerPrefix: '/api', publicPrefix: '' });
  check('http://hotel//evil.example/x', '/evil.example/x', { innerPrefix: '/api', publicPrefix: '' });

  it('gives back the path that was rewritten', () => {
    const basePath = fc.constantFrom('', '/travel');
    fc.assert(
      fc.property(anyPrefix, rewrite, rest, basePath, (from, to, tail, base) => {
        const path = joinPrefix(from, tail);
        const taken = to === '' || from === '/' ? '' : from;
        const restoration = {
          publicPrefix: base + taken,
          innerPrefix: to === '/' ? '' : to,
          upstreamOrigin: 'http://hotel',
        };
        const inner = rewritePath(path, from, to);
        // A service that says the public path itself is believed, so these two cannot be told apart.
        fc.pre(restoration.publicPrefix === '' || !`${inner}/`.startsWith(`${restoration.publicPrefix}/`));
        const innerPath = to === '' ? path : inner;
        const restored = restoreLocation(innerPath, restoration);
        assert.equal(restored.replace(/\/$/, ''), (base + path).replace(/\/$/, ''));
        assert.equal(restoreLocation(`http://hotel${innerPath}`, restoration), restored);
      }),
    );
  });
});
