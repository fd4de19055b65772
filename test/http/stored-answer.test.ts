/** An answer that is kept reads the second time as it did the first. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { createRepresentations, renderResponse, type StoredResponse, sendStoredResponse } from '#http';

const representations = createRepresentations();

const prepare = (accept?: string, version: string | undefined = '3') =>
  renderResponse(
    representations.choose(accept),
    { id: 'h1', name: '<Bären>' },
    {
      title: 'Hotel',
      version,
      status: 201,
      headers: { Location: 'https://x.test/h1' },
    },
  );

function send(answer: StoredResponse, isReplayed: boolean) {
  const app = new Koa();
  app.use((ctx) => sendStoredResponse(ctx, answer, isReplayed));
  return request(app.callback()).post('/').expect(201);
}

describe('a stored answer', () => {
  for (const accept of [undefined, 'application/yaml', 'text/html']) {
    it(`is the same after it was kept as text, and says that it is repeated: ${accept}`, async () => {
      const answer = prepare(accept);
      const [first, again] = [await send(answer, false), await send(JSON.parse(JSON.stringify(answer)), true)];
      assert.equal(again.text, first.text);
      const { date: _first, ...headers } = first.headers;
      const { date: _again, 'idempotent-replayed': replayed, ...others } = again.headers;
      assert.deepEqual(others, headers);
      assert.equal(replayed, 'true');
      assert.equal(first.headers['idempotent-replayed'], undefined);
    });
  }

  it('has the tag, the type and the place of what it tells of', async () => {
    const { headers, body } = await send(prepare(), false);
    assert.equal(headers['etag'], '"3-json"');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['location'], 'https://x.test/h1');
    assert.equal(headers['vary'], 'Accept');
    assert.equal(headers['cache-control'], 'private, no-cache');
    assert.deepEqual(body, { id: 'h1', name: '<Bären>' });
  });

  it('is tagged by its bytes where it has no version', () => {
    const { headers } = renderResponse(
      representations.choose(undefined),
      {},
      { title: '', version: undefined, status: 201, headers: {} },
    );
    assert.match(headers['ETag'] ?? '', /^"[\w-]{22}"$/);
  });
});
