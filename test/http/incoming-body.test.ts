/** A body that is not read yet: announced or not, and there or gone. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Context } from 'koa';
import { bodyFromHost, hasBody, isBodyUnread, markBodyRestored } from '#http';

describe('announcesBody', () => {
  it('goes by the length and the transfer coding', () => {
    assert.equal(hasBody({}, 10), false);
    assert.equal(hasBody({ 'content-length': '0' }, 10), false);
    assert.equal(hasBody({ 'content-length': '10' }, 10), true);
    assert.equal(hasBody({ 'transfer-encoding': 'Chunked' }, 10), true);
  });

  it('refuses unread what is too large or packed', () => {
    assert.throws(() => hasBody({ 'content-length': '11' }, 10), { slug: 'body-too-large' });
    assert.throws(() => hasBody({ 'transfer-encoding': 'gzip, chunked' }, 10), { slug: 'bad-request' });
  });
});

describe('bodyReadBefore', () => {
  const read = (rawBody: unknown, headers: object = {}) =>
    bodyFromHost({ request: { rawBody }, req: { headers } } as unknown as Context, 10);

  it('is what the parser kept', () => {
    assert.equal(read('{}'), '{}');
    assert.equal(read('é', { 'content-length': '2' }), 'é');
  });

  it('is lost where that is not the body as it came', () => {
    assert.throws(() => read(undefined), { slug: 'body-consumed' });
    assert.throws(() => read({ a: 1 }), { slug: 'body-consumed' });
    assert.throws(() => read('{}', { 'content-length': '3' }), { slug: 'body-consumed' });
    assert.throws(() => read('{}', { 'content-encoding': 'gzip' }), { slug: 'body-consumed' });
    assert.throws(() => read('12345678901'), { slug: 'body-too-large' });
  });
});

describe('isBodyWhole', () => {
  it('is true until somebody reads, and again once it is put back', async () => {
    const seen: boolean[] = [];
    const server = createServer((req, res) => {
      seen.push(isBodyUnread(req));
      req.once('data', (chunk: Buffer) => {
        seen.push(isBodyUnread(req));
        req.pause();
        req.unshift(chunk);
        markBodyRestored(req);
        seen.push(isBodyUnread(req));
        res.end();
      });
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { method: 'POST', body: 'x' });
    server.closeAllConnections();
    server.close();
    assert.deepEqual(seen, [true, false, true]);
  });
});
