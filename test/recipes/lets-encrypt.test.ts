/** The recipe "Certificates from Let's Encrypt": certbot gets a certificate from Pebble and renews it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { freePort } from '../support/programs/free-port.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type Authority, startPebble } from '../support/programs/pebble.ts';
import { startProxy } from '../support/programs/proxy-process.ts';
import { type CurlResponse, onPorts, parseStory, runShell, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { readRecipe, serveCommands } from './page.ts';
import { gatewayPort, stepCases } from './steps.ts';

const needed = ['pebble', 'certbot', 'python3', 'curl', 'openssl'];
const missing = needed.filter((program) => !isInstalled(program));

describe("the recipe: certificates from Let's Encrypt", () => {
  if (missing.length > 0) {
    it(`needs ${missing.join(', ')} on the PATH`);
    return;
  }
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const { files, blocks } = readRecipe("Certificates from Let's Encrypt");
  const [start = '', issue = '', story = '', renew = ''] = blocks('sh');
  let cwd = '';
  let httpsPort = 0;
  let authority: Authority;
  let environment = '';
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async () => {
    const shop = await servers.http((_req, res) => res.end('shop'));
    const challengesPort = await freePort();
    cwd = await writeFiles(files);
    const name = 'config/services/shop.yaml';
    await writeFile(join(cwd, name), onPorts(files[name] ?? '', { 3000: shop.port, 3001: challengesPort }));
    await runShell(/^mkdir.*$/m.exec(start)?.[0] ?? assert.fail(), { cwd });
    await serveChallenges(challengesPort);
    const [{ args, env } = assert.fail()] = serveCommands(start);
    const server = await startServer(args, { cwd, env: { ...env, PORT: '0', HTTP_REDIRECT_PORT: '0' } });
    servers.later(server.stop);
    httpsPort = gatewayPort(server);
    const redirectPort = Number(new URL(server.redirectUrl).port);
    const own = (await makeCertificate(await writeFiles(), 'IP:127.0.0.1')) ?? assert.fail();
    authority = await startPebble(servers, own, redirectPort);
    await writeFile(join(cwd, 'root.pem'), authority.root);
    environment = `export REQUESTS_CA_BUNDLE='${own.file}' CURL_CA_BUNDLE=root.pem\n`;
    const ini = `${files['certbot.ini']}server = ${authority.directoryUrl}\nno-random-sleep-on-renew = true\n`;
    await writeFile(join(cwd, 'certbot.ini'), ini);
    await runShell(environment + issue, { cwd });
    await eventually(serialNumber, 50);
    const parsed = parseStory(story);
    const ports = { 8443: httpsPort, 8080: redirectPort };
    responses = await runStory({ ...parsed, preparation: environment }, { cwd, ports });
  });

  /** Runs the file server of the page, in its directory. */
  async function serveChallenges(port: number): Promise<void> {
    const [line = ''] = /^python3 .*(?= &$)/m.exec(start) ?? assert.fail();
    const [command = '', ...args] = line.replace(' 3001', ` ${port}`).split(' ');
    const inDirectory = args.map((word) => (word === 'challenges' ? join(cwd, word) : word));
    const program = { command, configure: (text: string) => text, args: () => inDirectory };
    servers.later((await startProxy(program, '', port)).remove);
  }

  /** Connects as a client that trusts the authority alone, and returns the serial number of the certificate. */
  async function serialNumber(): Promise<string> {
    const options = { port: httpsPort, host: '127.0.0.1', servername: 'shop.example', ca: authority.root };
    const socket = connect(options);
    await once(socket, 'secureConnect');
    const { serialNumber: number } = socket.getPeerCertificate();
    socket.destroy();
    return number;
  }

  stepCases(parseStory(story), () => responses);

  it('calls the service behind the certificate that the authority issued', () => {
    assert.equal(responses[0]?.[0]?.body, 'shop');
  });

  it('serves the renewed certificate without a restart', async () => {
    const first = await serialNumber();
    assert.match(await runShell(environment + renew, { cwd }), /not yet due for renewal/);
    assert.equal(await serialNumber(), first);
    await runShell(`${environment}${renew.trimEnd()} --force-renewal\n`, { cwd });
    await eventually(async () => assert.notEqual(await serialNumber(), first), 50);
  });
});
