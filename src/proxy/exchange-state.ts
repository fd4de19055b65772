/** What is known of one request's exchange with a service. */
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { AnswerBody } from './answer-body.ts';
import type { Cluster } from './cluster.ts';
import type { Abandon, AnswerHead, AttemptListener } from './exchange-attempt.ts';
import type { Upload } from './request-body.ts';
import type { RetryRules } from './retry.ts';

/** What all exchanges of a mapping have in common. */
export interface Way {
  readonly cluster: Cluster;
  readonly retries: RetryRules;
  /** From the end of the request until the response headers, in milliseconds, all attempts included; 0: without end. */
  readonly timeoutMs: number;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Milliseconds. */
  readonly clock: () => number;
  /** There will be another attempt, after a pause; `because` of an error or a status. */
  readonly onRetry: (pauseMs: number, because: unknown) => void;
}

export interface UpstreamRequest {
  readonly options: Dispatcher.DispatchOptions;
  /** Undefined: without a body. */
  readonly upload: Upload | undefined;
  readonly onInterim: AttemptListener['onInterim'];
}

export interface Answer {
  readonly head: AnswerHead;
  readonly body: AnswerBody;
  /** Of the address that gave it. */
  readonly origin: string;
  /** What the request asked to switch, if this is its 101. */
  readonly connection: Duplex | undefined;
}

/** Where one request stands. */
export interface Exchange {
  readonly way: Way;
  readonly request: UpstreamRequest;
  readonly startedAtMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (cause: unknown) => void;
  tried: readonly string[] | undefined;
  retries: number;
  hasRaced: boolean;
  /** An attempt was given up before it failed by itself. */
  hasAbandoned: boolean;
  /** Answered or given up: what is still heard of an attempt does not matter. */
  isSettled: boolean;
  abandon: Abandon | undefined;
  releaseRetry: (() => void) | undefined;
  deadline: NodeJS.Timeout | undefined;
  /** Until the end of one attempt, or of the pause before it. */
  timer: NodeJS.Timeout | undefined;
}
