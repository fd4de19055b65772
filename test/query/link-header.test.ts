/** Page links fit into a header, whatever a client wrote into its query. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatLinkHeader, pageLinks } from '#query';

describe('formatLinkHeader', () => {
  it('gives each link with its relation', () => {
    const links = pageLinks({ offset: 0, limit: 20, total: 30, path: '/v1/hotels/', search: '' });
    assert.equal(
      formatLinkHeader(links),
      '</v1/hotels/?offset=0&limit=20>; rel="self", </v1/hotels/?offset=0&limit=20>; rel="first", ' +
        '</v1/hotels/?offset=20&limit=20>; rel="next", </v1/hotels/?offset=20&limit=20>; rel="last"',
    );
  });

  it('holds the same links and nothing else, whatever the query', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(100), (search, offset) => {
        const links = pageLinks({ offset, limit: 20, total: 70, path: '/v1/hotels/', search });
        const header = formatLinkHeader(links);
        assert.match(header, /^[\x20-\x7e]*$/);
        const found = [...header.matchAll(/<([^<>]*)>; rel="([a-z]+)"(?:, |$)/g)].map(([, link, name]) => [name, link]);
        assert.deepEqual(Object.fromEntries(found), links);
      }),
    );
  });
});
