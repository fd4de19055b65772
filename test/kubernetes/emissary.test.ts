/** The manifests of Emissary's tutorials, which kubectl applies as they are, make frontdesk route, authenticate and limit. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { get, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { describeWithKubernetes, type KubernetesServer, startKubernetes } from '../support/kubernetes/api-server.ts';
import { kubectlFor } from '../support/kubernetes/kubectl.ts';
import { serviceOf } from '../support/kubernetes/objects.ts';
import { resolvesPods, runPods } from '../support/kubernetes/pods.ts';
import { runFrontdesk, startServer } from '../support/programs/frontdesk-process.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

const fixtures = fileURLToPath(new URL('../fixtures/emissary/', import.meta.url));
const emissary = { GATEWAY_DOMAIN: 'getambassador.io' };

/** What the tutorials of one generation use. */
interface Tutorials {
  readonly folder: string;
  readonly service: string;
  /** The path that needs a password. */
  readonly guarded: string;
  /** The path that does not. */
  readonly open: string;
  readonly limiter: string;
  readonly domain: string;
  /** The header that the limiter wants to be `true`. */
  readonly header: string;
}

const example = { limiter: 'example-rate-limit', domain: 'ambassador', header: 'x-ambassador-test-allow' };
const quote = { service: 'quote', guarded: '/backend/get-quote/', open: '/backend/' };
const generations: readonly Tutorials[] = [
  { folder: 'annotations', service: 'qotm', guarded: '/qotm/quote/1', open: '/qotm/', ...example },
  { folder: 'v2', ...quote, ...example },
  { folder: 'v3alpha1', ...quote, limiter: 'ratelimit-example', domain: 'emissary', header: 'x-emissary-test-allow' },
];

