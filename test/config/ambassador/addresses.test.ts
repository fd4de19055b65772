/** `ip_allow` and `ip_deny` of Ambassador's Module, which become lists of addresses for the whole gateway. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { configurationFrom } from '#config';
import { desksOf } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';
import { untyped } from '../../support/untyped.ts';

const gatewayDomain = 'getambassador.io';
const moduleWith = (config: object) => ({
  apiVersion: 'getambassador.io/v3alpha1',
  kind: 'Module',
  metadata: { name: 'ambassador' },
  spec: { config },
});

const read = (config: object) => configurationFrom(untyped({ records: [moduleWith(config)] }), { gatewayDomain });

describe('the Module ambassador with ip_allow and ip_deny', () => {
  it('is read without a notice if its lists are of clients', () => {
    const { configuration, errors, notices } = read({
      ip_allow: [{ remote: '10.0.0.0/8' }, { remote: '2001:db8::1' }],
      ip_deny: [{ remote: '10.0.0.66' }],
    });
    const [{ allowAddresses, denyAddresses } = assert.fail(), ...others] = configuration.addresses;
    assert.deepEqual(
      [allowAddresses, denyAddresses, others, errors],
      [['10.0.0.0/8', '2001:db8::1'], ['10.0.0.66'], [], []],
    );
    assert.ok(!notices.some(({ message }) => message.includes('is not read')));
  });

  it('has a notice about its other options alone', () => {
    const { notices } = read({ ip_deny: [{ remote: '10.0.0.66' }], diagnostics: { enabled: false } });
    const about = notices.map(({ message }) => message).filter((message) => message.includes('is not read'));
    assert.deepEqual(about, ['this Module with "diagnostics" is not read']);
  });

  for (const [what, list] of [
    ['the address of the connection', [{ remote: '10.0.0.1' }, { peer: '127.0.0.1' }]],
    ['text', ['10.0.0.1']],
    ['something that is no network', [{ remote: '10.0.0.0/33' }]],
    ['a map', { remote: '10.0.0.1' }],
    ['an entry with two', [{ remote: '10.0.0.1', peer: '10.0.0.1' }]],
  ] as const)
    it(`is an error with ${what}, because it would protect other requests`, () => {
      const { errors, configuration } = read({ ip_allow: list });
      assert.deepEqual(
        errors.map(({ message }) => message),
        ['ip_allow protects requests, and is not supported'],
      );
      assert.deepEqual(configuration.addresses, []);
    });

  it('turns the lists off if they are empty', () => {
    assert.deepEqual(read({ ip_allow: [], ip_deny: [] }).configuration.addresses, []);
  });
});

describe('a gateway with the lists of a Module', () => {
  const open = desksOf(testServers());

  it('refuses clients by them and by the settings, on all paths, and explains which list it was', async () => {
    const desk = await open({
      demo: false,
      only: ['gateway'],
      gatewayDomain,
      trustedProxies: ['127.0.0.0/8', '::1'],
      denyAddresses: ['10.0.0.5'],
      services: {
        own(ctx) {
          ctx.body = 'ok';
        },
      },
      config: untyped({
        records: [
          moduleWith({ ip_allow: [{ remote: '10.0.0.0/8' }] }),
          { apiVersion: 'getambassador.io/v2', kind: 'Mapping', name: 'own', prefix: '/', service: 'own' },
        ],
      }),
    });
    const from = (client: string, path = '/') => request(desk.app.callback()).get(path).set('X-Forwarded-For', client);
    await from('10.0.0.1').expect(200);
    await from('10.0.0.5').expect(403);
    await from('203.0.113.7').expect(403);
    await from('203.0.113.7', '/gateway/v0/check_alive').expect(403);
    const { outcome } = await desk.explain({ method: 'GET', url: '/', remoteAddress: '203.0.113.7' });
    assert.ok(outcome.kind === 'refused' && outcome.detail.endsWith('203.0.113.7 is not in ip_allow of a Module.'));
  });
});
