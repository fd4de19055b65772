/** Certificates of clients: who may connect, and how services learn who it is. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import type { Context } from 'koa';
import type { FrontdeskOptions, MappingInput } from '../../../src/index.ts';
import { call, desksOf, mappingRecord, type TestDesk } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

const header = 'x-client-cert-subject';

describe('client certificates', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let server: Certificate;
  let ca: Certificate;
  let ann: Certificate;
  let stranger: Certificate;
  let otherHost: string;

  before(async function () {
    const found = await makeCertificate(await writeFiles(), 'DNS:shop.example,IP:127.0.0.1');
    if (found === undefined) return this.skip();
    const make = async (names: string, subject: string, issuer?: Certificate) => {
      const more = issuer === undefined ? { subject } : { subject, issuer };
      const made = await makeCertificate(await writeFiles(), names, more);
      assert.ok(made !== undefined);
      return made;
    };
    server = found;
    ca = await make('', '/CN=ca');
    ann = await make('DNS:ann', '/O=Example, Inc./OU=People/CN=ann\\+1', ca);
    stranger = await make('DNS:ann', '/O=Example, Inc./CN=ann', await make('', '/CN=ca'));
    otherHost = await writeFiles();
    await makeCertificate(otherHost, 'DNS:other.example', { files: ['other.crt', 'other.key'], keyType: 'rsa' });
  });

  /** Responds with the header that names the subject. */
  function echo(ctx: Context): void {
    ctx.body = String(ctx.get(header) || 'none');
  }

  function open(options: FrontdeskOptions = {}, mappings: readonly MappingInput[] = []): Promise<TestDesk> {
    const config = { records: [mappingRecord('echo', '/', 'echo'), ...mappings] };
    const tls = { tlsCert: server.file, tlsKey: server.keyFile, tlsDir: otherHost, tlsClientCa: ca.file };
    return openDesk({ config, services: { echo }, demo: false, ...tls, ...options });
  }

  async function ask(desk: TestDesk, client?: Certificate, options: RequestOptions = {}): Promise<string> {
    const { gateway } = await desk.listen();
    const { cert, key } = client ?? {};
    const common = { host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false, agent: false };
    const asked = request({
      ...common,
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...options,
    });
    const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer) text += chunk;
    return text;
  }

  for (const servername of ['shop.example', 'other.example', ''])
    it(`are required at ${servername || 'the address'}: services get the subject, and others cannot connect`, async () => {
      const log: LogLine[] = [];
      const desk = await open({ logger: recordingLogger(log) });
      assert.equal(await ask(desk, ann, { servername }), 'CN=ann\\+1,OU=People,O=Example\\, Inc.');
      for (const client of [undefined, stranger])
        for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
          await assert.rejects(ask(desk, client, { servername, maxVersion }));
      const reasons = () =>
        log.filter(({ message }) => message === 'a TLS handshake failed').map(({ fields }) => fields);
      await eventually(() => assert.ok(reasons().length > 0));
    });

  it('that are asked for may be missing or unknown, which counts as none, and the log says why', async () => {
    const log: LogLine[] = [];
    const desk = await open({ tlsClientAuth: 'request', logger: recordingLogger(log) });
    assert.equal(await ask(desk, ann), 'CN=ann\\+1,OU=People,O=Example\\, Inc.');
    assert.equal(await ask(desk), 'none');
    assert.equal(await ask(desk, stranger), 'none');
    const ignored = log.filter(({ message }) => message === 'a client certificate is ignored');
    assert.equal(ignored.length, 1);
    assert.match(String(ignored[0]?.fields['reason']), /UNABLE_TO_VERIFY_LEAF_SIGNATURE|SIGNATURE_FAILURE/);
  });

  for (const name of ['X-Client-Cert-Subject', 'X_Client_Cert_Subject', 'Client-Cert', 'Client-Cert-Chain'])
    it(`are not believed from a client that sends ${name}`, async () => {
      const received: string[] = [];
      const upstream = await servers.http((req, res) => {
        received.push(...Object.keys(req.headers).filter((one) => /client.cert/.test(one)));
        res.end(req.headers[header] ?? 'none');
      });
      const remote = mappingRecord('remote', '/remote', upstream.origin, { add_request_headers: { 'X-A': 'b' } });
      const headers = { [name]: 'CN=root' };
      const asking = await open({ tlsClientAuth: 'request' }, [remote]);
      assert.equal(await ask(asking, undefined, { path: '/remote', headers }), 'none');
      assert.equal(await ask(asking, ann, { path: '/remote', headers }), 'CN=ann\\+1,OU=People,O=Example\\, Inc.');
      assert.deepEqual(received, [header]);
      // Also without client certificates, and in the app of another program.
      const plain = await openDesk({ config: { records: [mappingRecord('echo', '/', 'echo')] }, services: { echo } });
      assert.equal((await call(plain, '/').set(name, 'CN=root')).text, 'none');
    });

  it('are visible to conditions and, in a list of allowed headers, to the auth service', async () => {
    const asked: unknown[] = [];
    const auth = await servers.http((req, res) => {
      asked.push(req.headers[header]);
      res.end();
    });
    const match = { headers: { 'X-Client-Cert-Subject': 'CN=ann\\+1,OU=People,O=Example\\, Inc.' } };
    const records = [
      mappingRecord('people', '/', 'echo', match),
      {
        apiVersion: 'gateway/v1' as const,
        kind: 'AuthService' as const,
        name: 'auth',
        auth_service: auth.origin,
        allowed_request_headers: ['X-Client-Cert-Subject'],
      },
    ];
    const desk = await open({ config: { records }, tlsClientAuth: 'request' });
    assert.match(await ask(desk, ann), /^CN=ann/);
    assert.match(await ask(desk, undefined, { headers: { [header]: match.headers['X-Client-Cert-Subject'] } }), /404/);
    assert.deepEqual(asked, ['CN=ann\\+1,OU=People,O=Example\\, Inc.']);
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    it(`are checked again on each connection over ${version}, because no session is resumed`, async () => {
      const desk = await open({ tlsClientAuth: 'request' });
      const { gateway } = await desk.listen();
      const connectWith = async (options: object) => {
        const common = { port: gateway.port, host: '127.0.0.1', rejectUnauthorized: false };
        const socket: TLSSocket = connect({ ...common, minVersion: version, maxVersion: version, ...options });
        servers.later(() => socket.destroy());
        let session: Buffer | undefined;
        socket.on('session', (found) => {
          session = found;
        });
        await once(socket, 'secureConnect');
        socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
        const [answer] = await once(socket, 'data');
        return { text: String(answer), session, isReused: socket.isSessionReused() };
      };
      const first = await connectWith({ cert: ann.cert, key: ann.key });
      assert.match(first.text, /CN=ann/);
      const second = await connectWith(first.session === undefined ? {} : { session: first.session });
      assert.equal(second.isReused, false);
      assert.match(second.text, /\r\nnone$/);
    });

  it('of another authority count as soon as its file has replaced TLS_CLIENT_CA', async () => {
    const directory = await writeFiles({ 'ca.pem': ca.cert });
    const other = await makeCertificate(await writeFiles(), '', { subject: '/CN=other' });
    assert.ok(other !== undefined);
    const bob = await makeCertificate(await writeFiles(), 'DNS:bob', { subject: '/CN=bob', issuer: other });
    const desk = await open({ tlsClientCa: `${directory}/ca.pem` });
    await assert.rejects(ask(desk, bob));
    await writeFile(`${directory}/ca.pem`, other.cert);
    await desk.reload();
    assert.equal(await ask(desk, bob), 'CN=bob');
    await assert.rejects(ask(desk, ann));
    await writeFile(`${directory}/ca.pem`, 'broken');
    await desk.reload();
    assert.equal(await ask(desk, bob, { servername: 'other.example' }), 'CN=bob');
    await assert.rejects(ask(desk));
  });

  it('are those that openssl s_client sends, and it is asked for those of the authority', async () => {
    const desk = await open();
    const { gateway } = await desk.listen();
    const args = ['s_client', '-connect', `127.0.0.1:${gateway.port}`, '-servername', 'other.example', '-quiet'];
    const run = (...more: readonly string[]) =>
      new Promise<string>((resolve) => {
        const child = execFile('openssl', [...args.slice(0, -1), ...more], (_error, stdout, stderr) =>
          resolve(stdout + stderr),
        );
        child.stdin?.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      });
    const known = await run('-ign_eof', '-cert', ann.file, '-key', ann.keyFile);
    assert.match(known, /Acceptable client certificate CA names\n.*CN ?= ?ca/);
    assert.match(known, /subject=CN ?= ?test/);
    assert.match(known, /HTTP\/1\.1 200 /);
    assert.match(await run('-ign_eof', '-tls1_2'), /alert handshake failure|alert certificate required|sslv3 alert/);
  });

  for (const [options, message] of [
    [{ tlsDir: undefined, tlsCert: undefined, tlsKey: undefined }, /tlsClientCa has no effect without HTTPS/],
    [{ tlsClientCa: undefined, tlsClientAuth: 'request' }, /tlsClientAuth has no effect without tlsClientCa/],
    [{ tlsClientCa: '/nowhere.pem' }, /nowhere\.pem {2}tlsClientCa cannot be read \(ENOENT\)/],
  ] as const)
    it(`are an error with ${JSON.stringify(options)}`, async () => {
      await assert.rejects(open(options), message);
    });
});
