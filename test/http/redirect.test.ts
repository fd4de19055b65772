import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { redirectTo } from '#http';

describe('redirectTo', () => {
  function check(location: string, expected: string) {
    it(`answers 308 with Location ${expected} and no body for ${location}`, async () => {
      const app = new Koa();
      app.use((ctx) => redirectTo(ctx, location));
      const { headers, text } = await request(app.callback()).post('/').redirects(0).expect(308);
      assert.equal(headers['location'], expected);
      assert.equal(text, '');
      assert.equal(headers['content-type'], undefined);
    });
  }

  check('/v1/messages/', '/v1/messages/');
  check('/travel/v1/messages/?a=1&a=%2F', '/travel/v1/messages/?a=1&a=%2F');
  check('//evil.example/', '/evil.example/');
  check('/\\evil.example/', '/evil.example/');
  check('///\\/evil.example/', '/evil.example/');
});
