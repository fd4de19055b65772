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
      /^Error: cannot read tlsCert=\/no\.pem \(ENOENT\)/,
    ],
    [
      'a directory that is not there',
      { config: '/TLS_KEY' },
      /\/TLS_KEY:1 .*does not exist\n.*, or set config to its location\.$/,
    ],
    ['a record that is broken', { config: { records: [{}, { kind: 'Mapping' }] } }, /<options>:2 /],
    ['an unknown module', { only: ['hotel', 'spa'] }, /^Error: only: 'spa' is not a module: choose from gateway, /],
    ['no module at all', { only: [] }, /^Error: only: \[\] leaves nothing to run: choose from gateway, /],
    [
      'a service with the name of a module',
      { services: { hotel: new Koa() } },
      /^Error: services: "hotel" is the name/,
    ],
    [
      'a module that is not in a list',
      { only: 'gateway' },
      /^Error: only: expected a list such as \['gateway', 'auth'\]/,
    ],
    ['a module that is no name', { only: [null] }, /^Error: only: null is not a module/],
    ['a configuration that is a number', { config: 5 }, /^Error: config: expected a directory, or records as \{/],
    ['a demo in words', { demo: 'yes' }, /^Error: demo: expected true or false$/],
    ['a logger that is none', { logger: {} }, /^Error: logger: expected a logger such as pino/],
    ['a clock that is a number', { clock: 5 }, /^Error: clock: expected a function/],
    [
      'a clock that returns a Date',
      { clock: () => new Date() },
      /^Error: clock: expected a function that returns mill/,
    ],
    ['services in a list', { services: [new Koa()] }, /^Error: services: expected Koa apps or middleware by name/],
    ['services in a Map', { services: new Map([['spa', new Koa()]]) }, /^Error: services: expected Koa apps or/],
    ['services that are still a promise', { services: Promise.resolve({}) }, /^Error: services: expected Koa apps or/],
    ['a switch that is text', { dormant: 'no' }, /^Error: dormant: expected true or false$/],
    ['a value that JSON cannot hold', { port: 8080n }, /port=a bigint: expected a whole number/],
    ['nearly an option that is no setting', { demmo: true }, /demmo is not a setting: did you mean demo\?/],
    ['several that are no settings', { demo: 1, only: [] }, /^Error: only: \[\] leaves.*\ndemo: expected/],
    ['a service that is nothing', { services: { spa: undefined } }, /^Error: services: "spa" is neither a Koa app nor/],
    ['a service that is something else', { services: { spa: {} } }, /^Error: services: "spa" is neither a Koa app nor/],
    ['demo users on the network', { host: '0.0.0.0' }, /^Error: host=0\.0\.0\.0 .*demo and guest.*allowDemoUsers=true/],
    [
      'a database that cannot be',
      { databaseUrl: 'sqlite:/dev/null/x.db' },
      /file \/dev\/null\/x\.db.* Set databaseUrl to/,
    ],
    ['demo data that cannot be', { demo: true, config: { records: [], demo: { hotels: [{}] } } }, /hotels, row 1, id/],
  ];

  for (const [what, options, message] of wrong) {
    it(`are refused: ${what}`, () =>
      assert.rejects(createFrontdesk({ databaseUrl: 'sqlite::memory:', ...options } as FrontdeskOptions), message));
  }

  for (const options of [null, 5, 'config', []])
    it(`are refused as a whole: ${JSON.stringify(options)}`, () =>
      assert.rejects(createFrontdesk(options as FrontdeskOptions), /^Error: the options: expected an object such as/));

  it('may be undefined, which means the default', async () => {
    const own = { config: undefined, logger: undefined, services: undefined, clock: undefined, dormant: undefined };
    await open({ ...own, publicUrl: undefined, tlsCert: undefined, corsOrigins: undefined });
  });

  it('may name a service that no mapping uses, which is odd', async () => {
    const config = { records: [mappingRecord('hotel', '/hotels', 'hotel'), mappingRecord('pool', '/pool', 'pool')] };
    const lines: string[] = [];
    const logger = { info() {}, warn: (_: object, text?: string) => void lines.push(text ?? ''), error() {} };
    await open({ config, logger, services: { spa: new Koa(), pool: new Koa() } });
    assert.match(lines.join('\n'), /no record uses "spa".*\n.*service: spa/);
    assert.doesNotMatch(lines.join('\n'), /"pool"/);
  });
});
