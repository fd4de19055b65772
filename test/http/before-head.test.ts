import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import request from 'supertest';
import { beforeHead } from '#http';

describe('beforeHead', () => {
  const writesOf = (answer: (res: ServerResponse) => void) => {
    const written: string[] = [];
    const listener: RequestListener = (_req, res) => {
      beforeHead(res, () => {
        written.push('outer');
        res.setHeader('X-Last', 'outer');
      });
      beforeHead(res, () => {
        written.push('inner');
        res.setHeader('X-Last', 'inner');
        res.appendHeader('Link', '</b>');
      });
      res.setHeader('X-Last', 'first').setHeader('Link', '</a>');
      answer(res);
    };
    return { written, listener };
  };

  for (const [how, answer] of [
    ['end', (res: ServerResponse) => void res.end('x')],
    ['write', (res: ServerResponse) => void res.write('x', () => res.end())],
    ['flushHeaders', flushFirst],
    ['writeHead', (res: ServerResponse) => void res.writeHead(200, { 'X-Own': '1' }).end('x')],
    ['writeHead and the same headers', (res) => void res.writeHead(200, { 'X-Last': 'own', Link: '</a>' }).end('x')],
    [
      'writeHead, a reason and the same headers',
      (res) => void res.writeHead(200, 'Fine', { 'x-last': 'own', link: ['</a>'] }).end('x'),
    ],
    [
      'writeHead and the same headers as a list',
      (res) => void res.writeHead(200, ['X-Last', 'own', 'Link', '</a>']).end('x'),
    ],
    [
      'Early Hints first',
      (res: ServerResponse) => res.writeEarlyHints({ link: '</c>; rel=preload' }, () => res.end('x')),
    ],
  ] as readonly [string, (res: ServerResponse) => void][])
    it(`has the last word once, the outermost last, when the answer begins with ${how}`, async () => {
      const { written, listener } = writesOf(answer);
      const { headers } = await request(listener).get('/').expect(200);
      assert.deepEqual(written, ['inner', 'outer']);
      assert.deepEqual([headers['x-last'], headers['link']], ['outer', '</a>, </b>']);
    });

  it('has the last word still when a head was refused', async () => {
    const { written, listener } = writesOf((res) => {
      assert.throws(() => res.writeHead(200, { 'X-Own': 'a\nb' }), { code: 'ERR_INVALID_CHAR' });
      assert.deepEqual(written, []);
      res.removeHeader('Link');
      res.writeHead(500, 'Broken').end();
    });
    const { headers } = await request(listener).get('/').expect(500);
    assert.equal(headers['link'], '</b>');
  });

  it('leaves a second head to Node, which refuses it', async () => {
    let refusal: unknown;
    const { written, listener } = writesOf((res) => {
      res.writeHead(204).end();
      try {
        res.writeHead(200);
      } catch (thrown) {
        refusal = thrown;
      }
    });
    await request(listener).get('/').expect(204);
    assert.equal((refusal as { code?: string }).code, 'ERR_HTTP_HEADERS_SENT');
    assert.equal(written.length, 2);
  });
});

function flushFirst(res: ServerResponse): void {
  res.flushHeaders();
  res.end('x');
}
