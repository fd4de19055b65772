/** Tests of single writes: which responses of the API server mean what, and what the log says. */
import assert from 'node:assert/strict';
import { createWriter, type WriteRequest } from '../../../src/kubernetes/reports/writer.ts';

const create: WriteRequest = { verb: 'create', group: '', resource: 'events', path: '/events', body: {} };
const patch: WriteRequest = {
  verb: 'patch',
  group: 'gateway.local',
  resource: 'mappings/status',
  path: '/status',
  body: {},
};

const terminating = {
  message: 'unable to create new content in namespace shop because it is being terminated',
  details: { causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] },
};

/** `lines` is how many lines the log has then. */
const cases: readonly [WriteRequest, status: number, result: string, lines: number, body?: object][] = [
  [create, 201, 'ok', 0],
  [patch, 200, 'ok', 0],
  [create, 409, 'exists', 0],
  [patch, 409, 'later', 1],
  [{ ...patch, resourceVersion: '7' }, 409, 'changed', 0],
  [patch, 404, 'gone', 0],
  [create, 404, 'gone', 0],
  [create, 403, 'gone', 0, terminating],
  [create, 403, 'refused', 1, { message: 'events is forbidden' }],
  [patch, 422, 'refused', 1],
  [patch, 401, 'later', 1],
  [patch, 429, 'later', 1],
  [create, 500, 'later', 1],
  [create, 503, 'later', 1],
];

function createTestWriter(request: Parameters<typeof createWriter>[0]['api']['request']) {
  const lines: string[] = [];
  const line = (fields: object, message = '') => void lines.push(`${message} ${JSON.stringify(fields)}`);
  let nowMs = 0;
  const writer = createWriter({
    api: { request },
    logger: { info: line, warn: line },
    clock: () => nowMs,
    forbiddenMs: 1_000,
  });
  return {
    writer,
    lines,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('a write to the cluster', () => {
  for (const [write, status, result, count, body = {}] of cases)
    it(`is ${result} if the response to ${write.verb}${write.resourceVersion === undefined ? '' : ' of a version'} is ${status}${body === terminating ? ' because the namespace is being deleted' : ''}`, async () => {
      const { writer, lines } = createTestWriter(async () => ({ status, body }));
      assert.equal((await writer.send(write)).result, result);
      assert.equal(lines.length, count, lines.join('\n'));
    });

  it('is to be tried again later if there is no response', async () => {
    const { writer, lines } = createTestWriter(() => Promise.reject(new Error('connect ECONNREFUSED')));
    assert.equal((await writer.send(patch)).result, 'later');
    assert.match(lines.join('\n'), /^The status of mappings cannot be written; everything else goes on/);
  });

  it('keeps the time that the API server asks for', async () => {
    const { writer } = createTestWriter(async () => ({ status: 429, body: {}, retryAfterMs: 7_000 }));
    assert.equal((await writer.send(patch)).retryAfterMs, 7_000);
  });

  it('is not tried for a while after it was forbidden, and then again', async () => {
    let requests = 0;
    const { writer, lines, pass } = createTestWriter(async () => {
      requests += 1;
      return { status: requests === 1 ? 403 : 200, body: {} };
    });
    await writer.send(patch);
    assert.equal((await writer.send(patch)).result, 'refused');
    assert.equal(requests, 1);
    pass(10_000);
    assert.equal((await writer.send(patch)).result, 'ok');
    assert.equal(lines.length, 2);
    assert.match(lines[1] ?? '', /^the API server takes our mappings\/status of gateway\.local again/);
  });
});
