/** The connections to upstreams: one agent for each connect time-out, private to one gateway. */
import { Agent, type Dispatcher } from 'undici';

export interface Upstreams {
  readonly dispatcher: (connectTimeoutMs: number) => Dispatcher;
  /** Ends idle connections at once and the others with their requests. */
  readonly close: () => Promise<void>;
}

export function createUpstreams(): Upstreams {
  const agents = new Map<number, Agent>();
  return Object.freeze({
    dispatcher(connectTimeoutMs: number) {
      let agent = agents.get(connectTimeoutMs);
      if (agent === undefined) {
        agent = new Agent({ connect: { timeout: connectTimeoutMs } });
        agents.set(connectTimeoutMs, agent);
      }
      return agent;
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.close()));
    },
  });
}
