/** The ground state: settings, records and limits, read once into plain frozen data. */

export { concealMessage, concealText, isSecretKey, type NamesSecret } from './conceal-text.ts';
export type {
  Algorithm,
  AuthService,
  CircuitBreakers,
  Configuration,
  ConfigurationError,
  CorsRule,
  HeaderRules,
  HeaderValue,
  HealthCheck,
  HeldPrefix,
  HostMatch,
  Label,
  LabelGroup,
  Limit,
  LimitDescriptor,
  LimitDomain,
  Mapping,
  NamedMatch,
  OutlierDetection,
  RateLimitHeaderStyle,
  RateLimitService,
  Redirect,
  RegexRewrite,
  RetryCondition,
  RetryPolicy,
  Source,
  TextMatch,
  Unit,
  User,
  Version,
} from './configuration.ts';
export type { ConfigurationRecords } from './configuration-records.ts';
export { demoUsersAmong, exposedDemoUsers } from './demo-users.ts';
export type { HeaderVariable } from './header-rules.ts';
export {
  configurationFrom,
  type LoadedConfiguration,
  type LoadOptions,
  loadConfiguration,
} from './load.ts';
export { mappingDefaults } from './mapping-defaults.ts';
export { foldsCase, matchKey } from './match-key.ts';
export { type ModuleName, moduleNames } from './module-names.ts';
export { packageVersion } from './package-version.ts';
export { type CompiledPattern, compilePattern, type Pattern } from './pattern.ts';
export { keepGood, withoutRecords } from './quarantine.ts';
export {
  formatServiceReference,
  parseServiceReference,
  type ServiceReference,
} from './references.ts';
export { formatErrors } from './report.ts';
export { requireConfiguration, requireSettings } from './require.ts';
export { namesSecret } from './secret-names.ts';
export { formatSettings, listSettings, type SettingRow } from './setting-table.ts';
export {
  parseSettings,
  type SettingOptions,
  type Settings,
  type SettingsResult,
  settingsFrom,
} from './settings.ts';
export { writeStarter } from './starter.ts';
export { loadTls, type Tls } from './tls.ts';
export { type ConfigurationWatch, type WatchOptions, watchConfiguration } from './watch.ts';
export { windowSeconds } from './window.ts';
