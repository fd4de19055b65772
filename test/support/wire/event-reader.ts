/** A client for server-sent events that reads one event at a time. */
import { once } from 'node:events';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';

export interface EventReader {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Resolves with the next event's fields by name, or undefined at the end. Rejects if the stream is cut off. */
  readonly next: () => Promise<Readonly<Record<string, string>> | undefined>;
  readonly disconnect: () => void;
}

export async function readEvents(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
  const request = get(url, { agent: false, headers });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: AsyncIterator<string> = response.setEncoding('utf8')[Symbol.asyncIterator]();
  let rest = '';

  return {
    status: response.statusCode,
    headers: response.headers,
    async next() {
      for (;;) {
        const end = rest.indexOf('\n\n');
        if (end >= 0) {
          const lines = rest.slice(0, end).split('\n');
          rest = rest.slice(end + 2);
          return Object.fromEntries(lines.map(fieldOf));
        }
        const { done, value } = await chunks.next();
        if (done === true) return undefined;
        rest += value;
      }
    },
    disconnect() {
      request.on('error', () => {}).destroy();
    },
  };
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon), line.slice(colon + 2)];
}
