/** Headers of one connection, which are not passed on to the next. */
import assert from 'node:assert/strict';
import { crossesHops, nominatedBy } from '../../src/proxy/hop-by-hop.ts';

describe('hop-by-hop headers', () => {
  function check(name: string, connection: string | undefined, expected: boolean) {
    it(`${expected ? 'do not include' : 'include'} ${name} with Connection: ${connection}`, () =>
      assert.equal(crossesHops(name, nominatedBy(connection)), expected));
  }

  for (const name of ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'])
    check(name, undefined, false);
  for (const name of ['proxy-authorization', 'proxy-authenticate', 'proxy-connection', 'http2-settings'])
    check(name, undefined, false);
  check('accept', undefined, true);
  check('content-length', 'close', true);
  check('x-one', 'close, X-One', false);
  check('x-two', 'X-One ,\tX-Two,', false);
  check('x-three', 'x-one, x-two', true);

  it('are nominated by every Connection header', () =>
    assert.deepEqual([...nominatedBy(['close', 'X-One'])], ['close', 'x-one']));
});
