/** Fetches the key set of an issuer: one bounded request over a connection of its own, without redirects. */
import type { IncomingMessage } from 'node:http';
import { nodeHttp } from '#http';

const bodyBytesMax = 64 * 1024;
const timeoutMs = 5000;

/** Resolves to the text of the response. Rejects with an Error that does not contain the query of the URL. */
export async function fetchKeys(uri: string, closing: AbortSignal): Promise<string> {
  const isSecure = /^https:/i.test(uri);
  const { request } = isSecure ? await import('node:https') : nodeHttp;
  const signal = AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { Accept: 'application/jwk-set+json, application/json', 'Accept-Encoding': 'identity' };
    request(uri, { agent: false, signal, headers }, resolve)
      .once('error', (cause) => reject(signal.aborted && !closing.aborted ? tooSlow(cause) : cause))
      .end();
  });
  try {
    return await bodyOf(response);
  } catch (cause) {
    throw signal.aborted && !closing.aborted ? tooSlow(cause) : cause;
  } finally {
    response.destroy();
  }
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) throw new Error(`the response has the status ${response.statusCode}, not 200`);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += chunk.length;
    if (length > bodyBytesMax) throw new Error(`the response has more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tooSlow(cause: unknown): Error {
  return new Error(`the response did not arrive within ${timeoutMs} ms`, { cause });
}
