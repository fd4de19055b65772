/** Options that are wrong: each is one message that names it and says what to do. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import { createFrontdesk, type FrontdeskOptions } from '../../src/index.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

describe('options of createFrontdesk', () => {
  const open = desksOf(testServers());

  /** As a program in plain JavaScript may hand them in. */
  const wrong: readonly (readonly [string, object, RegExp])[] = [
    ['a name that is nearly one', { databaseURL: 'sqlite::memory:' }, /databaseURL is not a setting.*databaseUrl/],
    ['a name that is none', { colour: 'red' }, /colour is not a setting/],
    ['a value of the wrong kind', { port: 'eighty' }, /port="eighty": expected a whole number from 0 to 65535/],
    ['several at once', { port: -1, authPort: -1 }, /port=-1.*authPort=-1/s],
    ['half a certificate', { tlsCert: 'cert.pem' }, /tlsCert is set and tlsKey is not/],
    [
      'a certificate that is not there',
      { tlsCert: '/no.pem', tlsKey: '/no.pem' },
      /TLS_(?:CERT|KEY)=\/no\.pem.*ENOENT/,
    ],
    ['a directory that is not there', { config: '/nowhere' }, /nowhere:1 .*does not exist/],
    ['a record that is broken', { config: { records: [{}, { kind: 'Mapping' }] } }, /<options>:2 /],
    ['an unknown module', { only: ['hotel', 'spa'] }, /^Error: only: "spa" is no module: choose from gateway, /],
    ['no module at all', { only: [] }, /^Error: only: \[\] leaves nothing to run: choose from gateway, /],
    [
      'a service with the name of a module',
      { services: { hotel: new Koa() } },
      /^Error: services: "hotel" is the name/,
    ],
    ['a service that is nothing', { services: { spa: undefined } }, /^Error: services: "spa" is neither a Koa app nor/],
    ['a service that is something else', { services: { spa: {} } }, /^Error: services: "spa" is neither a Koa app nor/],
    ['demo users on the network', { host: '0.0.0.0' }, /demo and guest.*ALLOW_DEMO_USERS=true/],
    ['a database that cannot be', { databaseUrl: 'sqlite:/dev/null/x.db' }, /database file \/dev\/null\/x\.db/],
    ['demo data that cannot be', { demo: true, config: { records: [], demo: { hotels: [{}] } } }, /hotels, row 1, id/],
  ];

  for (const [what, options, message] of wrong) {
    it(`are refused: ${what}`, () =>
      assert.rejects(createFrontdesk({ databaseUrl: 'sqlite::memory:', ...options } as FrontdeskOptions), message));
  }

  it('may be undefined, which means the default', async () => {
    await open({ publicUrl: undefined, tlsCert: undefined, corsOrigins: undefined });
  });

  it('may name a service that no mapping uses', async () => {
    const config = { records: [mappingRecord('hotel', '/hotels', 'hotel')] };
    await open({ config, services: { spa: new Koa() } });
  });
});
