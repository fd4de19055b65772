/** Tests the parsing of host names, addresses, networks and service references. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import {
  isHost,
  isHostAndPort,
  isLoopback,
  isNetwork,
  parseServiceReference,
  type ServiceReference,
} from '../../../src/config/fields/addresses.ts';

function check(test: (text: string) => boolean, accepted: string, rejected: string): void {
  describe(test.name, () => {
    for (const text of accepted.split(' ')) it(`accepts ${text}`, () => assert.equal(test(text), true));
    for (const text of ['', ...rejected.split(' ')])
      it(`rejects ${JSON.stringify(text)}`, () => assert.equal(test(text), false));
  });
}

check(
  isHost,
  'localhost hotel my_service hotel.travel.svc.cluster.local 127.0.0.1 0.0.0.0 :: ::1 1.example',
  'a..b .a [::1] hotel:80 1.2.3 256.0.0.1 a/b user@host hotel.123 hotel.0x 0x7f.1 0x',
);
check(
  isHostAndPort,
  'hotel:1 127.0.0.1:65535 [::1]:8081',
  'hotel hotel: hotel:0 hotel:65536 1.2.3:80 a..b:80 ::1:80 [hotel]:80 :80 http://hotel:80',
);
check(
  isNetwork,
  '10.0.0.1 10.0.0.0/8 0.0.0.0/0 ::1 fd00::/8 ::/128',
  '10.0.0.0/33 ::/129 10.0.0.0/ 10.0.0.0/8/8 10.0.0/8 hotel 10.0.0.0/-1 10.0.0.0/0x8',
);
check(isLoopback, '127.0.0.1 127.8.8.8 ::1 localhost', '0.0.0.0 :: 10.0.0.1 127.example hotel');

it('isHost rejects spaces', () => assert.deepEqual([' ', 'a b'].map(isHost), [false, false]));

describe('parseServiceReference', () => {
  const hostAlone = { scheme: undefined, port: undefined, path: undefined };

  function reads(text: string, expected: (Partial<ServiceReference> & { host: string }) | undefined): void {
    it(`${expected === undefined ? 'rejects' : 'parses'} ${JSON.stringify(text)}`, () => {
      assert.deepEqual(parseServiceReference(text), expected && { ...hostAlone, ...expected });
    });
  }

  reads('my-own_service', { host: 'my-own_service' });
  reads('hotel.travel.svc:80', { host: 'hotel.travel.svc', port: 80 });
  reads('127.0.0.1:9001', { host: '127.0.0.1', port: 9001 });
  reads('https://hotel.example:8443/base/', { scheme: 'https', host: 'hotel.example', port: 8443, path: '/base' });
  reads('http://hotel/', { scheme: 'http', host: 'hotel' });
  reads('grpc://[::1]:8081', { scheme: 'grpc', host: '[::1]', port: 8081 });
  for (const text of [
    '',
    'hotel/base',
    'ftp://hotel',
    'http://',
    '//hotel',
    'hotel:0',
    'hotel:65536',
    'hotel:http',
    'http://user:secret@hotel',
    'http://hotel?x=1',
    'http://hotel#x',
    'http://hotel\\@evil.example',
    'ho tel',
    'hotel\n',
    '::1',
    '[hotel]',
  ])
    reads(text, undefined);

  it('never throws', () => {
    void fc.assert(fc.property(fc.string(), (text) => void parseServiceReference(text)));
  });
});
