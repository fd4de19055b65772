/** A Service whose pods come and go and whose Mapping changes, while clients send requests to it. */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesClient } from './client.ts';
import { mappingText, serviceOf } from './objects.ts';
import { podSlice } from './pods.ts';

interface Pod {
  readonly port: number;
  /** Stops as careful services do: it refuses connections, and finishes the requests that it has. */
  readonly stop: () => void;
  readonly close: () => void;
}

export interface ChangingService {
  /** Replaces a pod and changes the Mapping every 100 ms until then. Resolves to the number of changes. */
  readonly changeUntil: (over: Promise<unknown>) => Promise<number>;
  readonly close: () => void;
}

const podCount = 3;
const changeMs = 100;
/** A pod stops when it has been out of the EndpointSlices for this many changes: pods wait before they stop. */
const lingering = 10;

/** Its Mapping has the prefix `/name/`. */
export async function startChangingService(kubernetes: KubernetesClient, name: string): Promise<ChangingService> {
  const mapping = JSON.parse(mappingText(name));
  const service = (timeout_ms: number) => serviceOf('default', name, JSON.stringify({ ...mapping, timeout_ms }));
  const pods: Pod[] = [];

  async function replacePod(index: number): Promise<void> {
    const pod = await startPod();
    pods.push(pod);
    await kubernetes.apply(podSlice(service(0), pod.port, index));
  }

  await kubernetes.apply(service(30_000));
  for (let index = 0; index < podCount; index += 1) await replacePod(index);
  return {
    async changeUntil(over) {
      let isOver = false;
      const ended = over.finally(() => {
        isOver = true;
      });
      let changes = 0;
      while (!isOver) {
        await Promise.all([
          replacePod(changes % podCount),
          kubernetes.apply(service(30_001 + changes)),
          sleep(changeMs),
        ]);
        changes += 1;
        pods[changes - lingering]?.stop();
      }
      await ended;
      return changes;
    },
    close() {
      for (const pod of pods) pod.close();
    },
  };
}

async function startPod(): Promise<Pod> {
  const server = createServer((req, res) => void req.resume().once('end', () => res.end('ok')));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => void server.close(),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Sends requests, every second one with a body, over several connections. Resolves to how often each outcome occurred. */
export async function sendRequests(
  url: string,
  total: number,
  connections: number,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = new Map<string, number>();
  let sent = 0;
  async function sendOnOne(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (sent < total) {
      sent += 1;
      const outcome = await outcomeOf(url, agent, sent % 2 === 0);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    agent.destroy();
  }
  await Promise.all(Array.from({ length: connections }, sendOnOne));
  return outcomes;
}

/** `200`, or the code of the failure. */
async function outcomeOf(url: string, agent: Agent, hasBody: boolean): Promise<string> {
  try {
    const sent = request(url, { method: hasBody ? 'POST' : 'GET', agent }).end(hasBody ? 'order' : undefined);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await once(response.resume(), 'end');
    return String(response.statusCode);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code ?? error);
  }
}
