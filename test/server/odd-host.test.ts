/** Which host a request is for: one `Host` line, the target's own authority before it, and names in the spelling of clients. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { sendRaw } from '../support/wire/raw-client.ts';

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
    port = (await desk.listen()).gateway?.port ?? 0;
  });

  const send = (target: string, ...hosts: readonly string[]) => {
    const lines = hosts.map((host) => `Host: ${host}`);
    return sendRaw(port, [`GET ${target} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'));
  };

  /** The status, and the host that the service sees. */
  const check = (what: string, status: number, target: string, hosts: readonly string[], seen?: string) =>
    it(`${what}: ${status}`, async () => {
      const answer = await send(target, ...hosts);
      assert.equal(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1], String(status), answer);
      if (seen !== undefined) assert.ok(answer.includes(`found ${seen}`), answer);
      if (status === 400) assert.match(answer, /"code":400/);
    });

  check('matches the name', 200, '/', ['a.example'], 'a.example');
  check('ignores the port', 200, '/', ['a.example:8443']);
  check('ignores one dot at the end', 200, '/', ['a.example.']);
  check('ignores a dot before the port', 200, '/', ['a.example.:80']);
  check('does not ignore two dots', 404, '/', ['a.example..']);
  check('ignores ASCII case', 200, '/', ['A.EXAMPLE']);
  check('matches no other name', 404, '/', ['b.example']);
  check('refuses two Host lines', 400, '/', ['a.example', 'b.example']);
  check('refuses two Host lines that are the same', 400, '/', ['a.example', 'a.example']);
  check('refuses none', 400, '/', []);
  check('refuses none beside an absolute target', 400, 'http://a.example/', []);
  check('takes the authority of an absolute target over Host', 200, 'http://a.example/', ['b.example'], 'a.example');
  check('takes the authority of an absolute target, not Host', 404, 'http://b.example/', ['a.example']);
  check('refuses an absolute target with two Host lines', 400, 'http://a.example/', ['a.example', 'b.example']);
  check('refuses an absolute target without a host', 400, 'http:///', ['a.example']);
  check('refuses credentials in an absolute target', 400, 'http://user@a.example/', ['a.example']);
  check('matches a record with an internationalised name', 200, '/', ['xn--bcher-kva.example']);
  check('matches a record with an internationalised domain', 200, '/', ['x.XN--BCHER-KVA.example']);
  check('refuses bytes beyond ASCII', 400, '/', ['b\xc3\xbccher.example']);
  check('refuses bytes beyond ASCII in an absolute target', 400, 'http://b\xc3\xbccher.example/', ['a.example']);
  check('refuses what is no host', 400, '/', ['a.example/path']);
  check('refuses two names', 400, '/', ['a.example, b.example']);

  it('is none in HTTP/1.0, whose requests meet the mappings without a host', async () => {
    assert.match(await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 404 /);
  });
});
