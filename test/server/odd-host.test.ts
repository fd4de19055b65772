/** Determining the host of a request, from one `Host` line or an absolute target, in unusual spellings. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { sendRaw, statusOf } from '../support/wire/raw-client.ts';

describe('the host of a request', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  let port = 0;

  before(async () => {
    const echo = (ctx: Context) => {
      ctx.body = `found ${ctx.get('Host')}`;
    };
    const records = [
      mappingRecord('a', '/', 'echo', { host: 'A.example' }),
      mappingRecord('idn', '/', 'echo', { host: 'Bücher.example' }),
      mappingRecord('glob', '/', 'echo', { hostname: '*.bücher.example' }),
    ];
    const desk = await open({ config: { records }, services: { echo }, only: ['gateway'] });
    port = (await desk.listen()).gateway.port;
  });

  const send = (target: string, ...hosts: readonly string[]) => {
    const lines = hosts.map((host) => `Host: ${host}`);
    return sendRaw(port, [`GET ${target} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'));
  };

  /** `status` is the expected status, and `seen` the host that the service sees. */
  const check = (what: string, status: number, target: string, hosts: readonly string[], seen?: string) =>
    it(`${what}: ${status}`, async () => {
      const answer = await send(target, ...hosts);
      assert.equal(statusOf(answer), status, answer);
      if (seen !== undefined) assert.ok(answer.includes(`found ${seen}`), answer);
      if (status === 400) assert.match(answer, /"code":400/);
    });

  check('matches the name', 200, '/', ['a.example'], 'a.example');
  check('ignores the port', 200, '/', ['a.example:8443']);
  check('ignores one trailing dot', 200, '/', ['a.example.']);
  check('ignores a dot before the port', 200, '/', ['a.example.:80']);
  check('does not ignore two dots', 404, '/', ['a.example..']);
  check('ignores ASCII case', 200, '/', ['A.EXAMPLE']);
  check('does not match another name', 404, '/', ['b.example']);
  check('rejects two Host lines', 400, '/', ['a.example', 'b.example']);
  check('rejects two Host lines that are the same', 400, '/', ['a.example', 'a.example']);
  check('rejects a missing Host', 400, '/', []);
  check('rejects an absolute target without Host', 400, 'http://a.example/', []);
  check('prefers the authority of an absolute target to Host', 200, 'http://a.example/', ['b.example'], 'a.example');
  check('does not fall back to Host for an absolute target', 404, 'http://b.example/', ['a.example']);
  check('rejects an absolute target with two Host lines', 400, 'http://a.example/', ['a.example', 'b.example']);
  check('rejects an absolute target without a host', 400, 'http:///', ['a.example']);
  check('rejects credentials in an absolute target', 400, 'http://user@a.example/', ['a.example']);
  check('matches a record with an internationalised name', 200, '/', ['xn--bcher-kva.example']);
  check('matches a record with an internationalised domain', 200, '/', ['x.XN--BCHER-KVA.example']);
  check('rejects bytes beyond ASCII', 400, '/', ['b\xc3\xbccher.example']);
  check('rejects bytes beyond ASCII in an absolute target', 400, 'http://b\xc3\xbccher.example/', ['a.example']);
  check('rejects an invalid host', 400, '/', ['a.example/path']);
  check('rejects two names', 400, '/', ['a.example, b.example']);

  it('is absent in HTTP/1.0, whose requests match mappings without a host', async () => {
    assert.match(await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 404 /);
  });
});
