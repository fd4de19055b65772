/** A grpc-js server with an empty handler, as the peer of the rate-limit service. */
import { join } from 'node:path';
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { root } from '../processes/child.ts';

const definition = loadSync('envoy/service/ratelimit/v3/rls.proto', { includeDirs: [join(root, 'proto')] });

const server = new Server();
const response = { overallCode: 1 };
server.addService(definition['envoy.service.ratelimit.v3.RateLimitService'] as ServiceDefinition, {
  ShouldRateLimit: (_call: unknown, callback: (error: null, response: object) => void) => callback(null, response),
});
server.bindAsync(`127.0.0.1:${process.env['PORT']}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
});
