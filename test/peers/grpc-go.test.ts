/** The interoperability tests of gRPC, with grpc-go's client and server, directly and through the gateway. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { AuthServiceInput, FrontdeskOptions, MappingInput } from '../../src/index.ts';
import { authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { envoyConfiguration } from '../support/programs/envoy-configuration.ts';
import { freePort } from '../support/programs/free-port.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { describeWith } from '../support/programs/installed.ts';
import { startInteropServer } from '../support/programs/interop-server.ts';
import { envoy, startProxy } from '../support/programs/proxy-process.ts';
import { type TestServers, testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../support/wire/certificate.ts';
import { grpcTestProto } from '../support/wire/grpc-test-service.ts';

/** All cases that need no credentials of a cloud, and only one server. */
const cases = [
  'empty_unary',
  'large_unary',
  'client_streaming',
  'server_streaming',
  'ping_pong',
  'empty_stream',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'cancel_after_first_response',
  'status_code_and_message',
  'special_status_message',
  'custom_metadata',
  'unimplemented_method',
  'unimplemented_service',
  'orca_per_rpc',
  'rpc_soak',
  'channel_soak',
];

/** A stream of reports, which takes two seconds. */
const slowCase = 'orca_oob';

/** Lets the client see the metrics with which a server of ORCA reports its load. */
const balancer = { loadBalancingConfig: [{ test_backend_metrics_load_balancer: {} }] };
const soak = [
  '-soak_iterations',
  '20',
  '-soak_num_threads',
  '4',
  '-soak_per_iteration_max_acceptable_latency_ms',
  '20000',
];

/** Rejects with what the client prints, if its case fails. */
async function runInteropCase(port: number, name: string, more: readonly string[]): Promise<void> {
  const where = ['-server_host', '127.0.0.1', '-server_port', String(port)];
  const args = [...where, '-service_config_json', JSON.stringify(balancer), ...soak, ...more, '-test_case', name];
  await promisify(execFile)('grpc-interop-client', args, { timeout: 30_000 });
}

const secureArgs = ({ file }: Certificate) => ['-use_tls', '-use_test_ca', '-ca_file', file];

/** A port, and options of the client. */
type Started = readonly [number, readonly string[]];

type OpenGateway = ReturnType<typeof gatewaysOf>;

interface GatewayParts {
  readonly prefix?: string;
  readonly mapping?: Partial<MappingInput>;
  readonly more?: readonly AuthServiceInput[];
  readonly options?: FrontdeskOptions;
}

/** Call it in a `describe`. The function returns the port of a gateway in front of a service. */
function gatewaysOf(servers: TestServers) {
  const openDesk = desksOf(servers);
  return async (service: string, parts: GatewayParts = {}): Promise<number> => {
    const { prefix = '/', mapping, more = [], options } = parts;
    const records = [mappingRecord('interop', prefix, service, { grpc: true, ...mapping }), ...more];
    const desk = await openDesk({ demo: false, config: { records, users: [demoRecord] }, ...options });
    return (await desk.listen()).gateway.port;
  };
}

/** An Envoy that forwards all calls over HTTP/2. */
async function openEnvoy(servers: TestServers, target: number): Promise<number> {
  const port = await freePort();
  const proxy = await startProxy(envoy, envoyConfiguration({ port, target, http2: true }), port);
  servers.later(proxy.remove);
  return port;
}

