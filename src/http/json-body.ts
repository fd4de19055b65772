/** A request's body as JSON: bounded, in UTF-8, and found again when a host's parser has read it. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { announcesBody, bodyReadBefore, bodyTooLarge, isBodyWhole } from './incoming-body.ts';
import { type Problem, problem } from './problem.ts';

/** 1 MiB. */
export const jsonBodyBytesMax = 1024 * 1024;

/**
 * The parsed body. Throws `unsupported-media-type`, `body-too-large`, `body-consumed`, and `bad-body` for one that is
 * missing or no JSON text (RFC 8259).
 */
export async function readJsonBody(ctx: Context, bytesMax: number = jsonBodyBytesMax): Promise<unknown> {
  const { req } = ctx;
  if (!announcesBody(req.headers, bytesMax)) throw badBody('The body is missing: send a JSON object.');
  refuseOtherTypes(ctx);
  return parse(isBodyWhole(req) ? await readAll(req, bytesMax) : bodyReadBefore(ctx, bytesMax));
}

/** JSON is UTF-8 between systems (RFC 8259, section 8.1), and nothing here unpacks what a client has packed. */
function refuseOtherTypes(ctx: Context): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = ctx.req.headers;
  const [essence = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  if (essence !== 'application/json') {
    throw unsupported(ctx, essence === '' ? 'The body has no Content-Type: send application/json.' : sendJson);
  }
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset=(?:utf-?8|"utf-?8")$/.test(charset)) {
    throw unsupported(ctx, 'JSON is in UTF-8: send it so, without another charset.');
  }
  if (encoding.trim().toLowerCase() !== 'identity') {
    throw unsupported(ctx, 'Send the body as it is, without Content-Encoding.', { 'Accept-Encoding': 'identity' });
  }
}

const sendJson = 'Send the body as application/json.';

/** RFC 9110 section 15.5.16, and for PATCH RFC 5789 section 2.2. */
function unsupported(ctx: Context, detail: string, headers: Readonly<Record<string, string>> = {}): Problem {
  const accepted = 'application/json';
  const patch: Readonly<Record<string, string>> = ctx.method === 'PATCH' ? { 'Accept-Patch': accepted } : {};
  return problem('unsupported-media-type', { detail, headers: { Accept: accepted, ...patch, ...headers } });
}

/**
 * Not with `for await`, which destroys the request, and with it the answer's connection, when it stops early. What is
 * left of a body that grows too large is read and dropped: a connection that is closed over unread bytes is reset, and
 * a reset can overtake the answer.
 */
function readAll(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = () => {
      req.removeListener('data', onData).removeListener('end', onEnd);
      req.removeListener('error', onError).removeListener('close', onClose);
    };
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length <= bytesMax) return;
      stop();
      req.resume();
      reject(bodyTooLarge(bytesMax));
    };
    const onEnd = () => {
      stop();
      resolve(Buffer.concat(chunks));
    };
    const onError = (error: Error) => {
      stop();
      reject(error);
    };
    const onClose = () => onError(Object.assign(new Error('the client broke off its body'), { code: 'ECONNRESET' }));
    // One that was read ahead and is empty has ended before anybody listened; one that broke off before says nothing more.
    if (req.readableEnded) onEnd();
    else if (req.destroyed) onClose();
    else req.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parse(body: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : utf8.decode(body));
  } catch (cause) {
    throw badBody('The body is not JSON text in UTF-8.', cause);
  }
}

function badBody(detail: string, cause?: unknown): Problem {
  return problem('bad-body', { detail, cause });
}
