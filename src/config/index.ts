/** Reads settings, records, limits and users into plain frozen data. */

export {
  type Acceptance,
  accept,
  type ConfigurationPart,
  type Refusal,
  refuseRecords,
  requireConfiguration,
  requireNoErrors,
} from './acceptance.ts';
export { isGuardingIngress } from './ambassador/other-kinds.ts';
export { ambassadorDomain } from './ambassador/translate.ts';
export { escapedData, formatAnnotations } from './annotations.ts';
export { hasConfiguration, settingsFile } from './directory.ts';
export {
  addKeyToFile,
  addUserToFile,
  type NewKey,
  type NewUser,
  removeKeyFromFile,
  removeUserFromFile,
  setPasswordInFile,
  usersInFile,
} from './edit-users.ts';
export {
  type ConfigurationError,
  type Fault,
  fileError,
  formatErrors,
  shortened,
  suggestion,
  writeError,
} from './errors.ts';
export {
  hostForClients,
  isHost,
  isLoopback,
  parseServiceReference,
  type ServiceReference,
} from './fields/addresses.ts';
export { isDisguise } from './fields/disguises.ts';
export { snakeCase } from './fields/field.ts';
export {
  credentialHeaders,
  framingFault,
  type HeaderRules,
  type HeaderValue,
  type HeaderVariable,
} from './fields/headers.ts';
export { type AllowedOrigin, createAllowedOrigin } from './fields/origins.ts';
export { compileIgnoringCase, compilePattern, type Pattern } from './fields/pattern.ts';
export { type ClaimValue, describeClaims, type RequiredClaim } from './fields/required-claims.ts';
export type { Sticky } from './fields/sticky.ts';
export type { AttachedPolicy, GatewayRoute } from './gateway-api/gateway-route.ts';
export { createGatewayApi } from './gateway-api/resolve.ts';
export { controllerName, gatewayApiGroup } from './gateway-api/specs.ts';
export type { Condition, DesiredStatus } from './gateway-api/status.ts';
export type { UnservedCounts } from './gateway-api/unserved.ts';
export type { DescriptorInput, LimitDescriptor, LimitDomain, LimitDomainInput } from './limits/domains.ts';
export type { RateLimitInput } from './limits/limit.ts';
export { reachedLimits } from './limits/reached.ts';
export {
  type Configuration,
  type ConfigurationRecords,
  configurationFrom,
  freezeDeep,
  type LoadedConfiguration,
  loadConfiguration,
  loadDirectory,
} from './load.ts';
export { annotationKey } from './manifest.ts';
export { type NoticeContext, openRouteNotices, processNotices } from './notices.ts';
export {
  type AcceptedObjects,
  createObjectAcceptance,
  nothingRead,
  type ObjectAcceptance,
  type RecordsOfCluster,
} from './objects/accept-objects.ts';
export { excessOf } from './objects/bounds.ts';
export {
  byAge,
  type ClusterObject,
  generationOf,
  nameOfObject,
  type ObjectVerdict,
  unusableError,
} from './objects/object.ts';
export { isOwnKind, ownGroup, pluralOf } from './objects/own-kinds.ts';
export { leadsToThisMachine } from './objects/references.ts';
export { quote, withoutSecrets } from './quote.ts';
export { type AuthService, keyHeaderOf, ownAuthService } from './records/auth-service.ts';
export { recordError } from './records/conflicts.ts';
export type { CorsRule } from './records/cors.ts';
export type {
  AmbassadorRecord,
  AuthServiceInput,
  JwtProviderInput,
  MappingInput,
  RateLimitServiceInput,
  RecordInput,
  ServiceManifest,
  VersionInput,
} from './records/input.ts';
export type { Label, LabelGroup } from './records/labels.ts';
export { callsService, type Mapping, mappingDefaults } from './records/mapping.ts';
export {
  foldsCase,
  groupOf,
  type HostMatch,
  type NamedMatch,
  type RequestMatch,
  type TextMatch,
} from './records/match.ts';
export { protectionOf } from './records/protection.ts';
export type { RateLimitHeaderStyle, RateLimitService } from './records/rate-limit-service.ts';
export { formatRedirectHost, type Redirect, type RegexRewrite } from './records/rewrite.ts';
export { type RouteFacts, routeFacts } from './records/route-facts.ts';
export { publicKeyOf } from './records/tokens/jwk.ts';
export type { JwtProvider } from './records/tokens/jwt-provider.ts';
export type {
  CircuitBreakers,
  GrpcRetryCondition,
  HealthCheck,
  OutlierDetection,
  RetryCondition,
  RetryPolicy,
} from './records/upstream-fields.ts';
export type { Version } from './records/version.ts';
export { schemaFiles } from './schemas/files.ts';
export { findSchemas } from './schemas/installed.ts';
export { formatResourceDefinitions } from './schemas/resources.ts';
export { formatSettings, gatewaySettings, listSettings, variableOf, variables } from './settings/gateway-settings.ts';
export { count, numberKind, type Setting, type SettingTable, textKind, timeoutMs } from './settings/kinds.ts';
export {
  type Environment,
  lineOfSetting,
  parseSettings,
  readSettingsFile,
  requireSettings,
  type SettingFault,
  type SettingOptionsOf,
  type Settings,
  SettingsError,
  type SettingsOf,
} from './settings/settings.ts';
export { demoDirectory, modulesNamedBy, openFilesMax, packageVersion, withoutAddress } from './this-process.ts';
export {
  allCertificates,
  loadTls,
  readTls,
  type ServerCertificate,
  type Tls,
  tlsPlaces,
  usesTls,
} from './tls/certificates.ts';
export { certificateFault } from './tls/pem.ts';
export { type RedisFiles, readRedisFiles } from './tls/redis-files.ts';
export { type ServedCertificate, tlsOf } from './tls/served-certificates.ts';
export type { UpstreamFile } from './tls/upstream-files.ts';
export type { UpstreamTls } from './tls/upstream-tls.ts';
export { mapInTurns, nextTurn } from './turns.ts';
export { type DemoLogin, demoLoginsAmong, demoUsersAmong, type User, type UserInput } from './users.ts';
export { createFolderWatch, createQuietTimer, type FolderWatch } from './watch/folders.ts';
export { watchSettingsFile } from './watch/settings-file.ts';
export { type ConfigurationWatch, watchConfiguration } from './watch/watch.ts';
export { readYaml } from './yaml.ts';
