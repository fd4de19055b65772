/** What a service reference says, and which texts are none. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { formatServiceReference, parseServiceReference, type ServiceReference } from '#config';

const nothing = { scheme: undefined, port: undefined, path: undefined };

function check(text: string, expected: (Partial<ServiceReference> & { host: string }) | undefined): void {
  it(`${expected === undefined ? 'refuses' : 'reads'} ${JSON.stringify(text)}`, () => {
    assert.deepEqual(parseServiceReference(text), expected && { ...nothing, ...expected });
  });
}

describe('parseServiceReference', () => {
  check('hotel', { host: 'hotel' });
  check('my-own_service', { host: 'my-own_service' });
  check('hotel:9001', { host: 'hotel', port: 9001 });
  check('hotel.travel.svc:80', { host: 'hotel.travel.svc', port: 80 });
  check('127.0.0.1:9001', { host: '127.0.0.1', port: 9001 });
  check('http://hotel', { scheme: 'http', host: 'hotel' });
  check('https://hotel.example:8443/base/', { scheme: 'https', host: 'hotel.example', port: 8443, path: '/base' });
  check('http://hotel/', { scheme: 'http', host: 'hotel' });
  check('grpc://ratelimit', { scheme: 'grpc', host: 'ratelimit' });
  check('grpc://[::1]:8081', { scheme: 'grpc', host: '[::1]', port: 8081 });
  check('', undefined);
  check('hotel/base', undefined);
  check('ftp://hotel', undefined);
  check('http://', undefined);
  check('//hotel', undefined);
  check('hotel:0', undefined);
  check('hotel:65536', undefined);
  check('hotel:http', undefined);
  check('http://user:secret@hotel', undefined);
  check('http://hotel?x=1', undefined);
  check('http://hotel#x', undefined);
  check('http://hotel\\@evil.example', undefined);
  check('ho tel', undefined);
  check('hotel\n', undefined);
  check('::1', undefined);
  check('[hotel]', undefined);

  it('reads back what formatServiceReference writes', () => {
    const reference = fc.record(
      {
        scheme: fc.constantFrom('http', 'https', 'grpc', undefined),
        host: fc.constantFrom('hotel', 'a.example', '10.0.0.1', '[::1]'),
        port: fc.option(fc.integer({ min: 1, max: 65535 }), { nil: undefined }),
        path: fc.constantFrom('/base', '/a/b', undefined),
      },
      { noNullPrototype: true },
    );
    void fc.assert(
      fc.property(reference, (given) => {
        const whole = given.scheme === undefined ? { ...given, path: undefined } : given;
        assert.deepEqual(parseServiceReference(formatServiceReference(whole)), whole);
      }),
    );
  });

  it('never throws', () => {
    void fc.assert(fc.property(fc.string(), (text) => void parseServiceReference(text)));
  });
});
