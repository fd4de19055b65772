/** The ground state: settings, records and limits, read once into plain frozen data. */
export type {
  Algorithm,
  AuthService,
  Configuration,
  ConfigurationError,
  Label,
  LabelGroup,
  Limit,
  LimitDescriptor,
  LimitDomain,
  Mapping,
  RateLimitHeaderStyle,
  RateLimitService,
  Source,
  Unit,
  User,
} from './configuration.ts';
export { demoUsersAmong } from './demo-users.ts';
export {
  type ConfigurationRecords,
  configurationFrom,
  type LoadedConfiguration,
  type LoadOptions,
  loadConfiguration,
} from './load.ts';
export { packageVersion } from './package-version.ts';
export {
  formatServiceReference,
  parseServiceReference,
  type ServiceReference,
} from './references.ts';
export { formatErrors } from './report.ts';
export { requireConfiguration, requireSettings } from './require.ts';
export { listSettings, type SettingRow } from './setting-table.ts';
export {
  parseSettings,
  type SettingOptions,
  type Settings,
  type SettingsResult,
  settingsFrom,
} from './settings.ts';
export { loadTls, type Tls } from './tls.ts';
export { type ConfigurationWatch, type WatchOptions, watchConfiguration } from './watch.ts';
