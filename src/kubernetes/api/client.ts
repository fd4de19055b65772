/** Calls the API server over HTTPS: requests on connections that stay open, and watches on connections of their own. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import type { Connection } from './connection.ts';
import { ApiFailure, noAnswer } from './failure.ts';

/** Beyond it, a response is a `ResponseTooLarge`. */
const responseCharactersMax = 16 * 1024 * 1024;

/** Connections for requests, which wait for each other if there are more. */
const connectionsMax = 8;

/** Shorter than the idle time of a load balancer, so that requests do not use a connection that it is about to close. */
const idleMs = 30_000;

const defaultTimeoutMs = 30_000;

export interface ApiResponse {
  readonly status: number;
  /** Undefined if it is not JSON. */
  readonly body: unknown;
  /** Of the header Retry-After. */
  readonly retryAfterMs?: number | undefined;
}

export interface KubernetesApi {
  /** Resolves to any response. Rejects if there is none in time. `contentType` is that of `body`. */
  readonly request: (method: string, path: string, body?: object, contentType?: string) => Promise<ApiResponse>;
  /** Resolves to the object of a 200, and rejects with an ApiFailure for any other response. */
  readonly get: (path: string) => Promise<unknown>;
  /** Resolves to the body of a 200, and rejects like `get`. Destroy it when it is not needed any more. */
  readonly open: (path: string) => Promise<IncomingMessage>;
  /** Aborts all requests and watches. Later ones reject. */
  readonly close: () => void;
}

/** A response with more characters than are read at once. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

export interface ApiOptions {
  /** How long a response may take as a whole, and that of a watch to begin, in milliseconds. @default 30_000 */
  readonly timeoutMs?: number | undefined;
}

export async function openApi(
  connection: Connection,
  { timeoutMs = defaultTimeoutMs }: ApiOptions = {},
): Promise<KubernetesApi> {
  const https = await import('node:https');
  const agent = new https.Agent({ keepAlive: true, maxSockets: connectionsMax, timeout: idleMs });
  const open = new Set<ClientRequest>();
  const { url, credentials } = connection;
  let isClosed = false;

  /** Resolves when the head of the response has arrived. */
  async function send(path: string, options: RequestOptions, body?: object): Promise<Answer> {
    const { token, ...tls } = await credentials();
    if (isClosed) throw new Error('the connection to the API server is closed');
    const headers = {
      accept: 'application/json',
      ...options.headers,
      ...(token && { authorization: `Bearer ${token}` }),
    };
    const sent = https.request(`${url}${path}`, { ...tls, ...options, headers });
    const tooLate = new Error(`none within ${timeoutMs / 1000} s`);
    const timer = setTimeout(() => sent.destroy(tooLate), timeoutMs);
    open.add(sent);
    sent.once('close', () => {
      open.delete(sent);
      clearTimeout(timer);
    });
    return new Promise((resolve, reject) => {
      sent.on('error', (cause) => reject(noAnswer(url, cause)));
      sent.once('response', (response: IncomingMessage) => resolve({ response, keepOpen: () => clearTimeout(timer) }));
      sent.end(body && JSON.stringify(body));
    });
  }

  async function request(method: string, path: string, body?: object, contentType = 'application/json') {
    const headers = body && { 'content-type': contentType };
    const { response } = await send(path, { method, agent, ...(headers && { headers }) }, body);
    return readResponse(response, url);
  }

  return Object.freeze({
    request,
    async get(path: string) {
      const response = await request('GET', path);
      if (response.status !== 200) throw new ApiFailure(response.status, response.body, response.retryAfterMs);
      return response.body;
    },
    async open(path: string) {
      const { response, keepOpen } = await send(path, { method: 'GET', agent: false });
      if (response.statusCode !== 200) {
        const { status, body, retryAfterMs } = await readResponse(response, url);
        throw new ApiFailure(status, body, retryAfterMs);
      }
      keepOpen();
      response.socket.setKeepAlive(true, idleMs);
      return response;
    },
    close() {
      isClosed = true;
      for (const sent of open) sent.destroy();
      agent.destroy();
    },
  });
}

interface Answer {
  readonly response: IncomingMessage;
  /** Lets the rest of the response take any time. */
  readonly keepOpen: () => void;
}

async function readResponse(response: IncomingMessage, url: string): Promise<ApiResponse> {
  const text = await readText(response, url);
  const retryAfterS = Number(response.headers['retry-after'] ?? Number.NaN);
  return {
    status: response.statusCode ?? 0,
    body: parseJson(text),
    retryAfterMs: Number.isFinite(retryAfterS) ? retryAfterS * 1000 : undefined,
  };
}

async function readText(response: IncomingMessage, url: string): Promise<string> {
  const pieces: string[] = [];
  let characters = 0;
  try {
    for await (const piece of response.setEncoding('utf8')) {
      characters += piece.length;
      if (characters > responseCharactersMax) throw new ResponseTooLarge(`a response of ${url} is too large`);
      pieces.push(piece);
    }
  } catch (cause) {
    throw cause instanceof ResponseTooLarge ? cause : noAnswer(url, cause);
  }
  return pieces.join('');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
