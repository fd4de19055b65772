/** Synthetic requests, compared with real ones over a socket. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { createAddresses, requestContext } from '#http';
import { createSyntheticContext, faultsOfRequest } from '../../src/explain/synthetic-request.ts';
import { testServers } from '../support/serve.ts';
import { sendRaw } from '../support/wire/raw-client.ts';

const names = 'Accept Cookie Content-Type User-Agent X-One x-one Set-Cookie Authorization Via'.split(' ');
const line = fc.tuple(fc.constantFrom(...names), fc.constantFrom('a', 'b, c', ' d ', 'ü', ''));

describe('createSyntheticContext', () => {
  const servers = testServers();

  it('joins repeated headers like Node does', async () => {
    let read: IncomingHttpHeaders = {};
    const { port } = await servers.http((req, res) => {
      read = req.headers;
      res.end();
    });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), async (lines) => {
        const headers = [...lines, ['Host', 'a'] as const, ['Connection', 'close'] as const];
        const bytes = ['GET / HTTP/1.1', ...headers.map(([name, value]) => `${name}:${value}`), '', ''].join('\r\n');
        await sendRaw(port, Buffer.from(bytes, 'utf8').toString('latin1'));
        const { req } = createSyntheticContext({ method: 'GET', url: '/', headers }, createAddresses());
        assert.deepEqual({ ...req.headers }, { ...read });
      }),
      { numRuns: 60 },
    );
  });

  it('has the given address and encryption', () => {
    const addresses = createAddresses({ trustedProxies: ['10.0.0.1'] });
    const headers = [['X-Forwarded-For', '203.0.113.7']] as const;
    const clientFrom = (remoteAddress: string) => {
      const { req } = createSyntheticContext({ method: 'GET', url: '/', headers, remoteAddress }, addresses);
      return addresses.client(req);
    };
    assert.deepEqual([clientFrom('10.0.0.1'), clientFrom('10.0.0.2')], ['203.0.113.7', '10.0.0.2']);
  });

  it('has the given request id', () => {
    const headers = [['X-Request-Id', 'mine']] as const;
    const ctx = createSyntheticContext({ method: 'GET', url: 'https://api.example/x?y', headers }, createAddresses());
    assert.deepEqual([ctx.url, requestContext(ctx).requestId], ['/x?y', 'mine']);
  });
});

describe('faultsOfRequest', () => {
  it('accepts valid requests', () => {
    const headers = [
      ['Host', 'a'],
      ['X-Empty', ''],
      ['X-Other', 'ü'],
    ] as const;
    assert.deepEqual(
      faultsOfRequest({ method: 'GET', url: '/a?b=%20', headers, remoteAddress: '::1', user: 'Anné' }),
      [],
    );
    assert.deepEqual(faultsOfRequest({ method: 'POST', url: 'http://[::1]:8080' }), []);
  });

  const check = (request: object, parameter: string) =>
    assert.deepEqual(
      faultsOfRequest({ method: 'GET', url: '/', ...request }).map((fault) => fault.parameter),
      [parameter],
      JSON.stringify(request),
    );

  it('reports invalid URLs, headers and users', () => {
    for (const url of ['', 'x', '*', '/é', '/a b', 'ftp://host/', 'http://user@host/', '/a\nb']) check({ url }, 'url');
    const headers = { '': 'x', 'a b': 'x', a: 'x\r\nb: c', b: '\0' };
    for (const header of Object.entries(headers)) check({ headers: [header] }, 'header');
    check({ user: '' }, 'user');
  });
});
