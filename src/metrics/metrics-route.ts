/** Where Prometheus reads the metrics: one path, only read, in one format whatever it accepts. */
import type { Context } from 'koa';
import type { InternalRoute } from '#gateway';
import { answerOtherMethod, problem } from '#http';
import type { Metrics } from './metrics.ts';

const allowed = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Behind the auth service. Every Prometheus takes the plain text, and says so with the last part of its `Accept`; to refuse
 * it to others would help nobody (RFC 9110 section 12.5.1).
 */
export function createMetricsRoute(metrics: Metrics, path = '/gateway/v0/metrics'): InternalRoute {
  return {
    name: 'metrics',
    prefix: path,
    rewrite: '',
    authenticated: true,
    async run(ctx: Context) {
      if (ctx.path !== path) throw problem('not-found');
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return answerOtherMethod(ctx, allowed);
      const text = await metrics.text();
      ctx.set({ 'Content-Type': metrics.contentType, 'Cache-Control': 'no-store' });
      ctx.body = text;
    },
  };
}
