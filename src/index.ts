/** frontdesk as a library: the whole desk, and the parts that are of use alone. */
export { createAuthenticator, createAuthService, createUsers, hashPassword } from '#auth';
export { configurationFrom, formatErrors, loadConfiguration } from '#config';
export { createGateway, createResolve, type Explanation, type Question } from '#gateway';
export {
  builtInFormatters,
  createExchange,
  createProblemResponses,
  createRepresentations,
  createSafePath,
  type ErrorBody,
  type Fault,
  type Formatter,
  type Logger,
  Problem,
  problem,
  type Representations,
} from '#http';
export { connectRateLimit, createLimiter, createMemoryCounters, type Limiter, serveRateLimit } from '#ratelimit';
export { createVersions } from '#rest';
export type { Frontdesk, FrontdeskOptions, Listeners, Listening, ModuleName } from './options.ts';
export { createFrontdesk } from './server.ts';
