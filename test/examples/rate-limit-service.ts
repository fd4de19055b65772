/** Runs only the rate-limit service, a gRPC server for Envoy or any other client of the same protocol. */
import { configurationFrom, createLimiter, createMemoryCounters, serveRateLimit } from 'frontdesk';

const { configuration, errors } = configurationFrom({
  records: [],
  limits: [{ domain: 'shop', descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 3 } }] }],
});
if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));

const server = await serveRateLimit({
  limiter: createLimiter({ limits: configuration.limits, counters: createMemoryCounters({ clock: Date.now }) }),
  port: Number(process.env['PORT'] ?? 8081),
  logger: { error: (fields, message) => void process.stderr.write(`${message} ${JSON.stringify(fields)}\n`) },
});
process.stdout.write(`grpc://127.0.0.1:${server.port}\n`);

process.once('SIGTERM', () => server.close());
