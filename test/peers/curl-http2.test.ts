/** The gateway under curl over HTTP/2, in clear text with prior knowledge and over TLS. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer, text } from 'node:stream/consumers';
import { authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { makeCertificate } from '../support/wire/certificate.ts';

const user = ['-u', 'demo:demo'];
const big = Buffer.alloc(8 * 1024 * 1024, 'frontdesk');

interface Answer {
  /** The version of HTTP and the status, for example `2 200`. */
  readonly status: string;
  readonly body: Buffer;
}

/** Runs curl with a text on standard input. Rejects if curl does. */
async function curl(args: readonly string[], input: string | Buffer = ''): Promise<Answer> {
  const child = spawn('curl', ['-sS', '-w', '%{stderr}%{http_version} %{response_code}\n', ...args]);
  // curl may stop reading when it has the response.
  child.stdin.on('error', () => {}).end(input);
  const [body, status, [code]] = await Promise.all([buffer(child.stdout), text(child.stderr), once(child, 'close')]);
  assert.equal(code, 0, status);
  return { status: status.trimEnd(), body };
}

describeWith('curl', 'curl over HTTP/2', () => {
  for (const way of ['--http2-prior-knowledge', '--http2'] as const) {
    const isTls = way === '--http2';
    describe(isTls ? 'with TLS' : 'with prior knowledge', () => {
      const servers = testServers(after);
      const openDesk = desksOf(servers);
      const writeFiles = temporaryFiles();
      let upstream: Upstream;
      let origin: string;
      let common: readonly string[];

      before(async () => {
        const tls = isTls ? await makeCertificate(await writeFiles(), 'IP:127.0.0.1') : undefined;
        common = tls === undefined ? [way] : [way, '--cacert', tls.file];
        upstream = await startUpstream(servers, (res, { url }) => {
          if (url === '/cookies') res.setHeader('Set-Cookie', ['a=1', 'b=2']);
          const body = url === '/big' ? big : Buffer.from(`you asked ${url}`);
          res.setHeader('Content-Length', body.length).end(body);
        });
        const records = [
          mappingRecord('all', '/', upstream.origin, { rewrite: '' }),
          mappingRecord('small', '/small', upstream.origin, { max_request_bytes: 1000 }),
          authRecord,
        ];
        const files = tls && { tlsCert: tls.file, tlsKey: tls.keyFile };
        const desk = await openDesk({ demo: false, config: { records, users: [demoRecord] }, ...files });
        origin = (await desk.listen()).gateway.url;
      });

      const ask = (path: string, args: readonly string[] = [], input: string | Buffer = '') =>
        curl([...common, ...args, origin + path], input);

      async function reachedBy(path: string, args: readonly string[], input: string | Buffer = '') {
        const [reached] = await upstream.reachedBy(async () => {
          assert.equal((await ask(path, [...user, ...args], input)).status, '2 200');
        });
        assert.ok(reached !== undefined);
        return reached;
      }

      it('gets a response, and the service gets the authority as Host and the user', async () => {
        const { status, body } = await ask('/a%2Fb?x=%2F', user);
        assert.deepEqual([status, String(body)], ['2 200', 'you asked /a%2Fb?x=%2F']);
        const { method, headers } = upstream.reached.at(-1) ?? assert.fail();
        assert.deepEqual([method, headers.host, headers['x-travel-user']], ['GET', new URL(origin).host, 'demo']);
        assert.equal((await reachedBy('/', ['-H', 'Host: orders.example'])).headers.host, 'orders.example');
      });

      it('gets a challenge without credentials, and with wrong ones', async () => {
        const reached = await upstream.reachedBy(async () => {
          for (const args of [[], ['-u', 'demo:wrong']]) {
            const { status, body } = await ask('/', ['-i', ...args]);
            assert.equal(status, '2 401');
            assert.match(String(body), /^www-authenticate: Basic realm=/m);
          }
        });
        assert.deepEqual(reached, []);
      });

      it('gets the headers of a HEAD without a body', async () => {
        const { status, body } = await ask('/', ['-I', ...user]);
        assert.equal(status, '2 200');
        assert.match(String(body), /^content-length: 11\r\n/m);
        assert.match(String(body), /\r\n\r\n$/);
      });

      it('sends a body whose length is known, and one whose length is not', async () => {
        const known = await reachedBy('/', ['-d', 'a=1']);
        assert.deepEqual([known.method, known.body, known.headers['content-length']], ['POST', 'a=1', '3']);
        const unknown = await reachedBy('/', ['-X', 'POST', '-T', '-'], 'x'.repeat(300_000));
        assert.deepEqual([unknown.method, unknown.body], ['POST', 'x'.repeat(300_000)]);
        assert.equal((await reachedBy('/', ['-X', 'POST', '-T', '-'])).body, '');
      });

      it('sends a body after 100 Continue', async () => {
        const args = ['-v', '-X', 'POST', '-T', '-', '-H', 'Expect: 100-continue'];
        const { status } = await ask('/', [...user, ...args], 'later');
        assert.match(status, /^< HTTP\/2 100 .*^< HTTP\/2 200 /ms);
        assert.equal(upstream.reached.at(-1)?.body, 'later');
      });

      it('sends and receives 8 MiB', async () => {
        const { body } = await reachedBy('/', ['-T', '-'], big);
        assert.ok(Buffer.from(body, 'latin1').equals(big));
        const { status, body: downloaded } = await ask('/big', user);
        assert.equal(status, '2 200');
        assert.ok(downloaded.equals(big));
      });

      it('sends cookies and keeps those of a response', async () => {
        const { headers } = await reachedBy('/', ['-b', 'a=1; b=2']);
        assert.equal(headers.cookie, 'a=1; b=2');
        const { body } = await ask('/cookies', ['-i', ...user]);
        assert.deepEqual(String(body).match(/^set-cookie: .*$/gm), ['set-cookie: a=1', 'set-cookie: b=2']);
      });

      // Before its version 8, curl in clear text uses a connection only once, and loses a response that it gets while it
      // sends, whatever the server is.
      it(`gets the responses of 200 requests, 50 at a time, ${isTls ? 'on one connection' : 'on as many connections'}`, async () => {
        const parallel = isTls ? ['-Z'] : ['-Z', '--parallel-immediate'];
        const bodies: string[] = [];
        const reached = await upstream.reachedBy(async () => {
          for (const range of isTls ? ['1-200'] : ['1-50', '51-100', '101-150', '151-200']) {
            const { status, body } = await ask(`/[${range}]`, [...parallel, '--no-progress-meter', ...user]);
            assert.deepEqual([...new Set(status.match(/^\d.*$/gm))], ['2 200']);
            bodies.push(String(body));
          }
        });
        assert.equal(bodies.join().match(/you asked/g)?.length, 200);
        assert.equal(new Set(reached.map(({ url }) => url)).size, 200);
      });

      if (isTls)
        it('gets a 413 while it sends a body that is too large, whether or not it has said how long it is', async () => {
          const directory = await writeFiles({ big: big.toString() });
          const reached = await upstream.reachedBy(async () => {
            for (const file of ['-', `${directory}/big`]) {
              const { status, body } = await ask('/small', ['-T', file, '-X', 'POST', ...user], big);
              assert.equal(status, '2 413');
              assert.match(String(body), /^\{.*"code":413/);
            }
          });
          assert.deepEqual(reached, []);
        });
    });
  }

  describe('with --http2 in clear text, which asks for an upgrade', () => {
    const servers = testServers();
    const openDesk = desksOf(servers);

    it('gets a response over HTTP/1.1, and the service is not asked to switch', async () => {
      const upstream = await startUpstream(servers);
      const records = [mappingRecord('all', '/', upstream.origin)];
      const desk = await openDesk({ demo: false, config: { records } });
      const { gateway } = await desk.listen();
      const { status, body } = await curl(['--http2', gateway.url]);
      assert.deepEqual([status, String(body)], ['1.1 200', 'ok']);
      const { names } = upstream.only();
      assert.deepEqual(
        names.filter((name) => ['upgrade', 'http2-settings'].includes(name)),
        [],
      );
    });
  });
});
