/** Wrong options: the error names them and says what to do. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import fastify from 'fastify';
import Koa from 'koa';
import Router from 'koa-router';
import { resolveOptions } from '#server';
import { createFrontdesk, type FrontdeskOptions } from '../../src/index.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/** Express and connect create a function of a request, a response and `next`, with methods. */
function expressApp() {
  return Object.assign((_request: object, _response: object, _next: () => void) => {}, { handle() {}, listen() {} });
}

const needsPort =
  /^Error: services: "spa" is neither a Koa app nor a Koa middleware\. .* Express or Fastify, .*: let it listen, and write its URL in the Mapping \(service: http:\/\/127\.0\.0\.1:3001\)$/;

describe('options of createFrontdesk', () => {
  const open = desksOf(testServers());
  const writeFiles = temporaryFiles();

  /** Options that a program in plain JavaScript could pass. */
  const wrong: readonly (readonly [string, object, RegExp])[] = [
    ['a misspelt name', { databaseURL: 'sqlite::memory:' }, /databaseURL is not a setting.*databaseUrl/],
    ['an unknown name', { colour: 'red' }, /colour is not a setting/],
    [
      'names of environment variables',
      { PORT: 9000, RATELIMIT_PORT: 9001 },
      /"PORT" is not a setting: did you mean port\?\n.*"RATELIMIT_PORT" .* did you mean ratelimitPort\?$/,
    ],
    ['a value of the wrong type', { port: 'eighty' }, /port="eighty": expected a whole number from 0 to 65535/],
    ['several wrong options', { port: -1, authPort: -1 }, /port=-1.*authPort=-1/s],
    ['a certificate without its key', { tlsCert: 'cert.pem' }, /tlsCert is set and tlsKey is not/],
    [
      'a missing certificate file',
      { tlsCert: '/no.pem', tlsKey: '/no.pem' },
      /\/no\.pem {2}tlsCert cannot be read \(ENOENT\)/,
    ],
    [
      'a missing directory',
      { config: '/TLS_KEY' },
      /\/TLS_KEY {2}.*does not exist\n.*, or set config to its location\.$/,
    ],
    ['a broken record', { config: { records: [{}, { kind: 'Mapping' }] } }, /<options>:2 /],
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
    ['a module that is not a string', { only: [null] }, /^Error: only: null is not a module/],
    ['a configuration that is a number', { config: 5 }, /^Error: config: expected a directory, or records as \{/],
    ['an empty configuration directory', { config: '' }, /^Error: config: expected a directory, or records as \{/],
    ['a demo option that is text', { demo: 'yes' }, /^Error: demo: expected true or false$/],
    ['an object that is not a logger', { logger: {} }, /^Error: logger: expected a logger such as pino/],
    ['a clock that is a number', { clock: 5 }, /^Error: clock: expected a function/],
    [
      'a clock that returns a Date',
      { clock: () => new Date() },
      /^Error: clock: expected a function that returns mill/,
    ],
    ['services in a list', { services: [new Koa()] }, /^Error: services: expected Koa apps or middleware by name/],
    ['services in a Map', { services: new Map([['spa', new Koa()]]) }, /^Error: services: expected Koa apps or/],
    ['services that are still a promise', { services: Promise.resolve({}) }, /^Error: services: expected Koa apps or/],
    ['a dormant option that is text', { dormant: 'no' }, /^Error: dormant: expected true or false$/],
    ['a value that JSON cannot represent', { port: 8080n }, /port=a bigint: expected a whole number/],
    ['a misspelt option that is not a setting', { demmo: true }, /demmo is not a setting: did you mean demo\?/],
    ['several options that are not settings', { demo: 1, only: [] }, /^Error: only: \[\] leaves.*\ndemo: expected/],
    ['an undefined service', { services: { spa: undefined } }, /^Error: services: "spa" is neither a Koa app nor/],
    [
      'a service that is neither app nor middleware',
      { services: { spa: {} } },
      /^Error: services: "spa" is neither a Koa app nor/,
    ],
    ['an Express app as a service', { services: { spa: expressApp() } }, needsPort],
    ['a router of Express as a service', { services: { spa: (_req: 0, _res: 0, _next: 0) => {} } }, needsPort],
    ['a Fastify app as a service', { services: { spa: fastify() } }, needsPort],
    ['an HTTP server as a service', { services: { spa: createServer() } }, needsPort],
    [
      'a router of Koa as a service',
      { services: { spa: new Router() } },
      /^Error: services: "spa" is a router: pass its middleware, router\.routes\(\)$/,
    ],
    [
      'demo users on the network',
      { host: '0.0.0.0' },
      /^Error: .*demo and guest.*host=0\.0\.0\.0 .*allowDemoUsers=true/,
    ],
    [
      'an impossible database file',
      { databaseUrl: 'sqlite:/dev/null/x.db' },
      /file \/dev\/null\/x\.db.* Set databaseUrl to/,
    ],
    ['invalid demo data', { demo: true, config: { records: [], demo: { hotels: [{}] } } }, /hotels, row 1, id/],
  ];

  for (const [what, options, message] of wrong) {
    it(`are rejected: ${what}`, () =>
      assert.rejects(createFrontdesk({ databaseUrl: 'sqlite::memory:', ...options } as FrontdeskOptions), message));
  }

  for (const options of [null, 5, 'config', []])
    it(`are rejected as a whole: ${JSON.stringify(options)}`, () =>
      assert.rejects(createFrontdesk(options as FrontdeskOptions), /^Error: the options: expected an object such as/));

  it('can be undefined, which means the default', async () => {
    const own = { config: undefined, logger: undefined, services: undefined, clock: undefined, dormant: undefined };
    await open({ ...own, publicUrl: undefined, tlsCert: undefined, corsOrigins: undefined });
  });

  /** Opens a desk and returns its warnings. */
  async function warningsOf(options: FrontdeskOptions): Promise<string> {
    const lines: string[] = [];
    const logger = { info() {}, warn: (_: object, text?: string) => void lines.push(text ?? ''), error() {} };
    await open({ ...options, logger });
    return lines.join('\n');
  }

  it('can contain a service that no mapping uses, which is logged', async () => {
    const config = { records: [mappingRecord('hotel', '/hotels', 'hotel'), mappingRecord('pool', '/pool', 'pool')] };
    // The compiler accepts an app whose state and context have types of its own.
    const services = { spa: new Koa(), pool: new Koa<{ user: string }, { db: string }>() };
    const warnings = await warningsOf({ config, services });
    assert.match(warnings, /no record uses "spa".*\n.*service: spa/);
    assert.doesNotMatch(warnings, /"pool"/);
  });

  it('can contain a service that records of a cluster may use later, which is not logged', async () => {
    const setup = await resolveOptions({
      kubernetes: true,
      config: { records: [] },
      services: { 'spa.shop': new Koa() },
    });
    const notices = await setup.notices(setup.loaded.configuration);
    assert.doesNotMatch(notices.map(({ message }) => message).join(), /no record uses/);
  });

  it('can contain a service whose name is misspelt in a record or in the options, which is logged', async () => {
    const config = { records: [mappingRecord('app', '/', 'tickets')] };
    const warnings = await warningsOf({ config, services: { ticket: new Koa() } });
    assert.match(warnings, /no record uses "ticket".*\n.*Did you mean "tickets", which a record names\?/);
  });

  it('can lack a setting of settings.env, which is logged because the library does not read that file', async () => {
    const files = { 'services/spa.yaml': JSON.stringify(mappingRecord('spa', '/', 'spa')) };
    const services = { spa: new Koa() };
    const config = await writeFiles({ ...files, 'settings.env': 'STRICT_PATHS=true\nPORT=80\nLOG_LEVEL=\n' });
    const warnings = await warningsOf({ config, services, demo: false });
    assert.match(warnings, /settings\.env {2}strictPaths is not in effect.*\n.*Pass it to createFrontdesk/);
    assert.equal(await warningsOf({ config, services, demo: false, strictPaths: true }), '');
    const broken = await writeFiles({ ...files, 'settings.env': 'STRICT PATHS' });
    assert.equal(await warningsOf({ config: broken, services, demo: false }), '');
  });
});
