/** A client that sends what a test says, and decodes the body only when asked. */
import { once } from 'node:events';
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import * as zlib from 'node:zlib';

export interface ReceivedResponse {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly trailers: IncomingMessage['trailers'];
  readonly raw: Buffer;
  /** The body as the service sent it. Throws if it is not in the coding that its header names. */
  readonly text: string;
}

const decoders: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: (body) => zlib.gunzipSync(body),
  br: (body) => zlib.brotliDecompressSync(body),
  zstd: (body) => zlib.zstdDecompressSync(body),
  identity: (body) => body,
};

/** Resolves when the head of the response has arrived. */
export async function open(
  url: string,
  headers: OutgoingHttpHeaders = {},
  method = 'GET',
  body?: string,
): Promise<IncomingMessage> {
  const [response] = await once(request(url, { method, headers, agent: false }).end(body), 'response');
  return response;
}

export async function receive(...sent: Parameters<typeof open>): Promise<ReceivedResponse> {
  const response = await open(...sent);
  const { statusCode: status, headers } = response;
  const raw = await buffer(response);
  const decode = decoders[raw.length === 0 ? 'identity' : (headers['content-encoding'] ?? 'identity')];
  if (decode === undefined) throw new Error(`the coding ${headers['content-encoding']} is unknown`);
  return { status, headers, trailers: response.trailers, raw, text: decode(raw).toString() };
}
