/** The routing table against a plain scan: the longest prefix of whole segments wins, in whatever order the routes come. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createTable, type Prefixed } from '#gateway';

const routesAt = (...prefixes: readonly string[]) => prefixes.map((prefix) => ({ prefix }));

/** What the table must do, written as one would say it. */
function scan<R extends Prefixed>(routes: readonly R[], path: string): R | undefined {
  const matching = routes.filter(({ prefix }) => prefix === '/' || path === prefix || path.startsWith(`${prefix}/`));
  return matching.sort((a, b) => b.prefix.length - a.prefix.length)[0];
}

// Few and alike, so that prefixes of prefixes and near misses are common.
const segment = fc.constantFrom('v1', 'v2', 'hotels', 'hotelsx', 'hotel', 'Hotels', '%2F', 'a', '__proto__');
const segments = (max: number) => fc.array(segment, { maxLength: max }).map((parts) => `/${parts.join('/')}`);
const routeList = fc.uniqueArray(segments(4), { maxLength: 12 }).map((prefixes) => routesAt(...prefixes));
const path = fc.tuple(segments(6), fc.constantFrom('', '/', '//', '//a')).map(([start, end]) => start + end);

describe('the routing table', () => {
  const table = createTable(routesAt('/v1', '/v1/hotels', '/v1/hotels/bookings', '/v2'));

  function check(asked: string, expected: string | undefined) {
    it(`${expected === undefined ? 'has no route for' : `takes ${expected} for`} ${asked}`, () =>
      assert.equal(table.match(asked)?.prefix, expected));
  }

  check('/v1/hotels', '/v1/hotels');
  check('/v1/hotels/', '/v1/hotels');
  check('/v1/hotels/x', '/v1/hotels');
  check('/v1/hotels/bookings/1', '/v1/hotels/bookings');
  check('/v1/hotelsx', '/v1');
  check('/v1/Hotels', '/v1');
  check('/v1//hotels', '/v1');
  check('/v1', '/v1');
  check('/v3', undefined);
  check('/V1', undefined);
  check('/', undefined);

  it('sends everything to / when nothing else matches', () => {
    const withRoot = createTable(routesAt('/v1', '/'));
    assert.equal(withRoot.match('/')?.prefix, '/');
    assert.equal(withRoot.match('/other')?.prefix, '/');
    assert.equal(withRoot.match('/v1/x')?.prefix, '/v1');
  });

  it('agrees with a plain scan for the longest prefix', () => {
    fc.assert(
      fc.property(routeList, path, (routes, asked) => {
        assert.equal(createTable(routes).match(asked), scan(routes, asked));
      }),
    );
  });

  it('matches and lists the same whatever the order of the routes', () => {
    const shuffled = routeList.chain((routes) =>
      fc.tuple(fc.constant(routes), fc.shuffledSubarray(routes, { minLength: routes.length })),
    );
    fc.assert(
      fc.property(shuffled, path, ([routes, others], asked) => {
        const [one, other] = [createTable(routes), createTable(others)];
        assert.deepEqual(one.match(asked), other.match(asked));
        assert.deepEqual(one.routes, other.routes);
      }),
    );
  });

  it('lists the routes so that the first that matches is the one that is taken', () => {
    fc.assert(
      fc.property(routeList, path, (routes, asked) => {
        const made = createTable(routes);
        const first = made.routes.find((route) => scan([route], asked) !== undefined);
        assert.equal(made.match(asked), first);
      }),
    );
  });

  it('keeps the first of two routes with the same prefix, and lists it alone', () => {
    const [first, second] = [
      { prefix: '/v1', name: 'mapping' },
      { prefix: '/v1', name: 'internal' },
    ];
    const both = createTable([first, second]);
    assert.equal(both.match('/v1/x'), first);
    assert.deepEqual(both.routes, [first]);
  });
});
