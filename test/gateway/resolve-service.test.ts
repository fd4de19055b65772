/** Resolving service references to modules in this process or to network addresses. */
import assert from 'node:assert/strict';
import { createResolve, describeTarget } from '#gateway';

describe('resolving a service reference', () => {
  const listening = new Map([['auth', '127.0.0.1:8082']]);
  const resolve = createResolve({
    isLocal: (name) => name === 'hotel' || name === 'auth',
    listenerOf: (name) => listening.get(name),
    addresses: { car: 'cars.internal:9000', bus: ['10.0.0.1:1', '10.0.0.2:1'], 'api.example.com': '10.0.0.3:443' },
  });

  function check(reference: string, expected: string) {
    it(`resolves ${reference}: ${expected}`, () => assert.equal(describeTarget(resolve(reference)), expected));
  }

  check('hotel', 'in this process');
  check('hotel:8080', 'http://hotel:8080');
  check('http://hotel', 'http://hotel:80');
  check('https://hotel', 'https://hotel:443');
  check('https://hotel:8443/base', 'https://hotel:8443/base');
  check('auth', 'in this process');
  check('auth:9', 'http://127.0.0.1:8082');
  check('car', 'http://cars.internal:9000');
  check('bus', 'http://10.0.0.1:1, http://10.0.0.2:1');
  check('https://bus/base', 'https://10.0.0.1:1/base, https://10.0.0.2:1/base');
  check('https://api.example.com/v1', 'https://10.0.0.3:443/v1');
  check('elsewhere', 'http://elsewhere:80');
  check('constructor', 'http://constructor:80');

  it('looks up the listener for each request, because it may open later', () => {
    const later = createResolve({ isLocal: () => false, listenerOf: (name) => listening.get(name), addresses: {} });
    const target = later('late');
    assert.equal(describeTarget(target), 'http://late:80');
    listening.set('late', '127.0.0.1:1');
    assert.equal(describeTarget(target), 'http://127.0.0.1:1');
  });

  it('returns the same array until an address changes', () => {
    for (const reference of ['auth:9', 'bus', 'elsewhere:1']) {
      const target = resolve(reference);
      assert.ok(target.kind === 'remote');
      assert.equal(target.origins(), target.origins());
    }
  });

  it('expects the name in the reference on the certificate, whatever the address', () => {
    for (const [reference, name] of [
      ['https://bus', 'bus'],
      ['https://auth:8443', 'auth'],
    ] as const) {
      const target = resolve(reference);
      assert.equal(target.kind === 'remote' && target.serverName, name);
    }
  });

  it('throws at creation if a part is missing, and not at the first request', () => {
    assert.throws(() => createResolve({ isLocal: () => true } as never), /^TypeError: createResolve needs `isLocal`/);
  });

  it('throws for an invalid reference', () => {
    assert.throws(() => resolve('no such thing'), /"no such thing" is not a service reference/);
  });
});
