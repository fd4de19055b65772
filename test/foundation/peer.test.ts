/** The other end of a socket. */
import assert from 'node:assert/strict';
import { peerOf } from '#foundation';

it('peerOf tells connections of one address apart', () => {
  const peers = [1, 2].map((remotePort) => peerOf({ remoteAddress: '::1', remotePort }));
  assert.deepEqual(peers, ['::1 1', '::1 2']);
});