describeWith('grpc-interop-client', "grpc-go's interop client", () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const openGateway = gatewaysOf(servers);
  const writeFiles = temporaryFiles();
  let tls: Certificate;

  before(async function () {
    const made = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (made === undefined) return this.skip();
    tls = made;
  });

  /** Each starts what the client calls, and returns its port and the client's options. */
  const ways: Readonly<Record<string, (its: TestServers, open: OpenGateway) => Promise<Started>>> = {
    async directly(its) {
      return [(await startInteropServer(its)).port, []];
    },
    async 'through the gateway'(its, open) {
      const { origin } = await startInteropServer(its);
      return [await open(origin), []];
    },
    async 'through the gateway, over TLS on both sides'(its, open) {
      const { port } = await startInteropServer(its, tls);
      const options = { tlsCert: tls.file, tlsKey: tls.keyFile };
      return [
        await open(`https://127.0.0.1:${port}`, { mapping: { tls: { ca: tls.file } }, options }),
        secureArgs(tls),
      ];
    },
    async 'through a gateway with two threads'(its) {
      const { origin } = await startInteropServer(its);
      const record = yamlOf(mappingRecord('interop', '/', origin, { grpc: true }));
      const cwd = await writeFiles({ 'config/services/interop.yaml': record });
      const server = await startServer(['--only', 'gateway'], { cwd, env: { THREADS: '2' } });
      its.later(server.stop);
      return [Number(new URL(server.gatewayUrl).port), []];
    },
    async 'through Envoy and the gateway'(its, open) {
      const { origin } = await startInteropServer(its);
      return [await openEnvoy(its, await open(origin)), []];
    },
    async 'through the gateway and Envoy'(its, open) {
      const { port } = await startInteropServer(its);
      return [await open(`http://127.0.0.1:${await openEnvoy(its, port)}`), []];
    },
  };

  for (const [way, start] of Object.entries(ways))
    describeWith(way.includes('Envoy') ? envoy.command : 'grpc-interop-server', way, () => {
      const its = testServers(after);
      const open = gatewaysOf(its);
      let port: number;
      let args: readonly string[];

      before(async () => {
        [port, args] = await start(its, open);
      });

      const all = way === 'through the gateway' ? [...cases, slowCase] : cases;
      for (const name of all) it(`passes ${name}`, () => runInteropCase(port, name, args));
    });

  it('passes through a gateway that only has a mapping for its service: another service is unimplemented', async () => {
    const { origin } = await startInteropServer(servers);
    const port = await openGateway(origin, { prefix: '/grpc.testing.TestService' });
    for (const name of ['large_unary', 'unimplemented_service']) await runInteropCase(port, name, []);
  });

  it('passes with the credentials that the gateway asks for, and gets UNAUTHENTICATED without them', async () => {
    const { origin } = await startInteropServer(servers);
    const port = await openGateway(origin, { more: [authRecord] });
    const credentials = ['-additional_metadata', `authorization:Basic ${btoa('demo:demo')}`];
    for (const name of ['large_unary', 'ping_pong']) {
      await runInteropCase(port, name, credentials);
      await assert.rejects(runInteropCase(port, name, []), /code = Unauthenticated/);
    }
  });

  describeWith('ghz', 'and ghz', () => {
    const call = (method: string, data: object) => [
      ...['--proto', grpcTestProto, '--call', `grpc.testing.TestService.${method}`, '-d', JSON.stringify(data)],
    ];
    /** Returns how many calls ended with each status. */
    async function ghz(port: number, args: readonly string[]): Promise<Readonly<Record<string, number>>> {
      const options = { maxBuffer: 64 * 1024 * 1024 };
      const { stdout } = await promisify(execFile)('ghz', ['--insecure', ...args, `127.0.0.1:${port}`], options);
      return JSON.parse(stdout).statusCodeDistribution;
    }

    const streamed = { response_parameters: [{ size: 1000 }, { size: 100_000 }, {}] };

    for (const [what, count, args] of [
      ['2000 unary calls', 2000, call('UnaryCall', { response_size: 1000, payload: { body: btoa('x'.repeat(999)) } })],
      ['500 calls with a stream of responses', 500, call('StreamingOutputCall', streamed)],
    ] as const)
      it(`gets OK for ${what}, 50 at a time, on one connection and on five`, async () => {
        const { origin } = await startInteropServer(servers);
        const port = await openGateway(origin);
        for (const connections of [1, 5]) {
          const load = ['-n', String(count), '-c', '50', '--connections', String(connections), '-O', 'json'];
          assert.deepEqual(await ghz(port, [...load, ...args]), { OK: count });
        }
      });

    it('leaves no call open when it closes its connections in the middle of 200', async () => {
      const { origin } = await startInteropServer(servers);
      const records = [mappingRecord('interop', '/', origin, { grpc: true })];
      // With this time-out, a stop that waits for a call outlasts the test.
      const desk = await openDesk({ demo: false, config: { records }, shutdownTimeoutMs: 600_000 });
      const { gateway } = await desk.listen();
      const load = ['-z', '1s', '--duration-stop', 'close', '-c', '200', '--connections', '4', '-O', 'json'];
      await ghz(gateway.port, [...load, ...call('UnaryCall', { response_size: 100_000 })]);
      await desk.close();
    });
  });
});
