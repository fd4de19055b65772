/** Entity tags: what a client has already is not sent again. */
import assert from 'node:assert/strict';
import { callAsDemo, hotelBooking, type OpenDesk } from './desk.ts';

const resources = [
  '/v1/messages/1',
  '/v2/messages/',
  '/v1/accounts/demo',
  '/v1/hotels',
  `/v1/hotels/bookings/${hotelBooking}`,
  `/v1/hotels/bookings/${hotelBooking}?fields=status`,
];

export function conditionalCases(desk: OpenDesk): void {
  const tagOf = async (path: string, accept = 'application/json') => {
    const { headers } = await callAsDemo(desk, path).set('Accept', accept).expect(200);
    return String(headers['etag']);
  };

  describe('conditional requests', () => {
    for (const path of resources) {
      it(`save the transfer of what has not changed: ${path}`, async () => {
        const tag = await tagOf(path);
        assert.match(tag, /^(?:W\/)?"[^"]+"$/);
        for (const known of [tag, `"other", ${tag}`, `W/${tag}`, '*']) {
          const { text, headers } = await callAsDemo(desk, path).set('If-None-Match', known).expect(304);
          assert.equal(text ?? '', '');
          assert.equal(headers['etag'], tag);
          assert.match(headers['vary'] ?? '', /accept/i);
        }
        await callAsDemo(desk, path, 'head').set('If-None-Match', tag).expect(304);
      });

      it(`send what the client does not have: ${path}`, async () => {
        await callAsDemo(desk, path).set('If-None-Match', '"other"').expect(200);
      });

      it(`never take one representation for another: ${path}`, async () => {
        const types = ['application/json', 'application/yaml', 'text/html'];
        const tags = await Promise.all(types.map((type) => tagOf(path, type)));
        assert.equal(new Set(tags).size, types.length);
        await callAsDemo(desk, path)
          .set('Accept', 'text/html')
          .set('If-None-Match', tags[0] ?? '')
          .expect(200);
      });
    }

    it('tell a partial response from a whole one, and one booking from another by its address', async () => {
      const booking = `/v1/hotels/bookings/${hotelBooking}`;
      assert.notEqual(await tagOf(booking), await tagOf(`${booking}?fields=status`));
    });

    it('do not excuse a missing password', async () => {
      const booking = `/v1/hotels/bookings/${hotelBooking}`;
      const tag = await tagOf(booking);
      await callAsDemo(desk, booking).auth('demo', 'wrong').set('If-None-Match', tag).expect(401);
    });
  });
}
