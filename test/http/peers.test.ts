import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { createPeerTrust, createSocketTrust, plainAddress } from '../../src/http/peers.ts';

describe('createPeerTrust', () => {
  function check(list: readonly string[], address: string | undefined, expected: boolean) {
    it(`${expected ? 'trusts' : 'does not trust'} ${address} where [${list.join(', ')}] is ours`, () => {
      assert.equal(createPeerTrust(list)(address), expected);
    });
  }

  check([], '127.0.0.1', false);
  check(['10.0.0.1'], '10.0.0.1', true);
  check(['10.0.0.1'], '10.0.0.2', false);
  check(['10.0.0.1'], '::ffff:10.0.0.1', true);
  check(['::ffff:10.0.0.1'], '10.0.0.1', true);
  check(['10.0.0.0/8'], '10.255.255.255', true);
  check(['10.0.0.0/8'], '11.0.0.0', false);
  check(['10.0.0.0/8', '192.0.2.7'], '192.0.2.7', true);
  check(['0.0.0.0/0'], '203.0.113.7', true);
  check(['::1'], '::1', true);
  check(['::1'], '0:0:0:0:0:0:0:1', true);
  check(['2001:db8::/32'], '2001:db8:1::7', true);
  check(['2001:db8::/32'], '2001:db9::7', false);
  check(['fe80::/10'], 'fe80::1%eth0', true);
  check(['10.0.0.0/8'], undefined, false);
  check(['10.0.0.0/8'], '', false);
  check(['10.0.0.0/8'], 'unknown', false);
  check(['10.0.0.0/8'], '10.0.0.1:80', false);

  function checkRefused(entry: string) {
    it(`refuses the list with a message that names ${JSON.stringify(entry)}`, () => {
      assert.throws(() => createPeerTrust([entry]), {
        name: 'TypeError',
        message: `"${entry}" is neither an IP address nor a CIDR range`,
      });
    });
  }

  checkRefused('');
  checkRefused('loopback');
  checkRefused('10.0.0');
  checkRefused('10.0.0.0/');
  checkRefused('10.0.0.0/33');
  checkRefused('10.0.0.0/-1');
  checkRefused('10.0.0.0/8.5');
  checkRefused('10.0.0.0/0x8');
  checkRefused('10.0.0.0/8/8');
  checkRefused('::1/129');

  it('never throws at what a peer calls itself', () => {
    const trusts = createPeerTrust(['10.0.0.0/8', '::1']);
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6()), (address) => {
        assert.equal(typeof trusts(address), 'boolean');
      }),
    );
  });
});

describe('plainAddress', () => {
  function check(address: string, expected: string) {
    it(`reads ${address} as ${expected}`, () => {
      assert.equal(plainAddress(address), expected);
    });
  }

  check('::ffff:10.0.0.1', '10.0.0.1');
  check('10.0.0.1', '10.0.0.1');
  check('::1', '::1');
  check('::ffff:a00:1', '::ffff:a00:1');
});

describe('createSocketTrust', () => {
  it('asks once for each connection', () => {
    let asked = 0;
    const trusts = createSocketTrust(() => {
      asked += 1;
      return true;
    });
    const one = new Socket();
    assert.deepEqual([trusts(one), trusts(one), trusts(new Socket())], [true, true, true]);
    assert.equal(asked, 2);
  });
});
