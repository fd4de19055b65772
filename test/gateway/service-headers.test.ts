/** Which of the rate-limit service's headers reach the client. */
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { ResponseHeader } from '#ratelimit';
import { createWriteServiceHeaders } from '../../src/gateway/service-headers.ts';

describe("a rate-limit service's headers", () => {
  function check(headers: readonly ResponseHeader[] | undefined, expected: object): void {
    const res = new ServerResponse(new IncomingMessage(new Socket()));
    res.setHeader('X-Plan', 'before');
    createWriteServiceHeaders(['x-plan', 'ratelimit-limit'])(res, headers);
    assert.deepEqual({ ...res.getHeaders() }, expected);
  }

  it('reach the client under the allowed names, however they are written', () => {
    const limit = { name: 'RateLimit-Limit', value: '10' };
    check([limit], { 'x-plan': 'before', 'ratelimit-limit': '10' });
    check([{ name: 'x-PLAN', value: 'gold' }], { 'x-plan': 'gold' });
  });

  it('keep all values of a name', () =>
    check(
      ['gold', 'silver'].map((value) => ({ name: 'X-Plan', value })),
      { 'x-plan': ['gold', 'silver'] },
    ));

  it('do not reach the client under other names', () =>
    check([{ name: 'Set-Cookie', value: 'a=1' }], { 'x-plan': 'before' }));

  it('are passed over when they would break the response', () =>
    check(
      ['a\r\nSet-Cookie: b=1', 'nul\0', '名'].map((value) => ({ name: 'X-Plan', value })),
      { 'x-plan': 'before' },
    ));

  it('may be missing', () => check(undefined, { 'x-plan': 'before' }));
});
