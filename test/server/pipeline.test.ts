/** The order of the middleware on each listener, and how CORS of the whole server combines with that of a mapping. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import request from 'supertest';
import { type Logger, silentLogger } from '#foundation';
import { createCompression } from '#http';
import { createFrontdesk, type FrontdeskOptions } from '../../src/index.ts';
import { resolveOptions } from '../../src/server/options.ts';
import { createSteps, type PipelineListener, type PipelineParts, stepsOf } from '../../src/server/pipeline.ts';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { gatewayOf } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { createDeferred } from '../support/waiting.ts';

const sourceOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** Each step or stage, and its name in the README's diagram. Undefined if it is not in the diagram. */
const inDiagram: Readonly<Record<string, string | undefined>> = {
  'request context': 'request id',
  tracing: 'trace',
  'access log': 'access log',
  CORS_ORIGINS: 'CORS_ORIGINS',
  problems: undefined,
  host: 'host check',
  'safe path': 'path check',
  'landing page': undefined,
  gateway: '<b>gateway</b>',
  rejectAddress: 'address not allowed',
  removeDisguises: undefined,
  rejectEndedVersion: 'version past its sunset',
  rejectLoopingRequest: 'passed this gateway too often',
  rejectAmbiguousPath: 'ambiguous path',
  limitBeforeAuth: '<b>limit by address</b>',
  authenticate: '<b>authenticate</b>',
  replaceKey: 'digest in place of the key',
  limitAfterAuth: '<b>other limits</b>',
  rejectForeignReferences: 'Destination check',
  removeCredentials: 'credentials removed',
  copyToShadow: 'a shadow',
  forward: '<b>forward</b>',
};

const servers = testServers();
const open = desksOf(servers);

