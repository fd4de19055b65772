/** Compares which conformance tests of the Gateway API pass with what config/gateway-api.md says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { adminToken, startKubernetes } from '../../support/kubernetes/api-server.ts';
import { startControllers } from '../../support/kubernetes/conformance/controllers.ts';
import { startNode } from '../../support/kubernetes/conformance/node.ts';
import { runSuite, type SuiteRun } from '../../support/kubernetes/conformance/run-suite.ts';
import { builtFile, defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import { startServer } from '../../support/programs/frontdesk-process.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';

const page = readFileSync(fileURLToPath(new URL('../../../config/gateway-api.md', import.meta.url)), 'utf8');

/** A regular expression: runs only the tests whose name it matches, and prints what they log. */
const only = process.env['TEST_CONFORMANCE'] ?? '';
const words = { passed: 'passes', failed: 'fails', skipped: 'is skipped' };

const gatewayClass = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'GatewayClass',
  metadata: { name: 'frontdesk' },
  spec: { controllerName: 'gateway.local/gateway-controller' },
};

describeWithGatewayApi('the conformance tests of the Gateway API', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();

  async function run(): Promise<SuiteRun> {
    const kubernetes = await startKubernetes(servers);
    await defineGatewayApi(kubernetes);
    await kubernetes.apply(gatewayClass);
    const folder = await writeFiles();
    const node = startNode(builtFile('echo-basic'), folder);
    servers.later(node.close);
    const controllers = startControllers(kubernetes, node);
    servers.later(controllers.close);
    const kubeconfig = await kubernetes.kubeconfig(adminToken);
    const namespaces = ['infra', 'app-backend', 'web-backend'].map((name) => `gateway-conformance-${name}`);
    const env = {
      KUBECONFIG: kubeconfig,
      KUBERNETES_GATEWAY_API: 'true',
      TLS_PORT: '0',
      KUBERNETES_GATEWAY_ADDRESSES: '127.0.0.1',
      KUBERNETES_TRUSTED_NAMESPACES: namespaces.join(),
      ...node.environment,
    };
    const server = await startServer(['--kubernetes'], { env, cwd: '/' });
    servers.later(server.stop);
    await eventually(async () => {
      const { status } = await kubernetes.get(gatewayClass.apiVersion, gatewayClass.kind, gatewayClass.metadata.name);
      assert.ok('supportedFeatures' in Object(status));
    });
    const portOf = (url: string) => Number(new URL(url).port);
    const ports = { 80: portOf(server.gatewayUrl), 443: portOf(server.gatewayTlsUrl) };
    return runSuite(servers, { kubeconfig, gatewayClass: gatewayClass.metadata.name, ports, only, folder });
  }

  it('pass or fail as documented', async function isSlow() {
    this.timeout(600_000);
    const documented = rowsOf('What passes').map(([name = '', features = '', result = '']) => {
      return { name, features, result: result.split(':')[0] ?? '' };
    });
    const unsupported = new Set(rowsOf('Features without support').map(([feature = '']) => feature));
    const { results, log } = await run();
    if (only !== '') process.stdout.write(log);
    const actual = results
      .filter(({ features, result }) => result !== 'skipped' || !features.some((feature) => unsupported.has(feature)))
      .map(({ name, features, result }) => {
        // Every test needs this one.
        const others = features.filter((feature) => feature !== 'Gateway');
        return { name, features: others.join(', ') || 'Gateway', result: words[result] };
      });
    const expected = documented.filter(({ name }) => name.match(only));
    assert.deepEqual(byName(actual), byName(expected));
    const needed = new Set(results.filter(({ result }) => result === 'skipped').flatMap(({ features }) => features));
    if (only === '')
      assert.deepEqual(
        [...unsupported].filter((feature) => !needed.has(feature)),
        [],
      );
  });
});

/** The rows of a section's table. */
function rowsOf(title: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`## ${title}\n`);
  const lines = section.split('\n## ')[0]?.split('\n') ?? [];
  const cells = lines.filter((line) => line.startsWith('| ')).map((line) => line.split('|').slice(1, -1));
  return cells.slice(1).map((row) => row.map((cell) => cell.replaceAll('`', '').trim()));
}

function byName<T extends { readonly name: string }>(tests: readonly T[]): readonly T[] {
  return tests.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}
