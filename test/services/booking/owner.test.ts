/** Bookings belong to a user, and without one there is nobody to show them to. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { Problem } from '#http';
import { ownerOf } from '../../../src/services/booking/owner.ts';

describe('ownerOf', () => {
  const contextWith = (headers: object) => ({ req: { headers } }) as unknown as Context;

  it('is the user that the gateway names', () => {
    assert.equal(ownerOf(contextWith({ 'x-travel-user': 'ann' })), 'ann');
  });

  for (const headers of [{}, { 'x-travel-user': '' }, { 'x-travel-user': ['ann', 'bob'] }]) {
    it(`is nobody, and 401 with a challenge, for ${JSON.stringify(headers)}`, () => {
      assert.throws(
        () => ownerOf(contextWith(headers)),
        (thrown) => {
          assert.ok(thrown instanceof Problem);
          assert.equal(thrown.status, 401);
          assert.equal(thrown.headers?.['WWW-Authenticate'], 'Basic realm="travel", charset="UTF-8"');
          return true;
        },
      );
    });
  }
});
