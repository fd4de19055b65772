/** What frontdesk consists of: the modules and the settings of the gateway and of travel. */
import { gatewaySettings, type SettingOptionsOf, type SettingsOf } from '#config';
import { travelSettings } from '#travel';

export {
  chooseModules,
  httpModules,
  type ModuleChoice,
  type ModuleName,
  moduleFacts,
  moduleNames,
  noticeContextOf,
  usesDemoData,
} from './modules.ts';
export { groupByTopic } from './topics.ts';

/** Every setting, in the order of `frontdesk --help`. */
export const settingTable: typeof gatewaySettings & typeof travelSettings = { ...gatewaySettings, ...travelSettings };

export type Settings = SettingsOf<typeof settingTable>;

/**
 * The settings that a program may pass, which passes the directory as `config`, and runs frontdesk in its own thread. The
 * build adds them with their docs.
 */
export interface SettingOptions extends Omit<SettingOptionsOf<typeof settingTable>, 'configDir' | 'threads'> {}
