/** What a client is told of the methods of a resource. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { answerOtherMethod, createProblemResponses } from '#http';

describe('answerMethod', () => {
  const app = new Koa().use(createProblemResponses()).use((ctx) => answerOtherMethod(ctx, ['GET', 'HEAD', 'OPTIONS']));

  it('answers OPTIONS with 204, the methods and no body', async () => {
    const { text } = await request(app.callback()).options('/').expect(204).expect('Allow', 'GET, HEAD, OPTIONS');
    assert.equal(text, '');
  });

  it('refuses any other method with 405, the methods in Allow and in the body', async () => {
    const { body } = await request(app.callback()).post('/').expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    assert.deepEqual(body, {
      code: 405,
      message: '405: Method Not Allowed',
      detail: 'This resource takes GET, HEAD, OPTIONS.',
    });
  });
});
