/** Measures a gateway in a cluster with 1,000 Services: the time until a change is live, and what a burst of changes costs. */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adminToken, type KubernetesServer, startKubernetes } from '../../support/kubernetes/api-server.ts';
import { sendRequests, startChangingService } from '../../support/kubernetes/changing-service.ts';
import { mappingText, serviceOf } from '../../support/kubernetes/objects.ts';
import { resolvesPods, runPods } from '../../support/kubernetes/pods.ts';
import { freePort } from '../../support/programs/free-port.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { type TestServers, testServers } from '../../support/serve.ts';
import { outcomeOf, untilReady } from '../clients/requests.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { failureRows, type MeasuredRow } from '../table.ts';
import { median, quantile } from './samples.ts';

const services = 1000;
const rounds = 60;
const burst = 500;
const requests = 10_000;
const settleMs = 1000;

export async function measureKubernetes(directory: string): Promise<MeasuredRow[]> {
  const missing = ['etcd', 'kube-apiserver', 'openssl'].filter((program) => !isInstalled(program));
  if (missing.length > 0)
    return [{ title: 'a cluster', figure: undefined, missing: `needs ${missing[0]}`, unit: 'ms' }];
  let close = async () => {};
  const servers = testServers(((closeAll: () => Promise<void>) => {
    close = closeAll;
  }) as typeof afterEach);
  try {
    return await measureWith(servers, directory);
  } finally {
    await close();
  }
}

async function measureWith(servers: TestServers, directory: string): Promise<MeasuredRow[]> {
  const kubernetes = await startKubernetes(servers);
  const gateway = (threads: number) => startGateway(servers, kubernetes, { directory, threads });
  const empty = await gateway(1);
  const emptyBytes = (await empty.child.usage()).heapBytes ?? Number.NaN;
  await empty.child.stop();
  const [pod] = [await servers.http((_, res) => void res.end('ok'))];
  await kubernetes.apply(serviceOf('default', 'pod'));
  await runPods(kubernetes, { name: 'pod' }, [pod.port]);
  for (let from = 0; from < services; from += 100) await kubernetes.apply(...manifests(from, from + 100, '/'));
  const rows: MeasuredRow[] = [];
  for (const threads of [1, 2]) {
    const { child, port } = await gateway(threads);
    rows.push(...(await measureChanges(kubernetes, port, threads)));
    if (threads === 1) rows.push(...(await measureBurst(kubernetes, child, port)));
    if (threads === 1) rows.push(memoryRow(((await child.usage()).heapBytes ?? Number.NaN) - emptyBytes));
    rows.push(...(await measureLosses(kubernetes, port, threads)));
    await child.stop();
  }
  return rows;
}

interface Gateway {
  readonly child: Child;
  readonly port: number;
}

async function startGateway(
  servers: TestServers,
  kubernetes: KubernetesServer,
  { directory, threads }: { readonly directory: string; readonly threads: number },
): Promise<Gateway> {
  const port = await freePort();
  const configDir = join(directory, 'kubernetes');
  mkdirSync(configDir, { recursive: true });
  writeFileSync(join(configDir, 'users.yaml'), 'users: []');
  const timerDelay = `--import ${new URL('../servers/timer-delay.js', import.meta.url).href}`;
  const env = {
    KUBECONFIG: await kubernetes.kubeconfig(adminToken),
    NODE_OPTIONS: `${resolvesPods.NODE_OPTIONS} ${timerDelay} --expose-gc`,
    CONFIG_DIR: configDir,
    PORT: String(port),
    THREADS: String(threads),
    LOG_LEVEL: 'error',
  };
  const args = [join(root, 'dist/main.js'), 'serve', '--kubernetes', '--only', 'gateway'];
  const child = startChild(args, env, join(directory, 'kubernetes.log'));
  servers.later(child.stop);
  await untilReady(port, '/gateway/v0/check_ready', {});
  await sleep(settleMs);
  return { child, port };
}

function manifests(from: number, to: number, suffix: string) {
  const names = Array.from({ length: to - from }, (_, index) => `orders-${from + index}`);
  return names.map((name) => serviceOf('default', name, mappingText(name, `/${name}${suffix}`, 'pod')));
}

/** From the moment when the API is asked to create or change a Service until a request reaches the new route. */
async function measureChanges(kubernetes: KubernetesServer, port: number, threads: number): Promise<MeasuredRow[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [name, prefix] = [`live-${threads}-${Math.floor(round / 2)}`, `/live-${threads}-${round}/`];
    const startMs = performance.now();
    await kubernetes.apply(serviceOf('default', name, mappingText(name, prefix, 'pod')));
    while ((await outcomeOf({ port, path: prefix, headers: {}, agent: false })) !== '200') await sleep(2);
    samples.push(performance.now() - startMs);
    await sleep(50);
  }
  const title = `a change of one of ${services} Services until it is live, ${threads === 1 ? '1 thread' : '2 threads'}`;
  return [
    { title: `${title}: median`, figure: median(samples), unit: 'ms', target: { figureMax: 500 } },
    { title: `${title}: p99`, figure: quantile(samples, 0.99), unit: 'ms' },
  ];
}

async function measureBurst(kubernetes: KubernetesServer, child: Child, port: number): Promise<MeasuredRow[]> {
  const samples: { readonly delayMs: number; readonly cpuMs: number; readonly gcMs: number }[] = [];
  for (let round = 0; round < 5; round += 1) {
    await sleep(settleMs);
    await longestDelay(child);
    await kubernetes.apply(...manifests(0, burst, `/${round}/`));
    await untilReady(port, `/orders-${burst - 1}/${round}/`, {});
    await sleep(settleMs);
    samples.push(await longestDelay(child));
  }
  const title = `a burst of ${burst} changed Services, 1 thread`;
  const of = (name: 'delayMs' | 'cpuMs' | 'gcMs') => median(samples.map((sample) => sample[name]));
  return [
    { title: `${title}: the longest delay of a timer`, figure: of('delayMs'), unit: 'ms', target: { figureMax: 50 } },
    {
      title: `${title}: the CPU time of the thread in that delay`,
      figure: of('cpuMs'),
      unit: 'CPU ms',
      target: { figureMax: 20 },
    },
    { title: `${title}: the longest garbage collection`, figure: of('gcMs'), unit: 'ms' },
  ];
}

async function longestDelay({ process }: Child) {
  process.send('timer-delay');
  const [figures] = await once(process, 'message');
  return figures as { readonly delayMs: number; readonly cpuMs: number; readonly gcMs: number };
}

function memoryRow(bytes: number): MeasuredRow {
  const title = `memory for each of ${services} Services with a Mapping`;
  return { title, figure: bytes / services / 1e3, unit: 'kB' };
}

/** While pods come and go and a Mapping changes every 100 ms. */
async function measureLosses(kubernetes: KubernetesServer, port: number, threads: number): Promise<MeasuredRow[]> {
  const name = `changing-${threads}`;
  const service = await startChangingService(kubernetes, name);
  await untilReady(port, `/${name}/`, {});
  const sending = sendRequests(`http://127.0.0.1:${port}/${name}/`, requests, 8);
  const changes = await service.changeUntil(sending);
  service.close();
  const failures = new Map([...(await sending)].filter(([outcome]) => outcome !== '200'));
  const when = `${requests} requests during ${changes} changes, ${threads} threads`;
  return failureRows(failures).map((row) => ({ ...row, title: `${when}: ${row.title}` }));
}
