/** CORS for the whole desk and CORS of one mapping: where both speak, the mapping does. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { createFrontdesk } from '../../src/index.ts';
import { mappingRecord } from '../support/desks.ts';

const everywhere = 'https://everywhere.example';
const here = 'https://here.example';

describe('a desk with origins, and a mapping with origins of its own', () => {
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
