/** A service behind the gateway that remembers what reached it. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Served, TestServers } from './serve.ts';

export interface Reached {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Lower-case names in the order of arrival, repeats included. */
  readonly names: readonly string[];
  readonly body: string;
}

export interface Upstream extends Served {
  readonly reached: readonly Reached[];
  /** The only request that came. */
  readonly only: () => Reached;
}

/** Answers when a request is complete; `ok` without an `answer`. */
export async function startUpstream(
  servers: TestServers,
  answer: (res: ServerResponse, reached: Reached) => void = (res) => void res.end('ok'),
): Promise<Upstream> {
  const reached: Reached[] = [];
  const served = await servers.http(async (req, res) => {
    const body = await readWhole(req);
    if (body === undefined) return;
    const one = {
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      names: req.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()),
      body,
    };
    reached.push(one);
    answer(res, one);
  });
  return {
    ...served,
    reached,
    only() {
      const [one, ...more] = reached;
      if (one === undefined || more.length > 0) throw new Error(`${reached.length} requests came, not one`);
      return one;
    },
  };
}

/** Undefined when the sender broke off. */
async function readWhole(req: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('latin1');
}