describe('the order of the middleware', () => {
  const run = async () => {};
  const parts = {
    tracing: { middleware: run },
    problems: { logger: silentLogger },
    gateway: { middleware: run, answersPreflight: () => false },
    auth: { app: run },
    routes: [],
    state: { compression: createCompression() },
  } as unknown as PipelineParts;

  const logger: Logger = { ...silentLogger, isLevelEnabled: (level) => level !== 'debug' };

  async function namesOn(listener: PipelineListener, options: FrontdeskOptions = {}): Promise<readonly string[]> {
    const setup = await resolveOptions({ config: { records: [] }, corsOrigins: ['*'], logger, ...options });
    return stepsOf(createSteps(setup, parts), listener).map(([name]) => name);
  }

  it('is that of the diagram in README.md, including the stages of the gateway', async () => {
    const steps = await namesOn('standalone');
    const gateway = gatewayOf({ services: { hotel: run } });
    const stages = gateway.parts.stages.map(({ name }) => name);
    await gateway.close();
    assert.deepEqual([...steps, ...stages], Object.keys(inDiagram));
    const [, diagram = ''] = /```mermaid\n([^`]*)```/.exec(sourceOf('README.md')) ?? [];
    const places = Object.values(inDiagram).flatMap((text) => (text === undefined ? [] : [diagram.indexOf(text)]));
    assert.ok(!places.includes(-1), places.join());
    assert.deepEqual(
      places,
      places.toSorted((one, other) => one - other),
    );
  });

  it('has no landing page with KUBERNETES_GATEWAY_API, because the root belongs to the routes', async () => {
    const steps = await namesOn('standalone', { config: undefined, kubernetes: true, kubernetesGatewayApi: true });
    assert.deepEqual(
      steps,
      (await namesOn('standalone')).filter((name) => name !== 'landing page'),
    );
  });

  it('has no CORS on the auth listener, whose response depends only on the credentials', async () => {
    assert.deepEqual(await namesOn('auth'), ['request context', 'tracing', 'access log', 'auth service']);
  });

  for (const [what, options] of Object.entries({
    'the level info is off': { logger: { ...logger, isLevelEnabled: (level: string) => level === 'error' } },
    'ACCESS_LOG is off': { accessLog: 'off' as const },
  }))
    it(`has no access log when ${what}`, async () => {
      assert.deepEqual(await namesOn('auth', options), ['request context', 'tracing', 'auth service']);
    });

  it('has no pages and no access log on the admin port', async () => {
    const expected = ['request context', 'problems without pages', 'host', 'safe path', 'metrics and probes'];
    assert.deepEqual(await namesOn('admin'), expected);
  });
});

describe('a streamed response', () => {
  it('does not cause a warning about too many event listeners', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    const auth = await servers.http((_req, res) => void res.end());
    const begun = createDeferred();
    const upstream = await servers.http((_req, res) => {
      res.write('begun');
      void begun.promise.then(() => res.end());
    });
    const desk = await open({
      only: ['gateway'],
      logger: silentLogger,
      accessLog: 'json',
      config: {
        records: [{ ...authRecord, auth_service: auth.origin }, mappingRecord('stream', '/', upstream.origin)],
      },
    });
    const { gateway } = await desk.listen();
    process.on('warning', warn);
    try {
      const response = await fetch(gateway.url);
      begun.resolve();
      assert.equal(await response.text(), 'begun');
    } finally {
      process.off('warning', warn);
    }
    assert.deepEqual(warnings, []);
  });
});

const everywhere = 'https://everywhere.example';
const here = 'https://here.example';

describe('CORS_ORIGINS, and a mapping with its own origins', () => {
  const own = { own: () => {} };
  const cors = { origins: [here], methods: ['PUT'], credentials: true };
  const records = [
    authRecord,
    mappingRecord('strict', '/strict', 'own', { cors }),
    mappingRecord('plain', '/plain', 'own'),
  ];
  const opening = createFrontdesk({
    config: { records },
    only: ['gateway', 'auth'],
    services: own,
    corsOrigins: [everywhere, 'https://*.shop.example'],
  });

  after(async () => (await opening).close());

  const ask = async (path: string, origin: string, method: 'options' | 'get') => {
    const headers = { Origin: origin, 'Access-Control-Request-Method': 'PUT' };
    const response = await request((await opening).app.callback())
      [method](path)
      .set(headers);
    const { 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } =
      response.headers;
    assert.match(response.headers['vary'] ?? '', /Origin/);
    return [response.status, allowed, credentials];
  };

  it('apply the rule of the mapping, if there is one, to preflights, which carry no credentials', async () => {
    assert.deepEqual(await ask('/strict', here, 'options'), [204, here, 'true']);
    assert.deepEqual(await ask('/strict', everywhere, 'options'), [204, undefined, undefined]);
    assert.deepEqual(await ask('/plain', everywhere, 'options'), [204, everywhere, undefined]);
  });

  it('let clients of gRPC-Web read the status of a refused call', async () => {
    const response = await request((await opening).app.callback())
      .post('/plain')
      .set({ Origin: everywhere, 'Content-Type': 'application/grpc-web' })
      .expect(200);
    assert.equal(response.headers['grpc-status'], '16');
    assert.match(response.headers['access-control-expose-headers'] ?? '', /Grpc-Status,Grpc-Message/);
  });

  it('may have a star for all subdomains', async () => {
    const origin = 'https://eu.shop.example';
    assert.deepEqual(await ask('/plain', origin, 'get'), [401, origin, undefined]);
    assert.deepEqual(await ask('/plain', 'https://evil-shop.example', 'get'), [401, undefined, undefined]);
  });

  it('apply the same rule to a 401 response', async () => {
    assert.deepEqual(await ask('/strict', here, 'get'), [401, here, 'true']);
    assert.deepEqual(await ask('/strict', everywhere, 'get'), [401, undefined, undefined]);
    assert.deepEqual(await ask('/plain', everywhere, 'get'), [401, everywhere, undefined]);
    assert.deepEqual(await ask('/plain', here, 'get'), [401, undefined, undefined]);
  });

  it("expose the response headers of frontdesk's services to scripts", async () => {
    const { headers } = await request((await opening).app.callback())
      .get('/plain')
      .set('Origin', everywhere);
    const readable = (headers['access-control-expose-headers'] ?? '').split(',');
    for (const name of 'Deprecation ETag Idempotent-Replayed Link Location RateLimit Retry-After Sunset'.split(' '))
      assert.ok(readable.includes(name), name);
  });
});
