/** The connections to upstreams: one agent for each connect time-out, private to one gateway. */
import { createRequire } from 'node:module';
import type { Agent, Dispatcher } from 'undici';

export interface Upstreams {
  readonly dispatcher: (connectTimeoutMs: number) => Dispatcher;
  /** Ends idle connections at once and the others with their requests; again, it waits for the same. */
  readonly close: () => Promise<void>;
}

export function createUpstreams(): Upstreams {
  const agents = new Map<number, Agent>();
  let closing: Promise<unknown> | undefined;
  return Object.freeze({
    dispatcher(connectTimeoutMs: number) {
      let agent = agents.get(connectTimeoutMs);
      if (agent === undefined) {
        agent = openAgent(connectTimeoutMs);
        agents.set(connectTimeoutMs, agent);
      }
      return agent;
    },
    async close() {
      closing ??= Promise.all([...agents.values()].map((agent) => agent.close()));
      await closing;
    },
  });
}

/** A process that proxies nothing has no need of undici: it is 10 MB and a tenth of the start, so it is loaded here. */
function openAgent(connectTimeoutMs: number): Agent {
  const undici = createRequire(import.meta.url)('undici') as typeof import('undici');
  return new undici.Agent({ connect: { timeout: connectTimeoutMs } });
}
