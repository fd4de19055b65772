/** The other end of a socket. */
import assert from 'node:assert/strict';
import { isOwnAddress, peerOf } from '#foundation';

it('peerOf tells connections of one address apart', () => {
  const peers = [1, 2].map((remotePort) => peerOf({ remoteAddress: '::1', remotePort }));
  assert.deepEqual(peers, ['::1 1', '::1 2']);
});

describe('an IP address', () => {
  const own = [
    ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '0.1.2.3', '169.254.169.254'],
    ...['::', '::1', '0:0:0:0:0:0:0:1', '0::', 'fe80::1', 'FE80::1', 'febf::1', 'fe80::1%eth0', '::1%1'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:a9fe:a9fe', '::ffff:10.0.0.1'],
  ];
  for (const address of own)
    it(`${address} leads to this machine or its link`, () => assert.equal(isOwnAddress(address), true));

  const metadata = [
    ...['fd00:ec2::254', 'fd00:0ec2:0::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', '192.0.0.192'],
    ...[
      '168.63.129.16',
      '100.100.100.200',
      'fd00:100::100:200',
      'fd00:42::42',
      'fd00:42:0::42%eth0',
      'fd00:a9fe:a9fe::1',
    ],
  ];
  for (const address of metadata)
    it(`${address} leads to what a cloud says to its machine`, () => assert.equal(isOwnAddress(address), true));

  const others = [
    ...['10.0.0.1', '128.0.0.1', '1.0.0.127', '169.253.0.1', '192.168.0.1', '27.0.0.1'],
    ...['168.63.129.1', '100.100.100.20', '192.0.0.19', 'fd00:ec20::254', 'fd20:ce::25', 'fd00:42::4', 'fd00:c1::1'],
    ...['::2', '::1:0', 'fe8::1', 'fe7f::1', 'fec0::1', 'fd00::1', '2001:db8::1', '1::'],
    ...['localhost', '127.1', '', 'fe80', 'fe80:', '127.0.0.1.nip.io'],
  ];
  for (const address of others)
    it(`${JSON.stringify(address)} does not`, () => assert.equal(isOwnAddress(address), false));
});
