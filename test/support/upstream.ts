/** A service behind the gateway that records the requests it receives. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Served, TestServers } from './serve.ts';

export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Header names in lower case, in the order of arrival and with repeats. */
  readonly names: readonly string[];
  readonly body: string;
}

export interface Upstream extends Served {
  readonly reached: readonly ReceivedRequest[];
  /** Returns the only request. Throws if there was none or more than one. */
  readonly only: () => ReceivedRequest;
  /** Returns the requests that arrive during `act`. */
  readonly reachedBy: (act: () => unknown) => Promise<readonly ReceivedRequest[]>;
}

/** Responds when the request is complete, with `ok` by default. */
export async function startUpstream(
  servers: TestServers,
  respond: (res: ServerResponse, reached: ReceivedRequest) => void = (res) => void res.end('ok'),
): Promise<Upstream> {
  const reached: ReceivedRequest[] = [];
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
    respond(res, one);
  });
  return {
    ...served,
    reached,
    only() {
      const [one, ...more] = reached;
      if (one === undefined || more.length > 0) throw new Error(`${reached.length} requests arrived, not one`);
      return one;
    },
    async reachedBy(act) {
      const before = reached.length;
      await act();
      return reached.slice(before);
    },
  };
}

/** Undefined if the sender disconnected. */
async function readWhole(req: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('latin1');
}
