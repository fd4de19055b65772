/** A whole answer as plain data: made before it is sent, so that it can be kept and sent again. */
import type { Context } from 'koa';
import { digestTag } from './conditional.ts';
import type { Formatter } from './formatters.ts';

/** Survives `JSON.stringify` and `JSON.parse`. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface AnswerOptions {
  /** Heads the page for people. */
  readonly title: string;
  /** As in `RepresentOptions`. */
  readonly version: string | undefined;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer that represents `value`, with its entity tag. */
export function prepareAnswer(formatter: Formatter, value: unknown, options: AnswerOptions): StoredAnswer {
  const { title, version, status, headers } = options;
  const body = formatter.format(value, title);
  const tag = version === undefined ? digestTag(body) : `"${version}-${formatter.tag}"`;
  const ofBody = { ETag: tag, 'Content-Type': formatter.contentType, ...formatter.headers };
  return { status, headers: { ...headers, ...ofBody }, body };
}

/** `isReplayed`: the deed was done by an earlier request, which had the same answer. */
export function sendAnswer(ctx: Context, { status, headers, body }: StoredAnswer, isReplayed: boolean): void {
  ctx.status = status;
  ctx.vary('Accept');
  ctx.set({ 'Cache-Control': 'private, no-cache', ...headers });
  if (isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.body = body;
}
