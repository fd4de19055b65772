/** What of a request's body an auth service is told. */
import type { Context } from 'koa';
import type { AuthService } from '#config';
import { problem } from '#http';
import { peekBody } from '#proxy';

export interface AuthBody {
  readonly bytes: Buffer;
  /** False: there is more, which the auth service does not see. */
  readonly isWhole: boolean;
}

const nothing: AuthBody = Object.freeze({ bytes: Buffer.alloc(0), isWhole: true });

/** The body itself stays where it is. Undefined when the client breaks off; throws `body-too-large`. */
export async function readAuthBody(
  { req, res }: Context,
  { maxBytes, allowPartial }: NonNullable<AuthService['includeBody']>,
): Promise<AuthBody | undefined> {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers;
  if (coding === undefined && Number(length) === 0) return nothing;
  if (!allowPartial && Number(length) > maxBytes) throw tooLarge(maxBytes);
  const peeked = await peekBody(req, res, maxBytes);
  if (peeked === undefined || peeked.isWhole) return peeked;
  if (!allowPartial) throw tooLarge(maxBytes);
  return { bytes: peeked.bytes.subarray(0, maxBytes), isWhole: false };
}

function tooLarge(maxBytes: number) {
  return problem('body-too-large', {
    detail: `The body may have ${maxBytes} bytes at most, since it is shown to the auth service.`,
    headers: { Connection: 'close' },
  });
}
