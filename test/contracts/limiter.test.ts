/** Runs the limiter contract in-process and over gRPC, with both packages of the protocol. */
import { connectRateLimit, type Limiter, type ProtocolName, serveRateLimit } from '#ratelimit';
import { limiterContract, type OpenLimiter } from './limiter.ts';

function overGrpc(protocol: ProtocolName) {
  return async (served: Limiter): Promise<OpenLimiter> => {
    const server = await serveRateLimit({ limiter: served, port: 0, logger: { error() {} } });
    const limiter = connectRateLimit({
      target: () => ({ host: '127.0.0.1', port: server.port }),
      timeoutMs: 5_000,
      protocol,
    });
    return {
      limiter,
      async close() {
        await limiter.close();
        await server.close();
      },
    };
  };
}

const everything = { resetSeconds: true, name: true, override: true };
const nothing = { resetSeconds: false, name: false, override: false };

limiterContract('in-process', everything, async (limiter) => ({ limiter, close: async () => {} }));
limiterContract('over gRPC, envoy.service.ratelimit.v3', everything, overGrpc('v3'));
limiterContract('over gRPC, pb.lyft.ratelimit', nothing, overGrpc('lyft'));
