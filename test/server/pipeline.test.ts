/** The order of the middleware on each listener, and CORS for the whole server beside CORS of one mapping. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import request from 'supertest';
import { silentLogger } from '#http';
import { createFrontdesk } from '../../src/index.ts';
import { type FrontdeskOptions, resolveOptions } from '../../src/server/options.ts';
import { createSteps, type PipelineListener, type PipelineParts, stepsOf } from '../../src/server/pipeline.ts';
import { mappingRecord } from '../support/desks.ts';

const sourceOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** Each step or stage, and what README's diagram calls it; undefined: it is not in there. */
const inDiagram: Readonly<Record<string, string | undefined>> = {
  'request context': 'request id',
  tracing: 'trace',
  'access log': 'access log',
  CORS_ORIGINS: 'CORS_ORIGINS',
  problems: undefined,
  'safe path': 'plain path',
  gateway: '<b>gateway</b>',
  refuseEndedVersion: 'version after its sunset',
  limitByAddress: '<b>limit by address</b>',
  authenticate: '<b>authenticate</b>',
  limitOthers: '<b>other limits</b>',
  copyToShadow: 'a shadow',
  forward: '<b>forward</b>',
};

describe('the order of the middleware', () => {
  const run = async () => {};
  const parts = {
    tracing: { middleware: run },
    problems: { logger: silentLogger },
    gateway: { middleware: run, answersPreflight: () => false },
    auth: { app: run },
    routes: [],
  } as unknown as PipelineParts;

  async function check(
    listener: PipelineListener,
    expected: readonly string[],
    options: FrontdeskOptions = {},
    changes: Partial<PipelineParts> = {},
  ): Promise<void> {
    const setup = await resolveOptions({ config: { records: [] }, ...options });
    const steps = stepsOf(createSteps(setup, { ...parts, ...changes }), listener);
    assert.deepEqual(
      steps.map(([name]) => name),
      expected,
    );
  }

  it('on the gateway', () =>
    check('gateway', ['request context', 'tracing', 'access log', 'CORS_ORIGINS', 'problems', 'safe path', 'gateway'], {
      corsOrigins: ['*'],
    }));

  it('on the gateway without tracing and CORS_ORIGINS', () =>
    check(
      'gateway',
      ['request context', 'access log', 'problems', 'safe path', 'gateway'],
      {},
      { tracing: undefined },
    ));

  it('is that of the diagram in README.md, and so are the stages of the gateway', async () => {
    const setup = await resolveOptions({ config: { records: [] }, corsOrigins: ['*'] });
    const steps = stepsOf(createSteps(setup, parts), 'gateway').map(([name]) => name);
    const [, list = ''] = /const stages: .* = \[([^\]]*)\]/.exec(sourceOf('src/gateway/handle.ts')) ?? [];
    const stages = list.match(/\w+/g) ?? [];
    assert.deepEqual([...steps, ...stages], Object.keys(inDiagram));
    const [, diagram = ''] = /```mermaid\n([^`]*)```/.exec(sourceOf('README.md')) ?? [];
    const places = Object.values(inDiagram).flatMap((text) => (text === undefined ? [] : [diagram.indexOf(text)]));
    assert.ok(!places.includes(-1), places.join());
    assert.deepEqual(
      places,
      places.toSorted((one, other) => one - other),
    );
  });

  it('on the auth service, whose answer depends on the credentials alone', () =>
    check('auth', ['request context', 'tracing', 'access log', 'auth service'], { corsOrigins: ['*'] }));

  it('on the admin port', () =>
    check('admin', ['request context', 'problems without pages', 'safe path', 'metrics and probes'], {
      corsOrigins: ['*'],
    }));
});

const everywhere = 'https://everywhere.example';
const here = 'https://here.example';

describe('CORS_ORIGINS, and a mapping with its own origins', () => {
  const own = { own: () => {} };
  const cors = { origins: [here], methods: ['PUT'], credentials: true };
  const records = [mappingRecord('strict', '/strict', 'own', { cors }), mappingRecord('plain', '/plain', 'own')];
  const opening = createFrontdesk({
    config: { records },
    only: ['gateway'],
    services: own,
    corsOrigins: [everywhere],
  });

  after(async () => (await opening).close());

  const ask = async (path: string, origin: string, method: 'options' | 'get') => {
    const headers = { Origin: origin, 'Access-Control-Request-Method': 'PUT' };
    const answer = await request((await opening).app.callback())
      [method](path)
      .set(headers);
    const { 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } = answer.headers;
    assert.match(answer.headers['vary'] ?? '', /Origin/);
    return [answer.status, allowed, credentials];
  };

  it('answers preflights by the rule of the mapping where there is one', async () => {
    assert.deepEqual(await ask('/strict', here, 'options'), [204, here, 'true']);
    assert.deepEqual(await ask('/strict', everywhere, 'options'), [204, undefined, undefined]);
    assert.deepEqual(await ask('/plain', everywhere, 'options'), [204, everywhere, undefined]);
  });

  it('lets scripts read by the same rule', async () => {
    assert.deepEqual(await ask('/strict', here, 'get'), [404, here, 'true']);
    assert.deepEqual(await ask('/strict', everywhere, 'get'), [404, undefined, undefined]);
    assert.deepEqual(await ask('/plain', everywhere, 'get'), [404, everywhere, undefined]);
    assert.deepEqual(await ask('/plain', here, 'get'), [404, undefined, undefined]);
  });
});
