/** Host names, addresses and networks, as people write them in settings. */
import assert from 'node:assert/strict';
import { isHost, isHostAndPort, isLoopback, isNetwork } from '../../src/config/addresses.ts';

function check(test: (text: string) => boolean, accepted: readonly string[], refused: readonly string[]): void {
  for (const text of accepted) it(`takes ${text}`, () => assert.equal(test(text), true));
  for (const text of refused) it(`refuses ${JSON.stringify(text)}`, () => assert.equal(test(text), false));
}

describe('isHost', () => {
  check(
    isHost,
    [
      'localhost',
      'hotel',
      'my_service',
      'hotel.travel.svc.cluster.local',
      '127.0.0.1',
      '0.0.0.0',
      '::',
      '::1',
      '1.example',
    ],
    ['', ' ', 'a b', 'a..b', '.a', '[::1]', 'hotel:80', '1.2.3', '256.0.0.1', 'a/b', 'user@host'],
  );
});

describe('isHostAndPort', () => {
  check(
    isHostAndPort,
    ['hotel:1', '127.0.0.1:65535', '[::1]:8081'],
    ['hotel', 'hotel:', 'hotel:0', 'hotel:65536', '::1:80', '[hotel]:80', ':80', 'http://hotel:80'],
  );
});

describe('isNetwork', () => {
  check(
    isNetwork,
    ['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', 'fd00::/8', '::/128'],
    ['', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0/8', 'hotel', '10.0.0.0/-1', '10.0.0.0/0x8'],
  );
});

describe('isLoopback', () => {
  check(
    isLoopback,
    ['127.0.0.1', '127.8.8.8', '::1', 'localhost'],
    ['0.0.0.0', '::', '10.0.0.1', '127.example', 'hotel'],
  );
});
