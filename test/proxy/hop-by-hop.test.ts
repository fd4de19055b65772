/** What belongs to one connection stays there. */
import assert from 'node:assert/strict';
import { crossesHops, nominatedBy } from '../../src/proxy/hop-by-hop.ts';

describe('hop-by-hop headers', () => {
  function check(name: string, connection: string | undefined, expected: boolean) {
    it(`${expected ? 'lets' : 'stops'} ${name} ${expected ? 'pass' : ''} beside Connection: ${connection}`, () =>
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

  it('reads a Connection header that came twice', () => {
    const nominated = nominatedBy(['close', 'X-One']);
    assert.deepEqual([...nominated], ['close', 'x-one']);
  });
});
