/** Lists of addresses and networks, compared with Node's own on generated lists. */
import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import fc from 'fast-check';
import { createNetworks } from '../../../src/http/network/networks.ts';

const ipv4 = fc.ipV4();
const ipv6 = fc.oneof(
  fc.ipV6(),
  ipv4.map((address) => `::ffff:${address}`),
);
const ipv4Network = fc.tuple(ipv4, fc.integer({ min: 0, max: 32 }));
const ipv6Network = fc
  .tuple(ipv6, fc.integer({ min: 97, max: 128 }))
  .map(([address, bits]) => [address, bits] as const);

describe('a list of networks', () => {
  for (const [entries, address, expected] of [
    [['10.0.0.0/8'], '10.255.255.255', true],
    [['10.0.0.0/8'], '11.0.0.0', false],
    [['10.0.0.0/8'], '::ffff:10.1.2.3', true],
    [['::ffff:10.0.0.0/104'], '10.1.2.3', true],
    [['10.0.0.1'], '10.0.0.1', true],
    [['10.0.0.1'], '10.0.0.2', false],
    [['0.0.0.0/0'], '203.0.113.7', true],
    [['0.0.0.0/0'], '2001:db8::1', false],
    [['::/0'], '2001:db8::1', true],
    [['::/0'], '203.0.113.7', true],
    [['2001:db8::/32'], '2001:DB8:0:0::7', true],
    [['2001:db8::/32'], '2001:db9::7', false],
    [['fe80::/10'], 'fe80::1%eth0', true],
    [['10.0.0.0/9', '10.128.0.0/9', '10.0.0.5'], '10.128.0.0', true],
    [['10.0.0.1', '10.0.0.3'], '10.0.0.2', false],
    [['::/0'], '', false],
    [['::/0'], 'unknown', false],
    [[], '10.0.0.1', false],
  ] as const)
    it(`[${entries}] ${expected ? 'contains' : 'does not contain'} "${address}"`, () => {
      assert.equal(createNetworks(entries)(address), expected);
    });

  for (const entry of ['10.0.0.0/', '10.0.0.0/33', '::/129', 'hotel', '10.0.0.0/8/8', ''])
    it(`rejects the entry "${entry}"`, () => {
      assert.throws(() => createNetworks([entry]), TypeError);
    });

  it('contains the same addresses as a BlockList, however the networks overlap', () => {
    const networks = fc.array(fc.oneof(ipv4Network, ipv6Network), { maxLength: 12 });
    fc.assert(
      fc.property(networks, fc.oneof(ipv4, ipv6), (list, other) => {
        const contains = createNetworks(list.map((network) => network.join('/')));
        const node = new BlockList();
        const family = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4');
        for (const [address, bits] of list) node.addSubnet(address, bits, family(address));
        // Node compares the entries for IPv4-mapped networks with IPv6 addresses only.
        const mapped = (address: string) => (address.includes(':') ? address : `::ffff:${address}`);
        for (const address of [...list.map(([start]) => start), other])
          assert.equal(contains(address), node.check(address, family(address)) || node.check(mapped(address), 'ipv6'));
      }),
    );
  });
});