describeWith('kubectl', 'tutorials of Emissary', () => {
  for (const tutorials of generations)
    describeWithKubernetes(`in their form of ${tutorials.folder}`, () => {
      const servers = testServers(after);
      const writeFiles = temporaryFiles();
      let kubernetes: KubernetesServer;
      before(async () => {
        kubernetes = await startKubernetes(servers);
        await kubernetes.grant('frontdesk', {
          apiGroups: ['', 'discovery.k8s.io', 'networking.k8s.io', 'getambassador.io'],
          resources: ['*'],
          verbs: ['get', 'list', 'watch'],
        });
      });

      async function startFrontdesk() {
        const env = { KUBECONFIG: await kubernetes.kubeconfig(), ...emissary, ...resolvesPods };
        const server = await startServer(['--kubernetes'], { env, cwd: '/' });
        servers.later(server.stop);
        return server;
      }

      async function check() {
        const env = { KUBECONFIG: await kubernetes.kubeconfig(), ...emissary };
        return runFrontdesk(['check', '--kubernetes'], { env, cwd: '/' });
      }

      /** A limiter of frontdesk in another process, which allows what Emissary's example allows. */
      async function startLimiter({ domain, header }: Tutorials): Promise<number> {
        const allowed = { key: header, value: 'true', rate_limit: { unlimited: true } };
        const others = { key: header, rate_limit: { unit: 'hour', requests_per_unit: 0 } };
        const CONFIG_DIR = await writeFiles({
          'ratelimit/example.yaml': yamlOf({ domain, descriptors: [allowed, others] }),
        });
        const { ratelimitUrl, stop } = await startServer(['--only', 'ratelimit'], { env: { CONFIG_DIR } });
        servers.later(stop);
        return Number(new URL(ratelimitUrl).port);
      }

      it('route, authenticate and limit, one after the other', async () => {
        const kubectl = await kubectlFor(kubernetes);
        const apply = (name: string) => kubectl(['apply', '-f', `${fixtures}${tutorials.folder}/${name}.yaml`]);
        await kubectl(['apply', '-f', '-'], await definitions());
        await kubectl(['wait', '--for=condition=Established', 'crd', '--all']);
        await kubectl(['create', 'namespace', 'emissary']);
        const { gatewayUrl } = await startFrontdesk();
        const { service, guarded, open, limiter, header } = tutorials;
        const send = (path: string, headers: IncomingHttpHeaders = {}) => responseOf(`${gatewayUrl}${path}`, headers);
        const statusIs = (path: string, status: number, headers?: IncomingHttpHeaders) =>
          eventually(async () => assert.equal((await send(path, headers)).statusCode, status), 20);

        const pod = await startUpstream(servers);
        await apply('quickstart');
        await runPods(kubernetes, { name: service }, [pod.port]);
        await statusIs(guarded, 200);
        assert.equal(pod.reached.at(-1)?.url, `/${guarded.split('/').slice(2).join('/')}`);

        const auth = await startUpstream(servers, exampleAuth(guarded));
        await apply('auth');
        await runPods(kubernetes, { name: 'example-auth' }, [auth.port]);
        await statusIs(guarded, 401);
        assert.equal((await send(guarded)).headers['www-authenticate'], 'Basic realm="Ambassador Realm"');
        assert.equal((await send(guarded, credentials)).statusCode, 200);
        assert.equal(pod.reached.at(-1)?.headers['x-qotm-session'], 'a session');
        assert.equal((await send(open)).statusCode, 200);

        await apply('rate-limit');
        await runPods(kubernetes, { name: limiter }, [await startLimiter(tutorials)]);
        await statusIs(open, 429, { [header]: 'probably' });
        assert.equal((await send(open, { [header]: 'true' })).statusCode, 200);
        assert.equal((await send(guarded, { [header]: 'true' })).statusCode, 401);
        assert.equal((await send(guarded, { ...credentials, [header]: 'true' })).statusCode, 200);

        const checked = await check();
        // Which record is the first depends on the second of its creation.
        const notices = checked.stderr.replace(/^.*(?=: is read as in Ambassador)/, 'The first record');
        assert.equal(notices, await readFile(`${fixtures}${tutorials.folder}/notices.txt`, 'utf8'));
        assert.equal(checked.code, 0);
      });

      if (tutorials.folder === 'annotations')
        it('may be annotations of an Ingress, whose own routes are not read', async () => {
          const { gatewayUrl } = await startFrontdesk();
          const pod = await startUpstream(servers);
          await kubernetes.apply(serviceOf('default', 'door'), ingress);
          await runPods(kubernetes, { name: 'door' }, [pod.port]);
          const statusOf = async (path: string) => (await responseOf(`${gatewayUrl}${path}`, {})).statusCode;
          await eventually(async () => assert.equal(await statusOf('/door/'), 200), 20);
          assert.equal(await statusOf('/routed/'), 404);
        });
    });
});

const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: {
    name: 'door',
    namespace: 'default',
    annotations: {
      'kubernetes.io/ingress.class': 'ambassador',
      'getambassador.io/config': `
        apiVersion: ambassador/v1
        kind: Mapping
        name: door
        prefix: /door/
        service: door
        bypass_auth: true`,
    },
  },
  spec: {
    rules: [
      {
        http: {
          paths: [
            { path: '/routed/', pathType: 'Prefix', backend: { service: { name: 'door', port: { number: 80 } } } },
          ],
        },
      },
    ],
  },
};

/** Those of Emissary without the webhook that converts their versions. */
async function definitions(): Promise<string> {
  const text = await readFile(`${fixtures}emissary-crds.yaml`, 'utf8');
  return text.replaceAll(/^ {2}conversion:\n(?: {4}.*\n)+/gm, '');
}

const credentials = { authorization: `Basic ${Buffer.from('username:password').toString('base64')}` };

/** Behaves like the auth service of the tutorial: it asks for a password below one path, and starts a session. */
function exampleAuth(guarded: string) {
  return (res: ServerResponse, { url, headers }: { readonly url: string; readonly headers: IncomingHttpHeaders }) => {
    if (url.startsWith(`/extauth${guarded}`) && headers.authorization !== credentials.authorization)
      return void res.writeHead(401, { 'www-authenticate': 'Basic realm="Ambassador Realm"' }).end();
    res.setHeader('x-qotm-session', headers['x-qotm-session'] ?? 'a session').end('OK');
  };
}

function responseOf(url: string, headers: IncomingHttpHeaders): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (response) => resolve(response.resume())).once('error', reject);
  });
}
