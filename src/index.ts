/** The public API of the library: the whole server, and the parts that are useful on their own. */
import './node-version.ts';

export {
  type Authenticator,
  type AuthenticatorOptions,
  type AuthService,
  type AuthServiceOptions,
  createAuthenticator,
  createAuthService,
  createUsers,
  hashPassword,
  type LiveAuthenticator,
  type UserRecord,
  type UserStore,
} from '#auth';
export {
  type ConfigurationRecords,
  configurationFrom,
  formatErrors,
  type LoadedConfiguration,
  loadConfiguration,
  type ModuleName,
} from '#config';
export type { Explain, ExplainRequest, Explanation } from '#explain';
export {
  createGateway,
  createResolve,
  type Gateway,
  type GatewayOptions,
  type Resolve,
  type ResolverOptions,
} from '#gateway';
export {
  type Addresses,
  type AddressOptions,
  builtInFormatters,
  createAddresses,
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
  type ProblemOptions,
  type ProblemResponsesOptions,
  problem,
  type Representations,
  type UpgradeListener,
} from '#http';
export {
  type Counters,
  connectRateLimit,
  createLimiter,
  createMemoryCounters,
  type Decision,
  type Hit,
  type HitResult,
  InvalidRequest,
  type Limiter,
  type LimiterOptions,
  type LocalLimiter,
  type MemoryCounters,
  type RateLimitClient,
  type RateLimitClientOptions,
  type RateLimitRequest,
  type RateLimitServer,
  type RateLimitServerOptions,
  serveRateLimit,
} from '#ratelimit';
export { createVersions } from '#rest';
export {
  type CloseOptions,
  createFrontdesk,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type Listening,
} from '#server';
