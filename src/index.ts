/** The public API of the library: the whole server, and the parts that are useful on their own. */
import './node-version.ts';

export {
  type AmbassadorRecord,
  type AuthServiceInput,
  type Configuration,
  type ConfigurationRecords,
  configurationFrom,
  formatErrors,
  type JwtProviderInput,
  type LoadedConfiguration,
  loadConfiguration,
  type MappingInput,
  type RateLimitServiceInput,
  type RecordInput,
  type ServiceManifest,
  type UserInput,
  type VersionInput,
} from '#config';
export type { Explain, ExplainRequest, Explanation } from '#explain';
export type { Logger } from '#foundation';
export {
  createGateway,
  createResolve,
  type Gateway,
  type GatewayOptions,
  type GatewayRecords,
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
  Problem,
  type ProblemOptions,
  type ProblemResponsesOptions,
  problem,
  type Representations,
  type UpgradeListener,
} from '#http';
export { createVersions } from '#rest';
export {
  type CloseOptions,
  createFrontdesk,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type Listening,
} from '#server';
export type { ModuleName } from '#server/product';
export * from './exports/auth.ts';
export * from './exports/ratelimit.ts';
