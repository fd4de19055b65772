/** frontdesk as a library: the whole desk, and the parts that are of use alone. */
import './node-version.ts';

export { createAuthenticator, createAuthService, createUsers, hashPassword } from '#auth';
export { configurationFrom, formatErrors, loadConfiguration, type ModuleName } from '#config';
export type { ExplainRequest, Explanation } from '#explain';
export { createGateway, createResolve } from '#gateway';
export {
  builtInFormatters,
  createHostCheck,
  createProblemResponses,
  createRepresentations,
  createRequestContext,
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
export { createFrontdesk, type Frontdesk, type FrontdeskOptions, type Listeners, type Listening } from '#server';
