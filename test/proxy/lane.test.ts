/** Whether an exchange went over a connection that was open before it. */
import assert from 'node:assert/strict';
import { createExchange, isOnReused, type Lane } from '../../src/proxy/lane.ts';

describe('a reused connection', () => {
  function check(what: string, foundConnection: number, connections: number, expected: boolean) {
    it(`is ${expected ? 'one' : 'none'} ${what}`, () => {
      const exchange = createExchange({ method: 'GET', path: '/' }, {}, false);
      const lane = { connections } as Lane;
      assert.equal(isOnReused(Object.assign(exchange, { lane, foundConnection })), expected);
    });
  }

  check('that was found open and is still the same', 2, 2, true);
  check('that was made for the exchange', 0, 1, false);
  check('that was found open but ended before the exchange began, which then went over a new one', 2, 3, false);

  it('is none before the exchange has a place', () => {
    assert.equal(isOnReused(createExchange({ method: 'GET', path: '/' }, {}, false)), false);
  });
});
